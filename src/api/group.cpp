// SPDX-License-Identifier: Apache-2.0
#include "api/group.h"

#include <algorithm>
#include <cstring>
#include <map>
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
  std::vector<Making> makings;
  std::vector<Ending> endings;
  Status first_error;
};

Group& group() {
  thread_local Group mine;
  return mine;
}

void read_late_factor(Issued& issued) {
  if (issued.late_factor == nullptr || issued.on.communicator().is_aborted()) return;
  engine::Call& call = issued.call;
  std::memcpy(call.factor.data(), issued.late_factor, element_bytes(call.type));
  call.scale = device::make_scale(call.type, call.op, issued.on.communicator().world(), call.factor.data());
}

bool is_exchange(const Issued& issued) { return !issued.exchange.transfers.empty(); }

Status check(const Issued& issued) { return is_exchange(issued) ? issued.on.communicator().check(issued.exchange) : Status(); }

void issue(Issued& issued) {
  comm::Communicator& communicator = issued.on.communicator();
  if (is_exchange(issued)) return communicator.issue(issued.exchange);
  communicator.issue(issued.call);
}

engine::Driven begin(Issued& issued, bool beside_compute) {
  read_late_factor(issued);
  comm::Communicator& communicator = issued.on.communicator();
  return is_exchange(issued) ? communicator.begin(issued.exchange, beside_compute)
                             : communicator.begin(issued.call, beside_compute);
}

Status run_here(Issued& issued, bool beside_compute) {
  read_late_factor(issued);
  comm::Communicator& communicator = issued.on.communicator();
  Status result =
      is_exchange(issued) ? communicator.run(issued.exchange, beside_compute) : communicator.run(issued.call, beside_compute);
  return issued.sequel == nullptr || !result.is_ok() ? std::move(result) : issued.sequel->run();
}

// The outcome is kept by the communicator: ncclCommGetAsyncError and every later call tell it.
void enqueue(Issued issued) {
  device::Stream& stream = *issued.stream;
  issued.on.rest();
  stream.enqueue([work = std::make_shared<Issued>(std::move(issued))] {
    work->on.resume();
    (void)run_here(*work, /*beside_compute=*/true);
  });
}

// Where one communicator's calls of a group were issued. For the communicator the group is one operation: it begins when every
// stream has come to it, and every stream goes on when it has ended.
struct Sources {
  const comm::Communicator* communicator;
  std::vector<std::shared_ptr<device::Stream>> streams;
  bool here;  // on the calling thread, too
};

std::vector<Sources> sources_of(const std::vector<Issued>& calls) {
  std::vector<Sources> all;
  if (std::ranges::all_of(calls, [](const Issued& each) { return each.stream == nullptr; })) return all;
  for (const Issued& issued : calls) {
    const comm::Communicator* communicator = &issued.on.communicator();
    auto found = std::ranges::find(all, communicator, &Sources::communicator);
    if (found == all.end()) found = all.insert(found, {communicator, {}, false});
    if (issued.stream == nullptr)
      found->here = true;
    else if (std::ranges::find(found->streams, issued.stream) == found->streams.end())
      found->streams.push_back(issued.stream);
  }
  return all;
}

// None of the streams goes on from here before all have come.
void meet(const std::vector<std::shared_ptr<device::Stream>>& streams) {
  if (streams.size() < 2) return;
  for (std::size_t i = 1; i < streams.size(); ++i) {
    device::Event come;
    come.record(*streams[i]);
    come.delay(*streams[0]);
  }
  device::Event all;
  all.record(*streams[0]);
  for (std::size_t i = 1; i < streams.size(); ++i) all.delay(*streams[i]);
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
    for (Queue& queue : queues_) driven.push_back(begin_of(queue));
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

  engine::Driven begin_of(Queue& queue) { return begin(queue.calls[queue.running], /*beside_compute=*/false); }

  bool next(engine::Driven& ended) override {
    Queue& queue =
        *std::find_if(queues_.begin(), queues_.end(), [&](const Queue& each) { return each.communicator->owns(ended); });
    if (queue.running == queue.calls.size()) return false;
    if (queue.communicator->next(ended)) return true;
    Status result = queue.communicator->conclude(ended);
    const Issued& through = queue.calls[queue.running];
    if (result.is_ok() && through.sequel != nullptr) result = through.sequel->run();
    if (!result.is_ok() && first_error_.is_ok()) first_error_ = std::move(result);
    if (++queue.running == queue.calls.size()) return false;
    ended = begin_of(queue);
    return true;
  }

  std::vector<Queue> queues_;
  Status first_error_;
};

// The transfers of one communicator in a group run together, after its collectives: one of them alone may wait for what only
// another one's peer sends. Where they were issued on several streams, they run on the first.
void merge_transfers(std::vector<Issued>& calls) {
  std::vector<Issued> merged;
  std::vector<Issued> rest;
  for (Issued& issued : calls) {
    if (!is_exchange(issued)) {
      rest.push_back(std::move(issued));
      continue;
    }
    const auto found = std::find_if(merged.begin(), merged.end(),
                                    [&](const Issued& each) { return &each.on.communicator() == &issued.on.communicator(); });
    if (found == merged.end()) {
      merged.push_back(std::move(issued));
      continue;
    }
    found->exchange.transfers.push_back(issued.exchange.transfers.front());
  }
  for (Issued& each : merged) rest.push_back(std::move(each));
  calls = std::move(rest);
}

Status check_all(const std::vector<Issued>& calls) {
  for (const Issued& issued : calls)
    if (Status s = check(issued); !s.is_ok()) return s;
  return {};
}

// The null stream of a non-blocking communicator is its worker.
void choose_stream(Issued& issued) {
  ncclComm& handle = issued.on.handle();
  if (handle.blocking || issued.stream != nullptr) return;
  issued.stream = worker_of(handle);
  issued.on_worker = true;
}

Status run_calls(std::vector<Issued> calls) {
  if (calls.empty()) return {};
  const bool blocking = calls.front().on.handle().blocking;
  if (std::ranges::any_of(calls, [&](const Issued& each) { return each.on.handle().blocking != blocking; }))
    return fail(Code::invalid_argument,
                "a group holds calls on blocking and on non-blocking communicators: they must be of one kind");
  const std::vector<Sources> sources = sources_of(calls);
  merge_transfers(calls);
  // Nothing of a group takes a place in the order unless all of it does: it would keep others waiting.
  if (Status s = check_all(calls); !s.is_ok()) return s;
  std::vector<device::Event> before_here;
  for (const Sources& each : sources) {
    meet(each.streams);
    if (each.here && !each.streams.empty()) before_here.emplace_back().record(*each.streams[0]);
  }
  std::vector<Issued> here;
  bool in_background = false;
  for (Issued& issued : calls) {
    issue(issued);
    in_background |= issued.on_worker;
    if (issued.stream != nullptr)
      enqueue(std::move(issued));
    else
      here.push_back(std::move(issued));
  }
  for (const Sources& each : sources) meet(each.streams);
  for (device::Event& event : before_here) event.synchronize();
  if (here.empty()) return in_background ? Status(Code::in_progress, "in progress") : Status();
  return here.size() == 1 ? run_here(here.front(), false) : Together(std::move(here)).run();
}

Status end_outermost() {
  Group& mine = group();
  Group ended = std::exchange(mine, Group{});
  if (!ended.first_error.is_ok()) return ended.first_error;  // nothing of a poisoned group runs
  if (!ended.makings.empty() && !ended.calls.empty())
    return fail(Code::invalid_usage, "a group holds communicators in the making or calls on communicators, not both");
  Status result = ended.makings.empty() ? run_calls(std::move(ended.calls)) : make_all(std::move(ended.makings));
  for (const Ending& ending : ended.endings)
    if (Status s = ending(); result.is_ok() || (result.code() == Code::in_progress && !s.is_ok())) result = std::move(s);
  return result;
}

Status leave() {
  if (depth == 0) return fail(Code::invalid_usage, "there is no ncclGroupStart that this would end");
  --depth;
  return {};
}

}  // namespace

Status submit(Issued issued) {
  choose_stream(issued);
  if (depth > 0) {
    group().calls.push_back(std::move(issued));
    return {};
  }
  if (Status s = check(issued); !s.is_ok()) return s;
  issue(issued);
  if (issued.stream == nullptr) return run_here(issued, false);
  const bool in_background = issued.on_worker;
  enqueue(std::move(issued));
  return in_background ? Status(Code::in_progress, "in progress") : Status();
}

Status submit(Making making) {
  if (depth == 0) {
    std::vector<Making> alone;
    alone.push_back(std::move(making));
    return make_all(std::move(alone));
  }
  group().makings.push_back(std::move(making));
  return {};
}

Status submit(Ending ending) {
  if (depth == 0) return ending();
  group().endings.push_back(std::move(ending));
  return {};
}

Result<std::optional<double>> simulate_group() {
  if (Status s = leave(); !s.is_ok()) return s;
  if (depth > 0) return std::optional<double>();
  Group ended = std::exchange(group(), Group{});
  if (!ended.first_error.is_ok()) return ended.first_error;
  if (!ended.makings.empty() || !ended.endings.empty())
    return fail(Code::invalid_usage,
                "a group that makes or ends communicators cannot be simulated: there is no telling when all ranks come");
  merge_transfers(ended.calls);
  if (Status s = check_all(ended.calls); !s.is_ok()) return s;
  std::map<const comm::Communicator*, double> seconds;
  for (const Issued& issued : ended.calls) {
    const comm::Communicator& communicator = issued.on.communicator();
    const Result<double> time = is_exchange(issued) ? communicator.predict(issued.exchange) : communicator.predict(issued.call);
    if (!time.is_ok()) return time.status();
    seconds[&communicator] += *time;
  }
  double longest = 0;
  for (const auto& [communicator, time] : seconds) longest = std::max(longest, time);
  return std::optional(longest);
}

bool in_group() { return depth > 0; }

Status poison_group(Status status) {
  if (!status.is_ok() && status.code() != Code::in_progress && depth > 0 && group().first_error.is_ok())
    group().first_error = status;
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
    if (shoal::Status s = shoal::api::leave(); !s.is_ok() || shoal::api::depth > 0) return s;
    return shoal::api::end_outermost();
  });
}

[[gnu::weak, gnu::alias("pncclGroupStart")]] decltype(pncclGroupStart) ncclGroupStart;
[[gnu::weak, gnu::alias("pncclGroupEnd")]] decltype(pncclGroupEnd) ncclGroupEnd;

}  // extern "C"
