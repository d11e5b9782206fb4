// SPDX-License-Identifier: Apache-2.0
#include "comm/approach.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "comm/same_user.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kHandshakeTime = 5s;  // one attempt's: whoever holds the port and keeps silent is not whom we look for
constexpr auto kFirstPause = 5ms;
constexpr auto kLongestPause = 200ms;

// Waits for what `wakeup` names, in steps, so that a deadline is noticed.
void wait_for(const link::Wakeup& wakeup, const Deadline& deadline) {
  pollfd waiting{wakeup.descriptor, wakeup.events, 0};
  (void)poll(&waiting, 1, deadline.poll_ms(1s));
}

// Of one attempt.
Status too_late() { return fail(Code::timeout, "no answer"); }

Result<link::Descriptor> connect(const Approach& plan, const Deadline& deadline) {
  Result<link::Descriptor> stream = plan.local ? link::start_connect_local(plan.address) : link::start_connect_tcp(plan.address);
  if (!stream.is_ok()) return stream;
  while (true) {
    const Result<bool> connected = link::connect_finished(*stream, plan.address);
    if (!connected.is_ok()) return connected.status();
    if (*connected) break;
    if (deadline.passed()) return too_late();
    wait_for({stream->get(), POLLOUT, false}, deadline);
  }
  if (plan.local && !is_same_user(stream->get()))
    return fail(Code::remote_error, "local socket '{}' belongs to another user", plan.address);
  return stream;
}

Result<Channel> attempt(const Approach& plan, const Deadline& deadline) {
  Result<link::Descriptor> stream = connect(plan, deadline);
  if (!stream.is_ok()) return stream.status();
  link::Handshake handshake = link::Handshake::client(stream.take(), plan.key, plan.hello);
  const Deadline proof(kHandshakeTime);
  while (true) {
    const Result<bool> done = handshake.progress();
    if (!done.is_ok()) return done.status();
    if (*done) return Channel(std::move(handshake), Side::client, plan.max_payload);
    if (deadline.passed() || proof.passed()) return too_late();
    wait_for(handshake.wakeup(), deadline);
  }
}

// What fails here is not the other side's fault.
bool lacks_descriptors(const Status& why) {
  return why.text().ends_with(errno_text(EMFILE)) || why.text().ends_with(errno_text(ENFILE));
}

}  // namespace

Result<Channel> approach(const Approach& plan, const Deadline& deadline) {
  const Deadline patience(plan.patience);
  std::chrono::milliseconds pause = kFirstPause;
  Status last = too_late();
  while (true) {
    Result<Channel> reached = attempt(plan, deadline);
    if (reached.is_ok()) return reached;
    if (reached.status().code() != Code::timeout) last = reached.status();  // says more than silence
    if (deadline.passed())
      return fail(Code::timeout, "{} at {} was not reached within {} ms: {}", plan.whom, plan.address, plan.timeout.count(),
                  last.text());
    if (patience.passed())
      return fail(lacks_descriptors(last) ? Code::system_error : Code::remote_error, "{} at {} cannot be reached: {}", plan.whom, plan.address, last.text());
    std::this_thread::sleep_for(std::chrono::milliseconds(std::max(1, deadline.poll_ms(pause))));
    pause = std::min<std::chrono::milliseconds>(pause * 2, kLongestPause);
  }
}

}  // namespace shoal::comm
