// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "comm/agreed_port.h"
#include "comm/approach.h"
#include "comm/comm_id.h"
#include "comm/deadline.h"
#include "comm/doors.h"
#include "comm/messages.h"
#include "comm/root_connection.h"
#include "comm/root_service.h"
#include "comm/sealed_id.h"
#include "comm/services.h"
#include "comm/several_roots.h"
#include "comm/wire.h"
#include "core/log.h"
#include "link/interfaces.h"
#include "link/socket.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kRefusals = 3s;    // the maker of an id listens before anyone has the id: who refuses for so long is gone
constexpr auto kAnswerTime = 2s;  // for the root's words about who is missing
constexpr auto kDeclineTime = 3s;
constexpr auto kPortTime = 5s;  // for the port of NCCL_COMM_ID to become free

Status start_root_service(link::NetworkDoors doors, const link::Key& key, bool frees_port) {
  Result<std::unique_ptr<RootService>> service = RootService::make({std::move(doors), key, frees_port});
  if (!service.is_ok()) return service.status();
  return start_service(service.take());
}

// NCCL_COMM_ID's port may be in use for a moment longer by the communicator before this one.
Result<link::Listener> listen_at_comm_id(const Environment& environment, std::chrono::milliseconds timeout) {
  const Result<link::HostPort> where = link::parse_host_port(environment.comm_id);
  if (!where.is_ok()) return where.status();
  Result<link::Listener> listener =
      listen_at_agreed(*where, timeout.count() > 0 ? std::min<std::chrono::milliseconds>(timeout, kPortTime) : kPortTime);
  if (!listener.is_ok())
    return fail(Code::system_error, "rank 0 cannot listen where NCCL_COMM_ID='{}' says: {}", environment.comm_id,
                listener.status().text());
  return listener;
}

// Which of several services is this rank's, and what they have in common.
struct Roots {
  std::vector<UniqueId> ids;
  std::size_t own = 0;
  const UniqueId& id() const { return ids[own]; }
};

Record record_of(const Roots& roots, Rank rank, World world, const link::PeerIdentity& self, const std::string& settings,
                 const link::Key& session) {
  Record record{SHOAL_VERSION, world, self, rank.value == 0 ? settings : std::string(), service_runs_here(roots.id().key)};
  record.self.rank = rank;
  record.roots = static_cast<std::int32_t>(roots.ids.size());
  if (roots.ids.size() > 1) record.roots_digest = digest_of(roots.ids);
  if (roots.own > 0) {
    const std::vector<std::byte> sealed = seal(roots.ids.front(), session, kUpstreamPurpose);
    record.upstream.assign(reinterpret_cast<const char*>(sealed.data()), sealed.size());
  }
  return record;
}

Status check_identity(const link::PeerIdentity& self, const std::string& settings) {
  for (const std::string* text : {&self.host, &self.host_id, &self.address, &self.local_address})
    if (text->size() > kMaxIdentityText)
      return fail(Code::invalid_argument, "this rank's identity: '{}' has {} bytes, allowed are {}", *text, text->size(),
                  kMaxIdentityText);
  if (settings.size() > kMaxSettings)
    return fail(Code::invalid_argument, "rank 0's settings have {} bytes, allowed are {}", settings.size(), kMaxSettings);
  return {};
}

// What the root says next; nothing at the deadline.
Result<std::optional<Message>> listen_to_root(Channel& channel, const UniqueId& id, const Deadline& deadline) {
  while (true) {
    channel.progress();
    const Result<std::optional<std::vector<std::byte>>> payload = channel.next();
    if (!payload.is_ok()) return payload.status();
    if (payload->has_value()) {
      Result<Message> message = decode(**payload);
      if (!message.is_ok()) return message.status();
      return std::optional(message.take());
    }
    if (channel.closed())
      return fail(Code::remote_error, "the process that made the unique id at {} ended before all ranks had come", id.address());
    if (deadline.passed()) return std::optional<Message>();
    const link::Wakeup wakeup = channel.wakeup();
    pollfd waiting{wakeup.descriptor, wakeup.events, 0};
    (void)poll(&waiting, 1, deadline.poll_ms(1s));
  }
}

Status interrupted_here() { return fail(Code::invalid_usage, "the communicator was aborted here while it was being made"); }

Result<Table> wait_for_table(Channel& channel, const UniqueId& id, std::chrono::milliseconds timeout, const Deadline& deadline) {
  Result<std::optional<Message>> message = listen_to_root(channel, id, deadline);
  if (deadline.interrupted()) {
    channel.send(Abort{});
    channel.flush();
    return interrupted_here();
  }
  if (message.is_ok() && !message->has_value()) {
    channel.send(GaveUp{static_cast<std::uint64_t>(timeout.count())});
    message = listen_to_root(channel, id, Deadline(kAnswerTime));
  }
  if (!message.is_ok()) return message.status();
  if (!message->has_value())
    return fail(Code::timeout, "the root service at {} did not say within {} ms who is missing", id.address(), timeout.count());
  if (const auto* notice = std::get_if<Notice>(&**message)) return to_status(*notice);
  if (std::holds_alternative<Bye>(**message))
    return fail(Code::remote_error, "the process that made the unique id at {} ended before all ranks had come", id.address());
  auto* table = std::get_if<Table>(&**message);
  if (table == nullptr)
    return fail(Code::internal_error, "unexpected message {} from the root service at {}", (*message)->index(), id.address());
  return std::move(*table);
}

Approach approach_to(const UniqueId& id, bool agreed_port, Rank rank, const Environment& environment,
                     std::chrono::milliseconds timeout) {
  Approach plan;
  plan.whom = agreed_port ? "rank 0" : "the process that made the unique id";
  for (const std::string& each : id.addresses)
    for (std::string& scoped : link::with_own_scopes(each, link::scope_of(each))) plan.addresses.push_back(std::move(scoped));
  plan.rank = rank.value;
  plan.key = bootstrap_key(id.key);
  plan.hello = std::as_bytes(std::span(kBootstrapHello));
  plan.max_payload = kMaxFromRoot;
  plan.timeout = timeout;
  plan.patience = agreed_port ? 0ms : std::chrono::milliseconds(kRefusals);
  plan.retries = environment.socket_retry_count;
  plan.retry_sleep_ms = environment.socket_retry_sleep_ms;
  return plan;
}

// Instead of the record alone. Blocks until it is on its way, but not for long.
void tell_failure(Channel& channel, Record record, const Status& why) {
  record.failure = why.text();
  channel.send(record);
  channel.send(Bye{});
  const Deadline flushing(kAnswerTime);
  channel.progress();
  while (!channel.flushed() && !channel.closed() && !flushing.passed()) {
    pollfd waiting{channel.wakeup().descriptor, POLLOUT, 0};
    (void)poll(&waiting, 1, flushing.poll_ms(100ms));
    channel.progress();
  }
}

// Only loopback was offered: then the reason of the failure is mostly there, not here.
Status with_hint(const Status& why, const UniqueId& id) {
  const bool only_loopback = std::all_of(id.addresses.begin(), id.addresses.end(), [](const std::string& each) {
    const Result<link::HostPort> where = link::parse_host_port(each);
    return where.is_ok() && link::is_loopback(where->host);
  });
  if (!only_loopback || why.code() == Code::system_error) return why;
  return {why.code(),
          std::string(why.text()) +
              "; this is loopback, which no other host reaches: if that process is of another one, set "
              "NCCL_SOCKET_IFNAME there",
          why.culprit()};
}

}  // namespace

Status start_root(link::NetworkDoors doors, const link::Key& key) { return start_root_service(std::move(doors), key, false); }

Result<UniqueId> make_unique_id(const Environment& environment) {
  if (!environment.comm_id.empty()) return id_of_comm_id(environment);
  Result<link::NetworkDoors> doors = open_candidates(environment, -1);
  if (!doors.is_ok()) return doors.status();
  UniqueId id;
  id.addresses = UniqueId::fit(link::addresses_in(doors->address()));
  id.key = link::random_key();
  id.communicator = ByteReader(link::random_key().bytes).number<std::uint64_t>();
  if (Status started = start_root(doors.take(), id.key); !started.is_ok()) return started;
  log::info(log::Subsystem::bootstrap, -1, "bootstrap: root service at {}", id.address());
  return id;
}

Result<Agreement> bootstrap(std::span<const UniqueId> ids, Rank rank, World world, const link::PeerIdentity& self,
                            const std::string& settings, const Environment& environment, std::chrono::milliseconds timeout,
                            link::NetworkDoors* doors, const Interrupted& interrupted, const std::string& view) {
  if (Status fits = check_identity(self, settings); !fits.is_ok()) return fits;
  if (view.size() > kMaxView)
    return fail(Code::invalid_argument, "what this rank tells of its host has {} bytes, allowed are {}", view.size(), kMaxView);
  Result<std::vector<UniqueId>> distinct = distinct_ids(ids, world);
  if (!distinct.is_ok()) return distinct.status();
  // A rank or world that makes no sense is for the root service to name.
  const bool sensible = rank.value >= 0 && rank.value < world.value;
  Roots roots{distinct.take()};
  if (sensible) roots.own = root_of(rank, world, roots.ids.size());
  const Deadline deadline(timeout, interrupted);
  const bool agreed_port = is_comm_id(roots.id(), environment);
  if (agreed_port && rank.value == 0) {
    Result<link::Listener> listener = listen_at_comm_id(environment, timeout);
    if (!listener.is_ok()) return listener.status();
    if (Status started = start_root_service(listener.take(), roots.id().key, true); !started.is_ok()) return started;
  }
  if (agreed_port) {  // a name means here what it means here, whoever made the id
    Result<UniqueId> own = id_of_comm_id(environment);
    if (!own.is_ok()) return own.status();
    roots.ids[roots.own].addresses = own->addresses;
  }
  const UniqueId& id = roots.id();
  Result<Channel> channel = approach(approach_to(id, agreed_port, rank, environment, timeout), deadline);
  if (deadline.interrupted()) return interrupted_here();
  if (!channel.is_ok()) return with_hint(channel.status(), id);
  link::PeerIdentity presented = self;
  if (doors != nullptr) {
    Result<link::NetworkDoors> opened = open_own_door(channel->ends(), environment, rank.value);
    if (!opened.is_ok()) {
      tell_failure(*channel, record_of(roots, rank, world, self, "", channel->session_key()), opened.status());
      return opened.status();
    }
    *doors = opened.take();
    presented.address = doors->address();
  }
  Record record = record_of(roots, rank, world, presented, settings, channel->session_key());
  record.view = view;
  channel->send(record);
  Result<Table> table = wait_for_table(*channel, id, timeout, deadline);
  if (!table.is_ok()) return table.status();
  if (table->peers.size() != static_cast<std::size_t>(world.value))
    return fail(Code::internal_error, "a table of {} ranks for a communicator of {}", table->peers.size(), world.value);
  if (doors != nullptr) {
    if (Status reachable = check_reachable(table->peers); !reachable.is_ok()) return reachable;
    prefer_proven(table->peers, channel->ends().there);
  }
  log::info(log::Subsystem::bootstrap, rank.value, "bootstrap: {} ranks are in, root service at {}", world.value, id.address());
  const auto root = static_cast<std::size_t>(table->root_rank);
  std::optional<link::PeerIdentity> root_rank;
  if (table->root_rank >= 0) root_rank = table->peers[root];
  const bool of_this_host = root_rank && root_rank->host_id == self.host_id;
  auto control = std::make_unique<RootConnection>(channel.take(), id.address(), std::move(root_rank), of_this_host);
  if (Status watched = control->start(); !watched.is_ok()) return watched;
  return Agreement{std::move(table->peers), std::move(table->settings), std::move(table->views), std::move(control)};
}

void decline(std::span<const UniqueId> ids, Rank rank, World world, const link::PeerIdentity& self,
             const Environment& environment, const Status& why) {
  Result<std::vector<UniqueId>> distinct = distinct_ids(ids, world);
  if (!distinct.is_ok() || rank.value < 0 || rank.value >= world.value) return;
  Roots roots{distinct.take()};
  roots.own = root_of(rank, world, roots.ids.size());
  const bool agreed_port = is_comm_id(roots.id(), environment);
  if (agreed_port && rank.value == 0) return;  // then nobody gathers; the others wait for rank 0's port in vain
  Approach plan = approach_to(roots.id(), agreed_port, rank, environment, kDeclineTime);
  plan.retries = plan.retry_sleep_ms = -1;
  Result<Channel> channel = approach(plan, Deadline(kDeclineTime));
  if (!channel.is_ok()) return;
  tell_failure(*channel, record_of(roots, rank, world, self, "", channel->session_key()), why);
}

}  // namespace shoal::comm
