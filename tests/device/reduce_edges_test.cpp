// SPDX-License-Identifier: Apache-2.0
// Buffers flush with pages that may not be touched: a load or store outside them ends this program.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "device/instruction_sets.h"
#include "device/reference.h"

namespace {

using namespace shoal;
using namespace shoal::device;
using reference::Element;

// Two accessible pages between two that are not.
class Fenced {
 public:
  Fenced() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* const at = mmap(nullptr, 4 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
    REQUIRE(mprotect(base_ + page_, 2 * page_, PROT_READ | PROT_WRITE) == 0);
  }
  ~Fenced() { munmap(base_, 4 * page_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  std::byte* first(std::size_t /*bytes*/) { return base_ + page_; }
  std::byte* last(std::size_t bytes) { return base_ + 3 * page_ - bytes; }
  std::size_t bytes() const { return 2 * page_; }

 private:
  std::size_t page_;
  std::byte* base_ = nullptr;
};

void check_at_edges(DataType type, ReduceOp op, std::size_t n, bool at_end) {
  static Fenced a, b, out, also;
  const std::size_t bytes = n * element_bytes(type);
  const auto place = [&](Fenced& memory) { return at_end ? memory.last(bytes) : memory.first(bytes); };
  const Element premul = reference::bits_of(type, 2);
  const Scale scale = make_scale(type, op, World{3}, &premul);
  const ReduceKernels& set = kernels(type, op);
  for (std::size_t i = 0; i < n; ++i) {
    reference::write(type, place(a), i, reference::bits_of(type, static_cast<double>(i % 5)));
    reference::write(type, place(b), i, reference::bits_of(type, static_cast<double>(i % 3)));
  }
  for (const bool stream : {false, true}) {
    const Target to{.out = place(out), .also = place(also), .stream = stream};
    const CombineFn combines[] = {set.combine, set.combine_input, set.combine_final, set.combine_input_final};
    for (const CombineFn combine : combines) combine(to, place(a), place(b), n, scale);
    for (std::size_t i = 0; i < n; ++i) {
      const Element loaded = reference::load(type, op, reference::read(type, place(a), i), scale);
      const Element wanted =
          reference::finish(type, op, reference::combine(type, op, loaded, reference::read(type, place(b), i)), scale);
      REQUIRE(reference::read(type, place(out), i) == wanted);
      REQUIRE(reference::read(type, place(also), i) == wanted);
    }
    set.load_input(to, place(a), n, scale);
    set.load_input_final(to, place(a), n, scale);
    copy(to, std::span(place(a), bytes));
    REQUIRE((bytes == 0 || std::memcmp(place(also), place(a), bytes) == 0));
  }
}

TEST_CASE("reduce: no kernel reads or writes beyond its buffers, at either end") {
  for_each_instruction_set([] {
    for (int type = 0; type < kDataTypes; ++type)
      for (int op = 0; op < kReduceOps; ++op)
        for (const std::size_t n : {0, 1, 2, 5, 9, 31, 32, 33, 70, 255, 257, 1021})
          for (const bool at_end : {false, true})
            check_at_edges(static_cast<DataType>(type), static_cast<ReduceOp>(op), n, at_end);
  });
}

}  // namespace
