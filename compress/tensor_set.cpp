// SPDX-License-Identifier: Apache-2.0
#include "compress/tensor_set.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/log.h"

namespace shoal::compress {
namespace {

constexpr std::uint64_t kMagic = 0x4554415453434853;  // "SHCSTATE"
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kDigestBytes = 32;
using Digest = std::array<std::byte, kDigestBytes>;

Digest digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  crypto_generichash(reinterpret_cast<unsigned char*>(digest.data()), digest.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
  return digest;
}

// FNV-1a: the same on all ranks and machines.
std::uint64_t seed_of(std::string_view key) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string names() {
  std::string all;
  for (const Kind& each : kinds()) all += (all.empty() ? "" : ", ") + std::string(each.name);
  return all;
}

}  // namespace

Result<std::unique_ptr<TensorSet>> TensorSet::create(std::string_view name, std::string_view options) {
  const Kind* kind = find_kind(name);
  if (kind == nullptr) return fail(Code::invalid_argument, "there is no compressor \"{}\"; there are: {}", name, names());
  Result<Options> parsed = Options::parse(options, kind->options, name);
  if (!parsed.is_ok()) return parsed.status();
  return std::unique_ptr<TensorSet>(new TensorSet(*kind, parsed.take()));
}

std::string TensorSet::describe() const { return fmt::format("{}:{}", kind_.name, options_.text()); }

Status TensorSet::make(std::string_view key, Entry& entry) const {
  entry.compressor = kind_.make(kind_, options_, entry.shape, seed_of(key));
  const std::vector<std::byte> loaded = std::exchange(entry.loaded, {});
  if (loaded.empty()) return {};
  StateReader in(loaded);
  Status read = entry.compressor->load(in);
  if (read.is_ok() && in.at_end()) return {};
  return fail(Code::invalid_argument, "the loaded state of tensor \"{}\" is not one of its shape: it starts anew", key);
}

Result<TensorSet::Use> TensorSet::use(std::string_view key, Shape shape) {
  const std::lock_guard lock(mutex_);
  auto found = tensors_.find(key);
  if (found == tensors_.end()) {
    found = tensors_.emplace(key, Entry()).first;
    found->second.shape = shape;
  }
  Entry& entry = found->second;
  if (entry.in_use)
    return fail(Code::invalid_usage, "tensor \"{}\" is being reduced by another call: a tensor's calls follow each other", key);
  if (entry.shape != shape) {
    log::info(log::Subsystem::coll, -1, "tensor \"{}\" had {} x {} elements and has {} x {}: {} starts anew with it", key,
              entry.shape.rows, entry.shape.columns(), shape.rows, shape.columns(), kind_.name);
    entry = Entry();
    entry.shape = shape;
  }
  if (entry.compressor == nullptr)
    if (Status s = make(key, entry); !s.is_ok()) return s;
  entry.in_use = true;
  return Use(&entry, [this](Entry* used) {
    const std::lock_guard again(mutex_);
    used->in_use = false;
  });
}

Status TensorSet::none_in_use() const {
  for (const auto& [key, entry] : tensors_)
    if (entry.in_use) return fail(Code::invalid_usage, "tensor \"{}\" is being reduced: wait for the call's end", key);
  return {};
}

Result<std::vector<std::byte>> TensorSet::save() const {
  const std::lock_guard lock(mutex_);
  if (Status s = none_in_use(); !s.is_ok()) return s;
  StateWriter out;
  out.number(kMagic);
  out.number(kVersion);
  out.text(describe());
  out.number(tensors_.size());
  for (const auto& [key, entry] : tensors_) {
    out.text(key);
    out.number(entry.shape.elements);
    out.number(entry.shape.rows);
    if (entry.compressor == nullptr) {
      out.blob(entry.loaded);
      continue;
    }
    StateWriter state;
    entry.compressor->save(state);
    out.blob(state.bytes());
  }
  std::vector<std::byte> bytes = out.take();
  const Digest digest = digest_of(bytes);
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

Result<TensorSet::Tensors> TensorSet::read(std::span<const std::byte> bytes) const {
  if (bytes.size() < kDigestBytes + 4 * sizeof(std::uint64_t))
    return fail(Code::invalid_argument, "the state has {} bytes, fewer than any has", bytes.size());
  const std::span<const std::byte> content = bytes.first(bytes.size() - kDigestBytes);
  StateReader in(content);
  if (in.number() != kMagic) return fail(Code::invalid_argument, "the bytes are no compressor's state");
  if (const std::uint64_t version = in.number(); version != kVersion)
    return fail(Code::invalid_argument, "the state has version {}, this library reads {}", version, kVersion);
  const Digest digest = digest_of(content);
  if (!std::equal(digest.begin(), digest.end(), bytes.end() - kDigestBytes))
    return fail(Code::invalid_argument, "the state is spoilt: its digest is not that of its bytes");
  if (const std::string of = in.text(); of != describe())
    return fail(Code::invalid_argument, "the state is of {}, this compressor is {}", of, describe());
  Tensors tensors;
  const std::uint64_t count = in.number();
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    const std::string key = in.text();
    const Shape shape{in.number(), in.number()};
    const std::span<const std::byte> state = in.blob();
    if (!in.ok() || shape.rows < 1 || shape.elements % shape.rows != 0)
      return fail(Code::invalid_argument, "the state's tensor \"{}\" has no shape", key);
    Entry entry;
    entry.shape = shape;
    entry.loaded.assign(state.begin(), state.end());
    tensors.emplace(key, std::move(entry));
  }
  if (!in.ok() || !in.at_end()) return fail(Code::invalid_argument, "the state is not as long as its tensors need");
  return tensors;
}

Status TensorSet::load(std::span<const std::byte> bytes) {
  Result<Tensors> tensors = read(bytes);
  if (!tensors.is_ok()) return tensors.status();
  const std::lock_guard lock(mutex_);
  if (Status s = none_in_use(); !s.is_ok()) return s;
  tensors_ = tensors.take();
  return {};
}

Status TensorSet::reset(std::string_view key) {
  const std::lock_guard lock(mutex_);
  if (key.empty()) {
    if (Status s = none_in_use(); !s.is_ok()) return s;
    tensors_.clear();
    return {};
  }
  const auto found = tensors_.find(key);
  if (found == tensors_.end()) return fail(Code::invalid_argument, "key is \"{}\": no tensor of that name was reduced", key);
  if (found->second.in_use) return fail(Code::invalid_usage, "tensor \"{}\" is being reduced: wait for the call's end", key);
  tensors_.erase(found);
  return {};
}

std::string describe_all() {
  std::string text;
  for (const Kind& kind : kinds()) {
    text += fmt::format("{}: {}\n", kind.name, kind.about);
    for (const OptionSpec& each : kind.options) {
      const std::string range =
          each.words.empty() ? fmt::format("{:g} ({:g} to {:g})", each.value, each.low, each.high) : std::string(each.words);
      text += fmt::format("  {}={}  {}\n", each.name, range, each.about);
    }
  }
  return text;
}

}  // namespace shoal::compress
