// SPDX-License-Identifier: Apache-2.0
#include "ps/worker.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace shoal::ps {
namespace {

using namespace std::chrono_literals;

// A server that waits for a slow worker knows whose fault it is: it may speak first.
constexpr auto kServersTurn = 1s;

// The program's signals are for the program's threads.
std::thread start_thread(auto body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

std::string describe(Kind kind, KeyRange keys, std::uint64_t clock) {
  const char* const name = kind == Kind::push ? "push of" : kind == Kind::pull ? "pull of" : "end of the iteration over";
  return fmt::format("{} keys [{}, {}) at clock {}", name, keys.first, keys.end(), clock);
}

}  // namespace

Worker::Worker(std::unique_ptr<Fabric> fabric, const Own& own)
    : fabric_(std::move(fabric)),
      partition_(fabric_->config().shares),
      width_(element_bytes(fabric_->config().type)),
      window_(own.window),
      lanes_(static_cast<std::size_t>(fabric_->config().servers)) {
  thread_ = start_thread([this] { run(); });
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  fabric_->abort();
  thread_.join();
}

// ---- the caller's side

Result<Timestamp> Worker::push(KeyRange keys, const std::byte* values, Timestamp after) {
  return enqueue({.kind = Kind::push, .keys = keys, .values = values, .after = after});
}

Result<Timestamp> Worker::pull(KeyRange keys, std::byte* out, Timestamp after) {
  return enqueue({.kind = Kind::pull, .keys = keys, .out = out, .after = after});
}

Status Worker::tick() { return enqueue({.kind = Kind::tick, .keys = fabric_->config().all_keys()}).status(); }

Status Worker::check(const Request& request) {
  const std::size_t keys = fabric_->config().keys.value;
  if (request.keys.first > keys || request.keys.count > keys - request.keys.first)
    return fail(Code::invalid_argument, "keys {} and {} more from there on are not all below config.keys, {}", request.keys.first,
                request.keys.count, keys);
  if (request.after >= next_)
    return fail(Code::invalid_argument, "after is {}: the last timestamp that was given is {}", request.after, next_ - 1);
  return {};
}

Result<Timestamp> Worker::enqueue(Request request) {
  std::unique_lock lock(mutex_);
  if (Status s = check(request); !s.is_ok()) return s;
  change_.wait(lock, [this] { return open_.size() < window_ || ended_ || leaving_; });
  if (!failure_.is_ok()) return failure_;
  if (ended_ || leaving_) return fail(Code::invalid_usage, "rank {}: this worker is leaving", fabric_->rank().value);
  request.timestamp = next_++;
  request.clock = clock_;
  if (request.kind == Kind::tick) ++clock_;
  if (request.kind == Kind::leave) leaving_ = true;
  open_.insert(request.timestamp);
  incoming_.push_back(request);
  has_incoming_.store(true, std::memory_order_seq_cst);
  lock.unlock();
  fabric_->wake();
  return request.timestamp;
}

Status Worker::wait(Timestamp request) {
  std::unique_lock lock(mutex_);
  if (request == 0 || request >= next_)
    return fail(Code::invalid_argument, "timestamp is {}, must be one that was given: 1 .. {}", request, next_ - 1);
  change_.wait(lock, [&] { return !open_.contains(request) || ended_; });
  return open_.contains(request) ? failure_ : Status();
}

Status Worker::leave() {
  const Result<Timestamp> last = enqueue({.kind = Kind::leave, .keys = fabric_->config().all_keys()});
  thread_.join();
  return last.is_ok() ? wait(*last) : last.status();
}

Worker::Clocks Worker::clocks() {
  const std::lock_guard lock(mutex_);
  return {clock_, slowest_clock_};
}

// ---- the driving thread's side

void Worker::run() {
  pthread_setname_np(pthread_self(), "shoal-ps");
  Status status;
  try {
    status = fabric_->drive(*this);
  } catch (const std::exception& error) {
    status = fabric_->note_failure(fail(Code::internal_error, "{}", error.what()));
  }
  const std::lock_guard lock(mutex_);
  failure_ = status;
  ended_ = true;
  change_.notify_all();
}

Result<bool> Worker::step() {
  bool moved = false;
  if (has_incoming_.load(std::memory_order_seq_cst)) take_in();
  while (dispatch()) moved = true;
  // Each worker begins with another server, so that they do not all come to the same one at once.
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const std::size_t server = (i + static_cast<std::size_t>(fabric_->rank().value)) % lanes_.size();
    bool this_one = false;
    if (Status s = receive(server, this_one); !s.is_ok()) return s;
    this_one |= send(server);
    if (this_one) lanes_[server].last_move = Clock::now();
    moved |= this_one;
  }
  return moved;
}

void Worker::take_in() {
  const std::lock_guard lock(mutex_);
  has_incoming_.store(false, std::memory_order_relaxed);
  std::move(incoming_.begin(), incoming_.end(), std::back_inserter(backlog_));
  incoming_.clear();
}

// Hands the next request to the servers' lanes. False: there is none, or it has to wait, and all others behind it.
bool Worker::dispatch() {
  if (backlog_.empty()) return false;
  const Request& next = backlog_.front();
  if (active_.contains(next.after) || (next.kind == Kind::leave && !active_.empty())) return false;
  const auto place = active_.emplace(next.timestamp, next).first;
  backlog_.pop_front();
  Request& request = place->second;
  if (request.kind == Kind::push || request.kind == Kind::pull) {
    partition_.for_each_part(request.keys, [&](std::size_t server, KeyRange keys) {
      hand(server, {&request, keys});
      ++request.parts;
    });
  } else {
    request.parts = static_cast<int>(lanes_.size());
    for (std::size_t server = 0; server < lanes_.size(); ++server) hand(server, {&request, {}});
  }
  if (request.parts == 0) {  // no keys
    request.parts = 1;
    finish_part(request);
  }
  return true;
}

void Worker::hand(std::size_t server, Parcel parcel) {
  Lane& lane = lanes_[server];
  if (!lane.busy()) lane.last_move = Clock::now();
  lane.outgoing.push_back(parcel);
}

bool Worker::send(std::size_t server) {
  std::deque<Parcel>& outgoing = lanes_[server].outgoing;
  bool moved = false;
  const Rank to = fabric_->config().rank_of_server(server);
  while (!outgoing.empty()) {
    Parcel& parcel = outgoing.front();
    if (!send_parcel(to, parcel)) break;
    moved = true;
    if (parcel.request->kind == Kind::push && parcel.keys.count > 0) continue;
    Request& request = *parcel.request;
    outgoing.pop_front();
    if (request.kind == Kind::leave) fabric_->part_from(to);
    if (request.kind == Kind::push || request.kind == Kind::pull)
      ++lanes_[server].answers_due;
    else
      finish_part(request);  // nobody answers
  }
  return moved;
}

bool Worker::send_parcel(Rank to, Parcel& parcel) {
  const Request& request = *parcel.request;
  Header header{.kind = request.kind,
                .request = static_cast<std::uint32_t>(request.timestamp),
                .clock = request.clock,
                .first = parcel.keys.first,
                .left = parcel.keys.count};
  if (request.kind != Kind::push) return fabric_->send(to, header);
  const std::size_t count = std::min(parcel.keys.count, (fabric_->max_message().value - kHeader) / width_);
  header.left -= count;
  const std::byte* values = request.values + (parcel.keys.first - request.keys.first) * width_;
  const bool sent = fabric_->send(to, header, count * width_,
                                  [&](std::span<std::byte> payload) { std::memcpy(payload.data(), values, payload.size()); });
  if (sent) parcel.keys = {parcel.keys.first + count, parcel.keys.count - count};
  return sent;
}

Status Worker::receive(std::size_t server, bool& moved) {
  const Rank from = fabric_->config().rank_of_server(server);
  while (const link::Message* message = fabric_->front(from)) {
    const std::optional<Header> header = read_header(*message);
    const auto found = header ? find_active(header->request) : active_.end();
    const bool fits = found != active_.end() && ((header->kind == Kind::ack && found->second.kind == Kind::push) ||
                                                 (header->kind == Kind::reply && found->second.kind == Kind::pull));
    if (!fits) return Status(Code::internal_error, fmt::format("{} sent what answers no request", fabric_->describe(from)), from);
    Request& request = found->second;
    if (header->kind == Kind::reply)
      if (Status s = receive_reply(request, from, *header, message->payload.subspan(kHeader)); !s.is_ok()) return s;
    fabric_->release(from);
    moved = true;
    if (header->left > 0) continue;
    --lanes_[server].answers_due;
    finish_part(request);
  }
  return {};
}

// By the low half of its timestamp: those under way are less than 2^32 apart.
std::map<Timestamp, Worker::Request>::iterator Worker::find_active(std::uint32_t low) {
  if (active_.empty()) return active_.end();
  const Timestamp oldest = active_.begin()->first;
  return active_.find(oldest + static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(oldest)));
}

Status Worker::receive_reply(Request& request, Rank from, const Header& header, std::span<const std::byte> values) {
  const KeyRange keys{header.first, values.size() / width_};
  const KeyRange owned = common(request.keys, partition_.range(fabric_->config().server_of(from)));
  if (values.size() % width_ != 0 || keys.first < owned.first || keys.first > owned.end() ||
      keys.count > owned.end() - keys.first || header.left != owned.end() - keys.end())
    return {Code::internal_error,
            fmt::format("{} answered with keys [{}, {}) and {} more to a {}", fabric_->describe(from), keys.first, keys.end(),
                        header.left, describe(request.kind, request.keys, request.clock)),
            from};
  if (!values.empty()) std::memcpy(request.out + (keys.first - request.keys.first) * width_, values.data(), values.size());
  request.slowest_clock = std::min(request.slowest_clock, header.clock);
  return {};
}

void Worker::finish_part(Request& request) {
  if (--request.parts > 0) return;
  if (request.kind == Kind::leave) left_ = true;
  const Timestamp timestamp = request.timestamp;
  const std::lock_guard lock(mutex_);
  if (request.slowest_clock != UINT64_MAX) slowest_clock_ = request.slowest_clock;
  active_.erase(timestamp);
  open_.erase(timestamp);
  change_.notify_all();
}

Status Worker::overdue(Clock::time_point now, std::chrono::milliseconds timeout) {
  for (std::size_t server = 0; server < lanes_.size(); ++server) {
    const Lane& lane = lanes_[server];
    const bool waits = lane.busy() || (left_ && !fabric_->flushed());
    if (!waits || now - lane.last_move < timeout + kServersTurn) continue;
    const Rank silent = fabric_->config().rank_of_server(server);
    const std::string what =
        active_.empty() ? std::string("the last messages")
                        : describe(active_.begin()->second.kind, active_.begin()->second.keys, active_.begin()->second.clock);
    return {
        Code::timeout,
        fmt::format("rank {}: {}: nothing from {} for {:.1f} s; SHOAL_TIMEOUT_MS sets how long to wait", fabric_->rank().value,
                    what, fabric_->describe(silent), std::chrono::duration<double>(now - lane.last_move).count()),
        silent};
  }
  return {};
}

}  // namespace shoal::ps
