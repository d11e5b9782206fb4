// SPDX-License-Identifier: Apache-2.0
#include "compress/compressed_call.h"

#include <cmath>
#include <cstring>

#include "device/convert.h"
#include "engine/mix.h"

namespace shoal::compress {
namespace {

template <typename T>
T element(const void* from, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void set_element(void* to, std::size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(to) + i * sizeof(T), &value, sizeof(T));
}

void widen(DataType type, const void* from, std::vector<float>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) switch (type) {
      case DataType::float16: to[i] = device::from_float16(element<std::uint16_t>(from, i)); break;
      case DataType::bfloat16: to[i] = device::from_bfloat16(element<std::uint16_t>(from, i)); break;
      default: to[i] = static_cast<float>(element<double>(from, i)); break;
    }
}

void narrow(DataType type, const std::vector<float>& from, void* to) {
  for (std::size_t i = 0; i < from.size(); ++i) switch (type) {
      case DataType::float16: set_element(to, i, device::to_float16(from[i])); break;
      case DataType::bfloat16: set_element(to, i, device::to_bfloat16(from[i])); break;
      default: set_element(to, i, static_cast<double>(from[i])); break;
    }
}

// Floats are read and written as such where they lie.
bool is_direct(const Wish& wish) {
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % alignof(float) == 0; };
  return wish.type == DataType::float32 && aligned(wish.input) && aligned(wish.output);
}

}  // namespace

CompressedCall::CompressedCall(std::shared_ptr<TensorSet> set, Wish wish, Place place,
                               std::function<void(const CallReport&)> report)
    : set_(std::move(set)), wish_(std::move(wish)), place_(std::move(place)), report_(std::move(report)) {}

Status CompressedCall::begin() {
  Result<TensorSet::Use> use = set_->use(wish_.key, wish_.shape);
  if (!use.is_ok()) return use.status();
  tensor_ = use.take();
  Tensor tensor{.input = static_cast<const float*>(wish_.input),
                .output = static_cast<float*>(wish_.output),
                .elements = wish_.shape.elements,
                .scale = wish_.average ? 1.0F / static_cast<float>(place_.world.value) : 1.0F,
                .measure = report_ != nullptr};
  if (!is_direct(wish_)) {
    tensor_->widened.resize(tensor.elements);
    tensor_->narrowed.resize(tensor.elements);
    if (wish_.type == DataType::float32)
      std::memcpy(tensor_->widened.data(), wish_.input, tensor.elements * sizeof(float));
    else
      widen(wish_.type, wish_.input, tensor_->widened);
    tensor.input = tensor_->widened.data();
    tensor.output = tensor_->narrowed.data();
  }
  stages_ = tensor_->compressor->all_reduce(tensor, place_);
  return {};
}

Result<std::optional<engine::Call>> CompressedCall::next() {
  if (tensor_ == nullptr)
    if (Status s = begin(); !s.is_ok()) return s;
  Result<std::optional<engine::Call>> call = stages_.next();
  if (call.is_ok() && !call->has_value()) end();
  return call;
}

void CompressedCall::moved(const engine::Traffic& traffic) {
  traffic_.sent.value += traffic.sent.value;
  traffic_.received.value += traffic.received.value;
}

void CompressedCall::end() {
  if (!is_direct(wish_)) {
    if (wish_.type == DataType::float32)
      std::memcpy(wish_.output, tensor_->narrowed.data(), wish_.shape.elements * sizeof(float));
    else
      narrow(wish_.type, tensor_->narrowed, wish_.output);
  }
  const Report made = tensor_->compressor->report();
  stages_ = {};
  tensor_.reset();  // for the next call
  if (report_ == nullptr) return;
  report_({.compressor = made,
           .traffic = traffic_,
           .error = made.squared_norm > 0 ? std::sqrt(made.squared_error / made.squared_norm) : 0});
}

std::uint64_t variant_of(const TensorSet& set, const Wish& wish) {
  std::uint64_t all = engine::mix(wish.shape.rows + 1);
  for (const std::string& text : {set.describe(), wish.key})
    for (const char c : text + '\0') all = engine::mix(all ^ static_cast<unsigned char>(c));
  return all | 1;
}

}  // namespace shoal::compress
