// SPDX-License-Identifier: Apache-2.0
// Two ranks with a link between them, for tests: two threads, or two forked processes, over every transport of the list. Each
// side runs a script; a script that fails throws, and run() returns the text. All waits are bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/link.h"
#include "transports/shim/transport.h"

namespace shoal::transports {

inline constexpr std::chrono::seconds kPatience{60};

enum class Apart { threads, processes };

struct Arrangement {
  link::Transport* transport = nullptr;
  Apart apart = Apart::threads;
  const char* host = "";          // of the listener, for TCP
  std::optional<Shim> shim = {};  // what slows both ends
  const char* ucx_tls = "";       // for UCX: what it may use
  std::string name() const;
};

// What a test's program is about: all of the list (all_transports.cpp), or others.
struct Tested {
  std::span<link::Transport* const> transports;
  bool between_processes = true;  // they can be
};
Tested tested_transports();

// Every one of them that works here, apart in every way in which it and this build (ThreadSanitizer knows no forks) can be.
std::vector<Arrangement> arrangements();
// The same, and all of them once more with a wire that takes some time.
std::vector<Arrangement> arrangements_and_slowed();

struct Options {
  Bytes max_message{64 << 10};
  int credits = 4;
  bool higher_is_killed = false;  // its death by SIGKILL is no failure
};

// The bytes of message `number`, the same on both sides.
std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t number);

// One side, as its script sees it. Rank 0 is the lower side, rank 1 the higher.
class Party {
 public:
  Party(const Arrangement& arrangement, const Options& options, int side, link::Descriptor stream, int to_other);

  link::Link& link() { return *link_; }
  link::Doorbell& doorbell() { return page_.doorbell(); }
  void leave() { link_.reset(); }
  void sync() const;  // returns when the other side is here too

  static void check(bool condition, const std::string& what);
  // Turns the link over until done() holds.
  void until(const std::string& what, const std::function<bool()>& done);
  void send(std::span<const std::byte> payload, std::uint32_t tag);
  void receive(std::span<const std::byte> expected, std::uint32_t tag);
  // Everything is out of this end.
  void flush();
  // Messages may still pass: fails if the link is not healthy.
  void expect_health();
  // Waits until the link says that the other side is gone.
  Status await_loss();
  // Sleeps as an engine does until ready(); fails if nobody wakes it within patience.
  void sleep_until(const std::function<bool()>& ready);

 private:
  void doze();  // a millisecond, or until the link has news
  void connect(const Arrangement& arrangement, const link::PeerIdentity& peer, link::Descriptor stream);

  link::DoorbellPage page_;
  link::Endpoint endpoint_;
  std::unique_ptr<ShimmedTransports> shimmed_;
  std::unique_ptr<link::Link> link_;
  int side_;
  int to_other_;  // a blocking socket to the other side, for sync()
};

using Script = std::function<void(Party&)>;

// Runs both scripts at once and returns what went wrong, empty if nothing did.
std::string run(const Arrangement& arrangement, const Options& options, const Script& lower, const Script& higher);

// A connected pair of streams of the kind that the transport wants; the first is the connecting side's. Empty for none.
struct Streams {
  link::Descriptor connecting;
  link::Descriptor accepting;
};
Streams make_streams(link::Carrier carrier, const char* host);
Streams make_local_streams();

// Identity and endpoint of rank `side` of two on this host.
link::PeerIdentity identity(int side, Apart apart);

}  // namespace shoal::transports
