// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/link.h"

#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/peer_status.h"

namespace shoal::transports::ucx {
namespace {

// What a peer sent before it ended comes by another way than the news of its end, and may come later.
constexpr std::chrono::milliseconds kLastWords{200};
constexpr int kLooksAtOnce = 64;

}  // namespace

Result<link::Descriptor> poll_all(std::initializer_list<int> descriptors) {
  link::Descriptor all(::epoll_create1(EPOLL_CLOEXEC));
  if (!all.is_open()) return fail(Code::system_error, "epoll_create1: {}", errno_text(errno));
  for (const int each : descriptors) {
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.fd = each}};
    if (::epoll_ctl(all.get(), EPOLL_CTL_ADD, each, &event) != 0)
      return fail(Code::system_error, "epoll_ctl of descriptor {}: {}", each, errno_text(errno));
  }
  return all;
}

UcxLink::UcxLink(Bytes max_message, int credits, const link::PeerIdentity& peer, std::shared_ptr<Worker> worker,
                 std::unique_ptr<Lane> lane, link::Descriptor stream, link::Descriptor poll)
    : worker_(std::move(worker)),
      lane_(std::move(lane)),
      peer_(peer),
      max_message_(max_message),
      slack_(CreditWindow(credits).slack),
      stream_(std::move(stream)),
      poll_(std::move(poll)) {}

UcxLink::~UcxLink() { worker_->bury(std::move(lane_), !ended_); }

void UcxLink::release() {
  lane_->receiver().release();
  if (owes()) tell();
}

void UcxLink::progress() {
  worker_->progress();
  if (lane_->sender().is_refused()) hear();
  if (owes()) tell();
}

bool UcxLink::flushed() { return lane_->sender().flushed() && (!owes() || ended_); }

void UcxLink::tell() {
  if (ended_) return;
  const std::uint32_t released = lane_->receiver().released();
  const link::Transfer put = link::write_some(stream_.get(), std::as_bytes(std::span(&released, 1)));
  if (put.closed) return note_end(put.error);
  // Four bytes fit, or none do: what is on the stream and unread is bounded by the credits.
  if (put.bytes == sizeof released) told_ = released;
}

void UcxLink::hear() const {
  while (!ended_) {
    const link::Transfer got = link::read_some(stream_.get(), std::span(heard_).subspan(heard_bytes_));
    if (got.closed) return note_end(got.error);
    if (got.bytes == 0) return;
    heard_bytes_ += got.bytes;
    if (heard_bytes_ < heard_.size()) continue;
    heard_bytes_ = 0;
    std::uint32_t released = 0;
    std::memcpy(&released, heard_.data(), sizeof released);
    if (!lane_->sender().credit(released))
      lane_->receiver().refuse(fmt::format("says that it has released {} messages, more than it was sent", released));
  }
}

// The end would wake every sleeper from here on.
void UcxLink::note_end(int error) const {
  ended_ = true;
  error_ = error;
  ended_at_ = Clock::now();
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, stream_.get(), nullptr);
}

Status UcxLink::health() {
  hear();
  // What came whole before the end is still to be delivered, unless the caller waits to send what can never go.
  for (int look = 0; look < kLooksAtOnce && lane_->receiver().front() == nullptr; ++look) worker_->progress();
  const bool here = lane_->receiver().front() != nullptr;
  const bool broken = !lane_->receiver().violation().empty() || lane_->failure() != UCS_OK;
  const bool over = broken || (ended_ && Clock::now() - ended_at_ >= kLastWords);
  if (!over || (here && !lane_->sender().is_starving())) return {};
  return why_ended();
}

Status UcxLink::why_ended() const {
  if (const std::string& violation = lane_->receiver().violation(); !violation.empty())
    return peer_failure(transport(), peer_, "{}", violation);
  if (error_ != 0) return peer_failure(transport(), peer_, "left or died: {}", errno_text(error_));
  if (ended_) return peer_failure(transport(), peer_, "closed the connection");
  return peer_failure(transport(), peer_, "left or died: {}", text_of(worker_->api(), lane_->failure()));
}

// UCX wants to be asked before each sleep.
link::Wakeup UcxLink::wakeup() const {
  hear();
  worker_->arm();
  return {.descriptor = poll_.get(), .events = POLLIN, .rings_doorbell = false};
}

}  // namespace shoal::transports::ucx
