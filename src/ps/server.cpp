// SPDX-License-Identifier: Apache-2.0
#include "ps/server.h"

#include <algorithm>
#include <utility>

namespace shoal::ps {
namespace {

// Of one worker before the next is looked at.
constexpr int kMessagesInARow = 16;

}  // namespace

Server::Server(std::unique_ptr<Fabric> fabric, const Own& own)
    : fabric_(std::move(fabric)),
      width_(element_bytes(fabric_->config().type)),
      shard_(fabric_->config(), fabric_->config().server_of(fabric_->rank()), own),
      clients_(static_cast<std::size_t>(fabric_->config().workers)) {}

Status Server::serve() {
  for (Client& each : clients_) each.last_move = Clock::now();
  try {
    return fabric_->drive(*this);
  } catch (const std::exception& error) {
    return fabric_->note_failure(fail(Code::internal_error, "rank {}: {}", fabric_->rank().value, error.what()));
  }
}

Result<bool> Server::step() {
  bool moved = false;
  for (int worker = 0; worker < static_cast<int>(clients_.size()); ++worker) {
    bool this_one = false;
    if (Status s = receive(worker, this_one); !s.is_ok()) return s;
    this_one |= send(worker);
    if (this_one) client(worker).last_move = Clock::now();
    moved |= this_one;
  }
  return moved;
}

bool Server::finished() {
  return shard_.all_have_left() &&
         std::all_of(clients_.begin(), clients_.end(), [](const Client& each) { return each.outgoing.empty(); });
}

Status Server::receive(int worker, bool& moved) {
  const Rank from{worker};
  Client& sender = client(worker);
  for (int i = 0; i < kMessagesInARow; ++i) {
    const link::Message* message = fabric_->front(from);
    if (message == nullptr) {
      sender.waiting_since.reset();
      break;
    }
    const std::optional<Header> header = read_header(*message);
    if (!header) return nonsense(worker, {}, message->payload.size());
    if (!has_its_turn(worker, *header)) {
      if (!sender.waiting_since) sender.waiting_since = Clock::now();
      break;
    }
    sender.waiting_since.reset();
    if (Status s = take(worker, *header, message->payload.subspan(kHeader)); !s.is_ok()) return s;
    fabric_->release(from);
    moved = true;
  }
  fabric_->listen(from, !sender.waiting_since);
  return {};
}

bool Server::has_its_turn(int worker, const Header& header) const {
  if (header.kind == Kind::push) return shard_.may_take(worker, Wish::push);
  if (header.kind == Kind::pull) return shard_.may_take(worker, Wish::pull);
  return true;
}

Status Server::take(int worker, const Header& header, std::span<const std::byte> values) {
  if (header.kind != Kind::leave && header.clock != shard_.clock(worker)) return nonsense(worker, header, values.size());
  switch (header.kind) {
    case Kind::push: return take_push(worker, header, values);
    case Kind::pull: {
      const KeyRange keys{header.first, header.left}, held = shard_.range();
      if (!values.empty() || keys.first < held.first || keys.first > held.end() || keys.count > held.end() - keys.first) break;
      Header reply = header;
      reply.kind = Kind::reply;
      reply.clock = shard_.slowest_clock();
      client(worker).outgoing.push_back({reply, shard_.pull(keys)});
      return {};
    }
    case Kind::tick: return shard_.tick(worker);
    case Kind::leave: fabric_->part_from({worker}); return shard_.leave(worker);
    case Kind::ack:
    case Kind::reply: break;
  }
  return nonsense(worker, header, values.size());
}

Status Server::take_push(int worker, const Header& header, std::span<const std::byte> values) {
  Client& sender = client(worker);
  const KeyRange piece{header.first, values.size() / width_}, held = shard_.range();
  const bool inside = piece.first >= held.first && piece.first <= held.end() && piece.count <= held.end() - piece.first &&
                      header.left <= held.end() - piece.end();
  const bool continues =
      sender.push_left == 0 || (sender.push_next == piece.first && sender.push_left == piece.count + header.left);
  if (values.size() % width_ != 0 || piece.count == 0 || !inside || !continues) return nonsense(worker, header, values.size());
  sender.push_left = header.left;
  sender.push_next = piece.end();
  if (Status s = shard_.push(worker, piece, values, header.left); !s.is_ok()) return s;
  if (header.left == 0) sender.outgoing.push_back({{.kind = Kind::ack, .request = header.request, .clock = header.clock}, {}});
  return {};
}

bool Server::send(int worker) {
  std::deque<Answer>& outgoing = client(worker).outgoing;
  bool moved = false;
  while (!outgoing.empty() && send_answer({worker}, outgoing.front())) {
    moved = true;
    if (outgoing.front().header.left == 0) outgoing.pop_front();
  }
  return moved;
}

bool Server::send_answer(Rank to, Answer& answer) {
  if (!answer.values) return fabric_->send(to, answer.header);
  Header& rest = answer.header;
  const KeyRange part{rest.first, std::min<std::size_t>(rest.left, (fabric_->max_message().value - kHeader) / width_)};
  Header header = rest;
  header.left -= part.count;
  const bool sent =
      fabric_->send(to, header, part.count * width_, [&](std::span<std::byte> payload) { answer.values->copy(part, payload); });
  if (sent) {
    rest.first = part.end();
    rest.left = header.left;
  }
  return sent;
}

Status Server::nonsense(int worker, const Header& header, std::size_t bytes) const {
  return {Code::internal_error,
          fmt::format("rank {}: {} sent a message that does not fit: kind {}, keys from {} on, {} left, clock {}, {} bytes",
                      fabric_->rank().value, fabric_->describe({worker}), static_cast<std::uint32_t>(header.kind), header.first,
                      header.left, header.clock, bytes),
          Rank{worker}};
}

// Somebody waits, or does not take what it asked for; and whoever is to blame has been silent for just as long.
Status Server::overdue(Clock::time_point now, std::chrono::milliseconds timeout) {
  const std::optional<int> slowest = shard_.slowest_worker();
  for (int worker = 0; worker < static_cast<int>(clients_.size()); ++worker) {
    const Client& each = client(worker);
    const bool stuck = !each.outgoing.empty() && now - each.last_move >= timeout;
    if (stuck)
      return {Code::timeout,
              fmt::format("rank {}: {} has taken no answer for {:.1f} s; SHOAL_TIMEOUT_MS sets how long to wait",
                          fabric_->rank().value, fabric_->describe({worker}),
                          std::chrono::duration<double>(now - each.last_move).count()),
              Rank{worker}};
    if (!each.waiting_since || now - *each.waiting_since < timeout || !slowest) continue;
    const auto silence = now - client(*slowest).last_move;
    if (silence < timeout) continue;
    return {Code::timeout,
            fmt::format("rank {}: rank {} at clock {} waits for {}, which is at clock {} and has sent nothing for {:.1f} s; "
                        "SHOAL_TIMEOUT_MS sets how long to wait",
                        fabric_->rank().value, worker, shard_.clock(worker), fabric_->describe({*slowest}),
                        shard_.clock(*slowest), std::chrono::duration<double>(silence).count()),
            Rank{*slowest}};
  }
  return {};
}

}  // namespace shoal::ps
