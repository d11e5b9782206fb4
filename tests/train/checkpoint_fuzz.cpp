// SPDX-License-Identifier: Apache-2.0
// Any header, its hash put right so that it is looked at, and any bytes after it: refused, or what is filled is what the file
// says. The input is the header, a zero byte, and the values. seeds/checkpoint holds one.
#include <array>
#include <cstdlib>
#include <sstream>
#include <string>

#include "train/checkpoint_file.h"
#include "train/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal::train;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string header = input.substr(0, input.find('\0')), values = input.substr(std::min(size, header.size() + 1));
  const std::array<std::uint64_t, 2> length_and_hash{header.size(), header_hash(header)};
  std::string bytes(kCheckpointMagic);
  bytes.append(reinterpret_cast<const char*>(length_and_hash.data()), sizeof length_and_hash);
  bytes += header + values;

  // A rectangle inside a matrix and a run of a vector, between guards.
  constexpr float kGuard = 12345;
  std::array<float, 14> memory{};
  memory.front() = memory[7] = memory.back() = kGuard;
  const auto all = std::span(memory);
  std::array<Piece, 2> pieces{Piece{.name = "matrix",
                                    .shape = {4, 5},
                                    .columns = 5,
                                    .first_row = 1,
                                    .first_column = 2,
                                    .columns_here = 3,
                                    .values = all.subspan(1, 6)},
                              Piece{.name = "vector", .shape = {9}, .first_row = 4, .values = all.subspan(8, 5)}};
  Filled filled = nothing_filled(pieces);
  std::istringstream file(bytes);
  try {
    load_stream(file, bytes.size(), "input", pieces, filled);
  } catch (const Error&) {
  }
  if (memory.front() != kGuard || memory[7] != kGuard || memory.back() != kGuard) std::abort();
  return 0;
}
