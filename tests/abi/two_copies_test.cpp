// SPDX-License-Identifier: Apache-2.0
// Two copies of the library in one process, as where a framework brings one and a program loads another: each is a library of its
// own.
#include <dlfcn.h>
#include <nccl.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "support/ranks.h"

namespace {

// The functions of one copy.
struct Library {
  void* handle;
  template <typename F>
  F* get(F*, const char* name) const {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }
};

struct Copy {
  explicit Copy(const Library& from)
      : init_all(from.get(&ncclCommInitAll, "ncclCommInitAll")),
        all_reduce(from.get(&ncclAllReduce, "ncclAllReduce")),
        start(from.get(&ncclGroupStart, "ncclGroupStart")),
        end(from.get(&ncclGroupEnd, "ncclGroupEnd")),
        alloc(from.get(&ncclMemAlloc, "ncclMemAlloc")),
        free(from.get(&ncclMemFree, "ncclMemFree")),
        last_error(from.get(&ncclGetLastError, "ncclGetLastError")),
        destroy(from.get(&ncclCommDestroy, "ncclCommDestroy")) {}
  decltype(&ncclCommInitAll) init_all;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclGroupStart) start;
  decltype(&ncclGroupEnd) end;
  decltype(&ncclMemAlloc) alloc;
  decltype(&ncclMemFree) free;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclCommDestroy) destroy;
};

std::string all_reduce(const Copy& copy, const std::array<ncclComm_t, 2>& comms) {
  std::array<int, 2> values{1, 2};
  copy.start();
  for (std::size_t r = 0; r < 2; ++r) copy.all_reduce(&values[r], &values[r], 1, ncclInt, ncclSum, comms[r], nullptr);
  if (copy.end() != ncclSuccess) return copy.last_error(nullptr);
  return values == std::array<int, 2>{3, 3} ? "" : "wrong sum";
}

std::string use_both(const std::string& copied) {
  void* const first = dlopen(ABI_LIBNCCL, RTLD_NOW | RTLD_GLOBAL);
  void* const second = dlopen(copied.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (first == nullptr || second == nullptr) return dlerror();
  const Copy one(Library{first}), other(Library{second});
  if (one.init_all == other.init_all) return "the copy is the same library";

  std::array<ncclComm_t, 2> ones{}, others{};
  if (one.init_all(ones.data(), 2, nullptr) != ncclSuccess) return one.last_error(nullptr);
  if (other.init_all(others.data(), 2, nullptr) != ncclSuccess) return other.last_error(nullptr);
  if (std::string wrong = all_reduce(one, ones) + all_reduce(other, others); !wrong.empty()) return wrong;

  // Groups, memory and texts of one are nothing to the other.
  one.start();
  if (other.end() != ncclInvalidUsage) return "the copies share their groups";
  if (std::string wrong = all_reduce(other, others); !wrong.empty()) return wrong;
  if (one.end() != ncclSuccess) return one.last_error(nullptr);
  void* memory = nullptr;
  if (one.alloc(&memory, 64) != ncclSuccess || other.free(memory) != ncclInvalidArgument || one.free(memory) != ncclSuccess)
    return "the copies share their memory";
  const std::string before = one.last_error(nullptr);
  ncclComm_t none = nullptr;
  if (other.init_all(&none, 0, nullptr) != ncclInvalidArgument || other.last_error(nullptr) == before) return "no error";
  if (one.last_error(nullptr) != before) return "the copies share their last error";
  for (std::size_t r = 0; r < 2; ++r)
    if (one.destroy(ones[r]) != ncclSuccess || other.destroy(others[r]) != ncclSuccess) return "destroy";
  return "";
}

}  // namespace

TEST_CASE("two copies of the library work in one process without knowing of each other") {
  const std::filesystem::path copied =
      std::filesystem::temp_directory_path() / ("libshoal-copy-" + std::to_string(getpid()) + ".so");
  std::filesystem::copy_file(ABI_LIBNCCL, copied, std::filesystem::copy_options::overwrite_existing);
  CHECK(testing::in_child({}, 60, [&] { return use_both(copied); }) == "");
  std::filesystem::remove(copied);
}
