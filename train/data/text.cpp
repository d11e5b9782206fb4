// SPDX-License-Identifier: Apache-2.0
#include "train/data/text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "train/error.h"

namespace shoal::train {
namespace {

namespace fs = std::filesystem;

// Of a folder: no indices (.dat), no second names (.u8 links to the same text).
std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& each : fs::directory_iterator(path, failed))
    if (each.is_regular_file(failed) && !each.is_symlink(failed) && each.path().extension() != ".dat")
      files.push_back(each.path());
  if (failed || files.empty())
    throw failure(Exit::usage, "text {}: {}", path.string(), failed ? failed.message() : "an empty folder");
  std::ranges::sort(files);
  return files;
}

void add_sequence(std::span<const Token> text, TextSample& sample) {
  sample.inputs.insert(sample.inputs.end(), text.begin(), text.end() - 1);
  sample.targets.insert(sample.targets.end(), text.begin() + 1, text.end());
}

}  // namespace

Text::Text(const std::string& path, std::size_t length) : length_(length) {
  for (const fs::path& each : files_of(path)) {
    std::ifstream file(each, std::ios::binary);
    if (!file) throw failure(Exit::usage, "text {}: cannot be read; --text names another file or folder of files", each.string());
    train_.insert(train_.end(), std::istreambuf_iterator<char>(file), {});
  }
  const std::size_t all = train_.size(), last = all / 10;
  if (length == 0 || last < length + 1)
    throw failure(Exit::usage, "text {}: {} bytes, of which a tenth is for validation, are too few for sequences of {} tokens",
                  path, all, length);
  validation_.assign(train_.end() - static_cast<std::ptrdiff_t>(last), train_.end());
  train_.resize(all - last);
}

TextSample Text::batch(std::size_t sequences, std::uint64_t seed, std::size_t step) const {
  std::mt19937_64 engine(seed * 0x9e3779b97f4a7c15 + step);
  TextSample sample{.sequences = sequences, .length = length_};
  for (std::size_t s = 0; s < sequences; ++s)
    add_sequence(std::span(train_).subspan(engine() % (train_.size() - length_), length_ + 1), sample);
  return sample;
}

TextSample Text::validation(std::size_t first, std::size_t sequences) const {
  TextSample sample{.sequences = sequences, .length = length_};
  for (std::size_t s = first; s < first + sequences; ++s)
    add_sequence(std::span(validation_).subspan(s * length_, length_ + 1), sample);
  return sample;
}

}  // namespace shoal::train
