// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "train/error.h"

namespace shoal::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kLongestHeader = std::size_t{1} << 28;  // [bytes]

[[noreturn]] void damaged(const std::string& file, const std::string& what) {
  throw failure(Exit::usage, "checkpoint {}: damaged: {}", file, what);
}

// The spans of a piece that are stored, in the file's order.
std::vector<std::span<float>> stored(const Piece& piece) {
  std::vector<std::span<float>> all{piece.values};
  if (!piece.first.empty()) all.push_back(piece.first);
  if (!piece.second.empty()) all.push_back(piece.second);
  return all;
}

std::uint64_t hash_of(const Piece& piece) {
  std::uint64_t hash = 0;
  for (const std::span<float> each : stored(piece)) hash = hash * 31 + hash_bits(each);
  return hash;
}

json describe(const Piece& piece) {
  return {{"name", piece.name},
          {"shape", piece.shape},
          {"columns", piece.columns},
          {"first_row", piece.first_row},
          {"first_column", piece.first_column},
          {"columns_here", piece.columns_here},
          {"count", piece.values.size()},
          {"spans", stored(piece).size()},
          {"hash", fmt::format("{:016x}", hash_of(piece))}};
}

// A piece as the file has it, its values still to be read.
struct Entry {
  Piece piece;
  std::size_t count = 0, spans = 0;
  std::string hash;
};

std::size_t number(const json& text, const char* key) {
  const json& value = text.at(key);
  if (!value.is_number_unsigned()) throw std::invalid_argument(fmt::format("{} is no whole number", key));
  return value.get<std::size_t>();
}

Entry entry_of(const json& text) {
  Entry entry;
  entry.piece.name = text.at("name").get<std::string>();
  for (const json& each : text.at("shape")) {
    if (!each.is_number_unsigned()) throw std::invalid_argument("shape has no whole numbers");
    entry.piece.shape.push_back(each.get<std::size_t>());
  }
  entry.piece.columns = number(text, "columns");
  entry.piece.first_row = number(text, "first_row");
  entry.piece.first_column = number(text, "first_column");
  entry.piece.columns_here = number(text, "columns_here");
  entry.count = number(text, "count");
  entry.spans = number(text, "spans");
  entry.hash = text.at("hash").get<std::string>();
  return entry;
}

// Elements of a tensor; SIZE_MAX for more than there can be.
std::size_t elements_of(const std::vector<std::size_t>& shape) {
  std::size_t all = 1;
  for (const std::size_t d : shape)
    if (__builtin_mul_overflow(all, d, &all)) return SIZE_MAX;
  return all;
}

// Whether it is a rectangle of its tensor, with as many values as it says.
bool fits(const Entry& entry) {
  const Piece& piece = entry.piece;
  const std::size_t all = elements_of(piece.shape);
  if (all == SIZE_MAX || piece.columns == 0 || piece.columns_here == 0 || all % piece.columns != 0) return false;
  if (piece.columns_here > piece.columns || piece.first_column > piece.columns - piece.columns_here) return false;
  if (entry.count % piece.columns_here != 0 || entry.spans == 0 || entry.spans > 3 || entry.hash.size() != 16) return false;
  const std::size_t rows = all / piece.columns, rows_here = entry.count / piece.columns_here;
  return rows_here <= rows && piece.first_row <= rows - rows_here;
}

std::string shape_text(const std::vector<std::size_t>& shape) { return fmt::format("{}", fmt::join(shape, " x ")); }

// A rectangle as what it is in memory: `number` runs of consecutive elements of the whole tensor, `stride` apart.
struct Runs {
  std::size_t start, length, stride, number;

  std::size_t begin(std::size_t run) const { return start + run * stride; }
};
Runs runs_of(const Piece& piece, std::size_t count) {
  const std::size_t start = piece.first_row * piece.columns + piece.first_column;
  if (piece.columns_here == piece.columns || count == 0) return {start, count, count, count == 0 ? 0U : 1U};
  return {start, piece.columns_here, piece.columns, count / piece.columns_here};
}

// Copies what two pieces of one tensor share, a run at a time.
void copy_overlap(const Entry& entry, std::span<const float> data, const Piece& mine, std::vector<bool>& filled) {
  const Runs from = runs_of(entry.piece, entry.count), to = runs_of(mine, mine.values.size());
  if (from.number == 0) return;
  const std::vector<std::span<float>> spans = stored(mine);
  for (std::size_t r = 0; r < to.number; ++r) {
    const std::size_t begin = to.begin(r), end = begin + to.length;
    // The first run of theirs that ends behind `begin`.
    const std::size_t first = begin < from.start + from.length ? 0 : (begin - from.start - from.length) / from.stride + 1;
    for (std::size_t f = first; f < from.number && from.begin(f) < end; ++f) {
      const std::size_t shared = std::max(begin, from.begin(f)), until = std::min(end, from.begin(f) + from.length);
      if (shared >= until) continue;
      const std::size_t at = r * to.length + shared - begin, there = f * from.length + shared - from.begin(f),
                        count = until - shared;
      for (std::size_t s = 0; s < spans.size(); ++s)
        std::ranges::copy(data.subspan(s * entry.count + there, count), spans[s].begin() + static_cast<std::ptrdiff_t>(at));
      std::fill_n(filled.begin() + static_cast<std::ptrdiff_t>(at), count, true);
    }
  }
}

// The list of entries, each in place and within the file.
std::vector<Entry> read_header(std::istream& file, std::uintmax_t size, const std::string& name) {
  std::array<char, 8> magic{};
  std::array<std::uint64_t, 2> length_and_hash{};
  constexpr std::size_t kBefore = sizeof magic + sizeof length_and_hash;
  if (!file.read(magic.data(), magic.size()) || std::string_view(magic.data(), magic.size()) != kCheckpointMagic)
    damaged(name, fmt::format("it does not begin with {}", kCheckpointMagic));
  if (!file.read(reinterpret_cast<char*>(length_and_hash.data()), sizeof length_and_hash)) damaged(name, "no header");
  const auto [length, hash] = length_and_hash;
  if (length > kLongestHeader || length + kBefore > size)
    damaged(name, fmt::format("a header of {} bytes in a file of {}", length, size));
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) damaged(name, "the header ends early");
  if (header_hash(text) != hash) damaged(name, "the header does not have its hash");
  const json header = json::parse(text, nullptr, false);
  if (!header.is_array()) damaged(name, "the header is no list");
  std::uintmax_t left = size - kBefore - length;
  std::vector<Entry> entries;
  for (const json& each : header) {
    try {
      entries.push_back(entry_of(each));
    } catch (const std::exception& error) {
      damaged(name, error.what());
    }
    const Entry& entry = entries.back();
    if (!fits(entry)) damaged(name, fmt::format("tensor {} is not where it says", entry.piece.name));
    if (entry.count > left / (sizeof(float) * entry.spans)) damaged(name, fmt::format("tensor {} ends early", entry.piece.name));
    left -= sizeof(float) * entry.spans * entry.count;
  }
  if (left != 0) damaged(name, fmt::format("{} bytes too many", left));
  return entries;
}

}  // namespace

void write_file(const fs::path& path, std::span<const Piece> pieces) {
  json header = json::array();
  for (const Piece& each : pieces) header.push_back(describe(each));
  const std::string text = header.dump();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const std::array<std::uint64_t, 2> length_and_hash{text.size(), header_hash(text)};
  file << kCheckpointMagic;
  file.write(reinterpret_cast<const char*>(length_and_hash.data()), sizeof length_and_hash);
  file << text;
  for (const Piece& each : pieces)
    for (const std::span<float> part : stored(each))
      file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size_bytes()));
  if (!file.flush()) throw failure(Exit::usage, "checkpoint {}: cannot be written: {}", path.string(), std::strerror(errno));
}

std::uint64_t header_hash(std::string_view header) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : header) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Filled nothing_filled(std::span<const Piece> pieces) {
  Filled filled;
  for (const Piece& each : pieces) filled.emplace_back(each.values.size());
  return filled;
}

void load_stream(std::istream& file, std::uintmax_t size, const std::string& name, std::span<Piece> pieces, Filled& filled) {
  const std::vector<Entry> entries = read_header(file, size, name);
  for (const Entry& entry : entries)
    for (const Piece& mine : pieces) {
      if (mine.name != entry.piece.name) continue;
      if (mine.shape != entry.piece.shape)
        throw failure(Exit::usage, "checkpoint {}: tensor {} is {} there and {} in this model", name, mine.name,
                      shape_text(entry.piece.shape), shape_text(mine.shape));
      const std::size_t moments = stored(mine).size() - 1;
      if (entry.spans - 1 < moments)
        throw failure(Exit::usage, "checkpoint {}: tensor {} has {} moments there, and this --optimizer keeps {}", name,
                      mine.name, entry.spans - 1, moments);
    }
  for (const Entry& entry : entries) {
    std::vector<float> data(entry.count * entry.spans);
    if (!data.empty() &&
        !file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size() * sizeof(float))))
      damaged(name, fmt::format("tensor {} ends early", entry.piece.name));
    std::uint64_t hash = 0;
    for (std::size_t s = 0; s < entry.spans; ++s)
      hash = hash * 31 + hash_bits(std::span(data).subspan(s * entry.count, entry.count));
    if (fmt::format("{:016x}", hash) != entry.hash)
      damaged(name, fmt::format("tensor {} does not have its hash", entry.piece.name));
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i].name == entry.piece.name) copy_overlap(entry, data, pieces[i], filled[i]);
  }
}

void load_file(const fs::path& path, std::span<Piece> pieces, Filled& filled) {
  std::ifstream file(path, std::ios::binary);
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  if (!file || failed) throw failure(Exit::usage, "checkpoint {}: cannot be read", path.string());
  load_stream(file, size, path.string(), pieces, filled);
}

}  // namespace shoal::train
