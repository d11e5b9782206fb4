// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "train/checkpoint_file.h"
#include "train/error.h"

namespace shoal::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "step-";

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
    if (!pieces[i].values.empty() && std::ranges::find(before, mine[i]) == before.end() &&
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

std::size_t load_newest_checkpoint(const std::string& folder, std::span<Piece> pieces, const Communicator& comm) {
  // The same on all ranks, also while one is being written: rank 0's view counts.
  std::vector<std::uint64_t> step{newest(folder).step};
  comm.broadcast(std::span(step), 0);
  if (step.front() == 0) return 0;
  const fs::path from = fs::path(folder) / fmt::format("{}{}", kPrefix, step.front());
  together(comm, [&] {
    Filled filled = nothing_filled(pieces);
    std::vector<fs::path> files;
    for (const fs::directory_entry& each : fs::directory_iterator(from))
      if (each.path().extension() == ".shoal") files.push_back(each.path());
    std::ranges::sort(files);
    for (const fs::path& each : files) load_file(each, pieces, filled);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (const auto there = static_cast<std::size_t>(std::ranges::count(filled[i], true)); there < filled[i].size())
        throw failure(Exit::usage,
                      "checkpoint {}: has {} of the {} values of {} that rank {} needs: it is another model's, or not complete",
                      from.string(), there, filled[i].size(), pieces[i].name, comm.seat().rank);
  });
  return step.front();
}

std::size_t load_newest_checkpoint(const std::string& folder, std::vector<Piece> pieces, const Communicator& comm) {
  return load_newest_checkpoint(folder, std::span(pieces), comm);
}

}  // namespace shoal::train
