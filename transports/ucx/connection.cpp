// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/connection.h"

#include <poll.h>
#include <sys/random.h>

#include <array>
#include <cstring>
#include <utility>

#include "transports/peer_status.h"
#include "transports/ucx/link.h"

namespace shoal::transports::ucx {
namespace {

// How long UCX may take to bring a greeting. A way that is silently shut must not hold the job up for as long as a call may wait.
constexpr std::chrono::seconds kPatience{20};

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
  }
  return number;
}

}  // namespace

UcxConnection::UcxConnection(const link::Endpoint& self, const link::PeerIdentity& peer, link::Descriptor stream,
                             std::shared_ptr<Worker> worker)
    : max_message_(self.max_message),
      credits_(self.credits),
      peer_(peer),
      stream_(std::move(stream)),
      worker_(std::move(worker)),
      lane_(std::make_unique<Lane>(*worker_, random_number(), self.max_message, self.credits)),
      reader_(offer()) {
  worker_->attach(*lane_);
  const Offer ours = offer();
  const auto bytes = std::as_bytes(std::span(&ours, 1));
  out_.assign(bytes.begin(), bytes.end());
  out_.insert(out_.end(), worker_->address().begin(), worker_->address().end());
}

UcxConnection::~UcxConnection() {
  if (lane_ != nullptr) worker_->bury(std::move(lane_), /*peer_lives=*/false);
}

Offer UcxConnection::offer() const {
  return {.credits = credits_,
          .max_message = max_message_.value,
          .link = lane_->number(),
          .address_bytes = static_cast<std::uint32_t>(worker_->address().size())};
}

Status UcxConnection::about_peer(const Status& cause) const {
  return peer_failure("ucx", peer_, "cannot be reached: {}", cause.text());
}

Result<std::unique_ptr<link::Link>> UcxConnection::progress() {
  if (Status written = write_out(); !written.is_ok()) return about_peer(written);
  if (!reader_.is_complete()) {
    if (Status read = read_offer(); !read.is_ok()) return about_peer(read);
    if (!reader_.is_complete()) return std::unique_ptr<link::Link>();
  }
  if (!opened_) {
    Result<std::shared_ptr<Path>> path = worker_->path_to(reader_.address());
    if (!path.is_ok()) return about_peer(path.status());
    lane_->open(path.take(), reader_.offer().link);
    opened_ = true;
    opened_at_ = Clock::now();
  }
  worker_->progress();
  if (const ucs_status_t failed = lane_->failure(); failed != UCS_OK)
    return about_peer({Code::remote_error, text_of(worker_->api(), failed)});
  if (lane_->is_greeted() && !said_ready_) {
    said_ready_ = true;
    out_.push_back(kReady);
    if (Status written = write_out(); !written.is_ok()) return about_peer(written);
  }
  if (Status read = read_ready(); !read.is_ok()) return about_peer(read);
  if (said_ready_ && is_ready_ && out_.empty()) {
    Result<link::Descriptor> poll = poll_all({worker_->descriptor(), worker_->busy_descriptor(), stream_.get()});
    if (!poll.is_ok()) return poll.status();
    return std::unique_ptr<link::Link>(
        std::make_unique<UcxLink>(max_message_, credits_, peer_, worker_, std::move(lane_), std::move(stream_), poll.take()));
  }
  if (Clock::now() - opened_at_ > kPatience)
    return about_peer({Code::timeout, fmt::format("nothing came through UCX in {} s", kPatience.count())});
  return std::unique_ptr<link::Link>();
}

Status UcxConnection::write_out() {
  if (out_.empty()) return {};
  const link::Transfer put = link::write_some(stream_.get(), out_);
  if (put.closed) return fail(Code::remote_error, "the stream is broken: {}", errno_text(put.error));
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(put.bytes));
  return {};
}

Status UcxConnection::read_offer() {
  std::array<std::byte, 4096> piece;
  while (!reader_.is_complete()) {
    const link::Transfer got = link::read_some(stream_.get(), std::span(piece).first(std::min(piece.size(), reader_.missing())));
    if (got.closed) return fail(Code::remote_error, "the stream ended within the offer ({} bytes missing)", reader_.missing());
    if (got.bytes == 0) return {};
    if (const Result<std::size_t> taken = reader_.take(std::span(piece).first(got.bytes)); !taken.is_ok()) return taken.status();
  }
  return {};
}

Status UcxConnection::read_ready() {
  if (is_ready_) return {};
  std::byte said{};
  const link::Transfer got = link::read_some(stream_.get(), std::span(&said, 1));
  if (got.closed) return fail(Code::remote_error, "it gave up before anything came through UCX");
  if (got.bytes == 0) return {};
  if (said != kReady)
    return fail(Code::remote_error, "sent {:#04x} where {:#04x} belongs", static_cast<unsigned>(said),
                static_cast<unsigned>(kReady));
  is_ready_ = true;
  return {};
}

link::Wakeup UcxConnection::wakeup() const {
  return {
      .descriptor = stream_.get(), .events = static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT)), .rings_doorbell = false};
}

}  // namespace shoal::transports::ucx
