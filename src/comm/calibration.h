// SPDX-License-Identifier: Apache-2.0
// What links and processors of a job were measured to do: the file that SHOAL_CALIBRATION names, which shoal-perf --calibrate
// writes. The tuner prices plans with it in place of the transports' own numbers. Value type.
//
//   # a comment
//   within.transport = shm          what joined ranks of one host: the three numbers below are of it alone
//   within.latency_s = 3.1e-07      of an empty message
//   within.overhead_s = 9e-08       of the sender's processor, a message
//   within.bandwidth_Bps = 8.2e+09  of large messages, one direction
//   between.latency_s = ...         between hosts: the same three
//   path.alpha:beta_Bps = 1.2e+07   large messages from host alpha to host beta, which shoal-topo measure writes
//   copy_Bps = 1.1e+10              bytes that a processor copies
//   reduce_Bps = 9e+09              operand bytes that it adds
//
// Every line may be left out, but one must be there; a transport is named exactly where numbers of it are.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace shoal::comm {

struct Calibration {
  // 0: not known.
  struct Wire {
    double latency_s = 0, overhead_s = 0, bandwidth_Bps = 0;
    friend bool operator==(const Wire&, const Wire&) = default;
  };
  std::string within_transport;
  Wire within, between;
  double copy_Bps = 0, reduce_Bps = 0;
  std::map<std::pair<std::string, std::string>, double> paths_Bps;  // by names of hosts, from and to
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// Lines end with `separator`. invalid_argument names line, key and value, and what is allowed. Any bytes may be handed in.
Result<Calibration> parse_calibration(std::string_view text, char separator = '\n');
// Of a file of at most 512 KiB. system_error if it cannot be read.
Result<Calibration> load_calibration(const std::string& path);
// Whether a file can name this host: letters, digits, dots, hyphens and underscores, at most 64.
bool is_host_name(std::string_view name);
// What is known, "key=value" without spaces: parse_calibration gives the same back.
std::string text_of(const Calibration& calibration, char separator);

}  // namespace shoal::comm
