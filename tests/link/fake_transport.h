// SPDX-License-Identifier: Apache-2.0
// Transports for tests of who gets connected to whom. Over a stream, each end says who it is and keeps what the other said;
// without one, the ends meet in a table. No messages pass. One thread.
#pragma once

#include <poll.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "link/link.h"
#include "link/support.h"

namespace shoal::link::testing {

struct FakeLink final : Link {
  std::string name;
  Rank self;
  Rank heard_from;  // what the other end said
  int heard_channel = -1;
  bool was_connecting = false;
  Descriptor stream;

  std::span<std::byte> acquire(Bytes) override { return {}; }
  void commit(Tag) override {}
  const Message* front() override { return nullptr; }
  void release() override {}
  void progress() override {}
  bool flushed() override { return true; }
  Status health() override { return {}; }
  Wakeup wakeup() const override { return {stream.get(), POLLIN, false}; }
  Bytes max_message() const override { return {}; }
  std::string_view transport() const override { return name; }
};

// Both ends say {rank, channel} and hear the other's.
class FakeStreamConnection final : public Connection {
 public:
  FakeStreamConnection(std::unique_ptr<FakeLink> link, int channel) : link_(std::move(link)) {
    out_ = {link_->self.value, channel};
  }
  Result<std::unique_ptr<Link>> progress() override {
    const Transfer put = write_some(link_->stream.get(), std::as_bytes(std::span(out_)).subspan(said_));
    const Transfer got = read_some(link_->stream.get(), std::as_writable_bytes(std::span(in_)).subspan(heard_));
    said_ += put.bytes;
    heard_ += got.bytes;
    if (put.closed || got.closed) return fail(Code::remote_error, "fake: the other end closed");
    if (said_ < sizeof out_ || heard_ < sizeof in_) return std::unique_ptr<Link>();
    link_->heard_from = {in_[0]};
    link_->heard_channel = in_[1];
    return std::unique_ptr<Link>(std::move(link_));
  }
  Wakeup wakeup() const override {
    return {link_->stream.get(), static_cast<short>(said_ < sizeof out_ ? POLLIN | POLLOUT : POLLIN), false};
  }

 private:
  std::unique_ptr<FakeLink> link_;
  std::array<std::int32_t, 2> out_{}, in_{};
  std::size_t said_ = 0, heard_ = 0;
};

struct FailingConnection final : Connection {
  Result<std::unique_ptr<Link>> progress() override { return fail(Code::system_error, "fake: no such device"); }
  Wakeup wakeup() const override { return {}; }
};

class FakeStreamTransport final : public Transport {
 public:
  FakeStreamTransport(std::string name, Carrier carrier) : name_(std::move(name)), carrier_(carrier) {}
  std::string_view name() const override { return name_; }
  Capabilities capabilities() const override { return {}; }
  Carrier carrier() const override { return carrier_; }
  bool reaches(const Endpoint& self, const PeerIdentity& peer) const override {
    return carrier_ == Carrier::network || self.self.host_id == peer.host_id;
  }
  std::unique_ptr<Connection> connect(const Endpoint& self, const PeerIdentity&, int channel, Descriptor stream,
                                      bool connecting) override {
    ++started;
    if (connecting ? fails_connecting : fails_accepting) return std::make_unique<FailingConnection>();
    auto link = std::make_unique<FakeLink>();
    link->name = name_;
    link->self = self.self.rank;
    link->was_connecting = connecting;
    link->stream = std::move(stream);
    return std::make_unique<FakeStreamConnection>(std::move(link), channel);
  }

  bool fails_connecting = false, fails_accepting = false;
  int started = 0;

 private:
  std::string name_;
  Carrier carrier_;
};

// The ends of one process meet here.
class FakeMeetingTransport final : public Transport {
 public:
  std::string_view name() const override { return "meeting"; }
  Capabilities capabilities() const override { return {}; }
  Carrier carrier() const override { return Carrier::none; }
  bool reaches(const Endpoint& self, const PeerIdentity& peer) const override {
    return self.self.host_id == peer.host_id && self.self.process == peer.process;
  }
  std::unique_ptr<Connection> connect(const Endpoint& self, const PeerIdentity& peer, int channel, Descriptor stream,
                                      bool connecting) override {
    CHECK_FALSE(stream.is_open());
    if (fails_connecting && connecting) return std::make_unique<FailingConnection>();
    const auto [low, high] = std::minmax(self.self.rank.value, peer.rank.value);
    auto link = std::make_unique<FakeLink>();
    link->name = "meeting";
    link->self = self.self.rank;
    link->was_connecting = connecting;
    link->heard_from = peer.rank;
    link->heard_channel = channel;
    int& present = present_[{low, high, channel}];
    ++present;
    return std::make_unique<Meeting>(std::move(link), present);
  }

  bool fails_connecting = false;

 private:
  struct Meeting final : Connection {
    Meeting(std::unique_ptr<FakeLink> l, const int& p) : link(std::move(l)), present(p) {}
    Result<std::unique_ptr<Link>> progress() override {
      if (present < 2) return std::unique_ptr<Link>();
      return std::unique_ptr<Link>(std::move(link));
    }
    Wakeup wakeup() const override { return {-1, 0, true}; }
    std::unique_ptr<FakeLink> link;
    const int& present;
  };
  std::map<std::tuple<int, int, int>, int> present_;  // how many ends have come
};

}  // namespace shoal::link::testing
