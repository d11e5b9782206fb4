// SPDX-License-Identifier: Apache-2.0
#include "api/making.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "api/errors.h"
#include "core/signals.h"

namespace shoal::api {
namespace {

using Made = Result<std::unique_ptr<comm::Communicator>>;

Made make(const Making& making, const comm::Interrupted& interrupted) {
  try {
    return making.make(interrupted);
  } catch (const std::exception& error) {  // no memory, no thread
    return Status(Code::system_error, error.what());
  }
}

Status no_thread(const std::system_error& error) {
  return fail(Code::system_error, "a thread for a communicator in the making cannot be started: {}", error.what());
}

Status make_here(const Making& making) {
  Made made = make(making, {});
  if (!made.is_ok()) return made.status();
  if (*made == nullptr) return {};
  try {
    ncclComm_t handle = make_handle(making.config, true, making.device);
    settle(*handle, std::move(made));
    *making.out = handle;
  } catch (const std::bad_alloc&) {
    return fail(Code::system_error, "out of memory");
  }
  return {};
}

Status make_beside_each_other(const std::vector<Making>& all) {
  std::vector<Status> results(all.size());
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (std::size_t i = 1; i < all.size(); ++i) {
    const SignalsBlocked blocked;
    try {
      threads.emplace_back([&, i] { results[i] = make_here(all[i]); });
    } catch (const std::system_error& error) {
      results[i] = no_thread(error);
    }
  }
  results[0] = make_here(all[0]);
  for (std::thread& thread : threads) thread.join();
  const auto bad = std::ranges::find_if(results, [](const Status& status) { return !status.is_ok(); });
  return bad == results.end() ? Status() : *bad;
}

Status make_in_background(Making making) {
  if (making.for_none != nullptr) {
    const std::shared_ptr<device::Stream> stream = std::exchange(making.for_none, nullptr);
    stream->enqueue([making = std::move(making)] {
      if (const Made made = make(making, {}); !made.is_ok()) (void)report(making.function, made.status());
    });
    return {};
  }
  ncclComm_t handle = make_handle(making.config, false, making.device);
  const Result<Entered> starting = Entered::enter(handle, For::state);
  Result<Entered> entered = Entered::enter(handle, For::state);
  *making.out = handle;
  const SignalsBlocked blocked;
  try {
    handle->maker = std::thread([inside = entered.take(), making = std::move(making)] {
      ncclComm& mine = inside.handle();
      Made made = make(making, [&] { return mine.cancelled.load(); });
      if (!made.is_ok() && !mine.cancelled.load()) (void)report(making.function, made.status());
      settle(mine, std::move(made));
    });
  } catch (const std::system_error& error) {
    settle(*handle, no_thread(error));
  }
  return {};
}

}  // namespace

Result<bool> is_blocking(const ncclConfig_t& config) {
  const Result<Environment>& settings = environment();
  if (!settings.is_ok()) return settings.status();
  if (settings->comm_blocking >= 0) return settings->comm_blocking == 1;
  return config.blocking != 0;  // undefined: blocking
}

Status make_all(std::vector<Making> all) {
  const bool blocking = all.front().blocking;
  if (std::ranges::any_of(all, [&](const Making& each) { return each.blocking != blocking; }))
    return fail(Code::invalid_argument, "a group makes blocking and non-blocking communicators: they must be of one kind");
  for (const Making& each : all) *each.out = nullptr;
  for (const Making& each : all)
    if (each.issue) each.issue();
  if (blocking) return make_beside_each_other(all);
  for (Making& each : all)
    if (Status s = make_in_background(std::move(each)); !s.is_ok()) return s;
  return {Code::in_progress, "communicators are being made"};
}

}  // namespace shoal::api
