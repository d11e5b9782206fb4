// SPDX-License-Identifier: Apache-2.0
// The sending half of a TCP link: a queue of at most `credits` messages from wire memory and one from user memory, given to the
// kernel in order, as many as it takes with one call. Part of a link, driven by its thread; the stream outlives it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/types.h"
#include "link/link.h"
#include "transports/tcp/frame.h"

namespace shoal::transports {

class Sender {
 public:
  Sender(int stream, Bytes max_message, int credits);

  std::span<std::byte> acquire(Bytes n);
  void commit(link::Tag tag);
  bool send_direct(std::span<const std::byte> payload, link::Tag tag);

  // Gives the kernel what it takes now. No system call when there is nothing.
  void flush();

  bool is_empty() const { return queued_ == 0; }
  bool has_direct() const { return direct_queued_; }
  // True if the caller must be waiting for the stream to take something: its last acquire was refused, and would be again, or
  // user memory is in the queue.
  bool is_starving() const { return (refused_eager_ && eager_queued_ == slots_) || direct_queued_; }
  int error() const { return error_; }  // errno of a broken stream; nothing is sent after it

 private:
  // As it is sent: in one piece from wire memory, where the header lies before its payload; a header and user memory.
  struct Frame {
    FrameHeader header;  // if direct
    std::span<const std::byte> body;
    bool direct = false;

    std::size_t head() const { return direct ? kFrameHeader : 0; }
    std::size_t bytes() const { return head() + body.size(); }
  };

  std::size_t after(std::size_t frame) const { return frame + 1 == frames_.size() ? 0 : frame + 1; }
  void enqueue(const Frame& frame);
  std::size_t send_some();     // bytes that the kernel took; 0: none now, or error_
  std::size_t unsent() const;  // bytes in the queue
  void advance(std::size_t bytes);

  int stream_;
  std::size_t max_message_;
  std::size_t slots_;
  std::size_t stride_;                 // bytes of a slot: the header's cache line, and a message
  std::unique_ptr<std::byte[]> wire_;  // the slots; cost no page until a message needs it
  std::vector<Frame> frames_;          // a ring, slots_ + 1 long
  std::size_t oldest_ = 0;             // in frames_
  std::size_t queued_ = 0;             // in frames_
  std::size_t taken_ = 0;              // bytes of the oldest frame that the kernel has, header included
  std::size_t slot_ = 0;               // in wire_, of the next eager message
  std::size_t eager_queued_ = 0;
  bool direct_queued_ = false;
  bool refused_eager_ = false;
  std::span<std::byte> acquired_;
  int error_ = 0;
};

}  // namespace shoal::transports
