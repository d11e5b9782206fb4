// SPDX-License-Identifier: Apache-2.0
#include "comm/dump.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/messages.h"

namespace shoal::comm {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "shoal flight 1";
constexpr std::size_t kMostOperations = 1 << 16;

ordered_json calls_of(const Report& report) {
  ordered_json calls = ordered_json::array();
  for (const CalledOnce& each : report.calls) calls.push_back({{"sequence", each.sequence}, {"call", each.call}});
  return calls;
}

ordered_json transfers_of(const Report& report) {
  ordered_json transfers = ordered_json::array();
  for (const KnownTransfer& each : report.transfers)
    transfers.push_back({{"peer", each.peer},
                         {"sending", each.sending},
                         {"sequence", each.sequence},
                         {"bytes", each.bytes},
                         {"open", each.open}});
  return transfers;
}

Report report_from(const ordered_json& json) {
  Report report;
  for (const ordered_json& each : json.at("calls"))
    report.calls.push_back({each.at("sequence").get<std::uint64_t>(), each.at("call").get<std::string>()});
  for (const ordered_json& each : json.at("transfers"))
    report.transfers.push_back({each.at("peer").get<std::int32_t>(), each.at("sending").get<bool>(),
                                each.at("sequence").get<std::uint64_t>(), each.at("bytes").get<std::uint64_t>(),
                                each.at("open").get<bool>()});
  json.at("finished").get_to(report.finished);
  json.at("inside").get_to(report.inside);
  json.at("since_ms").get_to(report.since_ms);
  json.at("doing").get_to(report.doing);
  json.at("waits_for").get_to(report.waits_for);
  json.at("lengths_of").get_to(report.lengths_of);
  json.at("sends").get_to(report.sends);
  json.at("receives").get_to(report.receives);
  return report;
}

}  // namespace

std::string to_json(const Dump& dump) {
  ordered_json json;
  json["format"] = kFormat;
  json["rank"] = dump.who.rank.value;
  json["world"] = dump.world;
  json["host"] = dump.who.host;
  json["pid"] = dump.who.pid;
  json["communicator"] = dump.communicator;
  json["written_ns"] = dump.written_ns;
  json["failure"] = dump.failure;
  const Report& report = dump.report;
  json["report"] = {{"inside", report.inside},           {"doing", report.doing},           {"waits_for", report.waits_for},
                    {"since_ms", report.since_ms},       {"finished", report.finished},     {"calls", calls_of(report)},
                    {"transfers", transfers_of(report)}, {"lengths_of", report.lengths_of}, {"sends", report.sends},
                    {"receives", report.receives}};
  ordered_json operations = ordered_json::array();
  for (const DumpedOperation& each : dump.operations)
    operations.push_back({{"ticket", each.ticket},
                          {"sequence", each.sequence},
                          {"call", each.call},
                          {"bytes", each.bytes},
                          {"algorithm", each.algorithm},
                          {"state", each.state},
                          {"started_ns", each.started_ns},
                          {"ended_ns", each.ended_ns}});
  json["operations"] = std::move(operations);
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Dump> dump_from_json(const std::string& text) {
  try {
    const ordered_json json = ordered_json::parse(text);
    if (json.at("format").get<std::string>() != kFormat)
      return fail(Code::invalid_argument, "format is '{}', expected is '{}'", json.at("format").get<std::string>(), kFormat);
    Dump dump;
    dump.who.rank = {json.at("rank").get<std::int32_t>()};
    json.at("world").get_to(dump.world);
    if (dump.world < 1 || dump.world > kMaxWorld || dump.who.rank.value < 0 || dump.who.rank.value >= dump.world)
      return fail(Code::invalid_argument, "rank {} of {} cannot be", dump.who.rank.value, dump.world);
    json.at("host").get_to(dump.who.host);
    json.at("pid").get_to(dump.who.pid);
    json.at("communicator").get_to(dump.communicator);
    json.at("written_ns").get_to(dump.written_ns);
    json.at("failure").get_to(dump.failure);
    dump.report = report_from(json.at("report"));
    for (const ordered_json& each : json.at("operations")) {
      if (dump.operations.size() == kMostOperations)
        return fail(Code::invalid_argument, "more than {} operations", kMostOperations);
      DumpedOperation& one = dump.operations.emplace_back();
      each.at("ticket").get_to(one.ticket);
      each.at("sequence").get_to(one.sequence);
      each.at("call").get_to(one.call);
      each.at("bytes").get_to(one.bytes);
      each.at("algorithm").get_to(one.algorithm);
      each.at("state").get_to(one.state);
      each.at("started_ns").get_to(one.started_ns);
      each.at("ended_ns").get_to(one.ended_ns);
    }
    return dump;
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::invalid_argument, "no dump of a flight recorder: {}", error.what());
  }
}

Status write_dump(const std::string& path, const Dump& dump) {
  std::ofstream file(path, std::ios::trunc);
  file << to_json(dump);
  file.close();
  return file ? Status() : fail(Code::system_error, "writing {}: {}", path, errno_text(errno));
}

}  // namespace shoal::comm
