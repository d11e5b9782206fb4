// SPDX-License-Identifier: Apache-2.0
// Gradient dropping (Aji & Heafield, EMNLP 2017): r = r + g; what is largest of r is sent and leaves it. Without feedback what is
// not sent is thrown away: the naive top-k, to compare with.
#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "compress/calls.h"
#include "compress/sparse/all_reduce.h"
#include "compress/sparse/contribute.h"
#include "compress/sparse/floats.h"
#include "compress/sparse/select.h"

namespace shoal::compress {
namespace {

constexpr std::array kOptions = {
    OptionSpec{.name = "density", .about = "share of the elements that is sent", .value = 0.01, .low = 1e-7, .high = 1},
    OptionSpec{.name = "sample",
               .about = "share of the elements that the threshold is estimated from",
               .value = 0.001,
               .low = 1e-4,
               .high = 1},
    sparse::kScheduleOption, sparse::kValuesOption,
    OptionSpec{.name = "feedback",
               .about = "1: what is not sent is kept for the next call; 0: it is lost",
               .value = 1,
               .high = 1,
               .whole = true}};

class Dropping final : public Compressor {
 public:
  Dropping(const Options& options, Shape shape, std::uint64_t seed)
      : elements_(shape.elements),
        seed_(seed),
        density_(options.number("density")),
        sample_(options.number("sample")),
        values_(sparse::value_type_from(options.word("values"))),
        dense_(elements_ > sparse::kMostElements),
        all_reduce_(sparse::schedule_from(options.word("schedule"))),
        residual_(options.flag("feedback") && !dense_ ? elements_ : 0) {}

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.number(calls_);
    out.floats(residual_.now_span());
  }
  Status load(StateReader& in) override {
    const std::uint64_t calls = in.number();
    in.floats(residual_.next_span());
    if (!in.ok())
      return fail(Code::invalid_argument, "dropping: the state is not one of {} elements with these options", elements_);
    calls_ = calls;
    residual_.step();
    return {};
  }

 private:
  sparse::Contribution select(const Tensor& tensor);

  std::size_t elements_;
  std::uint64_t seed_;
  double density_, sample_;
  sparse::ValueType values_;
  bool dense_;
  sparse::AllReduce all_reduce_;
  sparse::Selector selector_;

  std::uint64_t calls_ = 0;
  sparse::Remembered residual_;  // r
};

sparse::Contribution Dropping::select(const Tensor& tensor) {
  const sparse::Accumulation step{.input = tensor.input,
                                  .scale = tensor.scale,
                                  .residual = residual_.now(),
                                  .next_residual = residual_.next(),
                                  .stream = elements_ * sizeof(float) >= sparse::kStreamBytes};
  selector_.select(step, elements_, sparse::kept(density_, elements_), sample_, seed_ + calls_);
  return sparse::contribute(selector_, step, elements_, values_, false, tensor.measure, report_);
}

Stages Dropping::all_reduce(Tensor tensor, Place place) {
  const auto start = std::chrono::steady_clock::now();
  report_ = {};
  if (dense_) {
    sparse::write_scaled(tensor);
    report_ = {.encoded_bytes = elements_ * sizeof(float), .selected = elements_, .dense = true};
    co_yield compress::all_reduce(tensor.output, elements_);
    co_return Status();
  }

  const sparse::Contribution own = select(tensor);
  report_.encode_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Stages stages = all_reduce_.run(tensor, place, own);;) {
    auto next = stages.next();
    if (!next.is_ok()) co_return next.status();
    if (!next->has_value()) break;
    co_yield std::move(**next);
  }
  report_.encoded_bytes = all_reduce_.encoded_bytes();
  report_.dense = all_reduce_.chosen() == sparse::Schedule::dense;
  if (!all_reduce_.finite()) co_return Status();
  ++calls_;
  residual_.step();
  co_return Status();
}

}  // namespace

extern const Kind dropping_kind;
const Kind dropping_kind{.name = "dropping",
                         .about = "top-k of what is accumulated (gradient dropping)",
                         .options = kOptions,
                         .make = make_compressor<Dropping>};

}  // namespace shoal::compress
