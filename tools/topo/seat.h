// SPDX-License-Identifier: Apache-2.0
// Where one rank of a job sits, and over what each pair of ranks talks. Value types; pure but for seat_here.
#pragma once

#include <string>
#include <vector>

#include "link/link.h"
#include "topo/host.h"

namespace shoal::topo_tool {

struct Seat {
  link::PeerIdentity identity;
  bool shm_disable = false, loopback_disable = false;  // rank 0's count
  std::vector<std::string> networks;                   // transports that this rank would reach another host over
  topo::Host host;
};

Seat seat_here(int rank);
std::string text_of(const Seat& seat);
Result<Seat> parse_seat(const std::string& text);

struct Way {
  std::string transport, why;
};
// As the library chooses: its first transport that reaches, of networks the first that both ends have.
Way way_between(const std::vector<Seat>& seats, std::size_t from, std::size_t to);

}  // namespace shoal::topo_tool
