// SPDX-License-Identifier: Apache-2.0
// A training run on text, whatever the scheme: batches, schedule, progress, validation, checks against the one-process run,
// checkpoints, records. Collective over all ranks of the launch.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/error.h"
#include "train/parallel/comm.h"
#include "train/text_driver.h"

namespace shoal::train {

struct TextOptions {
  TextRecipe recipe;
  std::string text = kTextFolder;
  std::size_t log_every = 20;         // steps; 0: never
  std::size_t validation = 64;        // sequences of the validation at the end; 0: none
  std::optional<double> target_loss;  // nats a token, of the validation
  bool check = false;                 // repeat the run in one process and compare
  std::string json;                   // path; empty: none
  std::string checkpoints;            // folder; empty: none
  std::size_t checkpoint_every = 0;   // steps; 0: at the end
  bool resume = false;                // from the folder's newest checkpoint, if there is one
};

// How a scheme is made for this rank; throws Error (Exit::usage) if it does not fit the recipe or the world.
using MakeDriver = std::function<std::unique_ptr<TextDriver>(const TextRecipe&, const Communicator&)>;

// `scheme`: for texts: "zero stage 2". Prints on rank 0.
Exit run_text(const TextOptions& options, const std::string& scheme, Seat seat, const MakeDriver& make);

// What --check found.
struct TextCheck {
  double loss = 0;      // largest relative difference of a step's loss
  double gradient = 0;  // largest |g - g alone| / |g alone| of a tensor after the first step
  double values = 0;    // the same of the parameters after the last step
  std::string worst;    // tensor, of values
  bool same_bits = false;

  bool bf16 = false;

  bool passed() const {
    return same_bits && loss <= kLossTolerance && gradient <= (bf16 ? kBf16GradientTolerance : kGradientTolerance);
  }
  static constexpr double kLossTolerance = 1e-5, kGradientTolerance = 1e-6;
  // Rounded to 8 bits: where the last bit of float32 decides, two right gradients are a unit apart.
  static constexpr double kBf16GradientTolerance = 0x1p-9;
};

}  // namespace shoal::train
