// SPDX-License-Identifier: Apache-2.0
// A server: takes the workers' messages in each one's order as the shard lets it, and answers. A message whose turn has not come
// stays in its link, and what the worker sent after it stays behind it: that is the flow control, and there is no queue to
// outgrow. Driven by the thread that calls serve().
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "ps/fabric.h"
#include "ps/shard.h"

namespace shoal::ps {

class Server final : private Actor {
 public:
  Server(std::unique_ptr<Fabric> fabric, const Own& own);

  // Returns when all workers have left, or with the group's failure. Once.
  Status serve();
  Fabric& fabric() { return *fabric_; }

 private:
  struct Answer {
    Header header;
    std::optional<Snapshot> values;  // of a reply; `header.first` and `left` are what is still to be sent
  };
  struct Client {
    std::deque<Answer> outgoing;
    Clock::time_point last_move;                     // either way
    std::optional<Clock::time_point> waiting_since;  // its next message has not had its turn
    std::size_t push_left = 0;                       // keys of the push under way that are still to come
    std::size_t push_next = 0;                       // the first of them
  };

  Result<bool> step() override;
  bool finished() override;
  Status overdue(Clock::time_point now, std::chrono::milliseconds timeout) override;

  Status receive(int worker, bool& moved);
  bool has_its_turn(int worker, const Header& header) const;
  Status take(int worker, const Header& header, std::span<const std::byte> values);
  Status take_push(int worker, const Header& header, std::span<const std::byte> values);
  bool send(int worker);
  bool send_answer(Rank to, Answer& answer);
  Status nonsense(int worker, const Header& header, std::size_t bytes) const;
  Client& client(int worker) { return clients_[static_cast<std::size_t>(worker)]; }

  const std::unique_ptr<Fabric> fabric_;
  const std::size_t width_;  // bytes of a key
  Shard shard_;
  std::vector<Client> clients_;  // by worker
};

}  // namespace shoal::ps
