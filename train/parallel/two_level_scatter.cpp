// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/two_level_scatter.h"

#include <algorithm>

namespace shoal::train {
namespace {

// to[i] = (grows ? to[i] : 0) + the i-th elements of all parts, in their order. `to` may be one of the parts.
void add_up(std::span<const float> parts, std::span<float> to, bool grows) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    float sum = grows ? to[i] : 0.0F;
    for (std::size_t at = i; at < parts.size(); at += to.size()) sum += parts[at];
    to[i] = sum;
  }
}

}  // namespace

void transpose_blocks(std::span<const float> from, std::size_t rows, std::size_t columns, std::span<float> to) {
  const std::size_t block = from.size() / (rows * columns);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      std::ranges::copy(from.subspan((row * columns + column) * block, block),
                        to.subspan((column * rows + row) * block, block).begin());
}

TwoLevelScatter::TwoLevelScatter(const Communicator& ranks, std::size_t node, const std::string& format)
    : inside_(ranks.split(static_cast<int>(ranks.seat().rank / node), 0)),
      between_(ranks.split(static_cast<int>(ranks.seat().rank % node), 0)) {
  inside_->set_wire_format(format);
  between_->set_wire_format(format);
}

void TwoLevelScatter::enqueue(std::span<float> whole, std::span<float> room, std::span<float> mine, bool grows,
                              const Stream& stream) const {
  const std::size_t places = (*inside_).seat().world, nodes = (*between_).seat().world;
  stream.launch([=] { transpose_blocks(whole, nodes, places, room); });
  (*inside_).all_to_all<float>(room, whole, stream.handle());
  if (nodes == 1) return stream.launch([=] { add_up(whole, mine, grows); });
  const std::span<float> sums = room.first(room.size() / places);
  stream.launch([=] { add_up(whole, sums, false); });
  (*between_).all_to_all<float>(sums, whole.first(sums.size()), stream.handle());
  stream.launch([=] { add_up(whole.first(sums.size()), mine, grows); });
}

void TwoLevelScatter::count_in(Ledger& ledger) {
  inside_->count_in(&ledger);
  between_->count_in(&ledger, 1);
}

void TwoLevelScatter::check_async() const {
  (*inside_).check_async();
  (*between_).check_async();
}

void TwoLevelScatter::abort() {
  inside_.abort();
  between_.abort();
}

}  // namespace shoal::train
