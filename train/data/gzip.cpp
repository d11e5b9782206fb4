// SPDX-License-Identifier: Apache-2.0
#include "train/data/gzip.h"

#include <zlib.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "train/error.h"

namespace shoal::train {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzip>;

constexpr unsigned kPiece = 1U << 20;  // [bytes] inflated at a time

}  // namespace

std::vector<std::uint8_t> read_gzip(const std::filesystem::path& path, std::size_t limit) {
  errno = 0;
  const GzipFile file(gzopen(path.c_str(), "rb"));
  if (!file) throw failure(Exit::usage, "{}: {}", path.string(), std::generic_category().message(errno));

  std::vector<std::uint8_t> bytes;
  while (bytes.size() <= limit) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kPiece);
    const int got = gzread(file.get(), bytes.data() + before, kPiece);
    int code = Z_OK;
    const char* text = gzerror(file.get(), &code);
    // A file cut off in the middle reads as short, with Z_BUF_ERROR beside it.
    if (got < 0 || code != Z_OK) throw failure(Exit::usage, "{}: damaged after {} bytes: {}", path.string(), before, text);
    bytes.resize(before + static_cast<std::size_t>(got));
    if (got == 0) return bytes;
  }
  throw failure(Exit::usage, "{}: inflates to more than {} bytes", path.string(), limit);
}

}  // namespace shoal::train
