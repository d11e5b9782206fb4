// SPDX-License-Identifier: Apache-2.0
// Field case FC-20: whoever else connects to any port of a job. In a network of its own, so that all that listens is the job's.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "network/hosts.h"
#include "network/rounds.h"

using namespace testing;

namespace {

// Ports that something listens at in this network namespace.
std::vector<std::uint16_t> listening_ports() {
  std::vector<std::uint16_t> ports;
  std::ifstream table("/proc/thread-self/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state;
    fields >> number >> local >> remote >> state;
    constexpr const char* kListen = "0A";
    if (state == kListen) ports.push_back(static_cast<std::uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
  }
  return ports;
}

int connected(std::uint16_t port) {
  const int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(stream, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return stream;
  close(stream);
  return -1;
}

// (a) resets, (b) a few bytes, (c) noise, (d) silence, (e) the server's own greeting and then garbage. `kept`: the silent ones.
void molest(std::uint16_t port, int kind, std::vector<int>& kept) {
  const int stream = connected(port);
  if (stream < 0) return;
  std::array<char, 400> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + 11);
  const linger at_once{1, 0};
  if (kind == 0) setsockopt(stream, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  if (kind == 1) (void)!send(stream, bytes.data(), 3, MSG_NOSIGNAL);
  if (kind == 2) (void)!send(stream, bytes.data(), 64, MSG_NOSIGNAL);
  if (kind == 4) {
    timeval patience{0, 20'000};
    setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)!recv(stream, bytes.data(), 16, 0);
    (void)!send(stream, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  if (kind == 3 && kept.size() < 200)
    kept.push_back(stream);
  else
    close(stream);
}

}  // namespace

TEST_CASE("FC-20: strangers at every port of a job change nothing in a hundred rounds, and leave no descriptor") {
  if (!why_no_hosts().empty()) {
    WARN("SKIP: no network namespace: " << why_no_hosts());
    return;
  }
  constexpr int kRounds = 100;
  constexpr int kOver = 60, kVisits = 61;  // notes
  const std::string wrong = with_hosts(80, [&]() -> std::string {
    IdBoard board;
    const pid_t stranger = fork();
    if (stranger == 0) {
      std::vector<int> kept;
      for (int kind = 0; board.note_of(kOver) == 0 && getppid() != 1; kind = (kind + 1) % 5) {
        for (const std::uint16_t port : listening_ports()) {
          molest(port, kind, kept);
          board.note(kVisits, board.note_of(kVisits) + 1);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      _exit(0);
    }
    const std::string result = as_processes(4, transport_variables("tcp"), 70, [&](const Ranks& who) -> std::string {
      Holdings early;
      for (int round = 1; round <= kRounds; ++round) {
        if (std::string failed = one_round(board, who, round); !failed.empty()) return failed;
        if (round == 5) early = settled();
      }
      board.note(kOver, 1);  // the last visits end, and leave nothing
      return grown(early, settled());
    });
    board.note(kOver, 1);  // also where a rank failed
    waitpid(stranger, nullptr, 0);
    return result + (board.note_of(kVisits) < 100 ? "hardly any stranger came" : "");
  });
  CHECK(wrong == "");
}
