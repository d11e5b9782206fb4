// SPDX-License-Identifier: Apache-2.0
#include "link/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "core/split.h"

namespace shoal::link {
namespace {

// The kernel clamps it to net.core.somaxconn; a world's worth of peers may knock while this rank is busy elsewhere.
constexpr int kBacklog = 65'535;

// An address of any family, as the system wants it.
struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Status system_failure(const char* call, const std::string& address, int error) {
  return fail(Code::system_error, "{} {}: {}", call, address, errno_text(error));
}

// Numeric addresses never block; a name asks the system's resolver, which may.
Result<SystemAddress> resolve(const HostPort& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (error == EAI_SYSTEM) return system_failure("getaddrinfo", to_text(where), errno);
  if (error != 0) return fail(Code::invalid_argument, "'{}' is no address: {}", to_text(where), gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  SystemAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  return address;
}

// In the abstract namespace: a name that starts with a zero byte, ends with the length, and lives as long as its socket.
Result<SystemAddress> abstract_address(const std::string& name) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (name.empty() || name.size() > kLongest)
    return fail(Code::invalid_argument, "local socket name '{}' has {} bytes, allowed are 1 to {}", name, name.size(), kLongest);
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path + 1, name.data(), name.size());
  SystemAddress address;
  std::memcpy(&address.storage, &local, sizeof local);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<std::uint16_t> bound_port(int descriptor, const std::string& address) {
  SystemAddress bound;
  bound.length = sizeof bound.storage;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0)
    return system_failure("getsockname", address, errno);
  if (bound.family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port);
}

void set(int stream, int level, int option, int value) { (void)setsockopt(stream, level, option, &value, sizeof value); }

// Of listeners too, whose streams inherit it.
void start_with_reno(int stream) {
  constexpr std::string_view kReno = "reno";
  (void)setsockopt(stream, IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

void prepare_tcp(int stream) {
  set(stream, IPPROTO_TCP, TCP_NODELAY, 1);
  set(stream, SOL_SOCKET, SO_REUSEADDR, 1);  // the port of a connection that is over may be listened at
  set(stream, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(stream, IPPROTO_TCP, TCP_KEEPIDLE, 10);  // s
  set(stream, IPPROTO_TCP, TCP_KEEPINTVL, 5);  // s
  set(stream, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::string ip_of(const SystemAddress& address) {
  if (address.family() != AF_INET && address.family() != AF_INET6) return {};
  char text[NI_MAXHOST];
  return getnameinfo(address.get(), address.length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

Result<Descriptor> open_socket(int family, const std::string& address) {
  Descriptor stream(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int error = errno;
  rlimit limit{};
  if (!stream.is_open() && error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
    return fail(Code::system_error, "socket {}: {}: this process may have {} open (ulimit -n)", address, errno_text(error),
                limit.rlim_cur);
  if (!stream.is_open()) return system_failure("socket", address, error);
  return stream;
}

Status bind_and_listen(const Descriptor& stream, const SystemAddress& where, const std::string& address) {
  if (bind(stream.get(), where.get(), where.length) != 0) return system_failure("bind", address, errno);
  if (listen(stream.get(), kBacklog) != 0) return system_failure("listen", address, errno);
  return {};
}

struct Bound {
  Result<Descriptor> stream;
  int error = 0;  // of bind or listen
};

Bound listen_at(const SystemAddress& where, const std::string& address) {
  Result<Descriptor> stream = open_socket(where.family(), address);
  if (!stream.is_ok()) return {std::move(stream)};
  const int on = 1;  // a port that a dead job has just left must not be refused for the minutes of TIME_WAIT
  if (setsockopt(stream->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
    return {system_failure("setsockopt SO_REUSEADDR", address, errno)};
  start_with_reno(stream->get());
  const char* const call = bind(stream->get(), where.get(), where.length) != 0 ? "bind"
                           : listen(stream->get(), kBacklog) != 0              ? "listen"
                                                                               : nullptr;
  if (call == nullptr) return {std::move(stream)};
  const int error = errno;
  return {system_failure(call, address, error), error};
}

// Where the system is asked for any port it passes over those in TIME_WAIT, and finds none at last when many connections are
// short; asked for one of them by number it gives it.
Bound listen_at_some_port(SystemAddress where, const std::string& address) {
  int first = 32'768, last = 60'999;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  const int ports = std::max(1, last - first + 1);
  std::uint32_t start = 0;
  (void)getrandom(&start, sizeof start, 0);
  Bound bound{Status(Code::system_error, fmt::format("listen {}: all ports from {} to {} are in use", address, first, last))};
  for (int i = 0; i < ports; ++i) {
    const auto port = static_cast<std::uint16_t>(
        first + static_cast<int>((start + static_cast<std::uint32_t>(i)) % static_cast<std::uint32_t>(ports)));
    if (where.family() == AF_INET6)
      reinterpret_cast<sockaddr_in6*>(&where.storage)->sin6_port = htons(port);
    else
      reinterpret_cast<sockaddr_in*>(&where.storage)->sin_port = htons(port);
    Bound here = listen_at(where, address);
    if (here.stream.is_ok() || here.error != EADDRINUSE) return here;
  }
  return bound;
}

Result<Descriptor> start_connect(const SystemAddress& where, const std::string& address, std::chrono::milliseconds patience) {
  Result<Descriptor> stream = open_socket(where.family(), address);
  if (!stream.is_ok()) return stream;
  if (where.family() != AF_UNIX) {
    prepare_tcp(stream->get());
    start_with_reno(stream->get());
  }
  if (patience.count() > 0) set(stream->get(), IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(patience.count()));
  // A connect that a signal interrupts goes on by itself.
  if (connect(stream->get(), where.get(), where.length) != 0 && errno != EINPROGRESS && errno != EINTR)
    return system_failure("connect", address, errno);
  return stream;
}

// A loopback connect to a port where nobody listens any more may, by chance, be given that very port and meet itself.
bool meets_itself(int descriptor) {
  SystemAddress here, there;
  here.length = there.length = sizeof here.storage;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&here.storage), &here.length) != 0) return false;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&there.storage), &there.length) != 0) return false;
  return here.family() != AF_UNIX && here.length == there.length && std::memcmp(&here.storage, &there.storage, here.length) == 0;
}

// Errors of one arriving connection or of the network it came by, which accept(2) says to treat as "nobody there now".
bool concerns_one_connection(int error) {
  switch (error) {
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return true;
    default: return error == EAGAIN || error == EWOULDBLOCK;
  }
}

bool is_not_now(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

void Descriptor::reset(int number) {
  if (number_ >= 0 && number_ != number) close(number_);
  number_ = number;
}

Result<Listener> listen_tcp(const std::string& host, std::uint16_t port) {
  const std::string address = to_text({host, port});
  const Result<SystemAddress> where = resolve({host, port});
  if (!where.is_ok()) return where.status();
  Bound bound = listen_at(*where, address);
  if (port == 0 && bound.error == EADDRINUSE) bound = listen_at_some_port(*where, address);
  if (!bound.stream.is_ok()) return bound.stream.status();
  const Result<std::uint16_t> given = bound_port(bound.stream->get(), address);
  if (!given.is_ok()) return given.status();
  return Listener{bound.stream.take(), to_text({host, *given})};
}

Result<Listener> listen_local(const std::string& abstract_name) {
  const Result<SystemAddress> where = abstract_address(abstract_name);
  if (!where.is_ok()) return where.status();
  Result<Descriptor> stream = open_socket(AF_UNIX, abstract_name);
  if (!stream.is_ok()) return stream.status();
  if (Status bound = bind_and_listen(*stream, *where, "@" + abstract_name); !bound.is_ok()) return bound;
  return Listener{stream.take(), abstract_name};
}

std::string NetworkDoors::address() const {
  std::string list;
  for (const Listener& each : listeners) list += (list.empty() ? "" : ",") + each.address;
  return list;
}

std::vector<std::string> addresses_in(const std::string& list) {
  std::vector<std::string> all;
  for (const std::string_view each : split(list, ','))
    if (!each.empty()) all.emplace_back(each);
  return all;
}

Result<std::optional<Descriptor>> accept_stream(const Listener& listener) {
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  int number = -1;
  do {
    number = accept4(listener.descriptor.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (number < 0 && errno == EINTR);
  if (number < 0 && concerns_one_connection(errno)) return std::optional<Descriptor>();
  if (number < 0) return system_failure("accept", listener.address, errno);
  if (from.ss_family != AF_UNIX) prepare_tcp(number);
  return std::optional<Descriptor>(Descriptor(number));
}

void expect_prompt_peer(const Descriptor& stream) {
  set(stream.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 25'000);  // ms; a UNIX socket refuses it, no harm
}

void use_systems_congestion_control(const Descriptor& stream) {
  int family = AF_INET;
  socklen_t length = sizeof family;
  (void)getsockopt(stream.get(), SOL_SOCKET, SO_DOMAIN, &family, &length);
  const Descriptor fresh(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::array<char, 16> name{};  // TCP_CA_NAME_MAX
  length = name.size();
  if (getsockopt(fresh.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) == 0)
    (void)setsockopt(stream.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), length);
}

StreamEnds ends_of(const Descriptor& stream) {
  SystemAddress here, there;
  here.length = there.length = sizeof here.storage;
  if (getsockname(stream.get(), reinterpret_cast<sockaddr*>(&here.storage), &here.length) != 0) return {};
  if (getpeername(stream.get(), reinterpret_cast<sockaddr*>(&there.storage), &there.length) != 0) return {};
  return {ip_of(here), ip_of(there)};
}

Result<Descriptor> start_connect_tcp(const std::string& address, std::chrono::milliseconds patience) {
  const Result<HostPort> parsed = parse_host_port(address);
  if (!parsed.is_ok()) return parsed.status();
  const Result<SystemAddress> where = resolve(*parsed);
  if (!where.is_ok()) return where.status();
  return start_connect(*where, address, patience);
}

Result<Descriptor> start_connect_local(const std::string& abstract_name) {
  const Result<SystemAddress> where = abstract_address(abstract_name);
  if (!where.is_ok()) return where.status();
  return start_connect(*where, "@" + abstract_name, {});
}

Result<bool> connect_finished(const Descriptor& stream, const std::string& address) {
  pollfd waiting{stream.get(), POLLOUT, 0};
  const int ready = poll(&waiting, 1, 0);
  if (ready < 0 && errno != EINTR) return system_failure("poll", address, errno);
  if (ready <= 0) return false;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(stream.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error == 0 && meets_itself(stream.get())) error = ECONNREFUSED;
  if (error != 0) return system_failure("connect", address, error);
  set(stream.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 0);  // was the connect's
  return true;
}

Transfer read_some(int descriptor, std::span<std::byte> into) {
  if (into.empty()) return {};
  ssize_t got = -1;
  do {
    got = recv(descriptor, into.data(), into.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return {static_cast<std::size_t>(got), false, 0};
  if (got == 0) return {0, true, 0};
  if (is_not_now(errno)) return {};
  return {0, true, errno};
}

Transfer write_some(int descriptor, std::span<const std::byte> from) {
  if (from.empty()) return {};
  ssize_t put = -1;
  do {
    put = send(descriptor, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (put < 0 && errno == EINTR);
  if (put >= 0) return {static_cast<std::size_t>(put), false, 0};
  if (is_not_now(errno)) return {};
  return {0, true, errno};
}

}  // namespace shoal::link
