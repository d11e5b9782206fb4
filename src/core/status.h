// SPDX-License-Identifier: Apache-2.0
// How failure travels: what the world does (a peer died, a wait timed out, an argument was wrong) is a value, passed on with a
// plain `if`. Success costs a null pointer. A failure is made where it is decided, logged once by src/api, never reworded.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/types.h"

namespace shoal {

// The values are NCCL's result codes (ncclTimeout is 8 since 2.30).
enum class Code : int {
  ok = 0,
  system_error = 2,      // the operating system refused
  internal_error = 3,    // a bug of ours
  invalid_argument = 4,  // one argument is wrong by itself
  invalid_usage = 5,     // the call does not fit what came before, or what other ranks do
  remote_error = 6,      // another rank died, left or failed
  in_progress = 7,
  timeout = 8,
};

// Thread rule: a value; copy it to hand it to another thread.
class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(Code code, std::string text, std::optional<Rank> culprit = std::nullopt)
      : failure_(std::make_unique<Failure>(Failure{code, std::move(text), culprit})) {}
  Status(const Status& other) : failure_(other.failure_ ? std::make_unique<Failure>(*other.failure_) : nullptr) {}
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other) {
    failure_ = other.failure_ ? std::make_unique<Failure>(*other.failure_) : nullptr;
    return *this;
  }
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool is_ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::ok; }
  std::string_view text() const { return failure_ ? std::string_view(failure_->text) : std::string_view("success"); }
  std::optional<Rank> culprit() const { return failure_ ? failure_->culprit : std::nullopt; }

 private:
  struct Failure {
    Code code;
    std::string text;
    std::optional<Rank> culprit;  // the rank that caused it, where one is known
  };
  std::unique_ptr<Failure> failure_;
};

// A failure with a formatted text: fail(Code::system_error, "bind {}: {}", address, text).
template <typename... Args>
Status fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

// The text of an error number, without the thread trouble of strerror: "Connection refused (111)".
std::string errno_text(int number);

// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status failure) : status_(std::move(failure)) {}

  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace shoal
