// SPDX-License-Identifier: Apache-2.0
// The functions of a codec, compiled for one instruction set, and a codec that calls the best set. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/codecs/codec.h"
#include "compress/codecs/layout.h"

namespace shoal::compress {

struct Kernels {
  void (*encode)(const float* in, std::size_t n, std::byte* wire, std::uint64_t seed);
  void (*decode)(const std::byte* wire, std::size_t n, float* out);
  void (*decode_add)(const std::byte* wire, std::size_t n, float* sum);
};

// The codec of this layout whose functions are best()'s: the kernels for this machine.
template <Layout kLayout, const Kernels& (*best)()>
constexpr Codec dispatched(Codec codec) {
  codec.block = kLayout.scale_bytes == 0 ? 1 : kLayout.block;
  codec.wire_bytes = [](std::size_t n) { return kLayout.wire_bytes(n); };
  codec.encode = [](const float* in, std::size_t n, std::byte* wire, std::uint64_t seed) { best().encode(in, n, wire, seed); };
  codec.decode = [](const std::byte* wire, std::size_t n, float* out) { best().decode(wire, n, out); };
  codec.decode_add = [](const std::byte* wire, std::size_t n, float* sum) { best().decode_add(wire, n, sum); };
  return codec;
}

}  // namespace shoal::compress
