// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/sender.h"

#include <array>

#include "core/expects.h"

namespace shoal::transports::ucx {
namespace {

constexpr std::size_t kLine = 64;  // a slot starts a cache line
// Up to here a message leaves although the peer's thread is elsewhere: a window of them fits into UCX's queue in shared memory
// (64 pieces of 8 KiB) and into a socket. Beyond, UCX chooses between pieces and rendezvous.
constexpr std::size_t kSurelyEager = 16 << 10;
// What fits into one entry of UCX's queue in shared memory (some 100 bytes) leaves something unsettled that later messages wait
// for.
constexpr std::size_t kGreeting = 512;

std::size_t lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

Sender::Sender(const Api& api, Bytes max_message, int credits)
    : api_(api),
      window_(credits),
      max_message_(max_message.value),
      stride_(lines(max_message_)),
      wire_(std::make_unique_for_overwrite<std::byte[]>(window_.size * stride_ + kLine)),
      slots_(window_.size) {
  for (Slot& each : slots_) each.owner = this;
  direct_.owner = greeting_.owner = this;
}

void Sender::open(ucp_ep_h endpoint, std::uint64_t peers_number) {
  endpoint_ = endpoint;
  peers_number_ = peers_number;
}

void Sender::greet() {
  static constexpr std::array<std::byte, kGreeting> kNothing{};
  post(greeting_, Kind::greeting, kNothing, {}, 0);
}

std::span<std::byte> Sender::acquire(Bytes n) {
  expects(n.value <= max_message_, "a message is at most max_message bytes");
  // An idle link keeps using the first slot, whose pages and cache lines are warm.
  if (under_way_ == 0) next_ = 0;
  refused_ = !has_room();
  if (refused_) return {};
  acquired_ = {memory(next_), n.value};
  return acquired_;
}

void Sender::commit(link::Tag tag, std::uint32_t released) {
  expects(acquired_.data() != nullptr, "commit follows an acquire that gave memory");
  Slot& slot = slots_[next_];
  if (++next_ == slots_.size()) next_ = 0;
  ++sent_;
  post(slot, Kind::eager, acquired_, tag, released);
  acquired_ = {};
}

bool Sender::send_direct(std::span<const std::byte> payload, link::Tag tag, std::uint32_t released) {
  expects(payload.size() <= max_message_, "a message is at most max_message bytes");
  if (direct_.busy) return false;
  post(direct_, Kind::direct, payload, tag, released);
  return true;
}

bool Sender::credit(std::uint32_t released) {
  const auto news = static_cast<std::int32_t>(released - released_);
  if (news <= 0) return true;  // older than what is known: it comes by two ways
  if (static_cast<std::uint32_t>(news) > sent_ - released_) return false;
  released_ = released;
  return true;
}

// User memory by rendezvous always: it is sent when the peer has it, so that there is never more than one with the peer.
void Sender::post(Slot& slot, Kind kind, std::span<const std::byte> payload, link::Tag tag, std::uint32_t released) {
  const std::uint32_t number = kind == Kind::greeting ? 0 : number_++;
  slot.header = {.link = peers_number_, .number = number, .released = released, .tag = tag.value, .kind = kind};
  slot.busy = unflushed_ = true;
  if (failure_ != UCS_OK) return;  // nothing is sent after one that was lost
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.cb.send = &Sender::on_sent;
  param.user_data = &slot;
  if (kind == Kind::direct && !payload.empty())
    param.flags = UCP_AM_SEND_FLAG_RNDV;
  else if (payload.size() <= kSurelyEager)
    param.flags = UCP_AM_SEND_FLAG_EAGER;
  void* const request =
      api_.am_send_nbx(endpoint_, kMessage, &slot.header, sizeof slot.header, payload.data(), payload.size(), &param);
  if (UCS_PTR_IS_ERR(request))
    failure_ = UCS_PTR_STATUS(request);
  else if (request == nullptr)
    slot.busy = false;
  else
    ++under_way_;
}

void Sender::on_sent(void* request, ucs_status_t status, void* slot) {
  Slot& sent = *static_cast<Slot*>(slot);
  Sender& self = *sent.owner;
  if (status == UCS_OK)
    sent.busy = false;
  else if (self.failure_ == UCS_OK)
    self.failure_ = status;
  --self.under_way_;
  self.api_.request_free(request);
}

// UCX's own flush would wait for the peer, which may be busy elsewhere. That UCX takes one more message shows that it has handed
// on what was before. What failed is as far out as it will ever be.
bool Sender::flushed() {
  if (failure_ != UCS_OK || is_acknowledged()) return true;
  if (under_way_ != 0) return false;
  if (!unflushed_) return true;
  post(greeting_, Kind::greeting, {}, {}, released_);
  unflushed_ = false;
  return under_way_ == 0;
}

void Sender::flush() {
  if (failure_ != UCS_OK || is_acknowledged()) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &Sender::on_flushed;
  param.user_data = this;
  void* const request = api_.ep_flush_nbx(endpoint_, &param);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) ++under_way_;
}

void Sender::on_flushed(void* request, ucs_status_t /*status*/, void* sender) {
  Sender& self = *static_cast<Sender*>(sender);
  --self.under_way_;
  self.api_.request_free(request);
}

}  // namespace shoal::transports::ucx
