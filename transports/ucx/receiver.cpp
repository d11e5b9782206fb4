// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/receiver.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/expects.h"

namespace shoal::transports::ucx {
namespace {

constexpr std::size_t kLine = 64;

}  // namespace

Receiver::Receiver(const Worker& worker, Bytes max_message, int credits)
    : worker_(worker),
      max_message_(max_message.value),
      stride_((max_message_ + kLine - 1) / kLine * kLine),
      places_(CreditWindow(credits).size + 2),
      wire_(std::make_unique_for_overwrite<std::byte[]>(places_.size() * stride_ + kLine)) {
  for (Place& each : places_) each.owner = this;
}

ucs_status_t Receiver::refuse(std::string why) {
  if (violation_.empty()) violation_ = std::move(why);
  return UCS_OK;
}

ucs_status_t Receiver::take(const FrameHeader& header, void* data, std::size_t bytes, std::uint64_t how) {
  const std::uint32_t ahead = header.number - number_;
  if (ahead >= places_.size() || place(ahead).state != Place::State::empty)
    return refuse(fmt::format("sent message {} where {} is awaited", header.number, number_));
  if (bytes > max_message_)
    return refuse(fmt::format("announced a message of {} bytes where {} is the most", bytes, max_message_));
  if (header.kind != Kind::eager && header.kind != Kind::direct)
    return refuse(fmt::format("sent a message of kind {}", static_cast<std::uint32_t>(header.kind)));
  Place& into = place(ahead);
  into = {.owner = this,
          .state = Place::State::here,
          .kind = header.kind,
          .tag = header.tag,
          .bytes = bytes,
          .payload = memory(into)};
  if ((how & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    into.state = Place::State::announced;
    into.held = data;
    return UCS_INPROGRESS;
  }
  if (bytes == 0) return UCS_OK;
  if ((how & UCP_AM_RECV_ATTR_FLAG_DATA) != 0) {
    into.held = data;
    into.payload = static_cast<const std::byte*>(data);
    return UCS_INPROGRESS;
  }
  std::memcpy(memory(into), data, bytes);
  return UCS_OK;
}

void Receiver::move() {
  for (std::uint32_t ahead = 0; ahead < places_.size(); ++ahead) {
    Place& each = place(ahead);
    const bool waits_for_target = each.kind == Kind::direct && (ahead > 0 || target_.empty());
    if (each.state == Place::State::announced && !waits_for_target) fetch(each);
  }
}

void Receiver::fetch(Place& from) {
  const bool lands = &from == &place(0) && !target_.empty() && target_.size() >= from.bytes;
  std::byte* const into = lands ? target_.data() : memory(from);
  from.state = Place::State::fetching;
  from.payload = into;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &Receiver::on_fetched;
  param.user_data = &from;
  void* const announcement = std::exchange(from.held, nullptr);
  void* const request = worker_.api().am_recv_data_nbx(worker_.handle(), announcement, into, from.bytes, &param);
  if (UCS_PTR_IS_ERR(request))
    failure_ = UCS_PTR_STATUS(request);
  else if (request == nullptr)
    from.state = Place::State::here;
  else
    ++under_way_;
}

void Receiver::on_fetched(void* request, ucs_status_t status, std::size_t /*bytes*/, void* place) {
  Place& fetched = *static_cast<Place*>(place);
  Receiver& self = *fetched.owner;
  if (status == UCS_OK)
    fetched.state = Place::State::here;
  else if (self.failure_ == UCS_OK)
    self.failure_ = status;
  --self.under_way_;
  self.worker_.api().request_free(request);
}

const link::Message* Receiver::front() {
  Place& oldest = place(0);
  if (oldest.state == Place::State::announced) fetch(oldest);
  if (oldest.state != Place::State::here) return nullptr;
  message_ = {.payload = {oldest.payload, oldest.bytes}, .tag = {oldest.tag}};
  return &message_;
}

void Receiver::release() {
  Place& oldest = place(0);
  expects(oldest.state == Place::State::here, "release follows a front that gave a message");
  if (oldest.held != nullptr) worker_.api().am_data_release(worker_.handle(), std::exchange(oldest.held, nullptr));
  oldest.state = Place::State::empty;
  if (oldest.kind == Kind::eager) ++released_;
  ++number_;
  if (++head_ == places_.size()) head_ = 0;
  target_ = {};
}

void Receiver::expect(std::span<std::byte> target) {
  target_ = target;
  Place& oldest = place(0);
  if (oldest.state == Place::State::announced && !target.empty()) fetch(oldest);
}

void Receiver::drop() {
  for (Place& each : places_) {
    if (each.held != nullptr) worker_.api().am_data_release(worker_.handle(), std::exchange(each.held, nullptr));
    if (each.state != Place::State::fetching) each.state = Place::State::empty;
  }
}

}  // namespace shoal::transports::ucx
