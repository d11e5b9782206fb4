// SPDX-License-Identifier: Apache-2.0
// How a thread that drives some calls goes to sleep until one of them may move again.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "engine/drive.h"

namespace shoal::engine {

// Sleeps until something may have moved, at most `longest`. `still_nothing` is asked once after the doorbells are armed (a peer
// that publishes later will ring); false means: do not sleep.
void sleep_until_news(std::span<const Driven> calls, std::chrono::nanoseconds longest,
                      const std::function<bool()>& still_nothing);

}  // namespace shoal::engine
