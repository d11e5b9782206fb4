// SPDX-License-Identifier: Apache-2.0
// An open device of this process, shared by all links through it: what it pins of the user's memory, and what has happened to it.
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/status.h"
#include "transports/verbs/face.h"

namespace shoal::transports::verbs {

struct Keys {
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
};

class Device {
 public:
  Device(std::string name, std::unique_ptr<Context> context) : name_(std::move(name)), context_(std::move(context)) {}

  const std::string& name() const { return name_; }
  Context& context() { return *context_; }

  // Pins memory of a link. The error names the limit on locked memory where there is one.
  Result<std::unique_ptr<Region>> pin(std::span<std::byte> memory);

  // Keys of memory of the user's, pinned at first use with all that it is a part of, and kept until that ends: a block of
  // ncclMemAlloc until it is freed, what ncclCommRegister has announced until it is withdrawn. What malloc gives may otherwise be
  // given back, and mean other pages, without a word: nothing for it, and where memory cannot be pinned.
  std::optional<Keys> keys_of(std::span<const std::byte> memory);

  // Looks for what happened; after that, whether the device is gone, or its port without a wire.
  void look();
  bool is_gone() const { return gone_.load(std::memory_order_relaxed); }
  bool is_down(int port) const { return port < 64 && (down_.load(std::memory_order_relaxed) >> port & 1) != 0; }

 private:
  // What is pinned as one, and as what: numbers are counted of each kind, and never given again.
  enum class Kind : std::uint8_t { block, announced };
  using Name = std::pair<Kind, std::uint64_t>;
  struct Whole {
    Name name;
    std::span<const std::byte> memory;
  };
  struct Pinned {
    std::span<const std::byte> memory;
    std::unique_ptr<Region> region;  // null: it cannot be pinned
  };
  static std::optional<Whole> whole_of(std::span<const std::byte> memory);
  static bool still_is(const Name& name, std::span<const std::byte> memory);
  void forget_ended();

  const std::string name_;
  const std::unique_ptr<Context> context_;
  std::atomic<bool> gone_{false};
  std::atomic<std::uint64_t> down_{0};  // a bit a port
  std::mutex events_;                   // whoever takes them
  std::mutex mutex_;
  std::map<Name, Pinned> pinned_;  // under mutex_
  std::uint64_t ended_ = 0;  // under mutex_: how many blocks and announcements had ended when pinned_ was last looked through
};

}  // namespace shoal::transports::verbs
