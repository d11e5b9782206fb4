// SPDX-License-Identifier: Apache-2.0
// A server's values, cut into blocks that snapshots share: whoever changes a block that a snapshot still shows copies it first,
// so that a slow reader costs what it reads, and nobody sees half an update. One thread, snapshots included.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ps/partition.h"

namespace shoal::ps {

inline constexpr std::size_t kBlockKeys = std::size_t{1} << 16;

using Block = std::vector<std::byte>;

// Where the blocks of a range lie. Block i holds keys first + i * kBlockKeys and on.
class BlockLayout {
 public:
  BlockLayout(KeyRange range, std::size_t width) : range_(range), width_(width) {}

  KeyRange range() const { return range_; }
  std::size_t width() const { return width_; }  // bytes of a key
  std::size_t blocks() const { return (range_.count + kBlockKeys - 1) / kBlockKeys; }
  KeyRange keys_of(std::size_t block) const { return common(range_, {range_.first + block * kBlockKeys, kBlockKeys}); }
  // f(block, its keys in `part`) in order; `part` lies in the range.
  template <typename F>
  void for_each(KeyRange part, F&& f) const {
    if (part.count == 0) return;
    for (std::size_t block = (part.first - range_.first) / kBlockKeys; block < blocks(); ++block) {
      const KeyRange keys = common(keys_of(block), part);
      if (keys.count == 0) return;
      f(block, keys);
    }
  }
  // Bytes from the block's start to a key in it.
  std::size_t offset(std::size_t block, std::size_t key) const { return (key - keys_of(block).first) * width_; }

 private:
  KeyRange range_;
  std::size_t width_;
};

// What a range held at one moment.
class Snapshot {
 public:
  Snapshot(const BlockLayout& layout, KeyRange range, std::size_t first_block, std::vector<std::shared_ptr<const Block>> blocks)
      : layout_(layout), range_(range), first_block_(first_block), blocks_(std::move(blocks)) {}

  KeyRange range() const { return range_; }
  // `part` lies in the range.
  void copy(KeyRange part, std::span<std::byte> out) const {
    layout_.for_each(part, [&](std::size_t block, KeyRange keys) {
      std::memcpy(out.data() + (keys.first - part.first) * layout_.width(),
                  blocks_[block - first_block_]->data() + layout_.offset(block, keys.first), keys.count * layout_.width());
    });
  }

 private:
  BlockLayout layout_;
  KeyRange range_;
  std::size_t first_block_;
  std::vector<std::shared_ptr<const Block>> blocks_;
};

class Blocks {
 public:
  // Zeros, or values[0..] for range.first and on.
  Blocks(const BlockLayout& layout, const std::byte* values) : layout_(layout) {
    blocks_.reserve(layout_.blocks());
    for (std::size_t i = 0; i < layout_.blocks(); ++i) {
      const KeyRange keys = layout_.keys_of(i);
      blocks_.push_back(std::make_shared<Block>(keys.count * layout_.width()));
      if (values != nullptr)
        std::memcpy(blocks_[i]->data(), values + (keys.first - layout_.range().first) * layout_.width(), blocks_[i]->size());
    }
  }

  const BlockLayout& layout() const { return layout_; }
  Snapshot snapshot(KeyRange part) const {
    std::vector<std::shared_ptr<const Block>> shared;
    std::size_t first = 0;
    layout_.for_each(part, [&](std::size_t block, KeyRange) {
      if (shared.empty()) first = block;
      shared.push_back(blocks_[block]);
    });
    return {layout_, part, first, std::move(shared)};
  }
  // To change what no snapshot shows.
  Block& own(std::size_t block) {
    std::shared_ptr<Block>& held = blocks_[block];
    if (held.use_count() > 1) held = std::make_shared<Block>(*held);
    return *held;
  }
  // Takes the place of all that the block held.
  void replace(std::size_t block, Block values) {
    std::shared_ptr<Block>& held = blocks_[block];
    if (held.use_count() > 1)
      held = std::make_shared<Block>(std::move(values));
    else
      *held = std::move(values);
  }

 private:
  BlockLayout layout_;
  std::vector<std::shared_ptr<Block>> blocks_;
};

}  // namespace shoal::ps
