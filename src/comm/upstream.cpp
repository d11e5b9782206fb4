// SPDX-License-Identifier: Apache-2.0
#include "comm/upstream.h"

#include <algorithm>
#include <utility>

#include "comm/root_service.h"
#include "link/interfaces.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kRefusals = 3s;                 // the maker of the first id listens before anyone has it
constexpr std::size_t kRecordsAMessage = 256;  // some 400 KiB at most

Approach plan_for(const UniqueId& first) {
  Approach plan;
  plan.whom = "the process that made the first unique id";
  for (const std::string& each : first.addresses)
    for (std::string& scoped : link::with_own_scopes(each, "")) plan.addresses.push_back(std::move(scoped));
  plan.key = bootstrap_key(first.key);
  plan.hello = std::as_bytes(std::span(kBootstrapHello));
  plan.max_payload = kMaxFromRoot;
  plan.patience = kRefusals;
  return plan;
}

}  // namespace

Upstream::Upstream(const UniqueId& first, std::string here)
    : address_(first.address()), here_(std::move(here)), key_(first.key), approaching_(plan_for(first), Deadline(0ms)) {}

void Upstream::forward(const Record& record) {
  Record passed_on = record;
  passed_on.settings.clear();  // of rank 0, who is the first service's own
  passed_on.upstream.clear();
  records_.push_back(std::move(passed_on));
}

void Upstream::send(const Message& message) {
  flush();
  if (channel_)
    channel_->send(message);
  else
    messages_.push_back(message);
}

void Upstream::flush() {
  if (!channel_) return;
  for (std::size_t sent = 0; sent < records_.size(); sent += kRecordsAMessage) {
    const auto begin = records_.begin() + static_cast<std::ptrdiff_t>(sent);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kRecordsAMessage, records_.size() - sent));
    channel_->send(Records{here_, {begin, begin + count}});
  }
  records_.clear();
  for (const Message& message : std::exchange(messages_, {})) channel_->send(message);
  channel_->flush();
}

Status Upstream::progress(std::vector<Message>& heard) {
  if (ended_) return {};
  if (!channel_) {
    Result<std::optional<Channel>> reached = approaching_.progress();
    if (!reached.is_ok()) return end(reached.status());
    if (!reached->has_value()) return {};
    channel_ = std::move(**reached);
  }
  flush();
  channel_->progress();
  while (true) {
    const Result<std::optional<std::vector<std::byte>>> payload = channel_->next();
    if (!payload.is_ok()) return end(payload.status());
    if (!payload->has_value()) break;
    Result<Message> message = decode(**payload);
    if (!message.is_ok()) return end(message.status());
    left_ |= std::holds_alternative<Bye>(*message);
    heard.push_back(message.take());
  }
  if (!channel_->closed()) return {};
  ended_ = true;
  if (left_) return {};
  return fail(Code::remote_error, "the process that made the first unique id, at {}, died", address_);
}

Status Upstream::end(const Status& why) {
  ended_ = true;
  return why;
}

void Upstream::add_to(std::vector<pollfd>& polled) const {
  if (ended_) return;
  if (!channel_) return approaching_.add_to(polled);
  const link::Wakeup wakeup = channel_->wakeup();
  polled.push_back({wakeup.descriptor, wakeup.events, 0});
}

}  // namespace shoal::comm
