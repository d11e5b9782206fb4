// SPDX-License-Identifier: Apache-2.0
// Thin, safe use of sockets: an owned descriptor, addresses as text, listeners, connects that do not block. Every failure is a
// Status that names the call, the address and the system's reason. No thread rule: values and owned resources.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/host_port.h"
#include "core/status.h"

namespace shoal::link {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.number_, -1));
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void reset(int number = -1);

 private:
  int number_ = -1;
};

// An interface's address that can be advertised.
struct InterfaceAddress {
  std::string interface;
  std::string address;  // without a port; IPv6 link-local with its scope ("fe80::1%eth0")
  bool ipv6 = false;
  bool loopback = false;
  bool link_local = false;
  bool running = true;
  bool near = false;  // its subnet holds the address of NCCL_COMM_ID
};

// Running interfaces, one address each, filtered as NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY say, best first (interfaces.h).
// No match: invalid_argument that quotes the filter and lists what was seen.
Result<std::vector<InterfaceAddress>> usable_addresses(const std::string& ifname_filter, const std::string& family);

// "1.2.3.4:56", "[::1]:56", "host:56" -> host and port, and back; invalid_argument quotes the text.
using shoal::HostPort;
using shoal::parse_host_port;
using shoal::to_text;

// All listeners and streams are non-blocking and close-on-exec. TCP streams send without delay (TCP_NODELAY) and ask a silent
// peer for a sign of life: after 10 s, then every 5 s; a third without answer breaks the stream (a host that lost power or
// cable). Their congestion control is reno, see use_systems_congestion_control.
struct Listener {
  Descriptor descriptor;
  std::string address;  // what peers connect to: "ip:port", or the abstract name for UNIX
};
Result<Listener> listen_tcp(const std::string& host, std::uint16_t port);  // port 0: any
Result<Listener> listen_local(const std::string& abstract_name);           // abstract UNIX stream socket
// Where a rank or a service can be reached over the network: a listener an address.
struct NetworkDoors {
  NetworkDoors() = default;
  NetworkDoors(Listener only) { listeners.push_back(std::move(only)); }
  std::vector<Listener> listeners;
  // "ip:port,ip:port"; empty if there is none. addresses_in is the way back.
  std::string address() const;
};
std::vector<std::string> addresses_in(const std::string& list);
// Empty optional: nobody there now.
Result<std::optional<Descriptor>> accept_stream(const Listener& listener);

// The rest of the watch over a stream on which the peer always reads soon, as on control connections: also what was sent must be
// acknowledged within 25 s. Not for data: the kernel counts a full window as silence, and a peer that computes for a minute
// before it reads would be cut off.
void expect_prompt_peer(const Descriptor& stream);

// TCP streams start with reno, which paces nothing and which every user may choose: within a host nothing congests, and the
// timers of a system that paces (bbr) cost a third of the bandwidth. They cost as much once they have been on, hence from the
// start. A stream of data between hosts then goes on with what the system has chosen; where that cannot be found out, with reno.
void use_systems_congestion_control(const Descriptor& stream);

// The two ends of a connected TCP stream, "ip" without port; IPv6 link-local with its scope. Empty where there is none.
struct StreamEnds {
  std::string here, there;
};
StreamEnds ends_of(const Descriptor& stream);

// Starts a connect; it has succeeded or failed when the descriptor polls writable, see connect_finished.
// `patience`: how long the network may be silent, 0: the system's minutes.
Result<Descriptor> start_connect_tcp(const std::string& address,  // "ip:port"
                                     std::chrono::milliseconds patience = std::chrono::milliseconds(0));
Result<Descriptor> start_connect_local(const std::string& abstract_name);
// False: still on its way.
Result<bool> connect_finished(const Descriptor& stream, const std::string& address);

// What one non-blocking read or write did. `closed`: the peer closed in order (read) or the connection is broken.
struct Transfer {
  std::size_t bytes = 0;
  bool closed = false;
  int error = 0;  // errno of a broken connection, 0 for an orderly close
};
Transfer read_some(int descriptor, std::span<std::byte> into);
Transfer write_some(int descriptor, std::span<const std::byte> from);  // never raises SIGPIPE

}  // namespace shoal::link
