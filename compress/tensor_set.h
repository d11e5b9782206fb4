// SPDX-License-Identifier: Apache-2.0
// One rank's tensors under one compressor: a name each, and what is remembered of it, whatever memory its values lie in. Any
// thread; a tensor is used by one call at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/compressor.h"

namespace shoal::compress {

class TensorSet {
 public:
  // invalid_argument: there is no compressor of this name (all are listed), or an option is wrong.
  static Result<std::unique_ptr<TensorSet>> create(std::string_view name, std::string_view options);

  // "dgc:density=0.001,momentum=0.9,...": equal texts compress alike.
  std::string describe() const;
  const Kind& kind() const { return kind_; }

  struct Entry {
    std::unique_ptr<Compressor> compressor;  // null: not used since it was loaded
    std::vector<std::byte> loaded;           // what it will start with: memory is taken for tensors that there are, not claimed
    Shape shape;
    bool in_use = false;                   // by a call that runs; under the set's mutex
    std::vector<float> widened, narrowed;  // of calls in other types than float32
  };
  using Use = std::unique_ptr<Entry, std::function<void(Entry*)>>;
  // The tensor for one call; made, or (if its shape is another one now) made anew: then what was remembered of it is gone, and
  // the log says so. invalid_usage while another call has it; invalid_argument if what was loaded of it is no state of its shape.
  // Must not outlive the set.
  Result<Use> use(std::string_view key, Shape shape);

  // All tensors' states as bytes, with version, compressor and a digest. invalid_usage while a tensor is in use.
  Result<std::vector<std::byte>> save() const;
  // In place of all that is remembered. invalid_argument, nothing changed: not such bytes, spoilt, of another version, of another
  // compressor or other options. invalid_usage while a tensor is in use.
  Status load(std::span<const std::byte> bytes);
  // Forgets a tensor, or all if `key` is empty. invalid_argument: there is no such tensor. invalid_usage while it is in use.
  Status reset(std::string_view key);

 private:
  TensorSet(const Kind& kind, Options options) : kind_(kind), options_(std::move(options)) {}
  using Tensors = std::map<std::string, Entry, std::less<>>;
  Status make(std::string_view key, Entry& entry) const;
  Result<Tensors> read(std::span<const std::byte> bytes) const;
  Status none_in_use() const;  // mutex_ held

  const Kind& kind_;
  Options options_;
  mutable std::mutex mutex_;
  Tensors tensors_;  // under mutex_; a node stays where it is
};

// "NAME: about" and the options with ranges and defaults, of every compressor.
std::string describe_all();

}  // namespace shoal::compress
