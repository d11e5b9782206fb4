// SPDX-License-Identifier: Apache-2.0
// Text as bytes: one file, or all plain files of a folder by name, the last tenth for validation. Which sequences a step trains
// on depends on seed and step only, so that every rank can tell all of them. Immutable once read; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/nn/token_loss.h"

namespace shoal::train {

inline constexpr const char* kTextFolder = "/usr/share/games/fortunes";  // Debian: fortunes, fortunes-min

// (sequences, length) each; targets[i] is the byte after inputs[i].
struct TextSample {
  std::size_t sequences = 0;
  std::size_t length = 0;
  std::vector<Token> inputs;
  std::vector<std::int32_t> targets;
};

class Text {
 public:
  // Throws Error (Exit::usage) naming what cannot be read, or is shorter than one sequence of training and one of validation.
  Text(const std::string& path, std::size_t length);

  std::size_t length() const { return length_; }  // [tokens] of a sequence
  std::size_t bytes() const { return train_.size() + validation_.size(); }

  TextSample batch(std::size_t sequences, std::uint64_t seed, std::size_t step) const;
  // Sequence `first` and those after it, one behind the other; at most validation_sequences() in all.
  TextSample validation(std::size_t first, std::size_t sequences) const;
  std::size_t validation_sequences() const { return (validation_.size() - 1) / length_; }

 private:
  std::size_t length_;
  std::vector<Token> train_, validation_;
};

}  // namespace shoal::train
