// SPDX-License-Identifier: Apache-2.0
#include "comm/meeting.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "comm/agreed_port.h"
#include "comm/approach.h"
#include "comm/same_user.h"
#include "comm/sealed_id.h"
#include "comm/wire.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kHello = "shoal launch 1";
constexpr auto kGuestTime = 5s;       // from accept to thanks
constexpr std::size_t kGuests = 256;  // at a time; further ones wait in the kernel's queue
constexpr auto kAcceptPause = 50ms;
constexpr auto kPlaceTime = 10s;  // for a port or name that someone else still holds
constexpr int kNamedMissing = 16;
constexpr std::size_t kNameDigest = 16;  // bytes of the digest in a local socket's name

constexpr std::string_view kSealPurpose = "shoal launch: unique id";

link::Key key_of(const Launch& launch, std::uint64_t sequence) {
  ByteWriter material;
  material.text(launch.secret);
  material.text(launch.job);
  material.text(launch.rendezvous);
  material.number(static_cast<std::uint32_t>(launch.world));
  material.number(sequence);
  return link::derive_key(material.take(), "shoal launch: meeting");
}

std::string local_name(const link::Key& key, std::uint64_t sequence) {
  const link::Key digest = link::derive_key(key.bytes, "shoal launch: socket name");
  std::string name = fmt::format("shoal-{}-", geteuid());
  for (const std::byte byte : std::span(digest.bytes).first(kNameDigest))
    name += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return name + fmt::format("-{}", sequence);
}

// Someone who came: unproven until `channel` is there.
struct Guest {
  link::Handshake handshake;
  Deadline patience{kGuestTime};
  std::optional<Channel> channel;
  bool done = false;
};

// Rank 0's side, driven by its caller's thread.
class Host {
 public:
  Host(const Meeting& meeting, link::Listener listener, const UniqueId& id)
      : meeting_(meeting), listener_(std::move(listener)), id_(id) {}

  Status serve(const Deadline& deadline) {
    while (static_cast<std::int32_t>(served_.size()) < meeting_.world.value - 1) {
      if (deadline.passed()) return missing();
      wait(deadline);
      accept_all();
      for (Guest& guest : guests_) attend_to(guest);
      guests_.remove_if([](const Guest& guest) { return guest.done || guest.patience.passed(); });
    }
    return {};
  }

 private:
  void wait(const Deadline& deadline) const {
    std::vector<pollfd> polled{{guests_.size() < kGuests ? listener_.descriptor.get() : -1, POLLIN, 0}};
    for (const Guest& guest : guests_) {
      const link::Wakeup wakeup = guest.channel ? guest.channel->wakeup() : guest.handshake.wakeup();
      polled.push_back({wakeup.descriptor, wakeup.events, 0});
    }
    (void)poll(polled.data(), polled.size(), deadline.poll_ms(1s));
  }

  void accept_all() {
    while (guests_.size() < kGuests) {
      Result<std::optional<link::Descriptor>> stream = link::accept_stream(listener_);
      if (!stream.is_ok()) std::this_thread::sleep_for(kAcceptPause);
      if (!stream.is_ok() || !stream->has_value()) return;
      if (meeting_.local && !is_same_user((*stream)->get())) continue;
      guests_.push_back({link::Handshake::server(std::move(**stream), meeting_.key), Deadline(kGuestTime), std::nullopt, false});
    }
  }

  void attend_to(Guest& guest) {
    if (!guest.channel) welcome(guest);
    if (!guest.channel) return;
    guest.channel->progress();
    const Result<std::optional<std::vector<std::byte>>> thanks = guest.channel->next();
    if (thanks.is_ok() && thanks->has_value()) {
      ByteReader from(**thanks);
      const std::int32_t rank = from.signed_number();
      if (from.finished() && rank > 0 && rank < meeting_.world.value) served_.insert(rank);
    }
    guest.done = !thanks.is_ok() || thanks->has_value() || guest.channel->closed();
  }

  void welcome(Guest& guest) {
    const Result<bool> proven = guest.handshake.progress();
    if (proven.is_ok() && !*proven) return;
    guest.done = !proven.is_ok() || !std::ranges::equal(guest.handshake.hello(), std::as_bytes(std::span(kHello)));
    if (guest.done) return;
    std::vector<std::byte> sealed = seal(id_, guest.handshake.session_key(), kSealPurpose);
    guest.channel.emplace(std::move(guest.handshake), Side::server, sizeof(std::int32_t));
    guest.channel->send(std::make_shared<const std::vector<std::byte>>(std::move(sealed)));
  }

  Status missing() const {
    std::string names;
    std::optional<Rank> first;
    int named = 0;
    for (std::int32_t rank = 1; rank < meeting_.world.value; ++rank) {
      if (served_.contains(rank)) continue;
      if (!first) first = Rank{rank};
      if (named++ == kNamedMissing) {
        names += ", ...";
        break;
      }
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
    }
    return {Code::timeout,
            fmt::format("only {} of {} ranks came to {} within {} ms; missing: {}", served_.size() + 1, meeting_.world.value,
                        meeting_.place, meeting_.timeout.count(), names),
            first};
  }

  const Meeting& meeting_;
  link::Listener listener_;
  ForkGuard guard_{listener_.descriptor.get()};
  const UniqueId& id_;
  std::list<Guest> guests_;
  std::set<std::int32_t> served_;
};

Result<link::Listener> listen(const Meeting& meeting) {
  const auto patience =
      meeting.timeout.count() > 0 ? std::min<std::chrono::milliseconds>(meeting.timeout, kPlaceTime) : kPlaceTime;
  if (!meeting.local) {
    const Result<link::HostPort> where = link::parse_host_port(meeting.place);
    if (!where.is_ok()) return where.status();
    return listen_at_agreed(*where, patience);
  }
  const Deadline deadline(patience);
  while (true) {
    Result<link::Listener> listener = link::listen_local(meeting.place);
    if (listener.is_ok() || deadline.passed()) return listener;
    std::this_thread::sleep_for(20ms);
  }
}

// The id is here: rank 0 may stop waiting for this rank.
void thank(Channel& channel, Rank rank) {
  ByteWriter thanks;
  thanks.signed_number(rank.value);
  channel.send(std::make_shared<const std::vector<std::byte>>(thanks.take()));
  channel.progress();
}

// Nothing: rank 0's connection ended before the id was here.
Result<std::optional<UniqueId>> fetch(Channel& channel, const Deadline& deadline) {
  while (true) {
    channel.progress();
    const Result<std::optional<std::vector<std::byte>>> sealed = channel.next();
    if (!sealed.is_ok()) return sealed.status();
    if (sealed->has_value()) {
      Result<UniqueId> id = unseal(**sealed, channel.session_key(), kSealPurpose);
      if (!id.is_ok()) return fail(Code::internal_error, "rank 0: {}", id.status().text());
      return std::optional(id.take());
    }
    if (channel.closed() || deadline.passed()) return std::optional<UniqueId>();
    pollfd waiting{channel.wakeup().descriptor, channel.wakeup().events, 0};
    (void)poll(&waiting, 1, deadline.poll_ms(1s));
  }
}

}  // namespace

Result<Meeting> meeting_of(const Launch& launch, std::uint64_t sequence, std::chrono::milliseconds timeout) {
  const bool local = launch.rendezvous.empty();
  if (local && launch.local_world != launch.world)
    return fail(Code::invalid_usage,
                "{} of {} ranks are of this host: set SHOAL_RENDEZVOUS=host:port (or MASTER_ADDR and MASTER_PORT) so that "
                "ranks of several hosts find each other",
                launch.local_world, launch.world);
  const link::Key key = key_of(launch, sequence);
  return Meeting{
      Rank{launch.rank}, World{launch.world}, local, local ? local_name(key, sequence) : launch.rendezvous, key, timeout};
}

Result<UniqueId> host_meeting(const Meeting& meeting, const std::function<Result<UniqueId>()>& make) {
  const Deadline deadline(meeting.timeout);
  Result<link::Listener> listener = listen(meeting);
  if (!listener.is_ok()) return fail(Code::system_error, "rank 0 cannot wait for the others: {}", listener.status().text());
  Result<UniqueId> id = make();
  if (!id.is_ok()) return id;
  Host host(meeting, listener.take(), *id);
  if (Status served = host.serve(deadline); !served.is_ok()) return served;
  return id;
}

Result<UniqueId> attend_meeting(const Meeting& meeting) {
  const Deadline deadline(meeting.timeout);
  Approach plan;
  plan.whom = "rank 0";
  plan.addresses = {meeting.place};
  plan.local = meeting.local;
  plan.key = meeting.key;
  plan.hello = std::as_bytes(std::span(kHello));
  plan.max_payload = kSealedId;
  plan.timeout = meeting.timeout;
  while (true) {
    Result<Channel> channel = approach(plan, deadline);
    if (!channel.is_ok()) return channel.status();
    Result<std::optional<UniqueId>> id = fetch(*channel, deadline);
    if (!id.is_ok()) return id.status();
    if (id->has_value()) {
      thank(*channel, meeting.rank);
      return std::move(**id);
    }
    if (deadline.passed())
      return fail(Code::timeout, "rank 0 at {} did not hand out the unique id within {} ms", meeting.place,
                  meeting.timeout.count());
  }
}

}  // namespace shoal::comm
