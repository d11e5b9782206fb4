// SPDX-License-Identifier: Apache-2.0
// Windows: memory that all ranks register together. The ranks tell each other what they register, so that a difference, or an
// argument that one of them refuses, is an error of this call on all of them, and the communicator goes on.
#include <vector>

#include "api/errors.h"
#include "api/group.h"
#include "api/handle.h"

namespace {

using namespace shoal;
using namespace shoal::api;
using comm::Registrations;

// What one rank says of its window; they travel as they are.
struct Statement {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t refused;  // 1: its arguments are wrong
};
constexpr std::size_t kWords = sizeof(Statement) / sizeof(std::uint64_t);

// What is wrong with this rank's arguments, looked at alone.
Status check(const void* start, std::size_t size, const ncclWindow_t* window, int flags) {
  if (Status s = require(window, "win"); !s.is_ok()) return s;
  if (Status s = require(start, "buff"); !s.is_ok()) return s;
  if (size == 0) return fail(Code::invalid_argument, "size is 0: there is nothing to register");
  if (flags != NCCL_WIN_DEFAULT && flags != NCCL_WIN_COLL_SYMMETRIC)
    return fail(Code::invalid_argument, "winFlags is {:#x}, must be NCCL_WIN_DEFAULT (0) or NCCL_WIN_COLL_SYMMETRIC (1)", flags);
  if (flags == NCCL_WIN_COLL_SYMMETRIC && reinterpret_cast<std::uintptr_t>(start) % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
    return fail(Code::invalid_argument,
                "buff is {}: with NCCL_WIN_COLL_SYMMETRIC it must be a multiple of {} bytes, as what ncclMemAlloc gives is",
                start, NCCL_WIN_REQUIRED_ALIGNMENT);
  return {};
}

class Registering final : public Sequel {
 public:
  Registering(comm::Communicator& communicator, const void* start, std::size_t size, ncclWindow_t* out, int flags, Status refusal)
      : communicator_(communicator),
        start_(start),
        out_(out),
        refusal_(std::move(refusal)),
        mine_{size, static_cast<std::uint64_t>(flags), refusal_.is_ok() ? 0u : 1u},
        all_(static_cast<std::size_t>(communicator.world().value)) {}

  // Each rank's statement to all. Its reduction, which an all-gather has no use for, keeps it apart from the user's: the receiver
  // of a message compares it.
  engine::Call call() {
    return {.collective = plan::Collective::all_gather,
            .input = &mine_,
            .output = all_.data(),
            .count = {kWords},
            .type = DataType::uint64,
            .op = ReduceOp::premul_sum};
  }

  // All ranks come to the same end, and say the same.
  Status run() override {
    if (!refusal_.is_ok()) return refusal_;
    for (std::size_t q = 0; q < all_.size(); ++q)
      if (all_[q].refused != 0)
        return fail(Code::invalid_usage, "rank {} called it with an argument that is wrong: nobody has registered this window",
                    q);
    for (std::size_t q = 1; q < all_.size(); ++q)
      if (all_[q].size != all_[0].size || all_[q].flags != all_[0].flags)
        return fail(Code::invalid_usage,
                    "rank {} registers {} bytes with winFlags {}, rank 0 {} bytes with winFlags {}: all ranks must register the "
                    "same size with the same flags",
                    q, all_[q].size, all_[q].flags, all_[0].size, all_[0].flags);
    *out_ =
        reinterpret_cast<ncclWindow_t>(communicator_.registrations().add({Registrations::Kind::window, start_, {mine_.size}}));
    return {};
  }

 private:
  comm::Communicator& communicator_;
  const void* start_;
  ncclWindow_t* out_;
  Status refusal_;
  Statement mine_;
  std::vector<Statement> all_;
};

// A refused argument is said at once, and when the group ends; but this rank takes part, so that the others need not wait.
Status register_window(ncclComm_t comm, const void* start, std::size_t size, ncclWindow_t* out, int flags) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return poison_group(entered.status());
  Status refusal = check(start, size, out, flags);
  auto registering = std::make_unique<Registering>(entered->communicator(), start, size, out, flags, refusal);
  const engine::Call call = registering->call();
  Status submitted = submit(Issued{.on = entered.take(), .call = call, .sequel = std::move(registering)});
  return refusal.is_ok() ? submitted : refusal;
}

Status deregister_window(ncclComm_t comm, ncclWindow_t window) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  if (window == nullptr) return {};
  if (entered->communicator().registrations().remove(Registrations::Kind::window, reinterpret_cast<std::uintptr_t>(window)))
    return {};
  return fail(Code::invalid_usage, "win {} is no window of this communicator, or was deregistered already",
              static_cast<void*>(window));
}

}  // namespace

extern "C" {

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags) {
  return guarded("ncclCommWindowRegister", [&] { return register_window(comm, buff, size, win, winFlags); });
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return guarded("ncclCommWindowDeregister", [&] { return poison_group(deregister_window(comm, win)); });
}

[[gnu::weak, gnu::alias("pncclCommWindowRegister")]] decltype(pncclCommWindowRegister) ncclCommWindowRegister;
[[gnu::weak, gnu::alias("pncclCommWindowDeregister")]] decltype(pncclCommWindowDeregister) ncclCommWindowDeregister;

}  // extern "C"
