// SPDX-License-Identifier: Apache-2.0
// Hosts as files, and trees of small files that look like a kernel's. For tests.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace shoal::testing {

inline std::string sample(const std::string& name) { return std::string(SHOAL_SAMPLES "/") + name; }

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr const char* kHostSamples[] = {"nvswitch8.json", "workstation4.xml", "dual_socket.json",
                                        "cloud_vm.json",  "mixed_a.xml",      "mixed_b.json"};

// A root folder that a test fills, and that goes with it.
class Tree {
 public:
  Tree() { std::filesystem::create_directories(root()); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { std::filesystem::remove_all(path_); }

  std::string root() const { return path_.string(); }
  void file(const std::string& path, const std::string& text) const {
    const std::filesystem::path where = path_.string() + path;
    std::filesystem::create_directories(where.parent_path());
    std::ofstream(where) << text << "\n";
  }
  // `to` as the kernel writes it: relative to the folder of the link, or, beginning with /, within the tree.
  void link(const std::string& path, const std::string& to) const {
    const std::filesystem::path where = path_.string() + path;
    std::filesystem::create_directories(where.parent_path());
    std::filesystem::create_symlink(to.starts_with('/') ? path_.string() + to : to, where);
  }

 private:
  static inline int made_ = 0;
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("shoal-tree-" + std::to_string(::getpid()) + "-" + std::to_string(++made_));
};

}  // namespace shoal::testing
