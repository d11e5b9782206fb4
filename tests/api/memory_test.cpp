// SPDX-License-Identifier: Apache-2.0
// ncclMemAlloc and ncclMemFree; registered buffers.
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>

#include "support/ranks.h"

namespace {

using testing::Ranks;

std::string last_error() { return ncclGetLastError(nullptr); }

// "" if `code` came with a text that holds `text`.
std::string refused(ncclResult_t result, ncclResult_t code, const std::string& text) {
  if (result == code && last_error().find(text) != std::string::npos) return "";
  return "expected code " + std::to_string(code) + " and \"" + text + "\", got " + std::to_string(result) + ": " + last_error();
}

}  // namespace

TEST_CASE("memory: blocks of any size begin at whole pages, can be written, and are given back once") {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{2} << 20, (std::size_t{5} << 20) + 3}) {
    INFO(size);
    void* block = nullptr;
    REQUIRE(ncclMemAlloc(&block, size) == ncclSuccess);
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 4096 == 0);
    if (size >= 2u << 20) CHECK(reinterpret_cast<std::uintptr_t>(block) % (2u << 20) == 0);
    auto* const bytes = static_cast<unsigned char*>(block);
    for (std::size_t i = 0; i < size; i += 4096) bytes[i] = 1;
    bytes[size - 1] = 2;
    CHECK(ncclMemFree(block) == ncclSuccess);
    CHECK(ncclMemFree(block) == ncclInvalidArgument);
  }
}

TEST_CASE("memory: nothing is a block too, and only what was given is taken back") {
  void* block = &block;
  CHECK(ncclMemAlloc(&block, 0) == ncclSuccess);
  CHECK(block == nullptr);
  CHECK(ncclMemFree(nullptr) == ncclSuccess);
  CHECK(ncclMemAlloc(nullptr, 8) == ncclInvalidArgument);
  CHECK(ncclMemFree(&block) == ncclInvalidArgument);
  REQUIRE(ncclMemAlloc(&block, 8192) == ncclSuccess);
  CHECK(ncclMemFree(static_cast<char*>(block) + 4096) == ncclInvalidArgument);
  CHECK(ncclMemFree(block) == ncclSuccess);
}

TEST_CASE("memory: more than there is is an error that says how much") {
  CHECK(testing::in_child({}, 60, [] {
          void* block = &block;
          for (const std::size_t size : {std::size_t{1} << 62, std::numeric_limits<std::size_t>::max()}) {
            std::string wrong =
                refused(ncclMemAlloc(&block, size), ncclSystemError, "ncclMemAlloc: " + std::to_string(size) + " bytes");
            if (!wrong.empty()) return wrong;
          }
          return block == &block ? std::string() : std::string("the output was touched");
        }) == "");
}

TEST_CASE("memory: registration changes no result, and a handle is given back once, to its communicator") {
  const std::string wrong = testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) {
    return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      void* block = nullptr;
      if (std::string bad = testing::must(ncclMemAlloc(&block, 40000), "alloc"); !bad.empty()) return bad;
      auto* const values = static_cast<std::int32_t*>(block);
      for (int i = 0; i < 10000; ++i) values[i] = i + ranks.rank;
      void *whole = nullptr, *again = nullptr, *part = nullptr;
      for (const auto& [start, size, handle] : {std::tuple{block, 40000, &whole}, {block, 40000, &again}, {block, 4, &part}})
        if (std::string bad = testing::must(ncclCommRegister(comm, start, static_cast<std::size_t>(size), handle), "register");
            !bad.empty())
          return bad;
      if (whole == nullptr || whole == again || again == part) return "handles are not distinct";
      if (std::string bad = testing::must(ncclAllReduce(values, values, 10000, ncclInt32, ncclSum, comm, nullptr), "all-reduce");
          !bad.empty())
        return bad;
      for (int i = 0; i < 10000; ++i)
        if (values[i] != 2 * i + 1) return "wrong sum";
      if (std::string bad = testing::must(ncclCommDeregister(comm, whole), "deregister"); !bad.empty()) return bad;
      if (std::string bad = refused(ncclCommDeregister(comm, whole), ncclInvalidUsage, "deregistered already"); !bad.empty())
        return bad;
      if (std::string bad =
              refused(ncclCommDeregister(comm, block), ncclInvalidUsage, "no registered buffer of this communicator");
          !bad.empty())
        return bad;
      if (std::string bad = testing::must(ncclCommDeregister(comm, nullptr), "deregister NULL"); !bad.empty()) return bad;
      ncclComm_t other = nullptr;
      if (std::string bad = testing::must(ncclCommInitAll(&other, 1, nullptr), "another communicator"); !bad.empty()) return bad;
      if (std::string bad = refused(ncclCommDeregister(other, again), ncclInvalidUsage, "no registered buffer"); !bad.empty())
        return bad;
      void* of_other = nullptr;
      if (std::string bad = testing::must(ncclCommRegister(other, block, 8, &of_other), "register"); !bad.empty()) return bad;
      if (std::string bad = testing::must(ncclCommDestroy(other), "destroy"); !bad.empty()) return bad;  // with its registration
      if (std::string bad = refused(ncclCommDeregister(comm, of_other), ncclInvalidUsage, "no registered buffer"); !bad.empty())
        return bad;
      if (std::string bad = refused(ncclCommDeregister(other, of_other), ncclInvalidArgument, "not a live communicator");
          !bad.empty())
        return bad;
      return testing::must(ncclMemFree(block), "free");
    });
  });
  CHECK(wrong == "");
}

TEST_CASE("memory: what cannot be registered is refused by name") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string bad = testing::must(ncclCommInitAll(&comm, 1, nullptr), "init"); !bad.empty()) return bad;
          int value = 0;
          void* handle = &value;
          for (const std::string& bad :
               {refused(ncclCommRegister(nullptr, &value, 4, &handle), ncclInvalidArgument, "comm is NULL"),
                refused(ncclCommRegister(comm, nullptr, 4, &handle), ncclInvalidArgument, "buff is NULL"),
                refused(ncclCommRegister(comm, &value, 0, &handle), ncclInvalidArgument, "size is 0"),
                refused(ncclCommRegister(comm, &value, 4, nullptr), ncclInvalidArgument, "handle is NULL")})
            if (!bad.empty()) return bad;
          if (handle != &value) return "the output was touched";
          return testing::must(ncclCommDestroy(comm), "destroy");
        }) == "");
}
