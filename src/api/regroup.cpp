// SPDX-License-Identifier: Apache-2.0
// New communicators out of one: split and shrink.
#include <algorithm>

#include "api/config.h"
#include "api/errors.h"
#include "api/group.h"
#include "api/handle.h"

namespace {

using namespace shoal;
using namespace shoal::api;
using Made = Result<std::unique_ptr<comm::Communicator>>;

// The parent while it is regrouped: kept from the call until every rank has its place, not until the child is there.
using Parent = std::shared_ptr<std::optional<Entered>>;

// What the issuing thread takes from the parent.
struct Issue {
  std::uint64_t ticket = 0;
  engine::Numerics numerics = engine::Numerics::fast;
};

Made make_child(const Parent& parent, const comm::Regrouping& wish, const Issue& issue, const comm::Interrupted& interrupted) {
  Result<std::optional<comm::Membership>> place =
      (*parent)->communicator().regroup(wish, issue.ticket, *environment(), interrupted);
  parent->reset();
  if (!place.is_ok()) return place.status();
  if (!place->has_value()) return std::unique_ptr<comm::Communicator>();
  const comm::Membership& found = **place;
  Made made = comm::Communicator::create({&found.id, 1}, found.rank, found.world, *environment(), interrupted);
  if (made.is_ok()) (*made)->set_numerics(issue.numerics);
  return made;
}

// A mistake of this rank's caller: the others are told, so that they need not wait.
Status tell(Entered entered, const comm::Regrouping& wish) {
  const std::uint64_t ticket = entered.communicator().issue_regrouping();
  if (entered.handle().blocking) {
    (void)entered.communicator().regroup(wish, ticket, *environment(), {});
    return wish.mistake;
  }
  const std::shared_ptr<device::Stream> worker = worker_of(entered.handle());
  worker->enqueue([inside = std::make_shared<Entered>(std::move(entered)), wish, ticket] {
    (void)inside->communicator().regroup(wish, ticket, *environment(), {});
  });
  return wish.mistake;
}

// The child's configuration: as given, or the parent's.
struct Chosen {
  ncclConfig_t config;
  bool blocking;
};
Result<Chosen> choose(const ncclConfig_t* config, const ncclComm& parent) {
  if (config == nullptr) return Chosen{parent.config, parent.blocking};
  Result<ncclConfig_t> read = read_config(config);
  if (!read.is_ok()) return read.status();
  const Result<bool> blocking = is_blocking(*read);
  if (!blocking.is_ok()) return blocking.status();
  return Chosen{*read, *blocking};
}

Status regroup(const char* function, Entered entered, comm::Regrouping wish, ncclComm_t* out, const ncclConfig_t* config,
               bool kills) {
  wish.timeout = std::chrono::milliseconds(environment()->timeout_ms);
  const Result<Chosen> chosen = choose(config, entered.handle());
  if (wish.mistake.is_ok()) wish.mistake = require(out, "newcomm");
  if (wish.mistake.is_ok()) wish.mistake = chosen.status();
  if (!wish.mistake.is_ok()) return tell(std::move(entered), wish);

  ncclComm& handle = entered.handle();
  Making making{
      .function = function, .out = out, .config = chosen->config, .blocking = chosen->blocking, .device = handle.device};
  if (!making.blocking && wish.colour == comm::kNoColour) making.for_none = worker_of(handle);
  const auto parent = std::make_shared<std::optional<Entered>>(std::move(entered));
  const auto issue = std::make_shared<Issue>();
  making.issue = [parent, issue, kills] {
    if (kills) (void)revoke(&(*parent)->handle());
    comm::Communicator& communicator = (*parent)->communicator();
    *issue = {communicator.issue_regrouping(), communicator.numerics()};
  };
  making.make = [parent, issue, wish = std::move(wish)](const comm::Interrupted& interrupted) {
    return make_child(parent, wish, *issue, interrupted);
  };
  return submit(std::move(making));
}

Status split(ncclComm_t comm, int colour, int key, ncclComm_t* out, const ncclConfig_t* config) {
  Result<Entered> entered = Entered::enter(comm, For::regrouping);
  if (!entered.is_ok()) return entered.status();
  comm::Regrouping wish{.name = "split", .colour = colour, .key = key};
  for (std::int32_t rank = 0; rank < entered->communicator().world().value; ++rank) wish.members.push_back({rank});
  if (colour < 0 && colour != NCCL_SPLIT_NOCOLOR) {
    wish.mistake =
        fail(Code::invalid_argument, "color is {}, must be 0 or more, or NCCL_SPLIT_NOCOLOR ({})", colour, NCCL_SPLIT_NOCOLOR);
    wish.colour = comm::kNoColour;
  }
  return regroup("ncclCommSplit", entered.take(), std::move(wish), out, config, false);
}

// The ranks that are not excluded, ascending.
Result<std::vector<Rank>> survivors(const comm::Communicator& parent, const int* excluded, int count) {
  const std::int32_t world = parent.world().value, self = parent.rank().value;
  if (Status s = require(excluded, "excludeRanksList"); !s.is_ok()) return s;
  if (count < 1 || count >= world)
    return fail(Code::invalid_argument, "excludeRanksCount is {}, must be 1 .. {}: some ranks go, and this one stays", count,
                world - 1);
  std::vector<bool> gone(static_cast<std::size_t>(world));
  for (int i = 0; i < count; ++i) {
    const int rank = excluded[i];
    if (rank < 0 || rank >= world)
      return fail(Code::invalid_argument, "excludeRanksList[{}] is {}, must be 0 .. {}", i, rank, world - 1);
    if (rank == self)
      return fail(Code::invalid_argument, "excludeRanksList[{}] is {}, this rank itself: only those that stay make this call", i,
                  rank);
    if (gone[static_cast<std::size_t>(rank)])
      return fail(Code::invalid_argument, "excludeRanksList[{}] is {}, which stands in the list before", i, rank);
    gone[static_cast<std::size_t>(rank)] = true;
  }
  std::vector<Rank> staying;
  for (std::int32_t rank = 0; rank < world; ++rank)
    if (!gone[static_cast<std::size_t>(rank)]) staying.push_back({rank});
  return staying;
}

// (A wrong list is not told to the others: it does not say who they are.)
Status shrink(ncclComm_t comm, const int* excluded, int count, ncclComm_t* out, const ncclConfig_t* config, int flags) {
  Result<Entered> entered = Entered::enter(comm, For::regrouping);
  if (!entered.is_ok()) return entered.status();
  Result<std::vector<Rank>> staying = survivors(entered->communicator(), excluded, count);
  if (!staying.is_ok()) return staying.status();
  comm::Regrouping wish{.name = "shrink", .members = staying.take(), .colour = 0};
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
    wish.mistake = fail(Code::invalid_argument, "shrinkFlags is {}, must be NCCL_SHRINK_DEFAULT ({}) or NCCL_SHRINK_ABORT ({})",
                        flags, NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT);
  return regroup("ncclCommShrink", entered.take(), std::move(wish), out, config, flags == NCCL_SHRINK_ABORT);
}

}  // namespace

extern "C" {

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guarded("ncclCommSplit", [&] { return poison_group(split(comm, color, key, newcomm, config)); });
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                             ncclConfig_t* config, int shrinkFlags) {
  return guarded("ncclCommShrink",
                 [&] { return poison_group(shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags)); });
}

[[gnu::weak, gnu::alias("pncclCommSplit")]] decltype(pncclCommSplit) ncclCommSplit;
[[gnu::weak, gnu::alias("pncclCommShrink")]] decltype(pncclCommShrink) ncclCommShrink;

}  // extern "C"
