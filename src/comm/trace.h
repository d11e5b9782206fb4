// SPDX-License-Identifier: Apache-2.0
// One rank's operations as a file in the trace event format that Perfetto and chrome://tracing load: a process a rank, one bar an
// operation. Buffered; one thread at a time.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "comm/dump.h"
#include "core/status.h"

namespace shoal::comm {

class Trace {
 public:
  // system_error naming the path if it cannot be written.
  static Result<std::unique_ptr<Trace>> open(const std::string& path, const link::PeerIdentity& who);
  ~Trace();

  void add(DumpedOperation operation);
  void flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  Trace(File file, int rank) : file_(std::move(file)), rank_(rank) {}

  File file_;
  int rank_;
  std::vector<DumpedOperation> kept_;
};

}  // namespace shoal::comm
