// SPDX-License-Identifier: Apache-2.0
#include "perf/earlier_run.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

namespace shoal::perf {
namespace {

using nlohmann::json;

// A member that must be there and have its type; the first that is not is kept.
class Reader {
 public:
  explicit Reader(std::string& why) : why_(why) {}

  double number(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_number() && std::isfinite(found->get<double>()) && found->get<double>() >= 0)
      return found->get<double>();
    complain(name, "is no number of at least 0");
    return 0;
  }
  std::string text(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_string()) return found->get<std::string>();
    complain(name, "is no text");
    return "";
  }
  void complain(const char* name, const char* what) {
    if (why_.empty()) why_ = fmt::format("\"{}\" {}", name, what);
  }

 private:
  std::string& why_;
};

Measurement read_half(const json& object, Reader& reader) {
  Measurement half;
  if (object.contains("cpu_time"))
    half.cpu_us = reader.number(object, "cpu_time");
  else
    half.time_us = reader.number(object, "time");
  half.algorithm_gbs = reader.number(object, "alg_bw");
  half.bus_gbs = reader.number(object, "bus_bw");
  return half;
}

Row read_row(const json& object, Reader& reader) {
  Row row;
  row.size = static_cast<std::uint64_t>(reader.number(object, "size"));
  row.count = static_cast<std::uint64_t>(reader.number(object, "count"));
  row.type = reader.text(object, "type");
  row.reduction = reader.text(object, "redop");
  const auto root = object.find("root");  // padded text in nccl-tests' files
  if (root != object.end() && root->is_number_integer())
    row.root = root->get<int>();
  else if (root != object.end() && root->is_string())
    row.root = static_cast<int>(std::strtol(root->get<std::string>().c_str(), nullptr, 10));
  else
    reader.complain("root", "is no number");
  const auto half = [&](const char* name, std::optional<Measurement>& into) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_object()) into = read_half(*found, reader);
  };
  half("out_of_place", row.out_of_place);
  half("in_place", row.in_place);
  if (!row.out_of_place && !row.in_place) reader.complain("out_of_place", "is missing, and \"in_place\" too");
  return row;
}

// "all_reduce" of "build/all_reduce_perf".
std::string collective_of(const json& document) {
  const auto config = document.find("config");
  if (config != document.end() && config->is_object() && config->contains("collective") && (*config)["collective"].is_string())
    return (*config)["collective"].get<std::string>();
  const auto arguments = document.find("args");
  if (arguments == document.end() || !arguments->is_array() || arguments->empty() || !(*arguments)[0].is_string()) return "";
  constexpr std::string_view kSuffix = "_perf";
  const std::string program = std::filesystem::path((*arguments)[0].get<std::string>()).filename().string();
  return program.ends_with(kSuffix) ? program.substr(0, program.size() - kSuffix.size()) : "";
}

int world_of(const json& document) {
  const auto config = document.find("config");
  if (config == document.end() || !config->is_object()) return 0;
  const auto devices = config->find("devices");
  return devices != config->end() && devices->is_array() ? static_cast<int>(devices->size()) : 0;
}

}  // namespace

std::variant<Results, std::string> parse_results(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) return "is no JSON";
  if (!document.is_object() || !document.contains("results") || !document["results"].is_array())
    return "has no list \"results\": is no file of -J";
  Results results;
  std::string why;
  Reader reader(why);
  for (const json& each : document["results"]) {
    if (!each.is_object()) return fmt::format("result {} is no object", results.rows.size());
    results.rows.push_back(read_row(each, reader));
    if (!why.empty()) return fmt::format("result {}: {}", results.rows.size() - 1, why);
  }
  results.collective = collective_of(document);
  results.world = world_of(document);
  return results;
}

std::variant<Results, std::string> read_results(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file) return std::generic_category().message(errno);
  text << file.rdbuf();
  auto parsed = parse_results(std::move(text).str());
  if (Results* results = std::get_if<Results>(&parsed)) results->name = std::filesystem::path(path).stem().string();
  return parsed;
}

}  // namespace shoal::perf
