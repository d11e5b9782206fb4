// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/error.h"

namespace shoal::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kLongestHeader = std::size_t{1} << 28;  // [bytes]
constexpr const char* kPrefix = "step-";

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw failure(Exit::usage, "checkpoint {}: damaged: {}", path.string(), what);
}

// An error of one rank is one of all: nobody waits for it, and no half of a checkpoint is taken for whole.
void agree(const Communicator& comm, const std::optional<Error>& mine) {
  std::vector<std::int64_t> failed{mine ? 1 : 0};
  comm.all_reduce(std::span(failed), Over::max);
  if (mine) throw *mine;
  if (failed.front() != 0) throw failure(Exit::usage, "checkpoint: another rank of {} failed", comm.seat().world);
}

template <typename Body>
void together(const Communicator& comm, Body&& body) {
  std::optional<Error> mine;
  try {
    body();
  } catch (const Error& error) {
    mine = error;
  } catch (const std::exception& error) {
    mine = failure(Exit::usage, "checkpoint: {}", error.what());
  }
  agree(comm, mine);
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

void write_file(const fs::path& path, std::span<const Piece> pieces) {
  json header = json::array();
  for (const Piece& each : pieces) header.push_back(describe(each));
  const std::string text = header.dump();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const auto length = static_cast<std::uint64_t>(text.size());
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const Piece& each : pieces)
    for (const std::span<float> part : stored(each))
      file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size_bytes()));
  if (!file.flush()) throw failure(Exit::usage, "checkpoint {}: cannot be written: {}", path.string(), std::strerror(errno));
}

// Which pieces no lower rank holds.
std::vector<Piece> mine_to_write(std::span<const Piece> pieces, const Communicator& comm) {
  std::vector<std::uint64_t> most{pieces.size()};
  comm.all_reduce(std::span(most), Over::max);
  std::vector<std::uint64_t> mine(most.front()), all(mine.size() * comm.seat().world);
  for (std::size_t i = 0; i < pieces.size(); ++i) mine[i] = place_key(pieces[i]);
  comm.all_gather<std::uint64_t>(mine, std::span(all));
  const auto before = std::span(all).first(mine.size() * comm.seat().rank);
  std::vector<Piece> chosen;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (std::ranges::find(before, mine[i]) == before.end() &&
        std::find(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(i), mine[i]) ==
            mine.begin() + static_cast<std::ptrdiff_t>(i))
      chosen.push_back(pieces[i]);
  return chosen;
}

std::optional<std::size_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  std::size_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [stop, wrong] = std::from_chars(name.data() + std::strlen(kPrefix), end, step);
  return wrong == std::errc() && stop == end ? std::optional(step) : std::nullopt;
}

struct Newest {
  std::size_t step = 0;
  fs::path folder;
};

Newest newest(const std::string& folder) {
  Newest found;
  std::error_code failed;
  for (const fs::directory_entry& each : fs::directory_iterator(folder, failed))
    if (const auto step = step_of(each.path()); step && *step > found.step) found = {*step, each.path()};
  return found;
}

// A piece as the file has it, its values still to be read.
struct Entry {
  Piece piece;
  std::size_t count = 0, spans = 0;
  std::string hash;
};

Entry entry_of(const json& text) {
  Entry entry;
  entry.piece.name = text.at("name").get<std::string>();
  entry.piece.shape = text.at("shape").get<std::vector<std::size_t>>();
  entry.piece.columns = text.at("columns").get<std::size_t>();
  entry.piece.first_row = text.at("first_row").get<std::size_t>();
  entry.piece.first_column = text.at("first_column").get<std::size_t>();
  entry.piece.columns_here = text.at("columns_here").get<std::size_t>();
  entry.count = text.at("count").get<std::size_t>();
  entry.spans = text.at("spans").get<std::size_t>();
  entry.hash = text.at("hash").get<std::string>();
  return entry;
}

std::string shape_text(const std::vector<std::size_t>& shape) { return fmt::format("{}", fmt::join(shape, " x ")); }

// Copies what two pieces of one tensor share; returns how many values of `mine` that is.
std::size_t copy_overlap(const Entry& entry, std::span<const float> data, Piece& mine) {
  // Where the file's values are in the whole tensor, looked up element by element: rectangles of different cuts meet.
  const Piece& theirs = entry.piece;
  std::size_t copied = 0;
  const std::vector<std::span<float>> spans = stored(mine);
  for (std::size_t i = 0; i < mine.values.size(); ++i) {
    const std::size_t at = mine.index(i), row = at / theirs.columns, column = at % theirs.columns;
    if (row < theirs.first_row || column < theirs.first_column || column >= theirs.first_column + theirs.columns_here) continue;
    const std::size_t j = (row - theirs.first_row) * theirs.columns_here + column - theirs.first_column;
    if (j >= entry.count) continue;
    for (std::size_t s = 0; s < spans.size(); ++s) spans[s][i] = s < entry.spans ? data[s * entry.count + j] : 0.0F;
    ++copied;
  }
  return copied;
}

}  // namespace

void save_checkpoint(const std::string& folder, std::size_t step, std::span<const Piece> pieces, const Communicator& comm) {
  const fs::path whole = fs::path(folder) / fmt::format("{}{}", kPrefix, step), partial = whole.string() + ".partial";
  const std::vector<Piece> mine = mine_to_write(pieces, comm);
  together(comm, [&] {
    if (comm.seat().rank != 0) return;
    fs::remove_all(partial);
    fs::create_directories(partial);
  });
  together(comm, [&] { write_file(partial / fmt::format("rank-{}.shoal", comm.seat().rank), mine); });
  together(comm, [&] {
    if (comm.seat().rank != 0) return;
    fs::remove_all(whole);
    fs::rename(partial, whole);
  });
}

void load_file(const fs::path& path, std::span<Piece> pieces, std::span<std::size_t> filled) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t length = 0;
  if (!file.read(reinterpret_cast<char*>(&length), sizeof length)) damaged(path, "no header");
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  if (failed || length > kLongestHeader || length + sizeof length > size)
    damaged(path, fmt::format("a header of {} bytes", length));
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) damaged(path, "the header ends early");
  const json header = json::parse(text, nullptr, false);
  if (!header.is_array()) damaged(path, "the header is no list");

  std::uintmax_t left = size - sizeof length - length;
  for (const json& each : header) {
    Entry entry;
    try {
      entry = entry_of(each);
    } catch (const json::exception& error) {
      damaged(path, error.what());
    }
    const Piece& piece = entry.piece;
    std::size_t elements_of_whole = 1;
    for (const std::size_t d : piece.shape)
      elements_of_whole = d != 0 && elements_of_whole > SIZE_MAX / d ? SIZE_MAX : elements_of_whole * d;
    if (piece.columns == 0 || piece.columns_here == 0 || piece.first_column > piece.columns ||
        piece.columns_here > piece.columns - piece.first_column || entry.spans == 0 || entry.spans > 3 ||
        entry.count > left / (sizeof(float) * entry.spans) || entry.count > elements_of_whole ||
        piece.first_row > elements_of_whole || entry.hash.size() != 16)
      damaged(path, fmt::format("tensor {}", piece.name));
    std::vector<float> data(entry.count * entry.spans);
    if (!data.empty() &&
        !file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size() * sizeof(float))))
      damaged(path, fmt::format("tensor {} ends early", piece.name));
    left -= data.size() * sizeof(float);
    std::uint64_t hash = 0;
    for (std::size_t s = 0; s < entry.spans; ++s)
      hash = hash * 31 + hash_bits(std::span(data).subspan(s * entry.count, entry.count));
    if (fmt::format("{:016x}", hash) != entry.hash) damaged(path, fmt::format("tensor {} does not have its hash", piece.name));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].name != piece.name) continue;
      if (pieces[i].shape != piece.shape)
        throw failure(Exit::usage, "checkpoint {}: tensor {} is {} there and {} in this model", path.string(), piece.name,
                      shape_text(piece.shape), shape_text(pieces[i].shape));
      filled[i] += copy_overlap(entry, data, pieces[i]);
    }
  }
}

std::size_t load_newest_checkpoint(const std::string& folder, std::span<Piece> pieces, const Communicator& comm) {
  // The same on all ranks, also while one is being written: rank 0's view counts.
  std::vector<std::uint64_t> step{newest(folder).step};
  comm.broadcast(std::span(step), 0);
  if (step.front() == 0) return 0;
  const fs::path from = fs::path(folder) / fmt::format("{}{}", kPrefix, step.front());
  together(comm, [&] {
    std::vector<std::size_t> filled(pieces.size());
    std::vector<fs::path> files;
    for (const fs::directory_entry& each : fs::directory_iterator(from))
      if (each.path().extension() == ".shoal") files.push_back(each.path());
    std::ranges::sort(files);
    for (const fs::path& each : files) load_file(each, pieces, filled);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (filled[i] < pieces[i].values.size())
        throw failure(Exit::usage,
                      "checkpoint {}: has {} of the {} values of {} that rank {} needs: it is another model's, or not complete",
                      from.string(), filled[i], pieces[i].values.size(), pieces[i].name, comm.seat().rank);
  });
  return step.front();
}

std::size_t load_newest_checkpoint(const std::string& folder, std::vector<Piece> pieces, const Communicator& comm) {
  return load_newest_checkpoint(folder, std::span(pieces), comm);
}

}  // namespace shoal::train
