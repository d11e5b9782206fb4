// SPDX-License-Identifier: Apache-2.0
// Any bytes from a peer: decoding reads exactly the bytes of so many elements and writes exactly these, and what decode_add adds
// is what decode gives. The same bytes as floats: any floats can be encoded. The first byte chooses the codec, the next two how
// many elements.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "compress/codecs/codec.h"

using namespace shoal::compress;

namespace {

void require(bool held) {
  if (!held) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 3) return 0;
  const Codec& codec = codecs()[data[0] % codecs().size()];
  const std::size_t n = (data[1] + std::size_t{256} * data[2]) % 5000;
  data += 3;
  size -= 3;

  // Arrays of exactly these sizes: a sanitizer sees whoever leaves them.
  const std::size_t bytes = codec.wire_bytes(n);
  const auto wire = std::make_unique<std::byte[]>(bytes);
  const auto decoded = std::make_unique<float[]>(n), sum = std::make_unique<float[]>(n);
  for (std::size_t i = 0; i < bytes && size > 0; ++i) wire[i] = std::byte{data[i % size]};
  codec.decode(wire.get(), n, decoded.get());
  codec.decode_add(wire.get(), n, sum.get());
  for (std::size_t i = 0; i < n; ++i) require(sum[i] == decoded[i] || (std::isnan(sum[i]) && std::isnan(decoded[i])));

  const auto in = std::make_unique<float[]>(n);
  for (std::size_t i = 0; i < 4 * n && size > 0; ++i) reinterpret_cast<unsigned char*>(in.get())[i] = data[i % size];
  codec.encode(in.get(), n, wire.get(), n);
  codec.decode(wire.get(), n, decoded.get());
  for (std::size_t i = 0; i < n; ++i) {
    require(std::isfinite(in[i]) || !std::isfinite(decoded[i]));
    require(in[i] != 0 || decoded[i] == 0 || codec.block != 1);
  }
  return 0;
}
