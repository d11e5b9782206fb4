// SPDX-License-Identifier: Apache-2.0
// The codecs beside memcpy, one thread, vectors of 64 MiB of float32 in memory: encode, decode and decode_add of each in GB/s of
// float32, what the wire takes for a byte of float32, and how encode and decode compare with copying the same vector:
//
//   shoal-bench-codecs [repetitions [codec ...]]
//
//   of_memcpy   copy / ((encode + decode) / 2), by the shortest times: 100 % is a codec as fast as memcpy
//   both        copy / (encode + decode): what a rank pays that does one after the other
//
// A machine that others use gives other times from second to second, so each repetition measures memcpy anew between the codecs,
// and the shortest time of all repetitions counts on both sides.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "compress/codecs/codec.h"

namespace {

using shoal::compress::Codec;

constexpr std::size_t kElements = std::size_t{16} << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using Array = std::unique_ptr<T, Free>;

// Written once, so that pages are there.
template <class T>
Array<T> make_array(std::size_t n) {
  const std::size_t bytes = (n * sizeof(T) + 4095) / 4096 * 4096;
  Array<T> array(static_cast<T*>(std::aligned_alloc(4096, bytes)));
  if (array == nullptr) throw std::bad_alloc();
  std::memset(static_cast<void*>(array.get()), 0, bytes);
  return array;
}

struct Shortest {
  double seconds = std::numeric_limits<double>::infinity();
  template <class Work>
  void time(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  double gigabytes_per_second() const { return 4e-9 * static_cast<double>(kElements) / seconds; }
};

void measure(const Codec& codec, const float* in, float* out, int repetitions) {
  const std::size_t bytes = codec.wire_bytes(kElements);
  const Array<std::byte> wire = make_array<std::byte>(bytes);
  Shortest copy, encode, decode, decode_add;
  for (int i = 0; i < repetitions; ++i) {
    copy.time([&] { std::memcpy(out, in, 4 * kElements); });
    encode.time([&] { codec.encode(in, kElements, wire.get(), 1); });
    decode.time([&] { codec.decode(wire.get(), kElements, out); });
    decode_add.time([&] { codec.decode_add(wire.get(), kElements, out); });
  }
  const double both = encode.seconds + decode.seconds;
  std::printf("%-16.*s %8.3f %8.1f %8.1f %8.1f %11.1f %9.0f %% %5.0f %%\n", static_cast<int>(codec.name.size()),
              codec.name.data(), static_cast<double>(bytes) / (4.0 * kElements), copy.gigabytes_per_second(),
              encode.gigabytes_per_second(), decode.gigabytes_per_second(), decode_add.gigabytes_per_second(),
              200 * copy.seconds / both, 100 * copy.seconds / both);
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 20;
  const std::vector<std::string_view> wanted(argv + std::min(argc, 2), argv + argc);
  if (repetitions < 1) {
    std::fprintf(stderr, "usage: shoal-bench-codecs [repetitions >= 1 [codec ...]]\n");
    return 2;
  }
  const Array<float> in = make_array<float>(kElements), out = make_array<float>(kElements);
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::generate_n(in.get(), kElements, [&] { return normal(engine); });
  std::printf("%-16s %8s %8s %8s %8s %11s %11s %7s\n%-16s %8s %8s %8s %8s %11s\n", "codec", "wire/in", "memcpy", "encode",
              "decode", "decode_add", "of_memcpy", "both", "", "", "GB/s", "GB/s", "GB/s", "GB/s");
  for (const Codec& codec : shoal::compress::codecs())
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), codec.name) != wanted.end())
      measure(codec, in.get(), out.get(), repetitions);
  return 0;
}
