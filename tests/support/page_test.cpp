// SPDX-License-Identifier: Apache-2.0
// The page on tests names files and the beginnings of their cases' names: all of them exist.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace {

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("page: every file and case that docs/testing.md names is there") {
  const std::filesystem::path root(SHOAL_SOURCE_DIR);
  std::istringstream page(read(root / "docs/testing.md"));
  const std::regex mention("`((?:\\w+/)+\\w+\\.cpp)`|\"([^\"]+)\"");
  int cases = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.empty() || line[0] != '|') continue;
    std::string file, source;
    for (std::sregex_iterator each(line.begin(), line.end(), mention), end; each != end; ++each) {
      if ((*each)[1].matched) {
        file = (*each)[1];
        source = read(root / "tests" / file);
        INFO(file);
        const bool is_there = !source.empty();
        CHECK(is_there);
      } else {
        INFO(file << ": " << (*each)[2]);
        const bool is_there = source.find("TEST_CASE(\"" + (*each)[2].str()) != std::string::npos;
        CHECK(is_there);
        ++cases;
      }
    }
  }
  CHECK(cases > 60);
}
