// SPDX-License-Identifier: Apache-2.0
// The reduction and copy kernels beside memcpy. bytes_per_second counts what an algorithm must move: two bytes a byte for a copy
// (read, write), three for a combination of two operands, one more with a second output; what caches add (reading a line before
// writing it) is not counted. items_per_second counts elements.
//
//   shoal-bench-kernels --benchmark_filter=dram --benchmark_min_time=0.05
//
// --avx2 as the last word: no instruction set beyond AVX2, whatever the machine has.
//
// "l2": operands and output together fill half of the second-level cache; "dram": three arrays of 64 MiB, streaming stores.
#include <benchmark/benchmark.h>

#include <hwy/targets.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "core/types.h"
#include "device/reduce.h"

namespace {

using namespace shoal;
using namespace shoal::device;

constexpr std::size_t kL2Bytes = std::size_t{64} << 10;    // [bytes] an array
constexpr std::size_t kDramBytes = std::size_t{64} << 20;  // [bytes] an array

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Array = std::unique_ptr<std::byte, Free>;

// Every byte 0x35: a small positive normal number in all float formats, so that nothing overflows or becomes subnormal.
Array make_array(std::size_t bytes) {
  Array array(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
  std::memset(array.get(), 0x35, bytes);
  return array;
}

struct Arrays {
  explicit Arrays(std::size_t bytes)
      : a(make_array(bytes)), b(make_array(bytes)), out(make_array(bytes)), also(make_array(bytes)) {}
  Array a, b, out, also;
};

void report(benchmark::State& state, std::size_t bytes, std::size_t moved, std::size_t element) {
  const auto iterations = static_cast<std::size_t>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(iterations * bytes * moved));
  state.SetItemsProcessed(static_cast<std::int64_t>(iterations * bytes / element));
}

void bench_memcpy(benchmark::State& state, std::size_t bytes) {
  const Arrays arrays(bytes);
  for (auto _ : state) {
    std::memcpy(arrays.out.get(), arrays.a.get(), bytes);
    benchmark::ClobberMemory();
  }
  report(state, bytes, 2, 1);
}

void bench_copy(benchmark::State& state, std::size_t bytes, bool also, bool stream) {
  const Arrays arrays(bytes);
  const Target to{.out = arrays.out.get(), .also = also ? arrays.also.get() : nullptr, .stream = stream};
  for (auto _ : state) {
    copy(to, {arrays.a.get(), bytes});
    benchmark::ClobberMemory();
  }
  report(state, bytes, also ? 3 : 2, 1);
}

enum class Kernel { combine, combine_input, combine_final, load_input };

void bench_kernel(benchmark::State& state, DataType type, ReduceOp op, Kernel kernel, std::size_t bytes, bool also, bool stream) {
  const Arrays arrays(bytes);
  Scale scale;  // a factor that keeps float results normal
  if (op == ReduceOp::avg) scale = make_scale(type, op, World{6}, nullptr);
  const ReduceKernels& set = kernels(type, op);
  const Target to{.out = arrays.out.get(), .also = also ? arrays.also.get() : nullptr, .stream = stream};
  const std::size_t n = bytes / element_bytes(type);
  const CombineFn combine = kernel == Kernel::combine         ? set.combine
                            : kernel == Kernel::combine_input ? set.combine_input
                                                              : set.combine_final;
  for (auto _ : state) {
    if (kernel == Kernel::load_input)
      set.load_input(to, arrays.a.get(), n, scale);
    else
      combine(to, arrays.a.get(), arrays.b.get(), n, scale);
    benchmark::ClobberMemory();
  }
  report(state, bytes, (kernel == Kernel::load_input ? 2 : 3) + (also ? 1 : 0), element_bytes(type));
}

void register_kernels(const std::string& where, std::size_t bytes, bool stream) {
  const auto add = [&](const std::string& name, auto function, auto... arguments) {
    benchmark::RegisterBenchmark((where + "/" + name).c_str(), function, arguments...);
  };
  add("memcpy", bench_memcpy, bytes);
  add("copy", bench_copy, bytes, false, stream);
  add("copy_also", bench_copy, bytes, true, stream);
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    const std::string name(name_of(type));
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::avg})
      add(name + "/" + std::string(name_of(op)), bench_kernel, type, op, Kernel::combine, bytes, false, stream);
    add(name + "/avg_input", bench_kernel, type, ReduceOp::avg, Kernel::combine_input, bytes, false, stream);
    add(name + "/avg_final", bench_kernel, type, ReduceOp::avg, Kernel::combine_final, bytes, false, stream);
    add(name + "/premul_load", bench_kernel, type, ReduceOp::premul_sum, Kernel::load_input, bytes, false, stream);
    add(name + "/sum_also", bench_kernel, type, ReduceOp::sum, Kernel::combine, bytes, true, stream);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[argc - 1]) == "--avx2") {
    hwy::SetSupportedTargetsForTest(HWY_AVX2);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    --argc;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("instruction_set", instruction_set());
  register_kernels("l2", kL2Bytes, false);
  register_kernels("dram", kDramBytes, true);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
