// SPDX-License-Identifier: Apache-2.0
// Host streams and events, and collectives on them.
#include <shoal/shoal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "support/ranks.h"

namespace {

using testing::Ranks;

void wait_for(void* flag) {
  while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("streams: work runs in order, queries and waits tell the truth") {
  cudaStream_t stream = nullptr;
  REQUIRE(shoalStreamCreate(&stream) == ncclSuccess);
  std::atomic<bool> go{false};
  std::vector<int> order;
  struct Append {
    std::vector<int>* to;
    int value;
  };
  std::vector<Append> appends;
  for (int i = 0; i < 100; ++i) appends.push_back({&order, i});
  REQUIRE(shoalStreamLaunch(stream, wait_for, &go) == ncclSuccess);
  for (Append& each : appends)
    shoalStreamLaunch(
        stream, [](void* a) { static_cast<Append*>(a)->to->push_back(static_cast<Append*>(a)->value); }, &each);
  CHECK(shoalStreamQuery(stream) == ncclInProgress);
  go = true;
  CHECK(shoalStreamSynchronize(stream) == ncclSuccess);
  CHECK(shoalStreamQuery(stream) == ncclSuccess);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  CHECK(shoalStreamDestroy(stream) == ncclSuccess);
  CHECK(shoalStreamDestroy(stream) == ncclInvalidArgument);
  CHECK(shoalStreamSynchronize(nullptr) == ncclInvalidArgument);
  CHECK(shoalStreamCreate(nullptr) == ncclInvalidArgument);
}

TEST_CASE("streams: an event carries order from one stream to another") {
  cudaStream_t first = nullptr, second = nullptr;
  shoalEvent_t event = nullptr, later = nullptr;
  REQUIRE(shoalStreamCreate(&first) == ncclSuccess);
  REQUIRE(shoalStreamCreate(&second) == ncclSuccess);
  REQUIRE(shoalEventCreate(&event) == ncclSuccess);
  REQUIRE(shoalEventCreate(&later) == ncclSuccess);
  CHECK(shoalEventQuery(event) == ncclSuccess);  // never recorded counts as done
  std::atomic<bool> go{false};
  std::atomic<int> at{0};
  shoalStreamLaunch(first, wait_for, &go);
  shoalStreamLaunch(
      first, [](void* n) { static_cast<std::atomic<int>*>(n)->store(1); }, &at);
  CHECK(shoalEventRecord(event, first) == ncclSuccess);
  CHECK(shoalEventQuery(event) == ncclInProgress);
  CHECK(shoalStreamWaitEvent(second, event) == ncclSuccess);
  shoalStreamLaunch(
      second, [](void* n) { static_cast<std::atomic<int>*>(n)->fetch_add(10); }, &at);
  CHECK(at.load() == 0);
  go = true;
  shoalEventRecord(later, second);
  CHECK(shoalEventSynchronize(later) == ncclSuccess);
  CHECK(at.load() == 11);
  double ms = -1;
  CHECK(shoalEventElapsedMs(&ms, event, later) == ncclSuccess);
  CHECK(ms >= 0);
  CHECK(shoalEventDestroy(event) == ncclSuccess);
  CHECK(shoalEventDestroy(event) == ncclInvalidArgument);
  CHECK(shoalEventDestroy(later) == ncclSuccess);
  CHECK(shoalStreamDestroy(first) == ncclSuccess);
  CHECK(shoalStreamDestroy(second) == ncclSuccess);
}

TEST_CASE("streams: collectives return at once, run in the order of issue, also over two streams") {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 2, 60, [](const Ranks& ranks) -> std::string {
            ncclComm_t comm = nullptr;
            if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
            cudaStream_t streams[2];
            if (shoalStreamCreate(&streams[0]) != ncclSuccess || shoalStreamCreate(&streams[1]) != ncclSuccess) return "streams";
            std::vector<std::vector<double>> data;
            for (std::size_t i = 0; i < 40; ++i)
              data.emplace_back(1 + (i * 7919) % 50000, static_cast<double>(ranks.rank) + static_cast<double>(i));
            for (std::size_t i = 0; i < data.size(); ++i)
              if (std::string wrong = testing::must(
                      ncclAllReduce(data[i].data(), data[i].data(), data[i].size(), ncclDouble, ncclSum, comm, streams[i % 2]),
                      "call");
                  !wrong.empty())
                return wrong;
            double last = 1;
            // A blocking call takes its place behind what is on the streams.
            if (std::string wrong =
                    testing::must(ncclAllReduce(&last, &last, 1, ncclDouble, ncclSum, comm, nullptr), "blocking call");
                !wrong.empty())
              return wrong;
            for (std::size_t i = 0; i < data.size(); ++i)
              for (double value : data[i])
                if (value != 1 + 2 * static_cast<double>(i)) return "wrong sum in call " + std::to_string(i);
            ncclResult_t state = ncclInternalError;
            if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclSuccess) return "not healthy";
            shoalStreamDestroy(streams[0]);
            shoalStreamDestroy(streams[1]);
            return last == 2 ? testing::must(ncclCommDestroy(comm), "destroy") : "wrong last sum";
          }) == "");
  }
}
