// SPDX-License-Identifier: Apache-2.0
// Point to point: what one rank sends to and receives from others in one group. Transfers between the same two ranks in the same
// direction go one after the other, in the order given; all others go side by side, so that no order of posting can deadlock a
// group. Each is cut into messages; one of no bytes is one empty message. Driven by one thread; never blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "engine/links.h"
#include "engine/transfer.h"
#include "engine/waiting.h"

namespace shoal::engine {

class Transfers {
 public:
  explicit Transfers(Links& links) : links_(links) {}

  // All messages pass over `channel`, cut to `message` bytes. Peers are others than this rank.
  void start(std::vector<Transfer> transfers, std::uint64_t communicator, int channel, Bytes message);
  bool advance();
  bool done() const { return running_ == 0; }
  const Status& failure() const { return failure_; }

  // f(Waiting) for each that has yet to end.
  template <typename F>
  void for_each_waiting(F&& f) const {
    for (const Stream& stream : streams_)
      if (stream.next < stream.transfers.size()) f(Waiting{stream.peer, channel_, !stream.sending});
  }
  // The first one that has yet to end.
  const Transfer& current() const;
  // Of each pair and direction, the one that is under way.
  std::vector<Transfer> open() const;

 private:
  struct Stream {  // to, or from, one peer
    Rank peer;
    bool sending = false;
    std::vector<Transfer> transfers;
    std::size_t next = 0;    // the transfer being run
    std::size_t offset = 0;  // its bytes that are done
    bool begun = false;      // its first message has passed
    bool expected = false;   // the link knows where the next message should land
  };
  bool advance(Stream& stream);
  bool step(Stream& stream, link::Link& link);
  bool send(Stream& stream, link::Link& link, const Transfer& transfer, Bytes n);
  bool receive(Stream& stream, link::Link& link, const Transfer& transfer, Bytes n);

  Links& links_;
  std::vector<Stream> streams_;
  std::size_t running_ = 0;  // streams with something left
  std::uint64_t communicator_ = 0;
  int channel_ = 0;
  Bytes message_;
  Status failure_;
};

}  // namespace shoal::engine
