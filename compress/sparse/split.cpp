// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compress/sparse/from_rank.h"
#include "compress/sparse/kernels.h"
#include "compress/sparse/schedules.h"

namespace shoal::compress::sparse {
namespace {

plan::Range share(std::uint64_t n, World world, std::size_t q) {
  return plan::chunk_range({n}, world.value, static_cast<std::int32_t>(q));
}

// The entries of a range of indices.
EntriesView entries_of(EntriesView all, plan::Range range) {
  const auto at = [&](std::uint64_t index) {
    return static_cast<std::size_t>(std::lower_bound(all.indices.begin(), all.indices.end(), index) - all.indices.begin());
  };
  const std::size_t first = at(range.begin);
  return all.part(first, at(range.end) - first);
}

}  // namespace

// Into message_, and their lengths into sent_.
void Split::encode_shares(std::uint64_t n, World world, const Contribution& own) {
  encoded_bytes_ = 0;
  for (std::size_t q = 0; q < layouts_.size(); ++q) {
    const plan::Range range = share(n, world, q);
    layouts_[q] = layout_of(entries_of(own.entries, range), range.begin, range.length(), own.values);
    sent_[q] = layouts_[q].bytes;
    encoded_bytes_ += sent_[q];
  }
  message_.resize(encoded_bytes_);
  std::byte* to = message_.data();
  for (std::size_t q = 0; q < layouts_.size(); ++q) {
    const plan::Range range = share(n, world, q);
    encode(entries_of(own.entries, range), range.begin, range.length(), own.values, layouts_[q], to);
    to += sent_[q];
  }
}

// What has arrived, in the order of ranks; the sum into message_.
Status Split::add_shares(std::uint64_t own_share) {
  sum_.clear(own_share);
  for (std::size_t q = 0; q < received_.size(); ++q)
    if (Status status = sum_.add({arrived_.data() + lengths_.received_at(q), received_[q]}); !status.is_ok())
      return from_rank(q, status);
  sent_[0] = sum_.wire_bytes();
  message_.resize(sent_[0]);
  sum_.encode(message_.data());
  return {};
}

Stages Split::run(float* output, std::uint64_t n, const Place& place, const Contribution& own) {
  const auto ranks = static_cast<std::size_t>(place.world.value), self = static_cast<std::size_t>(place.rank.value);
  layouts_.resize(ranks);
  sent_.resize(ranks);
  received_.resize(ranks);
  encode_shares(n, place.world, own);
  co_yield engine::Call{.collective = plan::Collective::all_to_all,
                        .input = sent_.data(),
                        .output = received_.data(),
                        .count = {sizeof(std::uint64_t)},
                        .type = DataType::uint8};

  lengths_.renew(place.world);
  std::uint64_t bytes = 0;
  for (std::size_t q = 0; q < ranks; ++q) {
    lengths_.sent()[q] = sent_[q];
    bytes += lengths_.received()[q] = received_[q];
  }
  arrived_.resize(bytes);
  co_yield lengths_.all_to_all(message_.data(), arrived_.data());

  if (Status status = add_shares(share(n, place.world, self).length()); !status.is_ok()) co_return status;
  co_yield compress::all_gather(sent_.data(), received_.data(), sizeof(std::uint64_t));

  lengths_.renew(place.world);
  bytes = 0;
  for (std::size_t q = 0; q < ranks; ++q) bytes += lengths_.received()[q] = received_[q];
  arrived_.resize(bytes);
  co_yield lengths_.all_gather(message_.data(), arrived_.data());

  fill_zero(output, n);
  for (std::size_t q = 0; q < ranks; ++q) {
    const plan::Range range = share(n, place.world, q);
    const std::span<const std::byte> message(arrived_.data() + lengths_.received_at(q), received_[q]);
    if (Status status = decode_add(message, range.length(), output + range.begin); !status.is_ok())
      co_return from_rank(q, status);
  }
  co_return Status();
}

}  // namespace shoal::compress::sparse
