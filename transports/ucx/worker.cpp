// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/worker.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "core/log.h"
#include "transports/ucx/lane.h"

namespace shoal::transports::ucx {
namespace {

// Closing is this rank's own affair and takes microseconds; a wait that should never end is ended here.
constexpr std::chrono::seconds kLongestClose{1};
// Where hardware carries the last messages it needs microseconds and us, but not the peer; else they need neither.
constexpr std::chrono::milliseconds kLongestFarewell{50};

// Threads that UCX starts take no signals: those are for the program's own.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Path::~Path() {
  if (endpoint_ != nullptr) worker_.close(endpoint_, std::move(failure_));
}

Worker::Worker(std::shared_ptr<Context> context) : context_(std::move(context)), patience_(kLongestFarewell) {}

Result<std::shared_ptr<Worker>> Worker::create(std::shared_ptr<Context> context) {
  std::shared_ptr<Worker> worker(new Worker(std::move(context)));
  if (Status opened = worker->open(); !opened.is_ok()) return opened;
  return worker;
}

Status Worker::open() {
  const auto failed = [this](const char* what, ucs_status_t why) {
    return fail(Code::system_error, "{}: {}", what, text_of(api(), why));
  };
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  busy_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!busy_.is_open()) return fail(Code::system_error, "eventfd: {}", errno_text(errno));
  const WithoutSignals quiet;
  if (const ucs_status_t made = api().worker_create(context_->handle(), &params, &handle_); made != UCS_OK) {
    handle_ = nullptr;
    return failed("ucp_worker_create", made);
  }
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessage;
  handler.cb = &Worker::on_message;
  handler.arg = this;
  if (const ucs_status_t set = api().worker_set_am_recv_handler(handle_, &handler); set != UCS_OK)
    return failed("ucp_worker_set_am_recv_handler", set);
  if (const ucs_status_t got = api().worker_get_efd(handle_, &descriptor_); got != UCS_OK)
    return failed("ucp_worker_get_efd", got);
  if (const ucs_status_t got = api().worker_get_address(handle_, &address_, &address_bytes_); got != UCS_OK) {
    address_ = nullptr;
    return failed("ucp_worker_get_address", got);
  }
  return {};
}

Worker::~Worker() {
  if (handle_ == nullptr) return;
  if (!context_->is_of_this_process()) {  // a child's copy: nothing in it can be used, or taken apart
    for (auto& lane : buried_) (void)lane.release();
    return;
  }
  for (auto& lane : buried_) lane->leave_path();
  if (address_ != nullptr) api().worker_release_address(handle_, address_);
  api().worker_destroy(handle_);
}

Result<std::shared_ptr<Path>> Worker::path_to(std::span<const std::byte> address) {
  std::string key(reinterpret_cast<const char*>(address.data()), address.size());
  if (const auto found = paths_.find(key); found != paths_.end()) {
    if (std::shared_ptr<Path> path = found->second.lock()) return path;
    paths_.erase(found);
  }
  auto path = std::make_shared<Path>(*this);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(key.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &Worker::on_error;
  params.err_handler.arg = path->failure_.get();
  const WithoutSignals quiet;
  if (const ucs_status_t made = api().ep_create(handle_, &params, &path->endpoint_); made != UCS_OK) {
    path->endpoint_ = nullptr;
    return fail(Code::system_error, "ucp_ep_create: {}; UCX_TLS and UCX_NET_DEVICES must allow a way between the two hosts",
                text_of(api(), made));
  }
  paths_.emplace(std::move(key), path);
  return path;
}

void Worker::close(ucp_ep_h endpoint, std::unique_ptr<ucs_status_t> failure) {
  if (!context_->is_of_this_process()) {
    (void)failure.release();
    return;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* const request = api().ep_close_nbx(endpoint, &param);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  const auto until = std::chrono::steady_clock::now() + kLongestClose;
  while (api().request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < until)
    api().worker_progress(handle_);
  if (api().request_check_status(request) == UCS_INPROGRESS) unclosed_.push_back(std::move(failure));
  api().request_free(request);
}

void Worker::arm() {
  if (api().worker_arm(handle_) == UCS_OK || is_busy_) return;
  const std::uint64_t one = 1;
  is_busy_ = ::write(busy_.get(), &one, sizeof one) == sizeof one;
}

void Worker::progress() {
  if (is_busy_) {
    std::uint64_t count = 0;
    is_busy_ = ::read(busy_.get(), &count, sizeof count) != sizeof count;
  }
  (void)api().worker_progress(handle_);
  if (!moving_.empty()) {
    moved_.swap(moving_);
    for (Lane* lane : moved_) lane->move();
    moved_.clear();
  }
  if (!buried_.empty()) reap();
}

void Worker::attach(Lane& lane) { lanes_[lane.number()] = &lane; }

void Worker::bury(std::unique_ptr<Lane> lane, bool peer_lives) {
  lanes_.erase(lane->number());
  std::erase(moving_, lane.get());
  if (context_->is_of_this_process()) {
    lane->drop();
    if (peer_lives) await_arrival(*lane);
  }
  buried_.push_back(std::move(lane));
  reap();
}

void Worker::await_arrival(Lane& lane) {
  lane.sender().flush();
  const auto start = std::chrono::steady_clock::now();
  const auto until = start + patience_;
  auto now = start;
  while (!lane.sender().is_idle() && now < until) {
    (void)api().worker_progress(handle_);
    now = std::chrono::steady_clock::now();
  }
  patience_ -= now - start;
}

void Worker::reap() {
  std::erase_if(buried_, [](const std::unique_ptr<Lane>& lane) { return lane->is_idle(); });
}

ucs_status_t Worker::on_message(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                                const ucp_am_recv_param_t* how) {
  FrameHeader frame;
  if (header_bytes != sizeof frame) return UCS_OK;
  std::memcpy(&frame, header, sizeof frame);
  auto& lanes = static_cast<Worker*>(self)->lanes_;
  const auto lane = lanes.find(frame.link);
  if (lane == lanes.end()) return UCS_OK;  // a link that is no more, or a stranger
  return lane->second->take(frame, data, bytes, how->recv_attr);
}

void Worker::on_error(void* failure, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  *static_cast<ucs_status_t*>(failure) = status;
}

}  // namespace shoal::transports::ucx
