// SPDX-License-Identifier: Apache-2.0
#include "perf/json_report.h"

#include <fmt/format.h>
#include <shoal/shoal.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <string_view>

namespace shoal::perf {
namespace {

using Json = nlohmann::ordered_json;

// The format's booleans are words.
const char* word(bool value) { return value ? "true" : "false"; }

Json config_json(const Options& o, const JsonRun& run) {
  Json config = {{"collective", o.collective->name}, {"nranks", run.ranks.size()},   {"nthreads", o.threads},
                 {"ngpus", o.ranks_per_thread},      {"minimum_bytes", o.min_bytes}, {"maximum_bytes", o.max_bytes}};
  if (o.step_factor != 0) {
    config["step_factor"] = o.step_factor;
  } else {
    config["step_bytes"] = o.step_bytes;
  }
  config["warmup_iters"] = o.warmup;
  config["iterations"] = o.iterations;
  config["aggregated_iterations"] = o.aggregate;
  config["validation"] = o.checks;
  config["graph"] = 0;
  config["blocking_collectives"] = word(o.blocking != 0);
  config["per_iter_timing"] = word(o.per_iteration);
  config["per_iter_skip"] = o.per_iteration_skip;
  if (!o.compressor.empty()) config["compressor"] = o.compressor + ":" + o.compressor_options;
  config["buffers"] = name_of(o.buffers);
  config["unalign"] = o.unalign;
  config["fresh_inputs"] = word(o.fresh);
  config["stream"] = word(o.host_stream);
  config["parallel_init"] = word(o.parallel_init);
  config["devices"] = Json::array();
  for (const RankInfo& rank : run.ranks) {
    config["devices"].push_back({{"rank", rank.rank},
                                 {"group", 0},
                                 {"pid", rank.pid},
                                 {"hostname", rank.host},
                                 {"device", rank.device},
                                 {"device_hex", fmt::format("0x{:02x}", rank.device)},
                                 {"device_info", "host memory"}});
  }
  return config;
}

Json half_json(const Measurement& half) {
  Json json;
  json[half.cpu_us ? "cpu_time" : "time"] = half.cpu_us.value_or(half.time_us);
  json["alg_bw"] = half.algorithm_gbs;
  json["bus_bw"] = half.bus_gbs;
  json["nwrong"] = half.wrong ? Json(*half.wrong) : Json("N/A");
  if (half.compression) {
    const Compression& c = *half.compression;
    json["compression"] = {
        {"ratio", c.ratio}, {"relative_error", c.error}, {"received_bytes", c.moved}, {"encode_time", c.encode_us}};
  }
  if (half.iterations) {
    const IterationStatistics& s = *half.iterations;
    json["per_iteration"] = {{"min", s.min}, {"max", s.max},         {"avg", s.average},  {"p50", s.p50},    {"p95", s.p95},
                             {"p99", s.p99}, {"stdev", s.deviation}, {"cv", s.variation}, {"times", s.times}};
  }
  return json;
}

Json row_json(const Row& row, const Options& options) {
  Json json = {{"size", row.size},
               {"count", row.count},
               {"type", row.type},
               {"redop", row.reduction},
               {"root", fmt::format("{:>6}", row.root)}};
  if (row.out_of_place) json["out_of_place"] = half_json(*row.out_of_place);
  if (row.in_place) json["in_place"] = half_json(*row.in_place);
  json["actual_iterations"] = options.iterations;
  json["experiment_name"] = fmt::format("{}_perf", options.collective->name);
  return json;
}

}  // namespace

std::string json_text(const Options& options, const JsonRun& run) {
  Json results = Json::array();
  for (const Row& row : run.rows) results.push_back(row_json(row, options));
  const Json json = {
      {"version", 3},
      {"start_time", run.start_time},
      {"program", {{"name", "shoal-perf"}, {"version", shoalVersion()}}},
      {"args", run.arguments},
      {"env", run.environment},
      {"nccl_version", run.library_version},
      {"config", config_json(options, run)},
      {"results", results},
      {"out_of_bounds", {{"count", run.verdict.wrong}, {"okay", word(run.verdict.values_okay())}}},
      {"average_bus_bandwidth", {{"bandwidth", run.verdict.average_bus_gbs}, {"okay", word(run.verdict.bandwidth_okay())}}},
      {"errors", run.verdict.errors},
      {"end_time", run.end_time}};
  // Bytes of the command line or environment that are no UTF-8 become replacement characters rather than a failure.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> reportable_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool ours = text.starts_with("NCCL_") || text.starts_with("SHOAL_");
    if (ours && !text.starts_with("SHOAL_SECRET=")) result.emplace_back(text);
  }
  return result;
}

}  // namespace shoal::perf
