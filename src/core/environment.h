// SPDX-License-Identifier: Apache-2.0
// Every environment variable that the library reads, in one struct: name, allowed values and default stand on the member.
// Value type, read once per process by environment(); tests parse their own with parse_environment.
//
// Every NCCL_X may also be spelled SHOAL_X, which then wins. An empty value is an unset one. Integers are decimal, 0x.. or 0..;
// byte sizes take the suffixes K and M (1024, 1024 x 1024). What is not set may stand in a file (conf_file.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"

namespace shoal {

struct Environment {
  // ---- logging
  std::string debug =
      "";  // NCCL_DEBUG: VERSION, WARN, INFO, TRACE (any case; kept in capitals); empty: errors only reach ncclGetLastError
  std::string debug_file = "";  // NCCL_DEBUG_FILE: path, %h host, %p pid, %% percent; empty: standard output
  // SHOAL_DUMP: file that a communicator writes its last operations to, as JSON, when it fails or the process gets SIGUSR2; %h
  // host, %p pid, %r rank, %% percent; ".<rank>" is added where neither %r nor %p is in it. Empty: none
  std::string dump = "";
  std::string trace = "";  // SHOAL_TRACE: file for a trace that Perfetto loads; as SHOAL_DUMP
  // NCCL_DEBUG_SUBSYS: which parts log INFO and TRACE, a list of NCCL's names (log_format.h), ^ in front: all but these
  std::string debug_subsys = "INIT,BOOTSTRAP,ENV";
  std::string debug_timestamp_format = "[%F %T] ";  // NCCL_DEBUG_TIMESTAMP_FORMAT: as strftime, in UTC; %1f .. %9f: fraction
  std::string debug_timestamp_levels = "WARN";  // NCCL_DEBUG_TIMESTAMP_LEVELS: whose lines have one, ^ in front: all but these
  // ---- network
  std::string socket_ifname = "";  // NCCL_SOCKET_IFNAME: [^][=]name,name...: prefixes, exact names after =, excluded after ^
  std::string socket_family = "";  // NCCL_SOCKET_FAMILY: AF_INET, AF_INET6; empty: both
  std::int64_t socket_retry_count = -1;  // NCCL_SOCKET_RETRY_CNT: connects that may fail before one gives up, 0 .. 10^6; -1: ours
  std::int64_t socket_retry_sleep_ms = -1;  // NCCL_SOCKET_RETRY_SLEEP_MSEC: the n-th pause is n times this, 0 .. 10^5; -1: ours
  std::string comm_id = "";                 // NCCL_COMM_ID: address:port that rank 0 listens at, for all unique ids
  std::string host_id = "";                 // NCCL_HOSTID: replaces the host's identity (pretend several hosts on one machine)
  std::int64_t comm_blocking = -1;          // NCCL_COMM_BLOCKING: 0 or 1: overrides config.blocking; -1: does not
  std::string secret = "";  // SHOAL_SECRET: key of connections where the unique id carries none (NCCL_COMM_ID, MASTER_ADDR)
  // ---- transports
  bool shm_disable = false;       // NCCL_SHM_DISABLE: 0 or 1; 1: ranks of one host talk over TCP
  bool mapped_disable = false;    // SHOAL_MAPPED_DISABLE: 0 or 1; 1: memory of ncclMemAlloc is communicated as any other is
  bool loopback_disable = false;  // SHOAL_LOOPBACK_DISABLE: 0 or 1; 1: ranks of one process talk as separate processes do
  std::string shim = "";          // SHOAL_SHIM: a slower wire than there is, as shim.h says; empty: none
  // ---- algorithms
  // NCCL_ALGO (SHOAL_ALGO): which algorithms may be chosen: [function:][^]name,name...;function:..., any case; names are those of
  // the table of algorithms, or NCCL's. One name forces it.
  std::string algo = "";
  std::string algo_variable = "";  // which of the two was set
  // SHOAL_CALIBRATION: file with what links and processors were measured to do, which the tuner then believes (calibration.h);
  // empty: none
  std::string calibration = "";
  // SHOAL_NUMERICS: fast, ordered (same bits for any count, transport and algorithm at a given world) or exact (for any world
  // too): the mode in which communicators start
  std::string numerics = "fast";
  // ---- engine
  std::int64_t timeout_ms = 1'800'000;  // SHOAL_TIMEOUT_MS: the longest wait without progress, 1 .. 10^12; 0: for ever
  std::int64_t slice_bytes = 0;         // SHOAL_SLICE_BYTES: bytes of a slice in flight, 64 .. 16 MiB; 0: chosen by the library
  std::int64_t credits = 0;             // SHOAL_CREDITS: slices that a link may hold, 1 .. 64; 0: chosen by the library
  std::int64_t pull_bytes =
      -1;  // SHOAL_PULL_BYTES: blocks of so many bytes are read from other processes; 0: none; -1: chosen by the library
  std::int64_t in_flight = 0;  // SHOAL_IN_FLIGHT: slices a lane works on at a time, 1 .. 16; 0: chosen by the library
  std::int64_t spin_us = -1;   // SHOAL_SPIN_US: how long a wait spins before it sleeps; 0 .. 1 hour; -1: chosen by the library
};

// Reads every variable through `get` (nothing for one that is unset). invalid_argument names the variable, its value and what is
// allowed.
Result<Environment> parse_environment(const std::function<std::optional<std::string>(const char*)>& get);

// Of the names that are set, those that begin with NCCL_ and that parse_environment never asks for: accepted, without effect.
std::vector<std::string> variables_without_effect(const std::vector<std::string>& set);

// The process's own, read at the first call. A malformed variable is reported by the first communicator that is made.
const Result<Environment>& environment();

}  // namespace shoal
