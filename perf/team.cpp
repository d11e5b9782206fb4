// SPDX-License-Identifier: Apache-2.0
#include "perf/team.h"

#include <fmt/format.h>
#include <shoal/shoal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "perf/group.h"

namespace shoal::perf {
namespace {

constexpr int kTimeoutResult = 8;  // ncclTimeout, which headers before 2.30 do not name

// How a rank introduces itself: bytes that add up, as all others leave its place zero.
struct Card {
  std::array<char, 64> host = {};
  std::int32_t pid = 0;
  std::int32_t device = 0;
  std::uint64_t machine = 0;
};

// Equal where the library takes ranks for ones of the same host: the same kernel, network namespace and NCCL_HOSTID.
std::uint64_t machine_number() {
  std::array<char, 64> boot = {}, network = {};
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    static_cast<void>(std::fread(boot.data(), 1, boot.size() - 1, file));
    std::fclose(file);
  }
  static_cast<void>(::readlink("/proc/self/ns/net", network.data(), network.size() - 1));
  std::string text = host_name() + boot.data() + network.data();
  for (const char* name : {"SHOAL_HOSTID", "NCCL_HOSTID"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      text += value;
      break;
    }
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a: the same on all ranks, whatever built them
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return std::string(name.data()).substr(0, std::string_view(name.data()).find('.'));
}

Failure make_failure(ncclResult_t result, const std::string& call, const std::string& ranks) {
  const int code = static_cast<int>(result) == kTimeoutResult ? kTimedOut : kCollectiveFailed;
  return {code, fmt::format("{} pid {}: Test NCCL failure in {}, rank {}: '{}' ({})", host_name(), ::getpid(), call, ranks,
                            ncclGetErrorString(result), ncclGetLastError(nullptr))};
}

Team::Team(int first, int count, int world) : world_(world) {
  for (int i = 0; i < count; ++i) members_.emplace_back().rank = first + i;
}

Team::~Team() { abort(); }

std::string Team::rank_names() const {
  std::vector<int> ranks;
  for (const Member& member : members_) ranks.push_back(member.rank);
  return cli::rank_list(ranks);
}

template <typename Function>
MaybeFailure Team::grouped(const char* call, Function each) {
  const ncclResult_t result = in_group(members_.size() > 1, [&] {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (const ncclResult_t one = each(members_[i], i); one != ncclSuccess) return one;
    }
    return ncclSuccess;
  });
  if (result == ncclSuccess) return std::nullopt;
  return make_failure(result, call, rank_names());
}

MaybeFailure Team::join(std::span<Team> teams, const ncclUniqueId& id) {
  const bool several = teams.size() > 1 || teams.front().members_.size() > 1;
  const ncclResult_t result = in_group(several, [&] {
    for (Team& team : teams) {
      for (Member& member : team.members_) {
        const ncclResult_t one = ncclCommInitRank(&member.comm, team.world_, id, member.rank);
        if (one != ncclSuccess) return one;
      }
    }
    return ncclSuccess;
  });
  if (result == ncclSuccess) return std::nullopt;
  const std::string more = teams.size() > 1 ? fmt::format("-{}", teams.back().members_.back().rank) : "";
  for (Team& team : teams) {
    for (Member& member : team.members_) member.comm = nullptr;  // never came to be
  }
  return make_failure(
      result, "ncclCommInitRank",
      teams.size() > 1 ? fmt::format("{}{}", teams.front().members_.front().rank, more) : teams.front().rank_names());
}

MaybeFailure Team::make_streams() {
  for (Member& member : members_) {
    const ncclResult_t result = shoalStreamCreate(&member.stream);
    if (result != ncclSuccess) return make_failure(result, "shoalStreamCreate", fmt::format("{}", member.rank));
  }
  return std::nullopt;
}

MaybeFailure Team::allocate(std::size_t bytes, Memory memory) {
  for (Member& member : members_) {
    member.send = Buffer::allocate(bytes, memory);
    member.receive = Buffer::allocate(bytes, memory);
    if (!member.send.is_valid() || !member.receive.is_valid()) {
      return Failure{kInternalError, fmt::format("{} pid {}: rank {}: no memory for two buffers of {} bytes", host_name(),
                                                 ::getpid(), member.rank, bytes)};
    }
  }
  return announce(memory);
}

MaybeFailure Team::announce(Memory memory) {
  if (memory == Memory::registered) {
    return grouped("ncclCommRegister", [](Member& member, std::size_t) {
      for (const Buffer* buffer : {&member.send, &member.receive}) {
        void* handle = nullptr;
        const std::span<std::byte> all = buffer->whole();
        if (const auto result = ncclCommRegister(member.comm, all.data(), all.size(), &handle); result != ncclSuccess)
          return result;
        member.handles.push_back(handle);
      }
      return ncclSuccess;
    });
  }
  if (memory != Memory::window) return std::nullopt;
  for (Member& member : members_) member.windows.resize(2);
  return grouped("ncclCommWindowRegister", [](Member& member, std::size_t) {
    const std::span<std::byte> send = member.send.whole(), receive = member.receive.whole();
    const auto result =
        ncclCommWindowRegister(member.comm, send.data(), send.size(), &member.windows[0], NCCL_WIN_COLL_SYMMETRIC);
    if (result != ncclSuccess) return result;
    return ncclCommWindowRegister(member.comm, receive.data(), receive.size(), &member.windows[1], NCCL_WIN_COLL_SYMMETRIC);
  });
}

void Team::forget(Member& member) {
  for (void* handle : member.handles) ncclCommDeregister(member.comm, handle);
  for (ncclWindow_t window : member.windows) ncclCommWindowDeregister(member.comm, window);
  member.handles.clear();
  member.windows.clear();
}

MaybeFailure Team::leave() {
  for (Member& member : members_) {
    forget(member);
    if (member.stream != nullptr) shoalStreamDestroy(member.stream);
    member.stream = nullptr;
  }
  const MaybeFailure failure =
      grouped("ncclCommDestroy", [](Member& member, std::size_t) { return ncclCommDestroy(member.comm); });
  for (Member& member : members_) member.comm = nullptr;
  return failure;
}

void Team::abort() {
  for (Member& member : members_) {
    if (member.comm != nullptr) ncclCommAbort(member.comm);
    member.comm = nullptr;
    if (member.stream != nullptr) shoalStreamDestroy(member.stream);
    member.stream = nullptr;
  }
}

MaybeFailure Team::launch(const Collective& collective, std::span<const Call> calls, int repeats) {
  const int rounds = collective.rounds(world_);
  if (rounds == 1 && repeats == 1 && calls.size() == 1) [[likely]] {  // nothing between the clock and the library
    const ncclResult_t result = collective.launch(calls.front(), 0);
    if (result == ncclSuccess) [[likely]]
      return std::nullopt;
    return make_failure(result, collective.call, rank_names());
  }
  for (int round = 0; round < rounds; ++round) {
    const ncclResult_t result = in_group(calls.size() > 1 || repeats > 1, [&] {
      for (int i = 0; i < repeats; ++i) {
        for (const Call& call : calls) {
          if (const ncclResult_t one = collective.launch(call, round); one != ncclSuccess) return one;
        }
      }
      return ncclSuccess;
    });
    if (result != ncclSuccess) [[unlikely]]
      return make_failure(result, collective.call, rank_names());
  }
  return std::nullopt;
}

MaybeFailure Team::synchronize() {
  for (Member& member : members_) {
    if (member.stream == nullptr) continue;
    ncclResult_t result = shoalStreamSynchronize(member.stream);
    // Work that failed on the stream is the communicator's to tell.
    if (result == ncclSuccess) ncclCommGetAsyncError(member.comm, &result);
    if (result != ncclSuccess) return make_failure(result, "work on a stream", fmt::format("{}", member.rank));
  }
  return std::nullopt;
}

MaybeFailure Team::barrier() {
  std::vector<std::vector<std::int64_t>> nothing(members_.size(), {0});
  return combine(nothing, ncclSum);
}

MaybeFailure Team::combine(std::vector<std::vector<double>>& values, ncclRedOp_t op) {
  return grouped("ncclAllReduce (of times)", [&](Member& member, std::size_t i) {
    return ncclAllReduce(values[i].data(), values[i].data(), values[i].size(), ncclFloat64, op, member.comm, nullptr);
  });
}

MaybeFailure Team::combine(std::vector<std::vector<std::int64_t>>& values, ncclRedOp_t op) {
  return grouped("ncclAllReduce (of counts)", [&](Member& member, std::size_t i) {
    return ncclAllReduce(values[i].data(), values[i].data(), values[i].size(), ncclInt64, op, member.comm, nullptr);
  });
}

MaybeFailure Team::introduce(std::vector<RankInfo>& all, int first_of_process) {
  const auto world = static_cast<std::size_t>(world_);
  std::vector<std::vector<Card>> cards(members_.size(), std::vector<Card>(world));
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Card& card = cards[i][static_cast<std::size_t>(members_[i].rank)];
    const std::string host = host_name();
    std::memcpy(card.host.data(), host.data(), std::min(host.size(), card.host.size() - 1));
    card.pid = ::getpid();
    card.device = members_[i].rank - first_of_process;
    card.machine = machine_number();
  }
  const MaybeFailure failure = grouped("ncclAllReduce (of names)", [&](Member& member, std::size_t i) {
    return ncclAllReduce(cards[i].data(), cards[i].data(), world * sizeof(Card), ncclUint8, ncclSum, member.comm, nullptr);
  });
  if (failure) return failure;
  for (std::size_t rank = 0; rank < world; ++rank) {
    const Card& card = cards.front()[rank];
    all.push_back({static_cast<int>(rank), card.pid, card.host.data(), card.device, card.machine});
  }
  return std::nullopt;
}

}  // namespace shoal::perf
