// SPDX-License-Identifier: Apache-2.0
// The one loop that every codec runs in: whole blocks where they lie, then a short one by way of a copy that is filled up with
// zeros to a whole row, so that kernels know neither ends nor tails. Internal to this folder.
//
// A format F says how one block is encoded and decoded:
//   F::kLayout                                    a block is whole rows
//   F::encode(const float*, n, std::byte*, Key)   writes as many bytes as all of the rows take
//   F::decode<Sink>(const std::byte*, n, float*)
#if defined(SHOAL_COMPRESS_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)  // include guard, per instruction set
#ifdef SHOAL_COMPRESS_BLOCKS_INL
#undef SHOAL_COMPRESS_BLOCKS_INL
#else
#define SHOAL_COMPRESS_BLOCKS_INL
#endif

#include "compress/codecs/draws-inl.h"
#include "compress/codecs/kernels.h"
#include "compress/codecs/layout.h"
#include "compress/codecs/scales-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

template <class Format>
struct Blocks {
  static constexpr Layout kLayout = Format::kLayout;
  static constexpr std::size_t kBlock = kLayout.block;
  static constexpr std::size_t kBytes = kLayout.block_bytes(kBlock);
  static_assert(kBlock % kRow == 0);

  static void encode(const float* in, std::size_t n, std::byte* wire, std::uint64_t seed) {
    Key key{.mixed_seed = mixed(seed), .block = 0};
    for (; n >= kBlock; n -= kBlock, in += kBlock, wire += kBytes, ++key.block) Format::encode(in, kBlock, wire, key);
    if (n == 0) return;
    float rows[kBlock];
    std::byte bytes[kBytes];
    std::memcpy(rows, in, n * sizeof(float));
    std::memset(rows + n, 0, (whole_rows(n) - n) * sizeof(float));
    Format::encode(rows, n, bytes, key);
    std::memcpy(wire, bytes, kLayout.block_bytes(n));
  }

  template <class Sink>
  static void decode(const std::byte* wire, std::size_t n, float* out) {
    for (; n >= kBlock; n -= kBlock, out += kBlock, wire += kBytes) Format::template decode<Sink>(wire, kBlock, out);
    if (n == 0) return;
    float rows[kBlock] = {};
    std::byte bytes[kBytes] = {};
    std::memcpy(bytes, wire, kLayout.block_bytes(n));
    if constexpr (Sink::kAdds) std::memcpy(rows, out, n * sizeof(float));
    Format::template decode<Sink>(bytes, n, rows);
    std::memcpy(out, rows, n * sizeof(float));
  }
};

// A format of a scale and codes of kBits that are multiples of it, or belong to it in another way:
//   Code::kSpoilt                      a byte of codes that a scale of NaN decodes to NaN
//   Code(scale, Key).encode(in, i, to)   a row that begins at element i of the block
//   Code::decode<Sink>(from, scale, out)
template <class Scale, class Code, std::size_t kElements>
struct Scaled {
  static constexpr Layout kLayout{.block = kElements, .scale_bytes = Scale::kBytes, .bits = Code::kBits};
  static constexpr std::size_t kRowBytes = kRow * Code::kBits / 8;

  static HWY_INLINE void encode(const float* in, std::size_t n, std::byte* to, Key key) {
    const float scale = Scale::of(in, n);
    Scale::store(scale, to);
    to += Scale::kBytes;
    if (HWY_UNLIKELY(scale != scale)) {
      std::memset(to, Code::kSpoilt, whole_rows(n) / kRow * kRowBytes);
      return;
    }
    const Code code(scale, key);
    for (std::size_t i = 0; i < n; i += kRow, to += kRowBytes) code.encode(in + i, i, to);
  }

  template <class Sink>
  static HWY_INLINE void decode(const std::byte* from, std::size_t n, float* out) {
    const float scale = Scale::load(from);
    from += Scale::kBytes;
    for (std::size_t i = 0; i < n; i += kRow, from += kRowBytes) Code::template decode<Sink>(from, scale, out + i);
  }
};

template <class Format>
constexpr Kernels kKernels{.encode = &Blocks<Format>::encode,
                           .decode = &Blocks<Format>::template decode<Assign>,
                           .decode_add = &Blocks<Format>::template decode<Accumulate>};

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
