// SPDX-License-Identifier: Apache-2.0
// The wires of a cluster, in virtual time. A message passes a few shared resources (ports, NICs, up-links, a bus), cut-through:
// it goes on to the next as soon as its head is out of the one before. Each serves messages in the order in which their heads
// come, and is taken for bytes / bandwidth by each. One thread.
//
// With a period, only ranks 0..period-1 exist, and stand for all others: see symmetry.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/simulator/cluster.h"
#include "plan/simulator/link_table.h"

namespace shoal::plan {

enum class LinkClass : std::uint8_t { within, leaf, spine };  // in a host, through one leaf switch, through several
inline constexpr std::size_t kLinkClasses = 3;
std::string_view name_of(LinkClass link_class);

class Fabric {
 public:
  Fabric(const Cluster& cluster, World world, std::int32_t period);

  // A message on its way.
  struct Flight {
    std::int32_t from = 0;    // < period
    std::int32_t to = 0;      // in the whole world
    std::uint64_t bytes = 0;  // 0: a signal, which waits behind others but lets nobody wait
    std::int32_t hop = 0;     // resources behind it
    double tail_s = 0;        // when its last byte is out of the last resource
  };
  // Takes the flight, whose head is at its next resource now, through that. Returns true and when the head is at the next one, or
  // false and when the whole message is there.
  struct Passage {
    bool on_its_way;
    double at_s;
  };
  Passage pass(Flight& flight, double now_s);

  // When bytes of `from` that `to` reads in its memory, from now on, are there; the whole way at once.
  double read(std::int32_t from, std::int32_t to, std::uint64_t bytes, double now_s);

  LinkClass class_of(std::int32_t from, std::int32_t to) const;
  double credit_s(std::int32_t from, std::int32_t to) const;
  // Whether the next resource belongs to the sender's end (else to the receiver's).
  bool at_sender(const Flight& flight) const;

  struct Use {
    std::string name;  // "host 3 NIC 0 out"
    std::uint64_t bytes = 0;
    double busy_s = 0;
  };
  // The busiest resources, most first; ties in the order of ranks and hosts.
  std::vector<Use> busiest(std::size_t most) const;
  const std::vector<Place>& places() const { return places_; }

 private:
  struct Resource {
    double seconds_per_byte = 0;
    double free_s = 0;
    double busy_s = 0;
    std::uint64_t bytes = 0;
  };
  struct Hop {
    Resource* resource = nullptr;
    double delay_s = 0;  // from here to the next, or to the receiver
  };
  struct Route {
    std::array<Hop, 4> hops;
    std::int32_t length = 0;
    void add(Resource* resource, double delay_s) { hops[static_cast<std::size_t>(length++)] = {resource, delay_s}; }
  };
  Route route(const Flight& flight);
  const Place& place(std::int32_t rank) const { return places_[static_cast<std::size_t>(rank)]; }
  Resource* pair(std::int32_t from, std::int32_t to);
  void describe_all(std::vector<Use>& uses) const;

  const Cluster& cluster_;
  std::int32_t period_;
  std::vector<Place> places_;
  std::vector<Resource> port_out_, port_in_, bus_, nic_out_, nic_in_, up_, down_;
  std::vector<Resource> pairs_;
  std::vector<std::array<std::int32_t, 2>> pair_ends_;
  LinkTable pair_numbers_;
};

}  // namespace shoal::plan
