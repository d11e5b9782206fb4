// SPDX-License-Identifier: Apache-2.0
#include "rdma/rounds.h"

#include <fmt/format.h>
#include <shoal/shoal.h>

#include <cstdlib>
#include <functional>
#include <vector>

namespace testing {
namespace {

using std::size_t;

// int32 elements, every one its own.
class Buffer {
 public:
  Buffer(size_t count, bool pinned) : count_(count), pinned_(pinned) {
    const size_t bytes = (count + 1) * sizeof(int);
    void* start = nullptr;
    if (pinned)
      (void)ncclMemAlloc(&start, bytes);
    else
      start = std::malloc(bytes);
    data_ = static_cast<int*>(start);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (pinned_)
      (void)ncclMemFree(data_);
    else
      std::free(data_);
  }
  int* data() { return data_; }
  size_t count() const { return count_; }
  template <typename F>
  void fill(F&& value) {
    for (size_t i = 0; i < count_; ++i) data_[i] = value(i);
  }
  // "" or where it differs.
  template <typename F>
  std::string expect(const char* what, size_t count, F&& value) const {
    for (size_t i = 0; i < count; ++i)
      if (data_[i] != value(i)) return fmt::format("{} of {}: element {} is {}, not {}; ", what, count, i, data_[i], value(i));
    return "";
  }

 private:
  size_t count_;
  bool pinned_;
  int* data_ = nullptr;
};

// Element i of rank r's block for rank b.
int element(int rank, size_t block, size_t i) {
  return 1'000'000 * rank + 10'000 * static_cast<int>(block) + static_cast<int>(i % 9973);
}

}  // namespace

std::string every_collective(const Ranks& who, ncclComm_t comm, size_t count, bool pinned) {
  const auto world = static_cast<size_t>(who.world);
  const auto own = static_cast<size_t>(who.rank);
  const int root = who.world - 1;
  const bool at_root = who.rank == root;
  Buffer in(count * world, pinned), out(count * world, pinned);
  std::string wrong;
  const auto run = [&](const char* name, const std::function<ncclResult_t()>& call) {
    in.fill([&](size_t i) { return element(who.rank, count == 0 ? 0 : i / count, count == 0 ? 0 : i % count); });
    out.fill([](size_t) { return -1; });
    wrong += must(call(), name);
    return wrong.empty();
  };
  const auto sum = [&](size_t block, size_t i) {
    int all = 0;
    for (int r = 0; r < who.world; ++r) all += element(r, block, i);
    return all;
  };
  const auto everybodys = [&](size_t i) { return element(static_cast<int>(i / count), 0, i % count); };
  const auto for_me = [&](size_t i) { return element(static_cast<int>(i / count), own, i % count); };

  if (run("all_reduce", [&] { return ncclAllReduce(in.data(), out.data(), count, ncclInt, ncclSum, comm, nullptr); }))
    wrong += out.expect("all_reduce", count, [&](size_t i) { return sum(0, i); });
  if (run("reduce", [&] { return ncclReduce(in.data(), out.data(), count, ncclInt, ncclSum, root, comm, nullptr); }) && at_root)
    wrong += out.expect("reduce", count, [&](size_t i) { return sum(0, i); });
  if (run("broadcast", [&] { return ncclBroadcast(in.data(), out.data(), count, ncclInt, root, comm, nullptr); }))
    wrong += out.expect("broadcast", count, [&](size_t i) { return element(root, 0, i); });
  if (run("all_gather", [&] { return ncclAllGather(in.data(), out.data(), count, ncclInt, comm, nullptr); }))
    wrong += out.expect("all_gather", count * world, everybodys);
  if (run("reduce_scatter", [&] { return ncclReduceScatter(in.data(), out.data(), count, ncclInt, ncclSum, comm, nullptr); }))
    wrong += out.expect("reduce_scatter", count, [&](size_t i) { return sum(own, i); });
  if (run("all_to_all", [&] { return ncclAlltoAll(in.data(), out.data(), count, ncclInt, comm, nullptr); }))
    wrong += out.expect("all_to_all", count * world, for_me);
  if (run("gather", [&] { return ncclGather(in.data(), out.data(), count, ncclInt, root, comm, nullptr); }) && at_root)
    wrong += out.expect("gather", count * world, everybodys);
  if (run("scatter", [&] { return ncclScatter(in.data(), out.data(), count, ncclInt, root, comm, nullptr); }))
    wrong += out.expect("scatter", count, [&](size_t i) { return element(root, own, i); });
  std::vector<size_t> counts(world, count);
  if (run("all_to_all_v", [&] {
        return shoalAllToAllV(in.data(), counts.data(), nullptr, out.data(), counts.data(), nullptr, ncclInt, comm, nullptr);
      }))
    wrong += out.expect("all_to_all_v", count * world, for_me);
  if (run("send and recv", [&] {
        ncclGroupStart();
        (void)ncclSend(in.data(), count, ncclInt, (who.rank + 1) % who.world, comm, nullptr);
        (void)ncclRecv(out.data(), count, ncclInt, (who.rank + who.world - 1) % who.world, comm, nullptr);
        return ncclGroupEnd();
      }))
    wrong += out.expect("send and recv", count, [&](size_t i) { return element((who.rank + who.world - 1) % who.world, 0, i); });
  run("barrier", [&] { return shoalBarrier(comm, nullptr); });
  return wrong;
}

}  // namespace testing
