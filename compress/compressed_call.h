// SPDX-License-Identifier: Apache-2.0
// A compressed all-reduce of a tensor of any float type, as the engine runs it: the tensor's compressor between two conversions,
// and the report at its end.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "compress/tensor_set.h"
#include "engine/composition.h"

namespace shoal::compress {

// What is asked for. Memory stays until the call is over.
struct Wish {
  std::string key;
  Shape shape;
  const void* input = nullptr;
  void* output = nullptr;
  DataType type = DataType::float32;  // a 16-, 32- or 64-bit float
  bool average = false;
};

// How it went, for this rank.
struct CallReport {
  Report compressor;
  engine::Traffic traffic;
  double error = 0;  // relative L2 of what this rank contributed against what it meant to; 0 unless measured
};

class CompressedCall final : public engine::Composition {
 public:
  // `report` (may be null) is written when the call ends well, and only then is the error measured.
  CompressedCall(std::shared_ptr<TensorSet> set, Wish wish, Place place, std::function<void(const CallReport&)> report);

  // Takes the tensor at the first call: in the order in which calls run.
  Result<std::optional<engine::Call>> next() override;
  void moved(const engine::Traffic& traffic) override;

 private:
  Status begin();
  void end();

  std::shared_ptr<TensorSet> set_;
  Wish wish_;
  Place place_;
  std::function<void(const CallReport&)> report_;
  TensorSet::Use tensor_;
  Stages stages_;
  engine::Traffic traffic_;
};

// What ranks must agree on, besides type and length: the compressor, its options, the tensor's name and rows. Never 0.
std::uint64_t variant_of(const TensorSet& set, const Wish& wish);

}  // namespace shoal::compress
