// SPDX-License-Identifier: Apache-2.0
#include "comm/trace.h"

#include <fmt/format.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "comm/messages.h"

namespace shoal::comm {
namespace {

constexpr std::size_t kFlushAt = 4096;  // operations

// JSON for one line; whatever a host's name holds.
std::string line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Result<std::unique_ptr<Trace>> Trace::open(const std::string& path, const link::PeerIdentity& who) {
  File file(std::fopen(path.c_str(), "we"));
  if (file == nullptr) return fail(Code::system_error, "SHOAL_TRACE: opening {}: {}", path, errno_text(errno));
  const int rank = who.rank.value;
  const nlohmann::ordered_json name = {
      {"name", "process_name"}, {"ph", "M"}, {"pid", rank}, {"tid", 0}, {"args", {{"name", describe(who)}}}};
  // The format lets the closing bracket be missing: what a killed process leaves can be loaded.
  fmt::print(file.get(), "[\n{}", line(name));
  return std::unique_ptr<Trace>(new Trace(std::move(file), rank));
}

Trace::~Trace() {
  flush();
  fmt::print(file_.get(), "\n]\n");
}

void Trace::add(DumpedOperation operation) {
  kept_.push_back(std::move(operation));
  if (kept_.size() >= kFlushAt) flush();
}

void Trace::flush() {
  for (const DumpedOperation& each : kept_) {
    const nlohmann::ordered_json args = {
        {"sequence", each.sequence}, {"bytes", each.bytes}, {"algorithm", each.algorithm}, {"state", each.state}};
    // Microseconds, to the nanosecond.
    fmt::print(file_.get(),
               ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":0,\"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{}}}",
               line(each.call), each.sequence == 0 ? "transfers" : "collective", rank_, each.started_ns / 1000,
               each.started_ns % 1000, (each.ended_ns - each.started_ns) / 1000, (each.ended_ns - each.started_ns) % 1000,
               line(args));
  }
  kept_.clear();
  (void)std::fflush(file_.get());
}

}  // namespace shoal::comm
