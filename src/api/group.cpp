// SPDX-License-Identifier: Apache-2.0
#include "api/group.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "api/errors.h"
#include "engine/drive.h"

namespace shoal::api {
namespace {

// How deep the calling thread is in groups. Apart from the rest: a call outside any group asks for nothing else.
constinit thread_local int depth = 0;

struct Group {
  std::vector<Issued> calls;
  std::vector<Initialisation> initialisations;
  Status first_error;
};

Group& group() {
  thread_local Group mine;
  return mine;
}

void read_late_factor(Issued& issued) {
  if (issued.late_factor != nullptr)
    issued.call.scale =
        device::make_scale(issued.call.type, issued.call.op, issued.on.communicator().world(), issued.late_factor);
}

Status run_here(Issued& issued, bool beside_compute) {
  read_late_factor(issued);
  return issued.on.communicator().run(issued.call, beside_compute);
}

// The outcome is kept by the communicator: ncclCommGetAsyncError and every later call tell it.
void enqueue(Issued issued) {
  device::Stream& stream = *issued.stream;
  stream.enqueue([work = std::make_shared<Issued>(std::move(issued))] { (void)run_here(*work, /*beside_compute=*/true); });
}

// All calls of one communicator in their order, all communicators at once.
class Together final : public engine::Refill {
 public:
  explicit Together(std::vector<Issued> calls) {
    for (Issued& issued : calls) {
      comm::Communicator* communicator = &issued.on.communicator();
      const auto found =
          std::find_if(queues_.begin(), queues_.end(), [&](const Queue& queue) { return queue.communicator == communicator; });
      Queue& queue = found != queues_.end() ? *found : queues_.emplace_back(Queue{communicator, {}, 0});
      queue.calls.push_back(std::move(issued));
    }
  }

  Status run() {
    std::vector<engine::Driven> driven;
    for (Queue& queue : queues_) driven.push_back(begin(queue));
    for (engine::Driven& each : driven)  // one that could not start makes way for its successor
      while (each.finished && next(each)) {
      }
    engine::drive(driven, this);
    return first_error_;
  }

 private:
  struct Queue {
    comm::Communicator* communicator;
    std::vector<Issued> calls;
    std::size_t running;
  };

  engine::Driven begin(Queue& queue) {
    Issued& issued = queue.calls[queue.running];
    read_late_factor(issued);
    return queue.communicator->begin(issued.call, /*beside_compute=*/false);
  }

  bool next(engine::Driven& ended) override {
    Queue& queue =
        *std::find_if(queues_.begin(), queues_.end(), [&](const Queue& each) { return each.communicator->owns(ended); });
    if (queue.running == queue.calls.size()) return false;
    Status result = queue.communicator->conclude(ended);
    if (!result.is_ok() && first_error_.is_ok()) first_error_ = std::move(result);
    if (++queue.running == queue.calls.size()) return false;
    ended = begin(queue);
    return true;
  }

  std::vector<Queue> queues_;
  Status first_error_;
};

Status run_initialisations(std::vector<Initialisation> work) {
  if (work.size() == 1) return work.front()();
  std::vector<Status> results(work.size());
  std::vector<std::thread> threads;
  threads.reserve(work.size());
  for (std::size_t i = 0; i < work.size(); ++i) threads.emplace_back([&, i] { results[i] = work[i](); });
  for (std::thread& thread : threads) thread.join();
  const auto bad = std::find_if(results.begin(), results.end(), [](const Status& status) { return !status.is_ok(); });
  return bad == results.end() ? Status() : *bad;
}

Status end_outermost() {
  Group& mine = group();
  Group ended = std::exchange(mine, Group{});
  if (!ended.first_error.is_ok()) return ended.first_error;  // nothing of a poisoned group runs
  if (!ended.initialisations.empty()) {
    if (!ended.calls.empty())
      return fail(Code::invalid_usage, "a group holds communicators in the making or calls on communicators, not both");
    return run_initialisations(std::move(ended.initialisations));
  }
  std::vector<Issued> here;
  for (Issued& issued : ended.calls) {
    issued.on.communicator().issue(issued.call);
    if (issued.stream != nullptr)
      enqueue(std::move(issued));
    else
      here.push_back(std::move(issued));
  }
  if (here.empty()) return {};
  return here.size() == 1 ? run_here(here.front(), false) : Together(std::move(here)).run();
}

}  // namespace

Status submit(Issued issued) {
  if (depth > 0) {
    group().calls.push_back(std::move(issued));
    return {};
  }
  issued.on.communicator().issue(issued.call);
  if (issued.stream == nullptr) return run_here(issued, false);
  enqueue(std::move(issued));
  return {};
}

Status submit(Initialisation initialisation) {
  if (depth == 0) return initialisation();
  group().initialisations.push_back(std::move(initialisation));
  return {};
}

Status poison_group(Status status) {
  if (!status.is_ok() && depth > 0 && group().first_error.is_ok()) group().first_error = status;
  return status;
}

}  // namespace shoal::api

extern "C" {

ncclResult_t pncclGroupStart() {
  ++shoal::api::depth;
  return ncclSuccess;
}

ncclResult_t pncclGroupEnd() {
  return shoal::api::guarded("ncclGroupEnd", [] {
    if (shoal::api::depth == 0) return shoal::fail(shoal::Code::invalid_usage, "there is no ncclGroupStart that this would end");
    if (--shoal::api::depth > 0) return shoal::Status();
    return shoal::api::end_outermost();
  });
}

[[gnu::weak, gnu::alias("pncclGroupStart")]] decltype(pncclGroupStart) ncclGroupStart;
[[gnu::weak, gnu::alias("pncclGroupEnd")]] decltype(pncclGroupEnd) ncclGroupEnd;

}  // extern "C"
