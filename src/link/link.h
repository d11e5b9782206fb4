// SPDX-License-Identifier: Apache-2.0
// The transport interface. A Link is one rank's end of an ordered, reliable channel of messages to one peer, both directions.
// It belongs to the thread that drives it; nothing here blocks, allocates (after connecting) or throws.
//
// Eager: messages pass through wire memory. To send: acquire(n), fill, commit. To receive: front(), read (and reduce) in place,
// release. At most `credits` messages of at most `max_message` bytes fit between the two ends; a full link returns no memory.
//
// A link to a peer in trouble does not fail in acquire or front (they say "not now"): health() tells, and is asked while waiting.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/types.h"
#include "link/doorbell.h"
#include "link/socket.h"
#include "link/window.h"

namespace shoal::link {

// Carried beside every message and compared by the receiver before it touches the data: a digest of which call this belongs to.
struct Tag {
  std::uint32_t value = 0;
  friend constexpr bool operator==(Tag, Tag) = default;
};

struct Message {
  std::span<const std::byte> payload;
  Tag tag;
};

// What to sleep on until a link may have something new: the descriptor with these poll events (-1: none), and, if rings_doorbell,
// the doorbell of the endpoint that the link was made with. `at`: when it surely has, though nobody will say so: a message is
// known, but not due before.
struct Wakeup {
  int descriptor = -1;
  short events = 0;
  bool rings_doorbell = false;
  std::optional<std::chrono::steady_clock::time_point> at = std::nullopt;
};

// Optional: between user memory and the wire without a copy through wire memory.
class Direct {
 public:
  virtual ~Direct() = default;
  // Sends from the caller's memory, in order with committed messages. The bytes must stay as they are until sent().
  // False: no room now (one such send at a time), nothing happened.
  virtual bool send(std::span<const std::byte> payload, Tag tag) = 0;
  virtual bool sent() = 0;
  // Where the payload of the next message not yet received should land. A hint: front() then returns this memory, or, if the
  // message had already arrived, wire memory as usual. Withdrawn by release().
  virtual void expect(std::span<std::byte> target) = 0;
};

class Link {
 public:
  virtual ~Link() = default;

  // Writable wire memory of exactly n bytes (data() is null if there is no credit; n = 0 gives an empty span with data()).
  // n <= max_message. The span stays valid until commit, which publishes it; commit without a span from acquire is a bug.
  virtual std::span<std::byte> acquire(Bytes n) = 0;
  virtual void commit(Tag tag) = 0;

  // The oldest unreleased message, or null. The pointer is valid until release, which gives the credit back.
  virtual const Message* front() = 0;
  virtual void release() = 0;

  // Moves bytes that only the caller's thread can move (sockets). Cheap when there is nothing to do.
  virtual void progress() = 0;
  // Whether that ever does anything.
  virtual bool needs_progress() const { return !wakeup().rings_doorbell; }
  // True if nothing committed or sent is still inside this end (so that it may be left alone).
  virtual bool flushed() = 0;
  // Ok, or why no message will pass any more; names the peer's rank as the culprit.
  virtual Status health() = 0;

  virtual Wakeup wakeup() const = 0;
  virtual Direct* direct() { return nullptr; }
  // The peer's window, readable here: only of links on a channel that shows one; empty where memory cannot be mapped.
  virtual std::span<std::byte> window() const { return {}; }
  // Wakes the peer if it sleeps: after a seq_cst store of news into this rank's window.
  virtual void ring() {}
  virtual Bytes max_message() const = 0;
  virtual std::string_view transport() const = 0;  // "shm", "tcp", ...
};

// How a rank of a communicator is known to the others: the part of the agreed table that links need. Value type.
struct PeerIdentity {
  Rank rank;
  std::string host;           // host's name, for error texts
  std::string host_id;        // same text: same machine (boot id, or NCCL_HOSTID)
  std::uint64_t process = 0;  // same number and host_id: same process (random, drawn anew after a fork)
  std::int32_t pid = 0;
  std::string address;        // "ip:port" or "[ip6]:port" of the TCP listeners, best first, separated by commas
  std::string local_address;  // name of the abstract UNIX listener, empty if there is none
};

// Memory that a rank shows to its peers over the links of one channel; same size on all ranks. Those links carry messages without
// data only.
struct ShownWindow {
  int channel = -1;
  std::shared_ptr<Window> window;
};

// One rank's own things that its links use. Outlives them.
struct Endpoint {
  // Null: none is shown on this channel.
  std::shared_ptr<Window> window_on(int channel) const {
    for (const ShownWindow& each : windows)
      if (each.channel == channel) return each.window;
    return nullptr;
  }
  // Most bytes of a message on this channel.
  Bytes max_message_on(int channel) const { return window_on(channel) == nullptr ? max_message : Bytes{0}; }

  PeerIdentity self;
  std::uint64_t communicator = 0;  // same number on all ranks of one communicator
  Bytes max_message{64 << 10};     // agreed, equal on all ranks
  int credits = 4;                 // agreed, equal on all ranks
  bool loopback_disable = false;   // agreed
  bool shm_disable = false;        // agreed
  Doorbell* doorbell = nullptr;    // rung by peers
  std::vector<ShownWindow> windows;
  int connects = 10;                            // how often a refused connect is tried; the n-th pause is n times as long:
  std::chrono::milliseconds connect_pause{20};  // 0.9 s in all
  int doorbell_descriptor = -1;                 // memory file whose page 0 starts with *doorbell; -1: only loopback can ring it
};

// What a transport is like, as numbers; whoever chooses reads these. Estimates for an idle machine.
struct Capabilities {
  double latency_s = 0;      // of an empty message
  double bandwidth_Bps = 0;  // of large messages, one direction
  double overhead_s = 0;     // of the sender's and receiver's processors, each, a message
};

// What carries the handshake of a link: nothing (the two ends meet in this process), a UNIX stream, or a TCP stream.
enum class Carrier : std::uint8_t { none, local, network };

// A link in the making, on either side. progress() never blocks; call it until it gives a link or an error.
class Connection {
 public:
  virtual ~Connection() = default;
  // Null: not yet.
  virtual Result<std::unique_ptr<Link>> progress() = 0;
  virtual Wakeup wakeup() const = 0;
};

// A backend. Stateless but for what its links share; listed in transports/transports.cpp in order of preference.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  virtual Capabilities capabilities() const = 0;
  virtual Carrier carrier() const = 0;
  // Whether it is worth trying between these two: a pure function of agreed facts, the same on both ranks. The handshake may
  // still fail; then the connecting side goes on with the next transport in the list.
  virtual bool reaches(const Endpoint& self, const PeerIdentity& peer) const = 0;
  // Starts one end of channel `channel` to `peer`. `stream` is the authenticated stream of the handshake (empty for
  // Carrier::none); `connecting` is true on the side that opened it (the lower rank).
  virtual std::unique_ptr<Connection> connect(const Endpoint& self, const PeerIdentity& peer, int channel, Descriptor stream,
                                              bool connecting) = 0;
};

}  // namespace shoal::link
