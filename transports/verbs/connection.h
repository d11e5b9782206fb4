// SPDX-License-Identifier: Apache-2.0
// A verbs link in the making, alike on both sides, over the authenticated stream:
//   1. each says its blueprint, or why it has none;
//   2. each joins its queue pairs to the peer's, and says so with a byte;
//   3. each greets by every queue pair, and waits for its greetings to be acknowledged and the peer's to come: only then is it
//      known that packets pass; each says so with a second byte.
// The stream is then kept, for its end. Any failure closes it, and the connecting side goes on with the next transport.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "core/ib_options.h"
#include "link/link.h"
#include "transports/verbs/blueprint.h"
#include "transports/verbs/queues.h"

namespace shoal::transports {

class VerbsConnection final : public link::Connection {
 public:
  // `rails` are open devices' usable ports; an error in their place is told to the peer.
  VerbsConnection(const link::Endpoint& self, const link::PeerIdentity& peer, int channel, link::Descriptor stream,
                  Result<std::vector<verbs::Rail>> rails, const IbOptions& options);

  Result<std::unique_ptr<link::Link>> progress() override;
  link::Wakeup wakeup() const override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Step { introducing, joining, greeting, proven, refusing, failed };

  Status prepare(Result<std::vector<verbs::Rail>> rails, const IbOptions& options);
  Status step();
  Status introduce();
  Status greet();
  void say(char byte) { unsaid_.push_back(byte); }
  Status say_all();
  Result<bool> hear(std::span<std::byte> into, std::size_t& heard);
  Result<bool> hear_byte(char wanted);
  std::unique_ptr<link::Link> finish();

  const int rank_;
  const link::PeerIdentity peer_;
  verbs::Layout layout_;
  link::Descriptor stream_;
  link::Descriptor news_;
  verbs::Blueprint ours_, theirs_;
  std::size_t heard_ = 0;     // bytes of theirs_
  std::vector<char> unsaid_;  // bytes for the stream
  std::unique_ptr<verbs::Queues> queues_;
  Step step_ = Step::introducing;
  std::size_t greetings_ = 0;  // of the peer
  Clock::time_point deadline_{};
  Status failure_;
};

}  // namespace shoal::transports
