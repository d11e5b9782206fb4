// SPDX-License-Identifier: Apache-2.0
// A call over boards that goes in rounds: in each every rank shows something, and reads what all have shown.
#pragma once

#include <cstring>

#include "engine/board_call.h"

namespace shoal::engine {

class RoundCall : public BoardCall {
 protected:
  void begin_rounds(const Call& call, const Setting& setting) {
    begin(call, setting);
    number_ = first_;
    from_ = 0;
  }

  // False: wait, there is no room yet.
  bool show(const void* data, Bytes n) {
    std::byte* const to = room(number_, n);
    if (to == nullptr) return false;
    if (n.value > 0) std::memcpy(to, data, n.value);
    boards_->show(number_, tag_, n);
    return true;
  }
  template <typename T>
  bool show(const T& value) {
    return show(&value, {sizeof value});
  }

  // What everybody shows in this round, one after the other, which ends it: f(rank, data). False: wait.
  template <typename F>
  bool read_all(Bytes n, F&& f) {
    for (; from_ < world_; ++from_) {
      const std::byte* const data = from_ == rank_ ? boards_->own(number_, n) : shown_by(from_, number_, n);
      if (data == nullptr) return false;
      f(from_, data);
    }
    from_ = 0;
    ++number_;
    boards_->finish();
    return true;
  }
  template <typename T, typename F>
  bool read_all_of(F&& f) {
    return read_all({sizeof(T)}, [&](std::int32_t rank, const std::byte* data) {
      T value;
      std::memcpy(&value, data, sizeof value);
      f(rank, value);
    });
  }

 private:
  std::uint64_t number_ = 0;  // of the round's exchange
  std::int32_t from_ = 0;     // rank that is read next
};

}  // namespace shoal::engine
