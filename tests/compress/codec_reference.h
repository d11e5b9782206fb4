// SPDX-License-Identifier: Apache-2.0
// The codecs one element at a time, as their documentation says it: what the kernels must write and read, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace reference {

std::vector<std::byte> encode(std::string_view codec, const std::vector<float>& x, std::uint64_t seed);
std::vector<float> decode(std::string_view codec, const std::vector<std::byte>& wire, std::size_t n);

}  // namespace reference
