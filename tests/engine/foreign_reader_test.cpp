// SPDX-License-Identifier: Apache-2.0
// Reading another process: what proves it, and every way in which it can fail.
#include "engine/foreign_reader.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

using namespace shoal;
using namespace shoal::engine;

namespace {

// A child that waits to be ended, with this process's memory as it is now.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      pause();
      _exit(0);
    }
  }
  ~Child() { end(); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("foreign reader: another process's memory, as that process has it") {
  std::array<char, 12> text = {"there"};
  Child child;
  std::strcpy(text.data(), "here");
  ForeignReader reader({getpid(), child.pid()});
  std::array<char, 12> read{};
  const auto from = reinterpret_cast<const std::byte*>(text.data());
  REQUIRE(reader.read({1}, reinterpret_cast<std::byte*>(read.data()), from, read.size()) == ForeignReader::Outcome::done);
  CHECK(std::string(read.data()) == "there");
  CHECK(reader.read({1}, nullptr, nullptr, 0) == ForeignReader::Outcome::done);
}

TEST_CASE("foreign reader: a proof holds in its own process only") {
  ForeignReader reader({getpid()});
  const ForeignReader::Proof proof = reader.own_proof();
  CHECK(reader.proves({0}, proof));
  CHECK(reader.own_proof().number == proof.number);
  CHECK_FALSE(reader.proves({0}, {proof.address, proof.number + 1}));
  CHECK_FALSE(reader.proves({0}, {8, proof.number}));

  std::uint64_t number = 1;
  const Child child;
  number = 2;  // the child's is still 1
  const ForeignReader of_child({child.pid()});
  CHECK_FALSE(of_child.proves({0}, {reinterpret_cast<std::uintptr_t>(&number), 2}));
  CHECK(of_child.proves({0}, {reinterpret_cast<std::uintptr_t>(&number), 1}));
}

TEST_CASE("foreign reader: memory that is none, and a process that is gone") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const two = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(two != MAP_FAILED);
  REQUIRE(mprotect(static_cast<std::byte*>(two) + page, page, PROT_NONE) == 0);
  Child child;
  const ForeignReader reader({child.pid()});
  std::vector<std::byte> to(2 * page);
  const auto* const from = static_cast<const std::byte*>(two);
  CHECK(reader.read({0}, to.data(), from, page) == ForeignReader::Outcome::done);
  CHECK(reader.read({0}, to.data(), from, page + 1) == ForeignReader::Outcome::unreadable);
  CHECK(reader.read({0}, to.data(), nullptr, 1) == ForeignReader::Outcome::unreadable);
  child.end();
  const ForeignReader late({2147483000});
  CHECK(late.read({0}, to.data(), from, 1) == ForeignReader::Outcome::gone);
  munmap(two, 2 * page);
}
