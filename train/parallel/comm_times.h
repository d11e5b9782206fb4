// SPDX-License-Identifier: Apache-2.0
// Where the time of communication under computation went, as one rank saw it.
#pragma once

namespace shoal::train {

// Time on the stream includes waiting for peers that are not there yet.
struct CommTimes {
  double busy_ms = 0;     // the stream had something under way
  double exposed_ms = 0;  // the training thread waited
};

}  // namespace shoal::train
