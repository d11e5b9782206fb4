// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/queues.h"

#include <algorithm>
#include <random>

namespace shoal::transports::verbs {
namespace {

// Tiny messages, and offers, need no fetch of their bytes by the device.
constexpr std::size_t kInline = 220;

std::string_view text_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok: return "ok";
    case Outcome::flushed: return "the queue pair is broken";
    case Outcome::retries_exceeded: return "the other side does not acknowledge: cut off, or dead";
    case Outcome::receiver_not_ready: return "the other side does not receive";
    case Outcome::remote_access: return "the other side does not allow the access";
    case Outcome::remote_error: return "the other side's device failed";
    case Outcome::local_error: return "this side's device refused a request";
    case Outcome::other: return "the device failed";
  }
  return "";
}

// 24 bits, fresh, so that late packets of an earlier queue pair of the same number are not taken for this one's.
std::uint32_t random_packet() {
  std::random_device source;
  return source() & 0xffffff;
}

}  // namespace

Result<std::unique_ptr<Queues>> Queues::open(std::vector<Rail> rails, const IbOptions& options, const Layout& layout,
                                             link::Mapping memory) {
  std::unique_ptr<Queues> made(new Queues(std::move(rails), options, layout, std::move(memory)));
  const std::size_t count = std::min(made->rails_.size() * static_cast<std::size_t>(options.queue_pairs), kMaxQueues);
  const std::size_t per_rail = (count + made->rails_.size() - 1) / made->rails_.size();
  made->queues_.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    if (Status queue = made->make_queue(i % made->rails_.size(), per_rail); !queue.is_ok()) return queue;
  return made;
}

Status Queues::make_queue(std::size_t index, std::size_t per_rail) {
  Rail& rail = rails_[index];
  const auto about = [&](const Status& why) { return fail(why.code(), "{}: {}", rail.device->name(), why.text()); };
  if (rail.memory == nullptr) {
    const int queues = static_cast<int>(per_rail);
    Result<std::unique_ptr<Completions>> completions =
        rail.device->context().completions(queues * layout_.writes(), queues * layout_.receives());
    if (!completions.is_ok()) return about(completions.status());
    rail.completions = completions.take();
    Result<std::unique_ptr<Region>> region = rail.device->pin(memory_.memory());
    if (!region.is_ok()) return region.status();
    rail.memory = region.take();
  }
  const QueueShape shape{.writes = layout_.writes(), .receives = layout_.receives(), .inline_bytes = kInline};
  Result<std::unique_ptr<QueuePair>> pair = rail.device->context().queue_pair(*rail.completions, rail.port.number, shape);
  if (!pair.is_ok()) return about(pair.status());
  if (Status posted = (*pair)->post_receives(layout_.receives()); !posted.is_ok()) return about(posted);
  Queue& made = queues_.emplace_back();
  made.pair = pair.take();
  made.rail = index;
  made.inline_bytes = made.pair->inline_bytes();
  made.first_packet = random_packet();
  return {};
}

void Queues::describe(Blueprint& ours) const {
  ours.memory = reinterpret_cast<std::uintptr_t>(memory_.memory().data());
  ours.rails_used = static_cast<std::uint32_t>(rails_.size());
  ours.queues_used = static_cast<std::uint32_t>(queues_.size());
  for (std::size_t i = 0; i < rails_.size(); ++i)
    if (rails_[i].memory != nullptr)
      ours.rails[i] = {.gid = rails_[i].port.gid.gid,
                       .memory_key = rails_[i].memory->remote_key(),
                       .lid = rails_[i].port.facts.lid,
                       .mtu = rails_[i].port.facts.mtu,
                       .ethernet = rails_[i].port.facts.ethernet ? 1u : 0u};
  for (std::size_t i = 0; i < queues_.size(); ++i)
    ours.queues[i] = {.number = queues_[i].pair->number(),
                      .first_packet = queues_[i].first_packet,
                      .rail = static_cast<std::uint32_t>(queues_[i].rail)};
}

Status Queues::join(const Blueprint& ours, const Blueprint& theirs) {
  queues_.resize(ours.joined(theirs));
  peer_memory_ = theirs.memory;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    Queue& queue = queues_[i];
    const UsablePort& port = rails_[queue.rail].port;
    const Blueprint::Queue& to = theirs.queues[i];
    const Blueprint::Rail& their_rail = theirs.rails[to.rail];
    queue.peer_key = their_rail.memory_key;
    queue.peer_rail = to.rail;
    // InfiniBand goes by LID within a subnet, whose number is the first half of the GID.
    const bool same_subnet = std::equal(port.gid.gid.bytes.begin(), port.gid.gid.bytes.begin() + 8, their_rail.gid.bytes.begin());
    const Path path{.port = static_cast<std::uint8_t>(port.number),
                    .gid_index = static_cast<std::uint8_t>(port.gid.index),
                    .global = port.facts.ethernet || !same_subnet || port.facts.lid == 0,
                    .mtu = std::min(port.facts.mtu, their_rail.mtu),
                    .service_level = static_cast<std::uint8_t>(options_.service_level),
                    .traffic_class = static_cast<std::uint8_t>(options_.traffic_class),
                    .timeout = static_cast<std::uint8_t>(options_.timeout),
                    .retry_count = static_cast<std::uint8_t>(options_.retry_count),
                    .first_packet = queue.first_packet};
    const RemoteEnd remote{
        .queue_pair = to.number, .first_packet = to.first_packet, .lid = their_rail.lid, .gid = their_rail.gid};
    if (Status joined = queue.pair->connect(path, remote); !joined.is_ok())
      return fail(joined.code(), "{}: {}", rails_[queue.rail].device->name(), joined.text());
  }
  return {};
}

bool Queues::has_room(std::size_t queue, int writes) const {
  const Queue& q = queues_[queue];
  return q.posted - q.ended + static_cast<std::uint64_t>(writes) <= static_cast<std::uint64_t>(layout_.writes());
}

void Queues::post(std::size_t queue, const Posting& posting) {
  if (!failure_.empty()) return;
  Queue& q = queues_[queue];
  const std::uint64_t id = q.posted + 1;
  const bool none_on_its_way = q.asked == q.ended;
  const bool long_ago = id - q.asked >= static_cast<std::uint64_t>(layout_.writes() / 4);
  const Write write{.id = id,
                    .from = posting.from,
                    .local_key = posting.local_key ? *posting.local_key : rails_[q.rail].memory->local_key(),
                    .to = posting.to,
                    .remote_key = posting.remote_key,
                    .immediate = posting.immediate,
                    .signalled = posting.told || none_on_its_way || long_ago,
                    .inlined = !posting.from.empty() && posting.from.size() <= q.inline_bytes};
  if (Status posted = q.pair->post(write); !posted.is_ok()) {
    failure_ = fmt::format("{}:{}: {}", rails_[q.rail].device->name(), rails_[q.rail].port.number, posted.text());
    return;
  }
  q.posted = id;
  if (write.signalled) q.asked = id;
  if (posting.counts) q.counting = id;
}

bool Queues::flushed() {
  poll_writes();
  bool all = true;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const Queue& q = queues_[i];
    if (q.counting <= q.ended) continue;
    all = false;
    // Its end would never be told: an empty write behind it tells.
    if (q.asked == q.ended && has_room(i, 1))
      post(i, {.to = peer_memory_, .remote_key = q.peer_key, .counts = false, .told = true});
  }
  return all;
}

bool Queues::poll_writes() {
  bool found = false;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (std::none_of(queues_.begin(), queues_.end(), [i](const Queue& q) { return q.rail == i && q.posted != q.ended; }))
      continue;
    const int got = rails_[i].completions->poll_writes(completions_);
    if (got < 0) failure_ = fmt::format("{}: its completion queue is broken", rails_[i].device->name());
    for (int k = 0; k < got; ++k) {
      const Completion& each = completions_[static_cast<std::size_t>(k)];
      found = true;
      if (each.outcome != Outcome::ok)
        note_failure(i, each);
      else if (Queue* queue = find(i, each.queue_pair))
        queue->ended = std::max(queue->ended, std::min(each.id, queue->posted));
    }
  }
  return found;
}

// Into completions_.
std::size_t Queues::poll_receives(std::size_t rail) {
  const int got = rails_[rail].completions->poll_receives(completions_);
  if (got < 0) {
    failure_ = fmt::format("{}: its completion queue is broken", rails_[rail].device->name());
    return 0;
  }
  for (int k = 0; k < got; ++k) {
    const Completion& each = completions_[static_cast<std::size_t>(k)];
    if (each.outcome != Outcome::ok) {
      note_failure(rail, each);
      continue;
    }
    Queue* const queue = find(rail, each.queue_pair);
    if (queue == nullptr || ++queue->taken < Layout::kReposted) continue;
    if (Status posted = queue->pair->post_receives(queue->taken); !posted.is_ok() && failure_.empty())
      failure_ = fmt::format("{}: {}", rails_[rail].device->name(), posted.text());
    queue->taken = 0;
  }
  return static_cast<std::size_t>(got);
}

// Numbers are a device's own.
Queues::Queue* Queues::find(std::size_t rail, std::uint32_t number) {
  for (Queue& queue : queues_)
    if (queue.rail == rail && queue.pair->number() == number) return &queue;
  return nullptr;
}

// The first one that says more than that there was one before it counts.
void Queues::note_failure(std::size_t index, const Completion& completion) {
  if (reported_ || (!failure_.empty() && completion.outcome == Outcome::flushed)) return;
  reported_ = completion.outcome != Outcome::flushed;
  const Rail& rail = rails_[index];
  const bool down = rail.device->is_down(rail.port.number);
  failure_ = fmt::format("{} (completion status {}) on {}:{}{}", text_of(completion.outcome), completion.code,
                         rail.device->name(), rail.port.number, down ? ", which has lost its wire" : "");
}

void Queues::look_at_devices() {
  for (const Rail& rail : rails_) {
    rail.device->look();
    if (rail.device->is_gone() && failure_.empty()) failure_ = fmt::format("the device {} is gone", rail.device->name());
  }
}

void Queues::arm() {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    Completions& completions = *rails_[i].completions;
    completions.take_events();
    bool armed = completions.arm_receives();
    const bool waits =
        std::any_of(queues_.begin(), queues_.end(), [i](const Queue& q) { return q.rail == i && q.counting > q.ended; });
    if (waits) armed = completions.arm_writes() && armed;
    if (!armed && failure_.empty()) failure_ = fmt::format("{}: its completions cannot be waited for", rails_[i].device->name());
  }
}

std::vector<int> Queues::descriptors() const {
  std::vector<int> all;
  for (const Rail& rail : rails_) all.push_back(rail.completions->descriptor());
  return all;
}

}  // namespace shoal::transports::verbs
