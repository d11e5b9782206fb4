// SPDX-License-Identifier: Apache-2.0
// Groups: nesting, several communicators, poisoning by argument errors, initialisation within a group.
#include <catch2/catch.hpp>

#include "support/ranks.h"

namespace {

using testing::Ranks;

}  // namespace

TEST_CASE("group: an end without a start is invalid usage, and the next group works") {
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
}

TEST_CASE("group: nothing runs before the outermost end, several calls run in order") {
  CHECK(testing::as_threads(3, {}, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          std::vector<std::int32_t> a(5, 1), b(70000, 2), c(1, 3);
          ncclGroupStart();
          ncclAllReduce(a.data(), a.data(), a.size(), ncclInt32, ncclSum, comm, nullptr);
          ncclGroupStart();
          ncclAllReduce(b.data(), b.data(), b.size(), ncclInt32, ncclSum, comm, nullptr);
          ncclGroupEnd();
          if (a[0] != 1 || b[0] != 2) return "something ran before the outermost end";
          ncclAllReduce(c.data(), c.data(), c.size(), ncclInt32, ncclMax, comm, nullptr);
          ncclAllReduce(a.data(), a.data(), a.size(), ncclInt32, ncclSum, comm, nullptr);
          if (std::string wrong = testing::must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
          if (a[4] != 9 || b[69999] != 6 || c[0] != 3) return "wrong sums";
          return testing::must(ncclCommDestroy(comm), "destroy");
        }) == "");
}

TEST_CASE("group: calls of several communicators in different orders do not wait for each other") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t a[2], b[2];
          if (ncclCommInitAll(a, 2, nullptr) != ncclSuccess || ncclCommInitAll(b, 2, nullptr) != ncclSuccess) return "init";
          std::vector<float> x(4, 1);
          ncclGroupStart();
          ncclAllReduce(&x[0], &x[0], 1, ncclFloat, ncclSum, a[0], nullptr);
          ncclAllReduce(&x[1], &x[1], 1, ncclFloat, ncclSum, b[0], nullptr);
          ncclAllReduce(&x[2], &x[2], 1, ncclFloat, ncclSum, b[1], nullptr);
          ncclAllReduce(&x[3], &x[3], 1, ncclFloat, ncclSum, a[1], nullptr);
          if (std::string wrong = testing::must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
          for (ncclComm_t comm : {a[0], a[1], b[0], b[1]}) ncclCommDestroy(comm);
          return x == std::vector<float>(4, 2) ? "" : "wrong sums";
        }) == "");
}

TEST_CASE("group: an argument error is returned at once and by the end, nothing of the group runs, the next group works") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclComm_t comms[2];
          if (ncclCommInitAll(comms, 2, nullptr) != ncclSuccess) return "init";
          float x[2] = {1, 2};
          ncclGroupStart();
          ncclAllReduce(&x[0], &x[0], 1, ncclFloat, ncclSum, comms[0], nullptr);
          if (ncclAllReduce(nullptr, &x[1], 1, ncclFloat, ncclSum, comms[1], nullptr) != ncclInvalidArgument)
            return "the NULL was accepted";
          if (ncclGroupEnd() != ncclInvalidArgument) return "the end forgot the error";
          if (x[0] != 1) return "part of the group ran";
          ncclGroupStart();
          ncclAllReduce(&x[0], &x[0], 1, ncclFloat, ncclSum, comms[0], nullptr);
          ncclAllReduce(&x[1], &x[1], 1, ncclFloat, ncclSum, comms[1], nullptr);
          if (std::string wrong = testing::must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
          ncclCommDestroy(comms[0]);
          ncclCommDestroy(comms[1]);
          return x[0] == 3 && x[1] == 3 ? "" : "wrong sum";
        }) == "");
}

TEST_CASE("group: one thread initialises several ranks within a group") {
  CHECK(testing::in_child({}, 60, []() -> std::string {
          ncclUniqueId id;
          ncclGetUniqueId(&id);
          ncclComm_t comms[3] = {};
          ncclGroupStart();
          for (int rank = 0; rank < 3; ++rank) ncclCommInitRank(&comms[rank], 3, id, rank);
          if (comms[0] != nullptr) return "made before the end of the group";
          if (std::string wrong = testing::must(ncclGroupEnd(), "group"); !wrong.empty()) return wrong;
          for (ncclComm_t comm : comms)
            if (comm == nullptr || ncclCommDestroy(comm) != ncclSuccess) return "not made";
          return "";
        }) == "");
}
