// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>

using namespace shoal;

TEST_CASE("status: success is empty and costs one pointer") {
  const Status status;
  CHECK(status.is_ok());
  CHECK(status.code() == Code::ok);
  CHECK(status.text() == "success");
  CHECK_FALSE(status.culprit().has_value());
  CHECK(sizeof(Status) == sizeof(void*));
}

TEST_CASE("status: a failure keeps code, text and culprit through copies and moves") {
  const Status made(Code::timeout, "late", Rank{3});
  Status copy = made;
  Status moved = std::move(copy);
  CHECK(made.text() == "late");
  CHECK(moved.code() == Code::timeout);
  CHECK(moved.culprit() == Rank{3});
  moved = Status();
  CHECK(moved.is_ok());
  CHECK(fail(Code::system_error, "bind {}: {}", "a:1", errno_text(EADDRINUSE)).text() == "bind a:1: Address already in use (98)");
}

TEST_CASE("result: a value that can only be moved, or why there is none") {
  Result<std::unique_ptr<int>> good(std::make_unique<int>(7));
  REQUIRE(good.is_ok());
  CHECK(*good.take() == 7);
  const Result<int> bad(fail(Code::remote_error, "gone"));
  CHECK_FALSE(bad.is_ok());
  CHECK(bad.status().code() == Code::remote_error);
}
