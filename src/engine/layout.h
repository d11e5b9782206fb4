// SPDX-License-Identifier: Apache-2.0
// Where the chunks of one call lie in memory: the user's input and output, and scratch. A chunk number and a
// slice lead to an address and a length. Value type; made at the start of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/call.h"
#include "engine/slicing.h"

namespace shoal::engine {

// A chunk's share of one slice.
struct Part {
  std::byte* at = nullptr;  // input is only read through it
  std::size_t elements = 0;
};

class Layout {
 public:
  Layout() = default;
  Layout(const Call& call, const plan::Plan& plan, const Slicing& slicing)
      : slicing_(slicing),
        width_(element_bytes(call.type)),
        chunks_(plan.chunks),
        space_(plan::chunk_space(plan)),
        blocks_(plan::in_blocks(call.collective)),
        uneven_(call.uneven.get()),
        // Input is never written: Track writes through write_to only, which has no way to it.
        input_(static_cast<std::byte*>(const_cast<void*>(call.input))),
        output_(static_cast<std::byte*>(call.output)) {
    const auto only_own = [&](auto has) { return blocks_ && plan.world.value > 1 && !has(plan.rank.value == 0 ? 1 : 0); };
    const auto c = call.collective;
    const std::int32_t r = plan.rank.value, root = plan.root.value;
    first_input_ = only_own([&](std::int32_t b) { return plan::has_input(c, r, root, b); }) ? r : 0;
    first_output_ = only_own([&](std::int32_t b) { return plan::has_output(c, r, root, b); }) ? r : 0;
    slot_bytes_ = (slicing_.longest(chunks_) * width_ + 63) / 64 * 64;
  }

  std::size_t slot_bytes() const { return slot_bytes_; }
  const Slicing& slicing() const { return slicing_; }
  std::size_t width() const { return width_; }

  Part input(std::int32_t chunk, std::size_t slice) const {
    return at(input_, uneven_ == nullptr ? even(first_input_, chunk, slice) : of(uneven_->input, chunk, slice));
  }
  Part output(std::int32_t chunk, std::size_t slice) const {
    return at(output_, uneven_ == nullptr ? even(first_output_, chunk, slice) : of(uneven_->output, chunk, slice));
  }
  // Slot s of memory that starts at `base`: as long as chunk s mod space.
  Part slot(std::byte* base, std::int32_t s, std::size_t slice) const {
    const std::int32_t chunk = s < space_ ? s : s % space_;
    return {base + static_cast<std::size_t>(s) * slot_bytes_, even(0, chunk, slice).length()};
  }
  // Neighbouring chunks are neighbours in memory too.
  bool contiguous(plan::Buffer buffer) const {
    return (buffer == plan::Buffer::input || buffer == plan::Buffer::output) && uneven_ == nullptr &&
           (!blocks_ || slicing_.slices == 1);
  }

 private:
  Part at(std::byte* base, const plan::Range& range) const { return {base + range.begin * width_, range.length()}; }

  // Elements from the start of the buffer.
  plan::Range even(std::int32_t first_block, std::int32_t chunk, std::size_t slice) const {
    if (!blocks_) return slicing_.range(slice, chunks_, chunk);
    const std::int32_t block = chunks_ == 1 ? chunk : chunk / chunks_;
    const plan::Range range = slicing_.range(slice, chunks_, chunk - block * chunks_);
    const std::size_t before = static_cast<std::size_t>(block - first_block) * slicing_.count.value;
    return {before + range.begin, before + range.end};
  }
  plan::Range of(const Blocks& blocks, std::int32_t chunk, std::size_t slice) const {
    const std::int32_t block = chunks_ == 1 ? chunk : chunk / chunks_;
    const auto b = static_cast<std::size_t>(block);
    const plan::Range range = slicing_.range(slice, chunks_, chunk - block * chunks_, blocks.counts[b]);
    const std::size_t before = blocks.offsets.empty() ? 0 : blocks.offsets[b];  // its only block starts the buffer
    return {before + range.begin, before + range.end};
  }

  Slicing slicing_;
  std::size_t width_ = 1;
  std::int32_t chunks_ = 1, space_ = 1;
  bool blocks_ = false;
  const Uneven* uneven_ = nullptr;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::int32_t first_input_ = 0, first_output_ = 0;  // the block that the buffer starts with
  std::size_t slot_bytes_ = 0;
};

}  // namespace shoal::engine
