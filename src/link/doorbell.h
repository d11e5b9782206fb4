// SPDX-License-Identifier: Apache-2.0
// What a waiting rank sleeps on: one futex word that every peer rings after it has put something into a link or taken something
// out. Lives in memory that the waiter and its peers map (one page a rank, see DoorbellPage), or in plain memory of one process.
//
// Protocol. The waiter: ticket = arm(); look once more at everything it waits for; sleep(ticket, timeout) or disarm(). The peer:
// publish with a releasing store; ring(). Either the waiter's last look sees what was published, or ring() sees the waiter armed:
// no wake-up is lost, and ring() costs one load while nobody sleeps. For that a full fence must lie between the two accesses of
// each side. A waiter that sleeps rarely runs it for both (RemoteFence), since on the peer's side it would cost as much as all
// the rest of a small message; one that sleeps often asks its peers to fence.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "core/status.h"
#include "link/memory_file.h"
#include "link/remote_fence.h"
#include "link/socket.h"

namespace shoal::link {

class Doorbell {
 public:
  Doorbell() = default;
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  // Peer: wakes the waiter if it sleeps or is about to. Must follow the store that published the news. Any thread.
  void ring() {
    order();
    if (armed_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }
  // Peer: what it stored before is seen by a waiter that it does not see armed, or asking, after.
  void order() const {
    if (peers_fence_.load(std::memory_order_relaxed) != 0 || !RemoteFence::takes_part())
      std::atomic_thread_fence(std::memory_order_seq_cst);
    else
      std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // Waiter: one thread at a time per doorbell.
  std::uint32_t arm();
  void disarm() { armed_.store(0, std::memory_order_relaxed); }
  // Returns on a ring since arm(), at the timeout, or early for no reason; disarms. False at the timeout.
  bool sleep(std::uint32_t ticket, std::chrono::nanoseconds timeout);

  // For waiting on several at once (futex_waitv): the word and the value that means "nothing yet".
  const std::atomic<std::uint32_t>& word() const { return rings_; }

 private:
  void wake();
  void decide_who_fences();

  std::atomic<std::uint32_t> rings_{0};  // the futex word; counts rings while armed
  std::atomic<std::uint32_t> armed_{0};
  std::atomic<std::uint32_t> peers_fence_{1};  // the waiter sleeps often, or cannot fence for them
  // The waiter's own.
  std::uint32_t sleeps_ = 0;
  std::uint64_t since_ = 0;  // ticks
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// One page of shared memory that starts with a Doorbell. The waiter creates it and hands descriptor() to peers in other
// processes; they map the same page. Owned by an endpoint (its own page) or by a link (the peer's). Move-only; the doorbell stays
// where it is when the page object moves.
class DoorbellPage {
 public:
  static Result<DoorbellPage> create();
  // A peer's page; refused unless it is a memory file of exactly one page that cannot shrink.
  static Result<DoorbellPage> map(const Descriptor& file);

  Doorbell& doorbell() const { return *doorbell_; }
  int descriptor() const { return file_.get(); }  // -1 for a peer's page

 private:
  DoorbellPage(Mapping page, Descriptor file, Doorbell* doorbell)
      : page_(std::move(page)), file_(std::move(file)), doorbell_(doorbell) {}

  Mapping page_;
  Descriptor file_;
  Doorbell* doorbell_;  // at the start of page_
};

}  // namespace shoal::link
