// SPDX-License-Identifier: Apache-2.0
// How two processes come to share memory, over the authenticated stream:
//   connecting -> accepting: Offer, with the descriptors of the rings' memory file and of the connecting side's doorbell page
//   accepting -> connecting: Answer, with the descriptor of the accepting side's doorbell page
// On the window channel both also carry the descriptor of the side's window.
// The files have no name; the descriptors of the rings and of the peer's page are closed as soon as they are mapped.
#include "transports/shm/transport.h"

#include <poll.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "transports/peer_status.h"
#include "transports/shm/link.h"
#include "transports/shm/passing.h"

namespace shoal::transports {
namespace {

constexpr const char* kRingsName = "shoal-rings";

// Same host, same library: the bytes as they lie in memory.
struct Offer {
  std::uint32_t magic = 0x4d485331;  // "1SHM"; counts up when the layout of the rings changes
  std::int32_t credits = 0;
  std::uint64_t max_message = 0;
  friend bool operator==(const Offer&, const Offer&) = default;
};
struct Answer {
  std::uint32_t magic = 0x4b4f5331;  // "1SOK"
  friend bool operator==(const Answer&, const Answer&) = default;
};

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

class ShmConnection : public link::Connection {
 public:
  ShmConnection(const link::Endpoint& self, const link::PeerIdentity& peer, int channel, link::Descriptor stream)
      : pair_{{self.max_message_on(channel), self.credits}},
        own_page_(self.doorbell_descriptor),
        window_(self.window_on(channel)),
        peer_(peer),
        stream_(std::move(stream)) {}

  link::Wakeup wakeup() const override { return {.descriptor = stream_.get(), .events = POLLIN, .rings_doorbell = false}; }

 protected:
  Offer offer() const { return {.credits = pair_.shape.credits, .max_message = pair_.shape.max_message.value}; }

  Status about_peer(const Status& cause) const { return peer_failure("shm", peer_, "cannot share memory: {}", cause.text()); }

  // The descriptors that go with a message of this side: `first`, if there is one, the page, and the window, if there is one.
  Result<bool> pass_ours(std::span<const std::byte> message, int first) {
    std::array<int, kMaxPassed> descriptors{};
    std::size_t n = 0;
    if (first >= 0) descriptors[n++] = first;
    descriptors[n++] = own_page_;
    if (window_ != nullptr) {
      if (Status opened = window_->open(); !opened.is_ok()) return opened;
      descriptors[n++] = window_->descriptor();
    }
    return pass(stream_, message, std::span(descriptors).first(n));
  }
  std::size_t with_window(std::size_t descriptors) const { return descriptors + (window_ != nullptr ? 1 : 0); }

  // The last step on either side: everything is mapped but the peer's page, which came as the `page`-th descriptor, and the
  // peer's window, which came after it.
  Result<std::unique_ptr<link::Link>> finish(std::size_t page, bool connecting) {
    Result<link::DoorbellPage> mapped = link::DoorbellPage::map(parcel_.descriptors()[page]);
    if (!mapped.is_ok()) return about_peer(mapped.status());
    link::Mapping peers_window;
    if (window_ != nullptr) {
      Result<link::Mapping> shown = link::Window::map(parcel_.descriptors()[page + 1], window_->size());
      if (!shown.is_ok()) return about_peer(shown.status());
      peers_window = shown.take();
    }
    return std::unique_ptr<link::Link>(std::make_unique<ShmLink>(pair_, std::move(memory_), mapped.take(),
                                                                 std::move(peers_window), std::move(stream_), connecting, peer_));
  }

  RingPair pair_;
  int own_page_;  // the endpoint's, which outlives the connection
  std::shared_ptr<link::Window> window_;
  link::PeerIdentity peer_;
  link::Descriptor stream_;
  link::Mapping memory_;
  Parcel parcel_;
};

class ConnectingSide final : public ShmConnection {
 public:
  using ShmConnection::ShmConnection;

  Result<std::unique_ptr<link::Link>> progress() override {
    if (!offered_) {
      const Result<bool> offered = send_offer();
      if (!offered.is_ok()) return offered.status();
      offered_ = *offered;
      if (!offered_) return std::unique_ptr<link::Link>();
    }
    const Result<bool> answered = parcel_.receive(stream_, bytes_of(answer_), with_window(1));
    if (!answered.is_ok()) return about_peer(answered.status());
    if (!*answered) return std::unique_ptr<link::Link>();
    if (answer_ != Answer{})
      return peer_failure("shm", peer_, "sent answer {:#x}, {:#x} expected", answer_.magic, Answer{}.magic);
    return finish(0, true);
  }

 private:
  Result<bool> send_offer() {
    if (memory_.memory().empty()) {
      Result<link::Descriptor> file = link::create_memory_file(kRingsName, pair_.bytes());
      if (!file.is_ok()) return file.status();
      Result<link::Mapping> memory = link::map_memory_file(kRingsName, *file, pair_.bytes());
      if (!memory.is_ok()) return memory.status();
      file_ = file.take();
      memory_ = memory.take();
      link::prepare_ring(pair_.from_connecting(memory_.memory()), pair_.shape);
      link::prepare_ring(pair_.from_accepting(memory_.memory()), pair_.shape);
    }
    Offer said = offer();
    Result<bool> passed = pass_ours(bytes_of(said), file_.get());
    if (!passed.is_ok()) return about_peer(passed.status());
    if (*passed) file_.reset();
    return passed;
  }

  link::Descriptor file_;
  bool offered_ = false;
  Answer answer_{.magic = 0};
};

class AcceptingSide final : public ShmConnection {
 public:
  using ShmConnection::ShmConnection;

  Result<std::unique_ptr<link::Link>> progress() override {
    if (memory_.memory().empty()) {
      const Result<bool> received = parcel_.receive(stream_, bytes_of(offered_), with_window(2));
      if (!received.is_ok()) return about_peer(received.status());
      if (!*received) return std::unique_ptr<link::Link>();
      if (Status mapped = map_offer(); !mapped.is_ok()) return mapped;
    }
    Answer answer;
    const Result<bool> passed = pass_ours(bytes_of(answer), -1);
    if (!passed.is_ok()) return about_peer(passed.status());
    if (!*passed) return std::unique_ptr<link::Link>();
    return finish(1, false);
  }

 private:
  Status map_offer() {
    if (offered_ != offer())
      return peer_failure("shm", peer_, "offered {:#x}: {} messages of {} bytes; {:#x}: {} of {} expected", offered_.magic,
                          offered_.credits, offered_.max_message, offer().magic, offer().credits, offer().max_message);
    Result<link::Mapping> memory = link::map_memory_file(kRingsName, parcel_.descriptors()[0], pair_.bytes());
    if (!memory.is_ok()) return about_peer(memory.status());
    memory_ = memory.take();
    parcel_.descriptors()[0].reset();
    return {};
  }

  Offer offered_{.magic = 0};
};

// For an endpoint that peers in other processes cannot ring.
class NoConnection final : public link::Connection {
 public:
  Result<std::unique_ptr<link::Link>> progress() override {
    return fail(Code::invalid_usage, "shm needs an endpoint with a doorbell page (doorbell_descriptor is -1)");
  }
  link::Wakeup wakeup() const override { return {}; }
};

}  // namespace

bool ShmTransport::reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const {
  if (self.shm_disable || self.self.host_id != peer.host_id) return false;
  if (self.self.local_address.empty() || peer.local_address.empty()) return false;
  return self.self.process != peer.process || self.loopback_disable;
}

std::unique_ptr<link::Connection> ShmTransport::connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                                        link::Descriptor stream, bool connecting) {
  if (self.doorbell_descriptor < 0) return std::make_unique<NoConnection>();
  if (connecting) return std::make_unique<ConnectingSide>(self, peer, channel, std::move(stream));
  return std::make_unique<AcceptingSide>(self, peer, channel, std::move(stream));
}

}  // namespace shoal::transports
