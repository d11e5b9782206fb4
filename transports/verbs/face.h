// SPDX-License-Identifier: Apache-2.0
// What Shoal uses of InfiniBand verbs, in its own words: devices, pinned memory, reliable queue pairs, completions. One
// implementation over libibverbs, opened at run time (ibverbs.cpp); tests have another. Objects own what they stand for, and
// outlive what was made from them. A Context may be used by any thread; its queue pairs and completions by one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace shoal::transports::verbs {

// 128 bits that name a port; of RoCE they hold its IPv6 address, or its IPv4 address as ::ffff:a.b.c.d.
struct Gid {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const Gid&, const Gid&) = default;
};
enum class GidKind : std::uint8_t { infiniband, roce_v1, roce_v2 };
struct GidEntry {
  Gid gid;
  GidKind kind = GidKind::infiniband;
  int index = 0;  // in the port's table
};

struct PortFacts {
  bool active = false;
  bool ethernet = false;     // RoCE; else InfiniBand
  std::uint16_t lid = 0;     // InfiniBand's address within a subnet
  std::uint16_t mtu = 0;     // bytes of payload in a packet
  double bandwidth_Bps = 0;  // of the wire, one direction; 0: not known
};

// Memory that a device may read and write, until this is destroyed.
class Region {
 public:
  virtual ~Region() = default;
  virtual std::uint32_t local_key() const = 0;
  virtual std::uint32_t remote_key() const = 0;
};

enum class Outcome : std::uint8_t {
  ok,
  flushed,             // the queue pair was broken before
  retries_exceeded,    // the other side's device did not answer
  receiver_not_ready,  // it had no receive posted
  remote_access,       // it does not allow this access to its memory
  remote_error,        // it has another trouble
  local_error,         // this side's request was wrong: length, protection
  other,
};
struct Completion {
  std::uint64_t id = 0;          // of a write
  std::uint32_t queue_pair = 0;  // its number
  std::uint32_t immediate = 0;   // of a receive
  Outcome outcome = Outcome::ok;
  int code = 0;  // the device's own word for it
};

// Where writes end and immediates arrive, of all queue pairs made with it.
class Completions {
 public:
  virtual ~Completions() = default;
  // How many there were, at most into.size(); negative: the queue is broken.
  virtual int poll_writes(std::span<Completion> into) = 0;
  virtual int poll_receives(std::span<Completion> into) = 0;
  // Makes descriptor() readable at the next receive that is added, or at the next write that ends.
  virtual bool arm_receives() = 0;
  virtual bool arm_writes() = 0;
  virtual int descriptor() const = 0;
  // Takes what makes it readable. Never blocks.
  virtual void take_events() = 0;
};

// A write into the peer's memory. With an immediate it also takes one of the peer's receives, and the number arrives there after
// the bytes of this and of all earlier writes of the queue pair.
struct Write {
  std::uint64_t id = 0;
  std::span<const std::byte> from;
  std::uint32_t local_key = 0;
  std::uint64_t to = 0;
  std::uint32_t remote_key = 0;
  std::optional<std::uint32_t> immediate;
  bool signalled = false;  // its end is told; the end of a later write of the queue pair tells it too
  bool inlined = false;    // `from` is copied while posting and needs no key
};

// How a queue pair's packets travel.
struct Path {
  std::uint8_t port = 1;
  std::uint8_t gid_index = 0;
  bool global = false;  // by GID; else by LID
  std::uint16_t mtu = 1024;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t timeout = 20;     // of an acknowledgement: 4.096 us x 2^timeout
  std::uint8_t retry_count = 7;  // how often a packet is repeated
  std::uint32_t first_packet = 0;
};
struct RemoteEnd {
  std::uint32_t queue_pair = 0;
  std::uint32_t first_packet = 0;
  std::uint16_t lid = 0;
  Gid gid;
};

class QueuePair {
 public:
  virtual ~QueuePair() = default;
  virtual std::uint32_t number() const = 0;
  virtual std::size_t inline_bytes() const = 0;
  virtual Status post_receives(int count) = 0;  // without memory: they take immediates
  virtual Status connect(const Path& path, const RemoteEnd& remote) = 0;
  virtual Status post(const Write& write) = 0;
};

struct QueueShape {
  int writes = 0;                // that may be posted and not ended
  int receives = 0;              // likewise
  std::size_t inline_bytes = 0;  // wanted; a device may give less
};

struct Event {
  enum class Kind : std::uint8_t { port_down, port_up, device_gone, other };
  Kind kind = Kind::other;
  int port = 0;
};

// An open device.
class Context {
 public:
  virtual ~Context() = default;
  virtual int ports() const = 0;
  virtual Result<PortFacts> port(int number) = 0;
  virtual Result<std::vector<GidEntry>> gids(int port) = 0;  // of the table's entries those that are in use
  virtual Result<std::unique_ptr<Region>> pin(std::span<std::byte> memory) = 0;
  // Memory of another device, that a dma-buf descriptor stands for: `bytes` from `offset` in it, known to the peer as `address`.
  virtual Result<std::unique_ptr<Region>> pin_dmabuf(int descriptor, std::uint64_t offset, std::size_t bytes,
                                                     std::uint64_t address) = 0;
  virtual Result<std::unique_ptr<Completions>> completions(int writes, int receives) = 0;
  // Of `port`, ready for receives, not connected.
  virtual Result<std::unique_ptr<QueuePair>> queue_pair(Completions& completions, int port, const QueueShape& shape) = 0;
  // What happened to the device or its ports since the last look. Never blocks.
  virtual std::optional<Event> next_event() = 0;
};

class Verbs {
 public:
  virtual ~Verbs() = default;
  // Devices that reliable queue pairs can be made on without a connection manager; others (iWARP) are named in `unsuited`.
  virtual Result<std::vector<std::string>> devices(std::vector<std::string>& unsuited) = 0;
  virtual Result<std::unique_ptr<Context>> open(const std::string& device) = 0;
};

// The one of this machine; an error if there is no libibverbs here, or this build knows none.
Result<std::unique_ptr<Verbs>> open_ibverbs();

}  // namespace shoal::transports::verbs
