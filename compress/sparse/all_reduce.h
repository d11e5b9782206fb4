// SPDX-License-Identifier: Apache-2.0
// All-reduces of sparse vectors. First all ranks gather how long each one's contribution is, and whether it is finite; then one
// of the schedules sums them (schedules.h), or, where the union is dense, an all-reduce of the vector. All ranks end with the
// same bits. If any contribution is not finite, the inputs are summed as they are instead.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "compress/compressor.h"
#include "compress/sparse/schedules.h"

namespace shoal::compress::sparse {

enum class Schedule : std::uint8_t { automatic, gather, doubling, split, dense };
std::string_view name_of(Schedule schedule);

// The options of compressors, and their values.
constexpr OptionSpec kScheduleOption{.name = "schedule",
                                     .about = "how entries are exchanged; auto: what is predicted to be the fastest",
                                     .words = "auto|gather|doubling|split|dense"};
constexpr OptionSpec kValuesOption{.name = "values", .about = "type of values on the wire", .words = "fp32|fp16"};
Schedule schedule_from(std::string_view word);
ValueType value_type_from(std::string_view word);

// The cheapest schedule for entries at independent places. A pure function of what all ranks know, in additions, products and
// quotients alone: the same everywhere.
Schedule cheapest(std::span<const Announcement> ranks, std::uint64_t n, ValueType values,
                  const std::function<double(const engine::Call&)>& predict);

// output = scale * input: what is summed of a tensor that goes uncompressed.
void write_scaled(const Tensor& tensor);

class AllReduce {
 public:
  explicit AllReduce(Schedule schedule) : schedule_(schedule) {}

  // tensor.output = the sum of all ranks' entries. They, and place, stay until it is over.
  Stages run(Tensor tensor, const Place& place, Contribution own);

  // Of the run that is over:
  bool finite() const { return finite_; }
  Schedule chosen() const { return chosen_; }                     // never automatic
  std::uint64_t encoded_bytes() const { return encoded_bytes_; }  // of the own contribution

  Frame& frame() { return frame_; }

 private:
  Stages sum(const Tensor& tensor, const Place& place, const Contribution& own);

  Schedule schedule_, chosen_ = Schedule::gather;
  bool finite_ = true;
  std::uint64_t encoded_bytes_ = 0;
  Announcement announcement_;
  std::vector<Announcement> announced_;  // [rank]
  Gather gather_;
  Doubling doubling_;
  Split split_;
  Sum sum_;
  Frame frame_;
};

}  // namespace shoal::compress::sparse
