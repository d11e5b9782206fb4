// SPDX-License-Identifier: Apache-2.0
#include "engine/foreign_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::engine {
namespace {

// Opens the owner's file by its number there: needs no connection, and works wherever the owner's processes may be looked at.
link::Mapping open_block(pid_t pid, const OfferedPart& part) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, part.file);
  const link::Descriptor file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0 || facts.st_ino != part.inode) return {};
  Result<link::Mapping> mapped = link::map_memory_file("shoal-memory", file, {part.size});
  return mapped.is_ok() ? mapped.take() : link::Mapping();
}

}  // namespace

void ForeignMemory::look_at(Rank owner, std::uint64_t frees) {
  Owner& of = owners_[static_cast<std::size_t>(owner.value)];
  if (of.frees != frees) of.blocks.clear();
  of.frees = frees;
}

std::byte* ForeignMemory::map(Rank owner, pid_t pid, const OfferedPart& part, std::size_t bytes) {
  Owner& of = owners_[static_cast<std::size_t>(owner.value)];
  auto found = std::ranges::find(of.blocks, part.number, &Block::number);
  if (found == of.blocks.end()) {
    link::Mapping mapping = open_block(pid, part);
    if (mapping.memory().empty()) return nullptr;
    found = of.blocks.insert(of.blocks.end(), Block{part.number, std::move(mapping)});
  }
  const std::span<std::byte> memory = found->mapping.memory();
  if (part.offset > memory.size() || bytes > memory.size() - part.offset) return nullptr;
  return memory.data() + part.offset;
}

}  // namespace shoal::engine
