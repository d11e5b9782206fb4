// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/transport.h"

#include "core/log.h"
#include "core/net_choice.h"
#include "transports/ucx/connection.h"

namespace shoal::transports {
namespace {

class NoConnection final : public link::Connection {
 public:
  explicit NoConnection(Status why) : why_(std::move(why)) {}
  Result<std::unique_ptr<link::Link>> progress() override { return why_; }
  link::Wakeup wakeup() const override { return {}; }

 private:
  Status why_;
};

}  // namespace

UcxTransport::UcxTransport() : open_([] { return ucx::open_library(); }) {}

bool UcxTransport::is_wanted() const { return wanted_ || wanted_net() == Net::ucx; }

const ucx::Api* UcxTransport::api() const {
  const std::lock_guard lock(mutex_);
  if (!api_) {
    api_ = open_();
    if (api_->is_ok())
      log::info(log::Subsystem::net, -1, "ucx: UCX {}", (*api_)->get_version_string());
    else
      log::info(log::Subsystem::net, -1, "ucx is not used: {}", api_->status().text());
  }
  return api_->is_ok() ? &**api_ : nullptr;
}

bool UcxTransport::reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const {
  return is_wanted() && !self.self.address.empty() && !peer.address.empty() && api() != nullptr;
}

Result<std::shared_ptr<ucx::Worker>> UcxTransport::worker_of(const link::Endpoint& self) {
  const ucx::Api* const library = api();
  if (library == nullptr) return fail(Code::system_error, "UCX is not here");
  const std::lock_guard lock(mutex_);
  std::erase_if(workers_, [](const auto& each) { return each.second.expired(); });
  const Owner owner{self.communicator, self.self.rank.value, self.doorbell};
  if (const auto found = workers_.find(owner); found != workers_.end())
    if (std::shared_ptr<ucx::Worker> worker = found->second.lock(); worker && worker->context().is_of_this_process())
      return worker;
  std::shared_ptr<ucx::Context> context = context_.lock();
  if (context && !context->is_of_this_process())
    return fail(Code::invalid_usage, "this process was forked from one that was using UCX, which works in neither after that");
  if (!context) {
    Result<std::shared_ptr<ucx::Context>> made = ucx::Context::create(*library);
    if (!made.is_ok()) return made.status();
    context_ = context = made.take();
  }
  Result<std::shared_ptr<ucx::Worker>> made = ucx::Worker::create(std::move(context));
  if (made.is_ok()) workers_[owner] = *made;
  return made;
}

std::unique_ptr<link::Connection> UcxTransport::connect(const link::Endpoint& self, const link::PeerIdentity& peer,
                                                        int /*channel*/, link::Descriptor stream, bool /*connecting*/) {
  Result<std::shared_ptr<ucx::Worker>> worker = worker_of(self);
  if (!worker.is_ok()) return std::make_unique<NoConnection>(worker.status());
  return std::make_unique<ucx::UcxConnection>(self, peer, std::move(stream), worker.take());
}

}  // namespace shoal::transports
