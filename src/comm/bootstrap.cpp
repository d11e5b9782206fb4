// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "comm/agreed_port.h"
#include "comm/approach.h"
#include "comm/comm_id.h"
#include "comm/deadline.h"
#include "comm/messages.h"
#include "comm/root_connection.h"
#include "comm/root_service.h"
#include "comm/services.h"
#include "comm/wire.h"
#include "core/log.h"
#include "link/socket.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kRefusals = 3s;    // the maker of an id listens before anyone has the id: who refuses for so long is gone
constexpr auto kExcuseTime = 1s;  // to reach the root with an excuse
constexpr auto kAnswerTime = 2s;  // for the root's words about who is missing
constexpr auto kPortTime = 5s;    // for the port of NCCL_COMM_ID to become free

Status start_root_service(link::Listener listener, const link::Key& key, bool frees_port) {
  Result<std::unique_ptr<RootService>> service = RootService::make({std::move(listener), key, frees_port});
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

Record record_of(const UniqueId& id, Rank rank, World world, const link::PeerIdentity& self, const std::string& settings) {
  Record record{SHOAL_VERSION, world, self, rank.value == 0 ? settings : std::string(), service_runs_here(id.key)};
  record.self.rank = rank;
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
      return fail(Code::remote_error, "the process that made the unique id at {} ended before all ranks had come", id.address);
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
    return fail(Code::timeout, "the root service at {} did not say within {} ms who is missing", id.address, timeout.count());
  if (const auto* notice = std::get_if<Notice>(&**message)) return to_status(*notice);
  if (std::holds_alternative<Bye>(**message))
    return fail(Code::remote_error, "the process that made the unique id at {} ended before all ranks had come", id.address);
  auto* table = std::get_if<Table>(&**message);
  if (table == nullptr)
    return fail(Code::internal_error, "unexpected message {} from the root service at {}", (*message)->index(), id.address);
  return std::move(*table);
}

Approach way_to_root(const UniqueId& id, const Environment& environment, std::chrono::milliseconds timeout) {
  const bool agreed_port = is_comm_id(id, environment);
  Approach plan;
  plan.whom = agreed_port ? "rank 0" : "the process that made the unique id";
  plan.address = id.address;
  plan.key = bootstrap_key(id.key);
  plan.hello = std::as_bytes(std::span(kBootstrapHello));
  plan.max_payload = kMaxFromRoot;
  plan.timeout = timeout;
  plan.patience = agreed_port ? 0ms : std::chrono::milliseconds(kRefusals);
  return plan;
}

}  // namespace

// What an interface has, never what a name resolves to.
Result<link::Listener> listen_for_ranks(const Environment& environment) {
  const Result<std::vector<link::InterfaceAddress>> addresses =
      link::usable_addresses(environment.socket_ifname, environment.socket_family);
  if (!addresses.is_ok()) return addresses.status();
  Status last = fail(Code::system_error, "no network interface is up");
  for (const link::InterfaceAddress& candidate : *addresses) {
    Result<link::Listener> listener = link::listen_tcp(candidate.address, 0);
    if (listener.is_ok()) return listener;
    last = listener.status();
  }
  return last;
}

Status start_root(link::Listener listener, const link::Key& key) { return start_root_service(std::move(listener), key, false); }

Result<UniqueId> make_unique_id(const Environment& environment) {
  if (!environment.comm_id.empty()) return id_of_comm_id(environment);
  Result<link::Listener> listener = listen_for_ranks(environment);
  if (!listener.is_ok()) return listener.status();
  UniqueId id;
  id.address = listener->address;
  id.key = link::random_key();
  id.communicator = ByteReader(link::random_key().bytes).number<std::uint64_t>();
  if (Status started = start_root(listener.take(), id.key); !started.is_ok()) return started;
  log::info(-1, "bootstrap: root service at {}", id.address);
  return id;
}

Result<Agreement> bootstrap(const UniqueId& id, Rank rank, World world, const link::PeerIdentity& self,
                            const std::string& settings, const Environment& environment, std::chrono::milliseconds timeout,
                            const Interrupted& interrupted) {
  if (Status fits = check_identity(self, settings); !fits.is_ok()) return fits;
  const Deadline deadline(timeout, interrupted);
  if (is_comm_id(id, environment) && rank.value == 0) {
    Result<link::Listener> listener = listen_at_comm_id(environment, timeout);
    if (!listener.is_ok()) return listener.status();
    if (Status started = start_root_service(listener.take(), id.key, true); !started.is_ok()) return started;
  }
  Result<Channel> channel = approach(way_to_root(id, environment, timeout), deadline);
  if (deadline.interrupted()) return interrupted_here();
  if (!channel.is_ok()) return channel.status();
  channel->send(record_of(id, rank, world, self, settings));
  Result<Table> table = wait_for_table(*channel, id, timeout, deadline);
  if (!table.is_ok()) return table.status();
  if (table->peers.size() != static_cast<std::size_t>(world.value))
    return fail(Code::internal_error, "a table of {} ranks for a communicator of {}", table->peers.size(), world.value);
  log::info(rank.value, "bootstrap: {} ranks are in, root service at {}", world.value, id.address);
  const auto root = static_cast<std::size_t>(table->root_rank);
  std::optional<link::PeerIdentity> root_rank;
  if (table->root_rank >= 0) root_rank = table->peers[root];
  auto control = std::make_unique<RootConnection>(channel.take(), id.address, std::move(root_rank));
  if (Status watched = control->start(); !watched.is_ok()) return watched;
  return Agreement{std::move(table->peers), std::move(table->settings), std::move(control)};
}

void excuse(const UniqueId& id, Rank rank, World world, const link::PeerIdentity& self, const Status& why,
            const Environment& environment) {
  Result<Channel> channel = approach(way_to_root(id, environment, kExcuseTime), Deadline(kExcuseTime));
  if (!channel.is_ok()) return;
  channel->send(record_of(id, rank, world, self, ""));
  RootConnection connection(channel.take(), id.address, std::nullopt);
  connection.announce_failure(why);
  connection.bye(0);
}

}  // namespace shoal::comm
