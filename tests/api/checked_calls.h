// SPDX-License-Identifier: Apache-2.0
// Whole calls of every collective over arrays of the library's memory or of the user's own, their results compared element by
// element.
#pragma once

#include <nccl.h>
#include <shoal/shoal.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace testing {

// Of ncclMemAlloc, or of malloc.
class Array {
 public:
  Array(bool shared, std::size_t elements) : shared_(shared) {
    void* memory = nullptr;
    if (!shared)
      memory = std::calloc(elements + 1, sizeof(std::int32_t));
    else if (ncclMemAlloc(&memory, (elements + 1) * sizeof(std::int32_t)) != ncclSuccess)
      memory = nullptr;
    start_ = static_cast<std::int32_t*>(memory);
  }
  ~Array() {
    if (shared_)
      ncclMemFree(start_);
    else
      std::free(start_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  std::int32_t* data() const { return start_ == nullptr ? nullptr : start_ + 1; }  // at no cache line

 private:
  bool shared_;
  std::int32_t* start_;
};

inline std::int32_t value(int q, std::size_t i) { return q * 1000 + static_cast<std::int32_t>(i % 977); }

enum class Kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter };
constexpr int kKinds = 8;

// One call of n elements a block. What comes out is compared element by element, what is not to be written must stay.
inline std::string call(Kind kind, std::size_t n, int root, bool in_place, bool shared, const Ranks& ranks, ncclComm_t comm) {
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  const bool all_in = kind == Kind::reduce_scatter || kind == Kind::all_to_all || kind == Kind::scatter;
  const bool all_out = kind == Kind::all_gather || kind == Kind::all_to_all || kind == Kind::gather;
  const bool on_root = kind == Kind::reduce || kind == Kind::gather;
  in_place = in_place && kind != Kind::all_to_all;
  const std::size_t ins = n * (all_in ? world : 1), outs = n * (all_out ? world : 1), most = std::max(ins, outs);
  const Array first(shared, most), second(shared, most);
  std::int32_t* in = first.data();
  std::int32_t* out = in_place ? in : second.data();
  if (in == nullptr || out == nullptr) return "no memory";
  if (in_place && ins < outs) in += own * n;
  if (in_place && ins > outs) out += own * n;
  for (std::size_t i = 0; i < ins; ++i) in[i] = value(ranks.rank, i);
  if (!in_place) std::fill_n(out, outs, -1);
  std::vector<std::int32_t> expected(outs);
  const auto sum = [&](std::size_t i) {
    std::int32_t all = 0;
    for (int q = 0; q < ranks.world; ++q) all += value(q, i);
    return all;
  };
  for (std::size_t i = 0; i < outs; ++i) {
    const auto block = static_cast<int>(i / n);
    switch (kind) {
      case Kind::all_reduce:
      case Kind::reduce: expected[i] = sum(i); break;
      case Kind::reduce_scatter: expected[i] = sum(own * n + i); break;
      case Kind::broadcast: expected[i] = value(root, i); break;
      case Kind::all_gather:
      case Kind::gather: expected[i] = value(block, i % n); break;
      case Kind::all_to_all: expected[i] = value(block, own * n + i % n); break;
      case Kind::scatter: expected[i] = value(root, own * n + i); break;
    }
  }
  const bool written = !on_root || ranks.rank == root;
  if (!written && !in_place) std::fill(expected.begin(), expected.end(), -1);
  ncclResult_t result = ncclSuccess;
  switch (kind) {
    case Kind::all_reduce: result = ncclAllReduce(in, out, n, ncclInt32, ncclSum, comm, nullptr); break;
    case Kind::reduce: result = ncclReduce(in, out, n, ncclInt32, ncclSum, root, comm, nullptr); break;
    case Kind::broadcast: result = ncclBroadcast(in, out, n, ncclInt32, root, comm, nullptr); break;
    case Kind::all_gather: result = ncclAllGather(in, out, n, ncclInt32, comm, nullptr); break;
    case Kind::reduce_scatter: result = ncclReduceScatter(in, out, n, ncclInt32, ncclSum, comm, nullptr); break;
    case Kind::all_to_all: result = ncclAlltoAll(in, out, n, ncclInt32, comm, nullptr); break;
    case Kind::gather: result = ncclGather(in, out, n, ncclInt32, root, comm, nullptr); break;
    case Kind::scatter: result = ncclScatter(in, out, n, ncclInt32, root, comm, nullptr); break;
  }
  const std::string what = "kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(n) + " elements, root " +
                           std::to_string(root) + (in_place ? ", in place" : "") + (shared ? ", shared" : "");
  if (std::string wrong = must(result, what.c_str()); !wrong.empty()) return wrong;
  if (!(written || !in_place) || std::memcmp(out, expected.data(), outs * sizeof(std::int32_t)) == 0) return "";
  return what + ": wrong elements";
}

inline std::string run(const std::string& transport, int world, Variables more,
                       const std::function<std::string(const Ranks&, ncclComm_t)>& body) {
  Variables variables = transport_variables(transport);
  variables.insert(variables.end(), more.begin(), more.end());
  const auto of_rank = [&](const Ranks& ranks) { return with_comm(ranks, [&](ncclComm_t comm) { return body(ranks, comm); }); };
  return transport == "threads" ? as_threads(world, variables, 120, of_rank) : as_processes(world, variables, 120, of_rank);
}

}  // namespace testing
