// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/fake_verbs.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "link/socket.h"

namespace shoal::transports::verbs {

namespace {

Status refused() { return fail(Code::system_error, "fake"); }

class FakeRegion final : public Region {
 public:
  FakeRegion(FakeFabric& fabric, std::uint32_t key) : fabric_(fabric), key_(key) {}
  ~FakeRegion() override { fabric_.unpin(key_); }
  std::uint32_t local_key() const override { return key_; }
  std::uint32_t remote_key() const override { return key_; }

 private:
  FakeFabric& fabric_;
  std::uint32_t key_;
};

}  // namespace

class FakeCompletions final : public Completions {
 public:
  FakeCompletions(FakeFabric& fabric, int writes, int receives)
      : fabric_(fabric), event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), queues_{{{writes}, {receives}}} {}

  int poll_writes(std::span<Completion> into) override { return poll(queues_[0], into); }
  int poll_receives(std::span<Completion> into) override { return poll(queues_[1], into); }
  bool arm_receives() override { return arm(queues_[1]); }
  bool arm_writes() override { return arm(queues_[0]); }
  int descriptor() const override { return event_.get(); }
  void take_events() override {
    std::uint64_t count = 0;
    while (::read(event_.get(), &count, sizeof count) > 0) {
    }
  }

  // Under the fabric's lock.
  void push(bool receive, const Completion& completion) {
    Queue& queue = queues_[receive ? 1 : 0];
    queue.overflown |= static_cast<int>(queue.entries.size()) == queue.most;
    queue.entries.push_back(completion);
    if (!std::exchange(queue.armed, false)) return;
    const std::uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }

 private:
  struct Queue {
    int most = 0;
    std::deque<Completion> entries{};
    bool armed = false;
    bool overflown = false;
  };
  int poll(Queue& queue, std::span<Completion> into) {
    fabric_.deliver_some();
    const std::lock_guard lock(fabric_.mutex());
    if (queue.overflown) return -1;
    std::size_t n = 0;
    for (; n < into.size() && !queue.entries.empty(); ++n) {
      into[n] = queue.entries.front();
      queue.entries.pop_front();
    }
    return static_cast<int>(n);
  }
  bool arm(Queue& queue) {
    if (fabric_.refuses("arm")) return false;
    {
      const std::lock_guard lock(fabric_.mutex());
      queue.armed = true;
    }
    fabric_.deliver_all();  // whoever sleeps delivers nothing
    return true;
  }

  FakeFabric& fabric_;
  link::Descriptor event_;
  std::array<Queue, 2> queues_;
};

class FakeQueuePair final : public QueuePair {
 public:
  FakeQueuePair(FakeFabric& fabric, std::string device_name, FakeCompletions& queues, const QueueShape& wanted)
      : device(std::move(device_name)), completions(queues), shape(wanted), fabric_(fabric) {
    shape.inline_bytes = std::min(shape.inline_bytes, fabric.inline_bytes);
    number_ = fabric.add(this);
  }
  ~FakeQueuePair() override { fabric_.remove(this); }
  std::uint32_t number() const override { return number_; }
  std::size_t inline_bytes() const override { return shape.inline_bytes; }
  Status post_receives(int count) override {
    if (fabric_.refuses("receives")) return refused();
    const std::lock_guard lock(fabric_.mutex());
    receives += count;
    return receives <= shape.receives ? Status() : fail(Code::system_error, "fake: too many receives");
  }
  Status connect(const Path& path, const RemoteEnd& to) override {
    if (fabric_.refuses("connect")) return refused();
    const std::lock_guard lock(fabric_.mutex());
    peer = to.queue_pair;
    taken_path = path;
    return {};
  }
  Status post(const Write& write) override {
    if (fabric_.refuses("post")) return refused();
    {
      const std::lock_guard lock(fabric_.mutex());
      // A place is free again when it is told that its write has ended.
      if (posted - ended >= static_cast<std::uint64_t>(shape.writes)) return fail(Code::system_error, "fake: the queue is full");
      ++posted;
    }
    fabric_.post(*this, write);
    return {};
  }

  // Under the fabric's lock.
  const std::string device;
  FakeCompletions& completions;
  QueueShape shape;
  std::uint32_t peer = 0;
  Path taken_path;
  int receives = 0;
  std::uint64_t posted = 0, ended = 0;
  bool broken = false;
  struct Pending {
    Write write;
    std::vector<std::byte> inlined;
  };
  std::deque<Pending> pending;

 private:
  FakeFabric& fabric_;
  std::uint32_t number_ = 0;
};

namespace {

class FakeContext final : public Context {
 public:
  FakeContext(FakeFabric& fabric, const FakeDevice& device) : fabric_(fabric), device_(device) {}

  int ports() const override { return static_cast<int>(device_.ports.size()); }
  Result<PortFacts> port(int number) override {
    if (fabric_.refuses("port")) return refused();
    return device_.ports[static_cast<std::size_t>(number - 1)];
  }
  Result<std::vector<GidEntry>> gids(int) override {
    if (fabric_.refuses("gids")) return refused();
    return device_.gids;
  }
  Result<std::unique_ptr<Region>> pin(std::span<std::byte> memory) override {
    if (fabric_.refuses("pin")) return refused();
    const std::uint32_t key = fabric_.pin(device_.name, reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
    return std::unique_ptr<Region>(std::make_unique<FakeRegion>(fabric_, key));
  }
  Result<std::unique_ptr<Region>> pin_dmabuf(int descriptor, std::uint64_t, std::size_t bytes, std::uint64_t address) override {
    if (descriptor < 0 || fabric_.refuses("pin")) return refused();
    return std::unique_ptr<Region>(std::make_unique<FakeRegion>(fabric_, fabric_.pin(device_.name, address, bytes)));
  }
  Result<std::unique_ptr<Completions>> completions(int writes, int receives) override {
    if (fabric_.refuses("completions")) return refused();
    return std::unique_ptr<Completions>(std::make_unique<FakeCompletions>(fabric_, writes, receives));
  }
  Result<std::unique_ptr<QueuePair>> queue_pair(Completions& completions, int, const QueueShape& shape) override {
    if (fabric_.refuses("queue_pair")) return refused();
    return std::unique_ptr<QueuePair>(
        std::make_unique<FakeQueuePair>(fabric_, device_.name, static_cast<FakeCompletions&>(completions), shape));
  }
  std::optional<Event> next_event() override { return fabric_.next_event(device_.name); }

 private:
  FakeFabric& fabric_;
  const FakeDevice device_;
};

class FakeVerbs final : public Verbs {
 public:
  explicit FakeVerbs(FakeFabric& fabric) : fabric_(fabric) {}
  Result<std::vector<std::string>> devices(std::vector<std::string>& unsuited) override {
    if (fabric_.refuses("list")) return refused();
    std::vector<std::string> names;
    for (const FakeDevice& each : fabric_.devices) (each.name.starts_with("iwarp") ? unsuited : names).push_back(each.name);
    return names;
  }
  Result<std::unique_ptr<Context>> open(const std::string& name) override {
    if (fabric_.refuses("open")) return refused();
    for (const FakeDevice& each : fabric_.devices)
      if (each.name == name) return std::unique_ptr<Context>(std::make_unique<FakeContext>(fabric_, each));
    return fail(Code::system_error, "fake: no such device");
  }

 private:
  FakeFabric& fabric_;
};

}  // namespace

FakeDevice fake_device(std::string name, unsigned address) {
  GidEntry local, ipv4;
  local.gid.bytes[0] = std::byte{0xfe};
  local.gid.bytes[1] = std::byte{0x80};
  local.gid.bytes[15] = static_cast<std::byte>(address);
  local.kind = ipv4.kind = GidKind::roce_v2;
  ipv4.gid.bytes[10] = ipv4.gid.bytes[11] = std::byte{0xff};
  ipv4.gid.bytes[12] = std::byte{10};
  ipv4.gid.bytes[15] = static_cast<std::byte>(address);
  ipv4.index = 1;
  return {std::move(name), {{.active = true, .ethernet = true, .mtu = 4096, .bandwidth_Bps = 12.5e9}}, {local, ipv4}};
}

std::unique_ptr<Verbs> FakeFabric::verbs() { return std::make_unique<FakeVerbs>(*this); }

void FakeFabric::happen(const std::string& device, Event event) {
  const std::lock_guard lock(mutex_);
  events_.emplace(device, event);
}
std::optional<Event> FakeFabric::next_event(const std::string& device) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(device);
  if (found == events_.end()) return std::nullopt;
  const Event event = found->second;
  events_.erase(found);
  return event;
}

FakeFabric::Tally FakeFabric::tally() {
  const std::lock_guard lock(mutex_);
  return tally_;
}
std::size_t FakeFabric::regions_alive() {
  const std::lock_guard lock(mutex_);
  return regions_.size();
}

std::uint32_t FakeFabric::pin(const std::string& device, std::uint64_t start, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  ++tally_.pinned;
  regions_[++last_number_] = {start, bytes, device};
  return last_number_;
}
void FakeFabric::unpin(std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  regions_.erase(key);
}
bool FakeFabric::holds(std::uint32_t key, const std::string& device, std::uint64_t start, std::size_t bytes) const {
  const auto found = regions_.find(key);
  if (found == regions_.end() || found->second.device != device) return false;
  const Pinned& region = found->second;
  return start >= region.start && start - region.start <= region.bytes && bytes <= region.bytes - (start - region.start);
}

std::uint32_t FakeFabric::add(FakeQueuePair* pair) {
  const std::lock_guard lock(mutex_);
  pairs_[++last_number_] = pair;
  return last_number_;
}
void FakeFabric::remove(FakeQueuePair* pair) {
  const std::lock_guard lock(mutex_);
  pairs_.erase(pair->number());
}

std::uint32_t FakeFabric::post(FakeQueuePair& from, const Write& write) {
  const std::lock_guard lock(mutex_);
  ++tally_.writes;
  tally_.signalled += write.signalled ? 1 : 0;
  tally_.inlined += write.inlined ? 1 : 0;
  FakeQueuePair::Pending& pending = from.pending.emplace_back(FakeQueuePair::Pending{write, {}});
  if (write.inlined) pending.inlined.assign(write.from.begin(), write.from.end());
  spoil(pending.write, pending.inlined);
  if (!overtaking)
    while (deliver_one(from)) {
    }
  return from.number();
}

void FakeFabric::deliver_some() {
  const std::lock_guard lock(mutex_);
  for (auto& [number, pair] : pairs_) {
    draws_ = draws_ * 6364136223846793005u + 1442695040888963407u;
    if (draws_ >> 62 != 0) deliver_one(*pair);
  }
}
void FakeFabric::deliver_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [number, pair] : pairs_)
    while (deliver_one(*pair)) {
    }
}

// The oldest write of the queue pair. False: there is none.
bool FakeFabric::deliver_one(FakeQueuePair& from) {
  if (from.pending.empty()) return false;
  const FakeQueuePair::Pending pending = std::move(from.pending.front());
  from.pending.pop_front();
  const Write& write = pending.write;
  if (from.broken) return end(from, write, Outcome::flushed), true;
  if (const Outcome told = outcome(write); told != Outcome::ok) return end(from, write, told), true;
  const auto to = pairs_.find(from.peer);
  if (to == pairs_.end() || to->second->broken) return end(from, write, Outcome::retries_exceeded), true;
  FakeQueuePair& peer = *to->second;
  const std::size_t bytes = write.from.size();
  const bool may_read = write.inlined ? bytes <= from.shape.inline_bytes
                                      : bytes == 0 || holds(write.local_key, from.device,
                                                            reinterpret_cast<std::uintptr_t>(write.from.data()), bytes);
  if (!may_read) return end(from, write, Outcome::local_error), true;
  if (!holds(write.remote_key, peer.device, write.to, bytes)) return end(from, write, Outcome::remote_access), true;
  if (write.immediate && peer.receives == 0) return end(from, write, Outcome::receiver_not_ready), true;
  const std::byte* const source = write.inlined ? pending.inlined.data() : write.from.data();
  if (bytes > 0) std::memcpy(reinterpret_cast<std::byte*>(write.to), source, bytes);
  if (write.immediate) {
    --peer.receives;
    peer.completions.push(true, {.queue_pair = peer.number(), .immediate = *write.immediate});
  }
  end(from, write, Outcome::ok);
  return true;
}

void FakeFabric::end(FakeQueuePair& from, const Write& write, Outcome how) {
  if (how != Outcome::ok) from.broken = true;
  if (how == Outcome::ok && !write.signalled) return;
  if (how == Outcome::ok) from.ended = write.id;
  from.completions.push(false, {.id = write.id,
                                .queue_pair = from.number(),
                                .outcome = how,
                                .code = how == Outcome::ok ? 0 : 100 + static_cast<int>(how)});
}

}  // namespace shoal::transports::verbs
