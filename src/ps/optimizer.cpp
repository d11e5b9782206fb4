// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer.h"

#include <cstring>

#include "device/reduce.h"

namespace shoal::ps {
namespace {

// In the element type throughout: a mean first, then one step.
template <typename T>
void descend(const Application& application, double rate) {
  auto* weights = reinterpret_cast<T*>(application.weights);
  const auto step = static_cast<T>(rate), workers = static_cast<T>(application.workers);
  for (std::size_t i = 0; i < application.range.count; ++i) {
    T gradient;  // may lie in wire memory, aligned to nothing
    std::memcpy(&gradient, application.gradient + i * sizeof(T), sizeof gradient);
    weights[i] -= step * (gradient / workers);
  }
}

}  // namespace

Status Optimizer::apply(const Application& application) const {
  const KeyRange range = application.range;
  switch (update_) {
    case Update::sum: std::memcpy(application.weights, application.gradient, size_of({range.count}, type_).value); return {};
    case Update::add:
      device::kernels(type_, ReduceOp::sum)
          .combine({application.weights}, application.weights, application.gradient, range.count, {});
      return {};
    case Update::sgd:
      if (type_ == DataType::float32)
        descend<float>(application, rate_);
      else
        descend<double>(application, rate_);
      return {};
    case Update::custom: break;
  }
  const int answer = function_(range.first, range.count, application.weights, application.gradient, application.workers,
                               application.iteration, user_);
  if (answer == 0) return {};
  return {Code::invalid_usage,
          fmt::format("rank {}: the update function returned {} for keys {} .. {} of iteration {}", server_.value, answer,
                      range.first, range.end() - 1, application.iteration),
          server_};
}

}  // namespace shoal::ps
