// SPDX-License-Identifier: Apache-2.0
// A UCX link in the making: exchanges the workers' addresses, opens the path, and waits until a greeting has come through it each
// way, so that a way that UCX believes in and that does not carry leaves the pair to the next transport.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "link/link.h"
#include "transports/ucx/lane.h"
#include "transports/ucx/offer.h"
#include "transports/ucx/worker.h"

namespace shoal::transports::ucx {

class UcxConnection final : public link::Connection {
 public:
  UcxConnection(const link::Endpoint& self, const link::PeerIdentity& peer, link::Descriptor stream,
                std::shared_ptr<Worker> worker);
  UcxConnection(const UcxConnection&) = delete;
  UcxConnection& operator=(const UcxConnection&) = delete;
  ~UcxConnection() override;

  Result<std::unique_ptr<link::Link>> progress() override;
  link::Wakeup wakeup() const override;

 private:
  using Clock = std::chrono::steady_clock;

  Offer offer() const;
  Status write_out();
  Status read_offer();
  Status read_ready();
  Status about_peer(const Status& cause) const;

  Bytes max_message_;
  int credits_;
  link::PeerIdentity peer_;
  link::Descriptor stream_;
  std::shared_ptr<Worker> worker_;
  std::unique_ptr<Lane> lane_;
  OfferReader reader_;
  std::vector<std::byte> out_;  // still to be written
  Clock::time_point opened_at_{};
  bool opened_ = false, said_ready_ = false, is_ready_ = false;
};

}  // namespace shoal::transports::ucx
