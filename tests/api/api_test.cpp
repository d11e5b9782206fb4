// SPDX-License-Identifier: Apache-2.0
// Argument checks, life and death of communicators, reductions made by the user, configurations of other versions.
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <thread>

#include "support/ranks.h"

namespace {

using testing::Ranks;

// What a call must answer; "" if it does and the last error names every one of `words`.
std::string answers(ncclResult_t expected, ncclResult_t result, std::vector<std::string> words = {}) {
  if (result != expected)
    return std::string("expected ") + ncclGetErrorString(expected) + ", got " + ncclGetErrorString(result) + ": " +
           ncclGetLastError(nullptr);
  for (const std::string& word : words)
    if (std::string(ncclGetLastError(nullptr)).find(word) == std::string::npos)
      return "\"" + word + "\" is missing in: " + ncclGetLastError(nullptr);
  return "";
}

// The first non-empty text.
std::string first(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts)
    if (!text.empty()) return text;
  return "";
}

// A plain all-reduce still works.
std::string still_right(ncclComm_t comm, int world, int rank) {
  std::vector<float> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 97) + static_cast<float>(rank);
  if (std::string wrong =
          testing::must(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr), "all-reduce");
      !wrong.empty())
    return wrong;
  for (std::size_t i = 0; i < data.size(); ++i)
    if (data[i] != static_cast<float>(world) * static_cast<float>(i % 97) + static_cast<float>(world * (world - 1) / 2))
      return "wrong sum at " + std::to_string(i);
  return "";
}

}  // namespace

TEST_CASE("api: version, error strings and the last error are always there") {
  int version = 0;
  CHECK(ncclGetVersion(&version) == ncclSuccess);
  CHECK(version == 22809);
  CHECK(ncclGetVersion(nullptr) == ncclInvalidArgument);
  CHECK(std::string(ncclGetLastError(nullptr)) == "ncclGetVersion: version is NULL");
  for (int code = -3; code < 20; ++code) CHECK(ncclGetErrorString(static_cast<ncclResult_t>(code)) != nullptr);
}

TEST_CASE("api: a thread reads the last error of its own calls, and the process' while it has none") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          const auto text_in_thread = [](const std::function<void()>& before) {
            std::string text;
            std::thread([&] {
              before();
              text = ncclGetLastError(nullptr);
            }).join();
            return text;
          };
          const auto nothing = [] {};
          ncclGetVersion(nullptr);
          const std::string mine = ncclGetLastError(nullptr);
          const std::string other = text_in_thread([] { ncclGetUniqueId(nullptr); });
          if (mine.find("ncclGetVersion") == std::string::npos) return "mine: " + mine;
          if (other.find("ncclGetUniqueId") == std::string::npos) return "the other thread's: " + other;
          if (mine != ncclGetLastError(nullptr)) return "another thread's failure replaced mine";
          if (other != text_in_thread(nothing)) return "a thread without failures does not read the process' last";
          int version = 0;
          ncclGetVersion(&version);
          return mine == ncclGetLastError(nullptr) ? "" : "a call that succeeded changed the text";
        }) == "");
}

TEST_CASE("api: wrong arguments are named, and the communicator stays usable") {
  CHECK(testing::as_threads(2, {}, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          std::vector<float> a(16), b(16);
          const auto call = [&](const void* in, void* out, std::size_t n, int type, int op, ncclComm_t on) {
            return ncclAllReduce(in, out, n, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), on, nullptr);
          };
          std::string wrong;
          if (ranks.rank == 0)
            wrong =
                first({answers(ncclInvalidArgument, call(nullptr, b.data(), 4, ncclFloat, ncclSum, comm), {"sendbuff is NULL"}),
                       answers(ncclInvalidArgument, call(a.data(), nullptr, 4, ncclFloat, ncclSum, comm), {"recvbuff is NULL"}),
                       answers(ncclInvalidArgument, call(a.data(), b.data(), 4, 12, ncclSum, comm), {"datatype is 12"}),
                       answers(ncclInvalidArgument, call(a.data(), b.data(), 4, -1, ncclSum, comm), {"datatype is -1"}),
                       answers(ncclInvalidArgument, call(a.data(), b.data(), 4, ncclFloat, 5, comm), {"op is 5"}),
                       answers(ncclInvalidArgument,
                               call(a.data(), b.data(), static_cast<std::size_t>(-1), ncclFloat, ncclSum, comm), {"count is"}),
                       answers(ncclInvalidArgument, call(a.data(), a.data() + 1, 4, ncclFloat, ncclSum, comm), {"overlap"}),
                       answers(ncclInvalidArgument, call(a.data(), b.data(), 4, ncclFloat, ncclSum, nullptr), {"comm is NULL"}),
                       answers(ncclInvalidArgument,
                               ncclAllReduce(a.data(), b.data(), 4, ncclFloat, ncclSum, comm, reinterpret_cast<cudaStream_t>(&a)),
                               {"stream"}),
                       answers(ncclInvalidArgument, call(a.data(), b.data(), 0, 12, ncclSum, comm), {"datatype is 12"})});
          return first({wrong, answers(ncclSuccess, call(nullptr, nullptr, 0, ncclFloat, ncclSum, comm)),
                        still_right(comm, 2, ranks.rank), testing::must(ncclCommDestroy(comm), "destroy")});
        }) == "");
}

TEST_CASE("api: wrong ways to make a communicator are refused") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclUniqueId id;
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::must(ncclGetUniqueId(&id), "id"); !wrong.empty()) return wrong;
          ncclUniqueId zero;
          std::memset(&zero, 0, sizeof zero);
          return first({answers(ncclInvalidArgument, ncclCommInitRank(&comm, 0, id, 0), {"nranks is 0"}),
                        answers(ncclInvalidArgument, ncclCommInitRank(&comm, 2, id, 2), {"rank is 2", "0 .. 1"}),
                        answers(ncclInvalidArgument, ncclCommInitRank(&comm, 2, id, -1), {"rank is -1"}),
                        answers(ncclInvalidArgument, ncclCommInitRank(nullptr, 1, id, 0), {"comm is NULL"}),
                        answers(ncclInvalidArgument, ncclCommInitRank(&comm, 1, zero, 0)),
                        answers(ncclInvalidArgument, ncclGetUniqueId(nullptr)),
                        answers(ncclInvalidArgument, ncclCommInitAll(&comm, 0, nullptr), {"ndev is 0"}),
                        comm == nullptr ? "" : "comm was touched"});
        }) == "");
}

TEST_CASE("api: a destroyed, aborted or foreign handle is recognised") {
  CHECK(testing::as_threads(2, {}, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr, other = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          int n = 0;
          std::vector<char> foreign(4096);
          if (std::string wrong =
                  first({answers(ncclSuccess, ncclCommCount(comm, &n)), n == 2 ? "" : "count",
                         answers(ncclSuccess, ncclCommUserRank(comm, &n)), n == ranks.rank ? "" : "rank",
                         answers(ncclSuccess, ncclCommCuDevice(comm, &n)),
                         answers(ncclInvalidArgument, ncclCommCount(comm, nullptr), {"count is NULL"}),
                         answers(ncclSuccess, ncclCommDestroy(nullptr)), answers(ncclSuccess, ncclCommAbort(nullptr)),
                         answers(ncclSuccess, ncclCommDestroy(comm)),
                         answers(ncclInvalidArgument, ncclCommDestroy(comm), {"not a live communicator"}),
                         answers(ncclInvalidArgument, ncclCommAbort(comm)), answers(ncclInvalidArgument, ncclCommCount(comm, &n)),
                         answers(ncclInvalidArgument, ncclCommDestroy(reinterpret_cast<ncclComm_t>(foreign.data())))});
              !wrong.empty())
            return wrong;
          (void)other;
          return "";
        }) == "");
}

TEST_CASE("api: ncclCommInitAll makes ranks of this thread, driven together in groups") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          for (int world : {1, 2, 3, 5, 8}) {
            std::vector<ncclComm_t> comms(static_cast<std::size_t>(world));
            if (std::string wrong = testing::must(ncclCommInitAll(comms.data(), world, nullptr), "init all"); !wrong.empty())
              return wrong;
            for (std::size_t count : {std::size_t{1}, std::size_t{100000}}) {
              std::vector<std::vector<std::int64_t>> data(comms.size(), std::vector<std::int64_t>(count));
              for (std::size_t r = 0; r < comms.size(); ++r)
                for (std::size_t i = 0; i < count; ++i) data[r][i] = static_cast<std::int64_t>(i % 97 + r);
              ncclGroupStart();
              for (std::size_t r = 0; r < comms.size(); ++r)
                ncclAllReduce(data[r].data(), data[r].data(), count, ncclInt64, ncclSum, comms[r], nullptr);
              if (std::string wrong = testing::must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
              for (const auto& mine : data)
                for (std::size_t i = 0; i < count; ++i)
                  if (mine[i] != world * static_cast<std::int64_t>(i % 97) + world * (world - 1) / 2)
                    return "wrong sum, world " + std::to_string(world);
            }
            for (ncclComm_t comm : comms)
              if (std::string wrong = testing::must(ncclCommDestroy(comm), "destroy"); !wrong.empty()) return wrong;
          }
          return "";
        }) == "");
}

TEST_CASE("api: a reduction made by the user may go right after the call, belongs to one communicator and to one type") {
  CHECK(testing::as_threads(3, {}, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          ncclRedOp_t op;
          float factor = static_cast<float>(ranks.rank + 1);
          float value = 2;
          std::string wrong =
              testing::must(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarHostImmediate, comm), "create");
          if (!wrong.empty()) return wrong;
          factor = 1000;  // was read at creation
          std::vector<double> doubles(4);
          wrong = answers(ncclInvalidArgument, ncclAllReduce(doubles.data(), doubles.data(), 4, ncclDouble, op, comm, nullptr),
                          {"float32", "float64"});
          if (!wrong.empty()) return wrong;
          ncclGroupStart();
          ncclAllReduce(&value, &value, 1, ncclFloat, op, comm, nullptr);
          ncclRedOpDestroy(op, comm);
          wrong = testing::must(ncclGroupEnd(), "group");
          if (!wrong.empty()) return wrong;
          if (value != 12) return "the sum of 2, 4 and 6 came out as " + std::to_string(value);
          ncclRedOp_t late;
          float now = 1, two = 2;
          wrong = first({answers(ncclInvalidArgument, ncclAllReduce(&value, &value, 1, ncclFloat, op, comm, nullptr), {"op is"}),
                         answers(ncclInvalidArgument, ncclRedOpDestroy(op, comm)),
                         answers(ncclInvalidArgument, ncclRedOpDestroy(ncclSum, comm), {"built in"}),
                         testing::must(ncclRedOpCreatePreMulSum(&late, &now, ncclFloat, ncclScalarDevice, comm), "create")});
          if (!wrong.empty()) return wrong;
          now = 5;  // is read when the call runs
          wrong = testing::must(ncclAllReduce(&two, &two, 1, ncclFloat, late, comm, nullptr), "late");
          if (!wrong.empty()) return wrong;
          return two == 30 ? testing::must(ncclCommDestroy(comm), "destroy") : "late factor: " + std::to_string(two);
        }) == "");
}

TEST_CASE("api: configurations of older, newer and broken callers") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          const auto try_config = [](ncclConfig_t* config) {
            ncclUniqueId id;
            ncclGetUniqueId(&id);
            ncclComm_t comm = nullptr;
            const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, id, 0, config);
            if (result == ncclSuccess) ncclCommDestroy(comm);
            return result;
          };
          // A config 24 bytes short that ends at an unreadable page.
          const std::size_t page = 4096, shorter = sizeof(ncclConfig_t) - 24;
          auto* block =
              static_cast<std::byte*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
          mprotect(block + page, page, PROT_NONE);
          ncclConfig_t whole = NCCL_CONFIG_INITIALIZER;
          whole.size = shorter;
          whole.version = NCCL_VERSION(2, 27, 3);
          auto* small = reinterpret_cast<ncclConfig_t*>(block + page - shorter);
          std::memcpy(static_cast<void*>(small), &whole, shorter);

          ncclConfig_t good = NCCL_CONFIG_INITIALIZER, magic = good, empty = good, bad_blocking = good, bad_ctas = good,
                       old = good;
          magic.magic = 1;
          empty.size = 0;
          bad_blocking.blocking = 7;
          bad_ctas.minCTAs = 8;
          bad_ctas.maxCTAs = 4;
          old.version = NCCL_VERSION(2, 14, 3);
          old.splitShare = 99;  // garbage beyond what that version knew
          struct Larger {
            ncclConfig_t known;
            int tail[8];
          } larger{NCCL_CONFIG_INITIALIZER, {}};
          larger.known.size = sizeof larger;
          larger.known.version = NCCL_VERSION(2, 31, 0);
          return first({answers(ncclSuccess, try_config(small)), answers(ncclSuccess, try_config(nullptr)),
                        answers(ncclSuccess, try_config(&good)), answers(ncclSuccess, try_config(&old)),
                        answers(ncclSuccess, try_config(&larger.known)),
                        answers(ncclInvalidArgument, try_config(&magic), {"magic"}),
                        answers(ncclInvalidArgument, try_config(&empty), {"size is 0"}),
                        answers(ncclInvalidArgument, try_config(&bad_blocking), {"blocking is 7"}),
                        answers(ncclInvalidArgument, try_config(&bad_ctas), {"minCTAs"})});
        }) == "");
}

TEST_CASE("api: a malformed variable is named by the first communicator") {
  CHECK(testing::in_child({{"SHOAL_ALGO", "nosuch"}}, 60, []() -> std::string {
          ncclComm_t comm = nullptr;
          return answers(ncclInvalidArgument, ncclCommInitAll(&comm, 1, nullptr), {"SHOAL_ALGO", "nosuch"});
        }) == "");
  CHECK(testing::in_child({{"SHOAL_TIMEOUT_MS", "soon"}}, 60, []() -> std::string {
          ncclUniqueId id;
          return answers(ncclInvalidArgument, ncclGetUniqueId(&id), {"SHOAL_TIMEOUT_MS", "soon"});
        }) == "");
}

TEST_CASE("api: many communicators one after the other and at once leave nothing behind") {
  CHECK(testing::in_child({}, 100, []() -> std::string {
          int before = 0;
          for (int round = 0; round < 60; ++round) {
            ncclComm_t comms[2];
            if (std::string wrong = testing::must(ncclCommInitAll(comms, 2, nullptr), "init all"); !wrong.empty()) return wrong;
            float a = 1, b = 2;
            ncclGroupStart();
            ncclAllReduce(&a, &a, 1, ncclFloat, ncclSum, comms[0], nullptr);
            ncclAllReduce(&b, &b, 1, ncclFloat, ncclSum, comms[1], nullptr);
            if (ncclGroupEnd() != ncclSuccess || a != 3 || b != 3) return "wrong sum";
            ncclCommDestroy(comms[0]);
            ncclCommDestroy(comms[1]);
            if (round == 10) {
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              before = testing::open_descriptors();
            }
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          const int after = testing::open_descriptors();
          return after <= before ? "" : "descriptors grew from " + std::to_string(before) + " to " + std::to_string(after);
        }) == "");
}
