// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "compress/codecs/codec.h"
#include "compress/compressor.h"
#include "compress/compressors/quantised.h"

namespace shoal::compress {

#define SHOAL_COMPRESSOR(kind) extern const Kind kind;
#include "compress/compressors.inc"
#undef SHOAL_COMPRESSOR

std::span<const Kind> kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> made = {
#define SHOAL_COMPRESSOR(kind) kind,
#include "compress/compressors.inc"
#undef SHOAL_COMPRESSOR
    };
    for (const Codec& codec : codecs()) made.push_back(quantised(codec));
    return made;
  }();
  return all;
}

const Kind* find_kind(std::string_view name) {
  for (const Kind& each : kinds())
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace shoal::compress
