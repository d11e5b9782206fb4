// SPDX-License-Identifier: Apache-2.0
// Deep Gradient Compression (Lin, Han, Mao, Wang, Dally, ICLR 2018). Of every rank's gradient g = scale * input:
//
//   g *= min(1, clip / sqrt(world) / |g|)                                   local clipping, before accumulation
//   u = m u + g, v = v + u          or Nesterov's  u = m (u + g), v = v + u + g     momentum correction
//   sent = the density * n of v that are largest;  v -= sent, and u = 0 there       momentum factor masking
//   output = sum of all ranks' sent
//
// The momentum lives in u: the caller applies the output as plain SGD does. At density 1, and for vectors that are short, the sum
// is dense and the momentum is applied to it: u = m u + sum g, output = u.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
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
    OptionSpec{.name = "density", .about = "share of the elements that is sent", .value = 0.001, .low = 1e-7, .high = 1},
    OptionSpec{.name = "momentum", .about = "m; 0: gradients are accumulated as they are", .value = 0.9, .high = 0.999999},
    OptionSpec{.name = "nesterov", .about = "1: Nesterov's momentum", .high = 1, .whole = true},
    OptionSpec{.name = "masking", .about = "1: what is sent loses its momentum, too", .value = 1, .high = 1, .whole = true},
    OptionSpec{.name = "clip", .about = "L2 norm of the summed gradient that is clipped to; 0: none is", .high = 1e30},
    OptionSpec{.name = "warmup_steps",
               .about = "calls of each warm-up epoch: 25 %, 6.25 %, ... are sent, never less than density; 0: no warm-up",
               .high = 1e12,
               .whole = true},
    OptionSpec{.name = "warmup_epochs", .about = "number of warm-up epochs", .value = 4, .high = 64, .whole = true},
    OptionSpec{.name = "sample",
               .about = "share of the elements that the threshold is estimated from",
               .value = 0.001,
               .low = 1e-4,
               .high = 1},
    sparse::kScheduleOption,
    sparse::kValuesOption,
    OptionSpec{.name = "dense_below",
               .about = "elements; vectors (one row or column) that are shorter go dense",
               .value = 16384,
               .high = 0x1p53,
               .whole = true}};

class Dgc final : public Compressor {
 public:
  Dgc(const Options& options, Shape shape, std::uint64_t seed)
      : elements_(shape.elements),
        seed_(seed),
        density_(options.number("density")),
        momentum_(static_cast<float>(options.number("momentum"))),
        nesterov_(options.flag("nesterov")),
        masking_(options.flag("masking")),
        clip_(options.number("clip")),
        warmup_steps_(options.whole("warmup_steps")),
        warmup_epochs_(options.whole("warmup_epochs")),
        sample_(options.number("sample")),
        values_(sparse::value_type_from(options.word("values"))),
        dense_(density_ == 1 || elements_ > sparse::kMostElements ||
               (!shape.is_matrix() && elements_ < options.whole("dense_below"))),
        all_reduce_(sparse::schedule_from(options.word("schedule"))),
        velocity_(momentum_ > 0 ? elements_ : 0),
        residual_(dense_ ? 0 : elements_, 1) {}

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.number(calls_);
    out.floats(velocity_.now_span());
    out.floats(residual_.now_span());
  }
  Status load(StateReader& in) override {
    const std::uint64_t calls = in.number();
    in.floats(velocity_.next_span());
    in.floats(residual_.next_span());
    if (!in.ok()) return fail(Code::invalid_argument, "dgc: the state is not one of {} elements with these options", elements_);
    step(calls);
    return {};
  }

 private:
  float clipped_scale(const Tensor& tensor, World world) const;
  double density() const;
  sparse::Contribution select(const Tensor& tensor, World world);
  void apply_momentum(float* sum);
  void step(std::uint64_t calls) {
    calls_ = calls;
    velocity_.step();
    residual_.step();
  }

  std::size_t elements_;
  std::uint64_t seed_;
  double density_;
  float momentum_;
  bool nesterov_, masking_;
  double clip_;
  std::size_t warmup_steps_, warmup_epochs_;
  double sample_;
  sparse::ValueType values_;
  bool dense_;
  sparse::AllReduce all_reduce_;
  sparse::Selector selector_;

  std::uint64_t calls_ = 0;
  sparse::Remembered velocity_;  // u; of the sum where that is dense
  sparse::Remembered residual_;  // v
};

// If ranks' gradients are alike, the norm of their sum is sqrt(world) times that of one.
float Dgc::clipped_scale(const Tensor& tensor, World world) const {
  if (clip_ == 0) return tensor.scale;
  const double norm = std::sqrt(sparse::sum_of_squares(tensor.input, elements_)) * static_cast<double>(std::abs(tensor.scale));
  const double most = clip_ / std::sqrt(static_cast<double>(world.value));
  return std::isfinite(norm) && norm > most ? static_cast<float>(static_cast<double>(tensor.scale) * (most / norm))
                                            : tensor.scale;
}

double Dgc::density() const {
  const std::uint64_t epoch = warmup_steps_ == 0 ? warmup_epochs_ : calls_ / warmup_steps_;
  if (epoch >= warmup_epochs_) return density_;
  return std::max(density_, std::ldexp(1.0, -2 * static_cast<int>(epoch + 1)));
}

sparse::Contribution Dgc::select(const Tensor& tensor, World world) {
  const sparse::Accumulation step{.input = tensor.input,
                                  .scale = clipped_scale(tensor, world),
                                  .residual = residual_.now(),
                                  .velocity = velocity_.now(),
                                  .next_residual = residual_.next(),
                                  .next_velocity = velocity_.next(),
                                  .momentum = momentum_,
                                  .nesterov = nesterov_,
                                  .stream = elements_ * sizeof(float) >= sparse::kStreamBytes};
  selector_.select(step, elements_, sparse::kept(density(), elements_), sample_, seed_ + calls_);
  return sparse::contribute(selector_, step, elements_, values_, masking_, tensor.measure, report_);
}

void Dgc::apply_momentum(float* sum) {
  const float* u = velocity_.now();
  float* next = velocity_.next();
  for (std::size_t i = 0; i < elements_; ++i) {
    const float g = sum[i];
    next[i] = nesterov_ ? momentum_ * (u[i] + g) : momentum_ * u[i] + g;
    sum[i] = nesterov_ ? next[i] + g : next[i];
  }
}

Stages Dgc::all_reduce(Tensor tensor, Place place) {
  const auto start = std::chrono::steady_clock::now();
  const auto since_start = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  report_ = {};
  if (dense_) {
    // (A rank whose own gradient is not finite does not clip it.)
    tensor.scale = clipped_scale(tensor, place.world);
    sparse::write_scaled(tensor);
    report_ = {.encoded_bytes = elements_ * sizeof(float), .encode_s = since_start(), .selected = elements_, .dense = true};
    if (tensor.measure) report_.squared_norm = sparse::sum_of_squares(tensor.output, elements_);
    co_yield compress::all_reduce(tensor.output, elements_);

    if (!sparse::all_finite(tensor.output, elements_)) co_return Status();
    if (!velocity_.empty()) apply_momentum(tensor.output);
    step(calls_ + 1);
    co_return Status();
  }

  const sparse::Contribution own = select(tensor, place.world);
  report_.encode_s = since_start();
  for (Stages stages = all_reduce_.run(tensor, place, own);;) {
    auto next = stages.next();
    if (!next.is_ok()) co_return next.status();
    if (!next->has_value()) break;
    co_yield std::move(**next);
  }
  report_.encoded_bytes = all_reduce_.encoded_bytes();
  report_.dense = all_reduce_.chosen() == sparse::Schedule::dense;
  if (all_reduce_.finite()) step(calls_ + 1);
  co_return Status();
}

}  // namespace

extern const Kind dgc_kind;
const Kind dgc_kind{.name = "dgc",
                    .about = "top-k of what is accumulated, with momentum correction and masking (Deep Gradient Compression)",
                    .options = kOptions,
                    .make = make_compressor<Dgc>};

}  // namespace shoal::compress
