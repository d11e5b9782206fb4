// SPDX-License-Identifier: Apache-2.0
#include "train/data/fashion_mnist.h"

#include <unistd.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "train/data/gzip.h"
#include "train/error.h"

namespace shoal::train {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

// A folder of its own for one test, gone afterwards.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "shoal-train-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }

  void write(const std::string& name, const Bytes& bytes) const {
    const gzFile file = gzopen((path_ / name).c_str(), "wb");
    REQUIRE(file != nullptr);
    REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
    REQUIRE(gzclose(file) == Z_OK);
  }

 private:
  fs::path path_;
};

Bytes images(std::uint8_t count, std::uint8_t rows = 28, std::uint8_t columns = 28) {
  Bytes bytes{0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, rows, 0, 0, 0, columns};
  for (std::size_t i = 0; i < std::size_t{count} * rows * columns; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 251));
  return bytes;
}

Bytes labels(const Bytes& values) {
  Bytes bytes{0, 0, 8, 1, 0, 0, 0, static_cast<std::uint8_t>(values.size())};
  for (const std::uint8_t value : values) bytes.push_back(value);
  return bytes;
}

void write_good(const Folder& folder) {
  folder.write("train-images-idx3-ubyte.gz", images(3));
  folder.write("train-labels-idx1-ubyte.gz", labels({9, 0, 4}));
  folder.write("t10k-images-idx3-ubyte.gz", images(1));
  folder.write("t10k-labels-idx1-ubyte.gz", labels({7}));
}

TEST_CASE("fashion-mnist: four good files load, and samples gather in the order asked for") {
  const Folder folder;
  write_good(folder);
  FashionMnist data = load_fashion_mnist(folder.path());
  CHECK(data.train.count() == 3);
  CHECK(data.test.count() == 1);

  std::vector<float> pixels(2 * kPixels);
  Bytes kinds(2);
  data.train.gather(std::vector<std::uint32_t>{2, 0}, pixels, kinds);
  CHECK(kinds == Bytes{4, 9});
  CHECK(pixels[kPixels] == Approx(-0.2860 / 0.3530));  // the first pixel of sample 0 is black
  CHECK(pixels[0] == Approx((static_cast<double>(2 * kPixels % 251) / 255 - 0.2860) / 0.3530));  // of sample 2

  data.train.truncate(2);
  CHECK(data.train.count() == 2);
  data.train.truncate(100);
  CHECK(data.train.count() == 2);
}

TEST_CASE("fashion-mnist: a missing file is named with the Debian package") {
  const Folder folder;
  write_good(folder);
  fs::remove(folder.path() / "t10k-labels-idx1-ubyte.gz");
  CHECK_THROWS_WITH(load_fashion_mnist(folder.path()),
                    Contains("t10k-labels-idx1-ubyte.gz") && Contains("dataset-fashion-mnist"));
}

TEST_CASE("fashion-mnist: images of another size, labels out of range and unequal counts are refused") {
  const Folder folder;
  write_good(folder);
  folder.write("train-images-idx3-ubyte.gz", images(3, 28, 14));
  CHECK_THROWS_WITH(load_fashion_mnist(folder.path()), Contains("28 x 14"));
  folder.write("train-images-idx3-ubyte.gz", images(2));
  CHECK_THROWS_WITH(load_fashion_mnist(folder.path()), Contains("3 labels"));
  folder.write("train-images-idx3-ubyte.gz", images(3));
  folder.write("train-labels-idx1-ubyte.gz", labels({9, 10, 4}));
  CHECK_THROWS_WITH(load_fashion_mnist(folder.path()), Contains("label 10 of sample 1"));
}

TEST_CASE("gzip: a truncated file is damaged, not short") {
  const Folder folder;
  const fs::path file = folder.path() / "x.gz";
  folder.write("x.gz", images(10));
  CHECK(read_gzip(file, 1 << 20) == images(10));
  fs::resize_file(file, fs::file_size(file) - 9);
  CHECK_THROWS_WITH(read_gzip(file, 1 << 20), Contains("x.gz: damaged"));
}

TEST_CASE("gzip: more than the limit is refused") {
  const Folder folder;
  folder.write("zeros.gz", Bytes(std::size_t{3} << 20));
  CHECK(read_gzip(folder.path() / "zeros.gz", std::size_t{3} << 20).size() == std::size_t{3} << 20);
  CHECK_THROWS_WITH(read_gzip(folder.path() / "zeros.gz", (std::size_t{3} << 20) - 1), Contains("more than 3145727 bytes"));
}

}  // namespace
}  // namespace shoal::train
