// SPDX-License-Identifier: Apache-2.0
// Checkpoint files: whatever cuts wrote them, any others read them; damage of any byte is told, by name.
#include "train/checkpoint_file.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>
#include <sstream>

#include "train/error.h"

namespace shoal::train {
namespace {

namespace fs = std::filesystem;

// A folder for one test.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "shoal-checkpoint-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

// One tensor of a model: a matrix, or a vector (of one row).
struct Whole {
  std::string name;
  std::size_t rows, columns;
  float base;

  std::vector<std::size_t> shape() const {
    return rows == 1 ? std::vector<std::size_t>{columns} : std::vector<std::size_t>{rows, columns};
  }
  std::size_t count() const { return rows * columns; }
  // Of values, first and second moment (0, 1, 2) at an index.
  float at(std::size_t what, std::size_t index) const {
    return base + 1000.0F * static_cast<float>(what) + static_cast<float>(index);
  }
};

const std::vector<Whole> kModel{{"table", 12, 8, 0}, {"bias", 1, 24, 10000}, {"matrix", 24, 12, 20000}};

enum class Cut { rows, columns, runs };

// What one of `ranks` ranks holds of the model, with memory of its own.
class Part {
 public:
  Part(Cut cut, std::size_t rank, std::size_t ranks, std::size_t moments) {
    for (const Whole& whole : kModel) {
      Piece piece{.name = whole.name, .shape = whole.shape()};
      std::size_t count = 0;
      if (cut == Cut::runs) {  // without regard to rows; the last ones may be empty
        const std::size_t each = (whole.count() + ranks - 1) / ranks + 1, begin = std::min(whole.count(), rank * each);
        piece.first_row = begin;
        count = std::min(whole.count(), begin + each) - begin;
      } else if (cut == Cut::rows && whole.rows > 1) {
        piece.columns = piece.columns_here = whole.columns;
        piece.first_row = rank * whole.rows / ranks;
        count = ((rank + 1) * whole.rows / ranks - piece.first_row) * whole.columns;
      } else {
        piece.columns = whole.columns;
        piece.first_column = rank * whole.columns / ranks;
        piece.columns_here = (rank + 1) * whole.columns / ranks - piece.first_column;
        count = piece.columns_here * whole.rows;
      }
      for (std::size_t what = 0; what <= moments; ++what) memory_.emplace_back(count);
      piece.values = memory_[memory_.size() - moments - 1];
      if (moments > 0) piece.first = memory_[memory_.size() - moments];
      if (moments > 1) piece.second = memory_.back();
      pieces_.push_back(piece);
    }
  }
  std::vector<Piece>& pieces() { return pieces_; }
  void fill() {
    for (std::size_t t = 0; t < kModel.size(); ++t) each(t, [&](float& value, float right) { value = right; });
  }
  std::size_t wrong() {
    std::size_t count = 0;
    for (std::size_t t = 0; t < kModel.size(); ++t) each(t, [&](float& value, float right) { count += value != right ? 1 : 0; });
    return count;
  }

 private:
  template <typename Body>
  void each(std::size_t t, Body&& body) {
    Piece& piece = pieces_[t];
    const std::array<std::span<float>, 3> spans{piece.values, piece.first, piece.second};
    for (std::size_t what = 0; what < spans.size(); ++what)
      for (std::size_t i = 0; i < spans[what].size(); ++i) body(spans[what][i], kModel[t].at(what, piece.index(i)));
  }

  std::vector<std::vector<float>> memory_;
  std::vector<Piece> pieces_;
};

std::size_t missing(const Filled& filled) {
  std::size_t count = 0;
  for (const auto& each : filled) count += static_cast<std::size_t>(std::ranges::count(each, false));
  return count;
}

// The error's text; empty: none.
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return {};
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string load_bytes(const std::string& bytes, std::span<Piece> pieces) {
  std::istringstream file(bytes);
  Filled filled = nothing_filled(pieces);
  return error_of([&] { load_stream(file, bytes.size(), "x.shoal", pieces, filled); });
}

}  // namespace

TEST_CASE("checkpoint: saved by 3 ranks, loaded by 1, 2 and 4, however both are cut") {
  const Cut saved_as = GENERATE(Cut::rows, Cut::columns, Cut::runs), loaded_as = GENERATE(Cut::rows, Cut::columns, Cut::runs);
  const std::size_t savers = GENERATE(1U, 3U), moments = GENERATE(0U, 1U, 2U);
  CAPTURE(saved_as, loaded_as, savers, moments);
  const Folder folder;
  for (std::size_t rank = 0; rank < savers; ++rank) {
    Part part(saved_as, rank, savers, moments);
    part.fill();
    write_file(folder.path / fmt::format("rank-{}.shoal", rank), part.pieces());
  }
  for (const std::size_t loaders : {1U, 2U, 4U})
    for (std::size_t rank = 0; rank < loaders; ++rank) {
      CAPTURE(loaders, rank);
      Part part(loaded_as, rank, loaders, moments);
      Filled filled = nothing_filled(part.pieces());
      for (std::size_t from = 0; from < savers; ++from)
        load_file(folder.path / fmt::format("rank-{}.shoal", from), part.pieces(), filled);
      CHECK(missing(filled) == 0);
      CHECK(part.wrong() == 0);
    }
}

TEST_CASE("checkpoint: what no file has is missing, though others were written twice") {
  const Folder folder;
  Part part(Cut::rows, 1, 3, 1);
  part.fill();
  write_file(folder.path / "a", part.pieces());
  Part whole(Cut::rows, 0, 1, 1);
  Filled filled = nothing_filled(whole.pieces());
  load_file(folder.path / "a", whole.pieces(), filled);
  load_file(folder.path / "a", whole.pieces(), filled);
  std::size_t there = 0;
  for (const Piece& each : part.pieces()) there += each.values.size();
  CHECK(missing(filled) == 12 * 8 + 24 + 24 * 12 - there);
}

TEST_CASE("checkpoint: without moments only values are read") {
  const Folder folder;
  Part part(Cut::runs, 0, 1, 2);
  part.fill();
  write_file(folder.path / "a", part.pieces());
  Part values(Cut::rows, 0, 1, 0);
  Filled filled = nothing_filled(values.pieces());
  load_file(folder.path / "a", values.pieces(), filled);
  CHECK(missing(filled) == 0);
  CHECK(values.wrong() == 0);
}

TEST_CASE("checkpoint: any byte that changes, and any that is missing or too many, is an error that names the file") {
  const Folder folder;
  Part part(Cut::columns, 0, 2, 1);
  part.fill();
  write_file(folder.path / "a", part.pieces());
  const std::string good = bytes_of(folder.path / "a");
  Part target(Cut::rows, 0, 1, 1);
  CHECK(load_bytes(good, target.pieces()).empty());
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(static_cast<unsigned char>(bad[i]) ^ static_cast<unsigned>(flip));
      const std::string error = load_bytes(bad, target.pieces());
      if (!error.starts_with("checkpoint x.shoal: damaged: ")) {
        CAPTURE(i, flip);
        CHECK(error == "checkpoint x.shoal: damaged: ...");
      }
    }
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string error = load_bytes(good.substr(0, size), target.pieces());
    if (!error.starts_with("checkpoint x.shoal: damaged: ")) {
      CAPTURE(size);
      CHECK(error == "checkpoint x.shoal: damaged: ...");
    }
  }
  CHECK(load_bytes(good + "x", target.pieces()) == "checkpoint x.shoal: damaged: 1 bytes too many");
  CHECK(load_bytes("", target.pieces()) == "checkpoint x.shoal: damaged: it does not begin with SHOALCK1");
}

TEST_CASE("checkpoint: numbers of a header are believed only as far as they fit") {
  // A header with its hash right, so that what it says is looked at.
  const auto said_of = [](const std::string& entry) {
    const std::string header = "[" + entry + "]";
    std::ostringstream file;
    const std::array<std::uint64_t, 2> length_and_hash{header.size(), header_hash(header)};
    file << kCheckpointMagic;
    file.write(reinterpret_cast<const char*>(length_and_hash.data()), sizeof length_and_hash);
    file << header << "12345678";
    Part target(Cut::rows, 0, 1, 0);
    return load_bytes(file.str(), target.pieces());
  };
  const auto entry = [](const std::string& shape, const std::string& columns, const std::string& first_row,
                        const std::string& first_column, const std::string& here, const std::string& count,
                        const std::string& spans) {
    return fmt::format(
        R"({{"name":"bias","shape":{},"columns":{},"first_row":{},"first_column":{},"columns_here":{},"count":{},"spans":{},"hash":"0000000000000000"}})",
        shape, columns, first_row, first_column, here, count, spans);
  };
  const std::string elsewhere = "checkpoint x.shoal: damaged: tensor bias is not where it says";
  const std::string most = "18446744073709551615";
  CHECK(said_of(entry("[24]", "24", "0", "0", "2", "2", "1")) ==
        "checkpoint x.shoal: damaged: tensor bias does not have its hash");
  CHECK(said_of(entry("[24]", "0", "0", "0", "0", "2", "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "24", "1", "0", "2", "2", "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "24", "0", "23", "2", "2", "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "24", most, "0", "2", "2", "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "24", "0", most, "2", "2", "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "24", "0", "0", most, most, "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "7", "0", "0", "2", "2", "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "24", "0", "0", "2", "1", "1")) == elsewhere);
  CHECK(said_of(entry("[24]", "24", "0", "0", "2", "2", "4")) == elsewhere);
  CHECK(said_of(entry("[" + most + ",3]", "1", "0", "0", "1", "2", "1")) == elsewhere);
  CHECK(said_of(entry("[4611686018427387904]", "1", "0", "0", "1", "4611686018427387904", "2")) ==
        "checkpoint x.shoal: damaged: tensor bias ends early");
  CHECK(said_of(entry("[24]", "24", "0", "0", "1", "1", "1")) == "checkpoint x.shoal: damaged: 4 bytes too many");
  CHECK(said_of(entry("[24]", "-24", "0", "0", "2", "2", "1")) == "checkpoint x.shoal: damaged: columns is no whole number");
  CHECK(said_of(entry("[1e300]", "24", "0", "0", "2", "2", "1")) == "checkpoint x.shoal: damaged: shape has no whole numbers");
  CHECK(said_of("17").starts_with("checkpoint x.shoal: damaged: "));
}

TEST_CASE("checkpoint: another model's and another optimiser's are refused, with both numbers") {
  const Folder folder;
  Part part(Cut::rows, 0, 1, 1);
  part.fill();
  write_file(folder.path / "a", part.pieces());
  const std::string good = bytes_of(folder.path / "a");
  Part other(Cut::rows, 0, 1, 1);
  other.pieces()[0].shape = {12, 9};
  CHECK(load_bytes(good, other.pieces()) == "checkpoint x.shoal: tensor table is 12 x 8 there and 12 x 9 in this model");
  Part adam(Cut::rows, 0, 1, 2);
  CHECK(load_bytes(good, adam.pieces()) == "checkpoint x.shoal: tensor table has 1 moments there, and this --optimizer keeps 2");
  Filled filled;
  CHECK(error_of([&] { load_file(folder.path / "b", adam.pieces(), filled); }) ==
        fmt::format("checkpoint {}: cannot be read", (folder.path / "b").string()));
}

}  // namespace shoal::train
