// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "compress/codecs/codec.h"

namespace shoal::compress {

#define SHOAL_CODEC(codec) extern const Codec codec;
#include "compress/codecs/codecs.inc"
#undef SHOAL_CODEC

std::span<const Codec> codecs() {
  static const std::array all = {
#define SHOAL_CODEC(codec) codec,
#include "compress/codecs/codecs.inc"
#undef SHOAL_CODEC
  };
  return all;
}

const Codec* find_codec(std::string_view name) {
  for (const Codec& each : codecs())
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace shoal::compress
