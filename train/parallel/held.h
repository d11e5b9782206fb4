// SPDX-License-Identifier: Apache-2.0
// Memory that a ledger knows of, for as long as it is held. Starts as zeros; move-only. One thread; the ledger outlives it.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "train/parallel/ledger.h"

namespace shoal::train {

template <typename T>
class Held {
 public:
  Held() = default;
  Held(Ledger& ledger, Holds what, std::size_t count) : ledger_(&ledger), what_(what), values_(count) {
    ledger.hold(what, bytes());
  }
  Held(Held&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), what_(other.what_), values_(std::exchange(other.values_, {})) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(what_, other.what_);
    values_.swap(other.values_);
    other.drop();
    return *this;
  }
  ~Held() { drop(); }

  explicit operator bool() const { return ledger_ != nullptr; }
  std::span<T> all() { return values_; }
  std::span<const T> all() const { return values_; }
  void drop() {
    if (ledger_ != nullptr) std::exchange(ledger_, nullptr)->release(what_, bytes());
    std::vector<T>().swap(values_);
  }

 private:
  std::size_t bytes() const { return values_.size() * sizeof(T); }

  Ledger* ledger_ = nullptr;  // null: nothing is held
  Holds what_ = Holds::working;
  std::vector<T> values_;
};

}  // namespace shoal::train
