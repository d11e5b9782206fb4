// SPDX-License-Identifier: Apache-2.0
#include "engine/call.h"

#include <fmt/format.h>

#include "compress/codecs/codec.h"
#include "engine/mix.h"

namespace shoal::engine {

std::string_view name_of(Numerics numerics) {
  switch (numerics) {
    case Numerics::fast: return "fast";
    case Numerics::ordered: return "ordered";
    case Numerics::exact: return "exact";
  }
  return "";
}

std::optional<Numerics> numerics_from(std::string_view name) {
  for (const Numerics each : {Numerics::fast, Numerics::ordered, Numerics::exact})
    if (name == name_of(each)) return each;
  return std::nullopt;
}

std::string describe(const Call& call) {
  std::string text = fmt::format("{} #{}", plan::name_of(call.collective), call.sequence);
  if (call.collective == plan::Collective::barrier) return text;
  if (call.collective == plan::Collective::all_to_all_v)  // whose lengths only two ranks agree on
    text += fmt::format(" of {}", shoal::name_of(call.type));
  else
    text += fmt::format(" of {} {}", call.count.value, shoal::name_of(call.type));
  if (plan::is_reduction(call.collective)) text += fmt::format(", {}", shoal::name_of(call.op));
  if (call.numerics != Numerics::fast) text += fmt::format(", {}", name_of(call.numerics));
  if (plan::has_root(call.collective)) text += fmt::format(", root {}", call.root.value);
  if (call.codec != nullptr) text += fmt::format(", as {} on the wire", call.codec->name);
  if (call.variant != 0) text += ", compressed";
  return text;
}

Status another_call(const Call& call, Rank rank, const std::string& how) {
  return {Code::invalid_usage,
          fmt::format("{}: rank {} makes another call ({}): all ranks must make the same calls, with the same count, type, "
                      "reduction and root, in the same order",
                      describe(call), rank.value, how),
          rank};
}

std::uint64_t details_digest(const Call& call) {
  std::uint64_t all = call.variant;
  if (call.codec != nullptr)
    for (const char c : call.codec->name) all = mix(all ^ static_cast<unsigned char>(c));
  if (call.collective != plan::Collective::all_gather_v) return all;
  all = mix(all ^ 1);
  for (const std::size_t count : call.uneven->output.counts) all = mix(all ^ count);
  return all;
}

std::uint32_t signature(const Call& call, std::uint64_t communicator) {
  const std::uint64_t what = static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.type) << 8 |
                             static_cast<std::uint64_t>(call.op) << 16 | static_cast<std::uint64_t>(call.numerics) << 24 |
                             static_cast<std::uint64_t>(call.root.value) << 32;
  // One mix, after products with odd constants that do not wait for each other: a call's every message carries this.
  std::uint64_t all = communicator ^ call.sequence * 0x9e3779b97f4a7c15ULL ^ what * 0xd6e8feb86659fd93ULL;
  if (call.collective != plan::Collective::all_to_all_v)  // whose lengths only the two ends of a block know
    all ^= (call.count.value + 1) * 0xa0761d6478bd642fULL;
  if (call.collective == plan::Collective::all_gather_v || call.variant != 0 || call.codec != nullptr)
    all ^= mix(details_digest(call));
  all = mix(all);
  return static_cast<std::uint32_t>(all ^ (all >> 32));
}

}  // namespace shoal::engine
