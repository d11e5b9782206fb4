// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/comm_exchange.h"

#include <algorithm>
#include <utility>

#include "train/stopwatch.h"

namespace shoal::train {
namespace {

bool all_equal(std::span<const std::size_t> sizes) {
  return std::ranges::adjacent_find(sizes, std::not_equal_to()) == sizes.end();
}

}  // namespace

void CommExchange::all_to_all(std::span<const float> from, std::span<const std::size_t> from_sizes, std::span<float> to,
                              std::span<const std::size_t> to_sizes) {
  if (all_equal(from_sizes) && all_equal(to_sizes)) return comm_.all_to_all(from, to);
  const auto [rank, world] = seat();
  Group group(seat());
  std::size_t out = 0, in = 0;
  for (std::size_t peer = 0; peer < world; ++peer) {
    const auto there = from.subspan(out, from_sizes[peer]);
    const auto here = to.subspan(in, to_sizes[peer]);
    out += from_sizes[peer];
    in += to_sizes[peer];
    if (peer == rank) {
      std::ranges::copy(there, here.begin());
      continue;
    }
    if (!there.empty()) comm_.send(there, peer);
    if (!here.empty()) comm_.receive(here, peer);
  }
  group.finish();
}

void CommExchange::pass(std::span<const float> mine, std::span<float> theirs) {
  const auto [rank, world] = seat();
  if (!under_way_) begun_.record(stream_);
  under_way_ = true;
  Group group(seat());
  comm_.send(mine, (rank + 1) % world, stream_.handle());
  comm_.receive(theirs, (rank + world - 1) % world, stream_.handle());
  group.finish();
}

void CommExchange::wait() {
  if (!std::exchange(under_way_, false)) return;
  done_.record(stream_);
  const Stopwatch watch;
  done_.wait();
  times_.exposed_ms += watch.ms();
  comm_.check_async();
  times_.busy_ms += done_.ms_since(begun_);
}

}  // namespace shoal::train
