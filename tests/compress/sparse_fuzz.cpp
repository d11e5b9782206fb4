// SPDX-License-Identifier: Apache-2.0
// Any bytes as a sparse message, of as many elements as the first two bytes say: refused, or entries in order and within the
// vector, which come back after they are encoded again in any format that can hold them. A sum of it with itself stays within the
// vector.
#include <cstdlib>
#include <span>
#include <vector>

#include "compress/sparse/indices.h"
#include "compress/sparse/sum.h"

using namespace shoal::compress::sparse;

namespace {

void require(bool held) {
  if (!held) std::abort();
}

// The values' bits, as fp32 or as fp16, are those of the message, so that they come back as they are; a NaN is not equal to
// itself, and what fp16 cannot hold does not come back from it.
void comes_back(const Entries& entries, std::uint64_t n, Format format) {
  const Layout layout{format, wire_bytes(format, entries.size(), fillers_of(entries.indices, 0), n, ValueType::fp32)};
  std::vector<std::byte> wire(layout.bytes);
  encode(entries.view(), 0, n, ValueType::fp32, layout, wire.data());
  Entries back;
  require(decode(wire, n, back).is_ok());
  std::size_t j = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (j == back.size() || back.indices[j] != entries.indices[i]) {
      require(entries.values[i] == 0);
      continue;
    }
    require(back.values[j] == entries.values[i] || entries.values[i] != entries.values[i]);
    ++j;
  }
  require(j == back.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint64_t n = data[1] == 255 ? 300U * data[0] : data[0];  // seldom so many that runs need fillers
  const std::span<const std::byte> wire = std::as_bytes(std::span(data + 2, size - 2));
  Entries entries;
  std::vector<float> sum(n);
  const bool good = decode(wire, n, entries).is_ok();
  require(decode_add(wire, n, sum.data()).is_ok() == good);
  for (std::size_t i = 0; i < entries.size(); ++i)
    require(entries.indices[i] < n && (i == 0 || entries.indices[i - 1] < entries.indices[i]));
  Sum twice;
  twice.clear(n);
  require(twice.add(wire).is_ok() == good);
  if (!good) return 0;
  require(twice.add(wire).is_ok());
  twice.write(sum.data());
  std::vector<std::byte> out(twice.wire_bytes());
  twice.encode(out.data());
  require(decode_add(out, n, sum.data()).is_ok());
  for (int format = 0; format < kFormats; ++format) comes_back(entries, n, static_cast<Format>(format));
  return 0;
}
