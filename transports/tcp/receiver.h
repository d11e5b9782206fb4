// SPDX-License-Identifier: Apache-2.0
// The receiving half of a TCP link: cuts the stream into messages. Bytes are staged in wire memory, where a message always lies
// in one piece; the payload of an expected long message goes straight to where it is wanted. The peer is not trusted: a header
// that cannot be ends the stream. Part of a link, driven by its thread; the stream outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/types.h"
#include "link/link.h"
#include "transports/tcp/frame.h"

namespace shoal::transports {

class Receiver {
 public:
  // How the stream stands. All but `open` are final.
  enum class State { open, closed, broken, malformed };

  Receiver(int stream, Bytes max_message);

  // The oldest message if all of it is here; no system call.
  const link::Message* front();
  void release();
  // Reads what the kernel has, until the oldest message is complete.
  void fill();

  // As Direct::expect. An empty target takes the hint back, and with it the bytes that have landed.
  void expect(std::span<std::byte> target);
  bool is_expecting() const { return !target_.empty(); }

  State state() const { return state_; }
  int error() const { return error_; }                   // errno of a broken stream
  const FrameHeader& header() const { return header_; }  // the malformed one

 private:
  bool parse();
  std::size_t payload_start() const { return head_ + kFrameHeader; }
  void make_room();
  void move_to_start();
  void start_landing();
  void take_back();
  bool read_once();  // true: as many bytes came as were asked for

  int stream_;
  std::size_t max_message_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> staging_;  // costs no page until bytes come
  std::size_t head_ = 0;                  // in staging_: the header of the oldest message
  std::size_t tail_ = 0;                  // in staging_: behind the last byte that came
  FrameHeader header_;
  bool parsed_ = false;    // header_ is the oldest message's
  bool complete_ = false;  // message_ is the oldest message
  link::Message message_;
  std::span<std::byte> target_;
  bool landing_ = false;    // the payload goes to target_; staging_ has the header and what follows the message
  std::size_t landed_ = 0;  // bytes of it that are there
  State state_ = State::open;
  int error_ = 0;
};

}  // namespace shoal::transports
