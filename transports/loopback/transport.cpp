// SPDX-License-Identifier: Apache-2.0
#include "transports/loopback/transport.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "transports/loopback/link.h"

namespace shoal::transports {

// Which two ranks meet, and on which of their channels.
struct Meeting {
  std::uint64_t communicator;
  Rank low;
  Rank high;
  int channel;
  friend auto operator<=>(const Meeting&, const Meeting&) = default;
};

// Whoever waits for the other end.
class MeetingPlace {
 public:
  // `window`: opened, or none.
  End come(const Meeting& meeting, const link::Endpoint& self, const std::shared_ptr<link::Window>& window) {
    const link::RingShape shape{self.max_message_on(meeting.channel), self.credits};
    const std::lock_guard lock(mutex_);
    if (auto found = waiting_.extract(meeting)) {
      expects(found.mapped()->shape == shape, "both ranks of a loopback link have the same max_message and credits");
      return {std::move(found.mapped()), 1, self.doorbell, window};
    }
    auto channel = std::make_shared<Channel>(shape);
    waiting_.emplace(meeting, channel);
    return {std::move(channel), 0, self.doorbell, window};
  }

  // Nobody is to meet an end that has gone. Another pair may use the same meeting by now: theirs stays.
  void give_up(const Meeting& meeting, const Channel& channel) {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(meeting);
    if (found != waiting_.end() && found->second.get() == &channel) waiting_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<Meeting, std::shared_ptr<Channel>> waiting_;  // guarded by mutex_
};

namespace {

class LoopbackConnection final : public link::Connection {
 public:
  LoopbackConnection(std::shared_ptr<MeetingPlace> meetings, const Meeting& meeting, const link::Endpoint& self,
                     const link::PeerIdentity& peer, const std::shared_ptr<link::Window>& window)
      : meetings_(std::move(meetings)), meeting_(meeting), peer_(peer), end_(meetings_->come(meeting_, self, window)) {}
  ~LoopbackConnection() override {
    if (end_) meetings_->give_up(meeting_, end_->channel());
  }

  Result<std::unique_ptr<link::Link>> progress() override {
    expects(end_.has_value(), "a connection gives its link once");
    if (!end_->other().has_arrived()) return std::unique_ptr<link::Link>();
    std::unique_ptr<link::Link> made = std::make_unique<LoopbackLink>(std::move(*end_), peer_);
    end_.reset();
    return made;
  }
  link::Wakeup wakeup() const override { return {.rings_doorbell = true}; }

 private:
  std::shared_ptr<MeetingPlace> meetings_;
  Meeting meeting_;
  link::PeerIdentity peer_;
  std::optional<End> end_;
};

}  // namespace

LoopbackTransport::LoopbackTransport() : meetings_(std::make_shared<MeetingPlace>()) {}

bool LoopbackTransport::reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const {
  return !self.loopback_disable && self.self.process == peer.process && self.self.host_id == peer.host_id;
}

std::unique_ptr<link::Connection> LoopbackTransport::connect(const link::Endpoint& self, const link::PeerIdentity& peer,
                                                             int channel, link::Descriptor /*stream*/, bool /*connecting*/) {
  const auto [low, high] = std::minmax(self.self.rank, peer.rank);
  std::shared_ptr<link::Window> window = self.window_on(channel);
  // Without memory the link is made all the same; whoever wants to read the window finds it empty.
  if (window != nullptr && !window->open().is_ok()) window = nullptr;
  return std::make_unique<LoopbackConnection>(meetings_, Meeting{self.communicator, low, high, channel}, self, peer, window);
}

}  // namespace shoal::transports
