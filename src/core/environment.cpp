// SPDX-License-Identifier: Apache-2.0
#include "core/environment.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

#include "core/conf_file.h"
#include "core/host_port.h"
#include "core/ib_options.h"
#include "core/log.h"
#include "core/name_filter.h"
#include "core/net_choice.h"
#include "core/shim.h"
#include "core/split.h"
#include "core/topo_options.h"

namespace shoal {
namespace {

using Getter = std::function<std::optional<std::string>(const char*)>;

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool same_word(std::string_view a, std::string_view b) { return in_lower_case(a) == in_lower_case(b); }

template <std::size_t N>
const std::string_view* find_word(const std::string_view (&words)[N], std::string_view word) {
  const auto* const found = std::find_if(words, words + N, [&](std::string_view w) { return same_word(w, word); });
  return found == words + N ? nullptr : found;
}

// NCCL's way with numbers: base 16 after 0x, 8 after 0, else 10.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;
    text.remove_prefix(1);
  }
  if (text.starts_with('-')) return std::nullopt;  // from_chars would take a second sign
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return negative ? -value : value;
}

// As above, in bytes: 4K is 4096, 2M is 2097152.
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  std::int64_t unit = 1;
  if (text.ends_with('K') || text.ends_with('k')) unit = 1LL << 10;
  if (text.ends_with('M') || text.ends_with('m')) unit = 1LL << 20;
  if (unit > 1) text.remove_suffix(1);
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number > std::numeric_limits<std::int64_t>::max() / unit ||
      *number < std::numeric_limits<std::int64_t>::min() / unit)
    return std::nullopt;
  return *number * unit;
}

struct Setting {
  std::string variable;  // the one that was set
  std::string value;
};

Status malformed(const Setting& setting, std::string_view allowed) {
  return fail(Code::invalid_argument, "{}='{}': allowed is {}", setting.variable, setting.value, allowed);
}

// Reads setting after setting and keeps the first failure, so that the list of variables below reads as a list.
class Reader {
 public:
  explicit Reader(const Getter& get) : get_(get) {}

  // NCCL_X, unless SHOAL_X is set. An empty value counts as unset.
  std::optional<Setting> find(std::string_view name) const {
    constexpr std::string_view kTheirs = "NCCL_";
    if (name.starts_with(kTheirs))
      if (std::optional<Setting> ours = find("SHOAL_" + std::string(name.substr(kTheirs.size())))) return ours;
    const std::string variable(name);
    std::optional<std::string> value = get_(variable.c_str());
    if (!value || value->empty()) return std::nullopt;
    return Setting{variable, *std::move(value)};
  }

  void text(std::string_view name, std::string& into) {
    if (std::optional<Setting> setting = find(name)) into = std::move(setting->value);
  }

  template <std::size_t N>
  void word(std::string_view name, const std::string_view (&allowed)[N], std::string_view list, std::string& into) {
    const std::optional<Setting> setting = find(name);
    if (!setting) return;
    const std::string_view* found = find_word(allowed, setting->value);
    if (found == nullptr) return keep(malformed(*setting, list));
    into = *found;
  }

  void flag(std::string_view name, bool& into) {
    const std::optional<Setting> setting = find(name);
    if (!setting) return;
    const std::optional<std::int64_t> value = parse_integer(setting->value);
    if (!value || *value < 0 || *value > 1) return keep(malformed(*setting, "0 or 1"));
    into = *value == 1;
  }

  // `unset` is the value beside least..most that means "as if unset" (or "for ever").
  void number(std::string_view name, std::int64_t unset, std::int64_t least, std::int64_t most, std::string_view meaning,
              std::int64_t& into, std::optional<std::int64_t> (*parse)(std::string_view) = parse_integer) {
    const std::optional<Setting> setting = find(name);
    if (!setting) return;
    const std::optional<std::int64_t> value = parse(setting->value);
    if (!value || (*value != unset && (*value < least || *value > most)))
      return keep(malformed(*setting, fmt::format("{} to {}, or {}: {}", least, most, unset, meaning)));
    into = *value;
  }

  void keep(Status failure) {
    if (failure_.is_ok()) failure_ = std::move(failure);
  }
  Status take() { return std::move(failure_); }

 private:
  const Getter& get_;
  Status failure_;
};

void read_network(Reader& reader, Environment& e) {
  if (const std::optional<Setting> setting = reader.find("NCCL_SOCKET_IFNAME")) {
    reader.keep(NameFilter::parse(setting->variable, setting->value).status());
    e.socket_ifname = setting->value;
  }
  constexpr std::string_view kFamilies[] = {"AF_INET", "AF_INET6"};
  reader.word("NCCL_SOCKET_FAMILY", kFamilies, "AF_INET or AF_INET6", e.socket_family);
  if (const std::optional<Setting> setting = reader.find("NCCL_COMM_ID")) {
    const Result<HostPort> where = parse_host_port(setting->value);
    if (!where.is_ok() || where->port == 0)
      reader.keep(malformed(*setting, "1.2.3.4:port, [ip6]:port or host:port, port 1 to 65535"));
    e.comm_id = setting->value;
  }
  reader.number("NCCL_SOCKET_RETRY_CNT", -1, 0, 1'000'000, "the library's choice", e.socket_retry_count);
  reader.number("NCCL_SOCKET_RETRY_SLEEP_MSEC", -1, 0, 100'000, "the library's choice", e.socket_retry_sleep_ms);
  reader.text("NCCL_HOSTID", e.host_id);
  reader.text("SHOAL_SECRET", e.secret);
}

void read_shim(Reader& reader, Environment& e) {
  const std::optional<Setting> setting = reader.find("SHOAL_SHIM");
  if (!setting) return;
  const Result<Shim> shim = parse_shim(setting->value);
  if (!shim.is_ok())
    reader.keep(fail(Code::invalid_argument, "{}='{}': {}", setting->variable, setting->value, shim.status().text()));
  e.shim = setting->value;
}

void read_ib(Reader& reader, IbOptions& ib) {
  reader.flag("NCCL_IB_DISABLE", ib.disable);
  if (const std::optional<Setting> setting = reader.find("NCCL_IB_HCA")) {
    Result<NameFilter> devices = NameFilter::parse(setting->variable, setting->value, NameFilter::Of::devices);
    if (devices.is_ok()) ib.devices = devices.take();
    reader.keep(devices.status());
    ib.device_text = setting->value;
  }
  reader.number("NCCL_IB_GID_INDEX", -1, 0, 255, "the library's choice", ib.gid_index);
  reader.number("NCCL_IB_TIMEOUT", 20, 1, 31, "4.3 s; each more doubles it", ib.timeout);
  reader.number("NCCL_IB_RETRY_CNT", 7, 0, 7, "as often as there is", ib.retry_count);
  reader.number("NCCL_IB_SL", 0, 0, 15, "the first service level", ib.service_level);
  reader.number("NCCL_IB_TC", 0, 0, 255, "the first traffic class", ib.traffic_class);
  reader.number("NCCL_IB_QPS_PER_CONNECTION", 1, 1, 8, "one queue pair of every port", ib.queue_pairs);
}

void read_topo(Reader& reader, TopoOptions& topo) {
  if (std::optional<Setting> setting = reader.find("NCCL_TOPO_FILE")) {
    topo.file_variable = setting->variable;
    topo.file = std::move(setting->value);
  }
  if (std::optional<Setting> setting = reader.find("NCCL_TOPO_DUMP_FILE")) {
    topo.dump_variable = setting->variable;
    topo.dump_file = std::move(setting->value);
  }
  reader.number("NCCL_TOPO_DUMP_FILE_RANK", 0, 0, 1 << 20, "rank 0", topo.dump_rank);
  reader.flag("SHOAL_STREAM_AFFINITY", topo.stream_affinity);
  reader.flag("NCCL_IGNORE_CPU_AFFINITY", topo.ignore_affinity);
}

// Whether the names exist is for the table of algorithms to say.
void read_algorithm(Reader& reader, Environment& e) {
  const std::optional<Setting> setting = reader.find("NCCL_ALGO");
  if (!setting) return;
  e.algo = setting->value;
  e.algo_variable = setting->variable;
}

}  // namespace

Result<Environment> parse_environment(const Getter& get) {
  Environment e;
  Reader reader(get);
  constexpr std::string_view kLevels[] = {"VERSION", "WARN", "INFO", "ABORT", "TRACE"};
  reader.word("NCCL_DEBUG", kLevels, "VERSION, WARN, INFO or TRACE", e.debug);
  if (e.debug == "ABORT") e.debug = "INFO";  // NCCL's ABORT also ends the process, which a library must not
  reader.text("NCCL_DEBUG_FILE", e.debug_file);
  reader.text("SHOAL_DUMP", e.dump);
  reader.text("SHOAL_TRACE", e.trace);
  reader.text("NCCL_DEBUG_SUBSYS", e.debug_subsys);
  reader.text("NCCL_DEBUG_TIMESTAMP_FORMAT", e.debug_timestamp_format);
  reader.text("NCCL_DEBUG_TIMESTAMP_LEVELS", e.debug_timestamp_levels);
  read_network(reader, e);
  reader.number("NCCL_COMM_BLOCKING", -1, 0, 1, "as config.blocking says", e.comm_blocking);
  reader.flag("NCCL_SHM_DISABLE", e.shm_disable);
  reader.flag("SHOAL_MAPPED_DISABLE", e.mapped_disable);
  reader.number("SHOAL_PULL_BYTES", -1, 0, std::int64_t{1} << 40, "the library's choice (suffixes K, M, G)", e.pull_bytes,
                parse_bytes);
  reader.flag("SHOAL_LOOPBACK_DISABLE", e.loopback_disable);
  IbOptions ib;  // only whether they are well formed: the transport reads them itself
  read_ib(reader, ib);
  TopoOptions topo;  // likewise, the communicator
  read_topo(reader, topo);
  read_shim(reader, e);
  (void)reader.find("NCCL_NET");  // any name is allowed: see parse_net
  read_algorithm(reader, e);
  reader.text("SHOAL_CALIBRATION", e.calibration);
  constexpr std::string_view kNumerics[] = {"fast", "ordered", "exact"};
  reader.word("SHOAL_NUMERICS", kNumerics, "fast, ordered or exact", e.numerics);
  reader.number("SHOAL_TIMEOUT_MS", 0, 1, 1'000'000'000'000, "no limit", e.timeout_ms);
  reader.number("SHOAL_SLICE_BYTES", 0, 64, 16 << 20, "the library's choice (suffixes K, M)", e.slice_bytes, parse_bytes);
  reader.number("SHOAL_CREDITS", 0, 1, 64, "the library's choice", e.credits);
  reader.number("SHOAL_IN_FLIGHT", 0, 1, 16, "the library's choice", e.in_flight);
  reader.number("SHOAL_SPIN_US", -1, 0, 3'600'000'000, "the library's choice", e.spin_us);
  if (Status failure = reader.take(); !failure.is_ok()) return failure;
  return e;
}

Net parse_net(const Getter& get) {
  const std::optional<Setting> setting = Reader(get).find("NCCL_NET");
  return setting && same_word(setting->value, "UCX") ? Net::ucx : Net::any;
}

Net wanted_net() {
  static const Net once = parse_net(variable);
  return once;
}

Result<IbOptions> parse_ib_options(const Getter& get) {
  IbOptions ib;
  Reader reader(get);
  read_ib(reader, ib);
  if (Status failure = reader.take(); !failure.is_ok()) return failure;
  return ib;
}

Result<TopoOptions> parse_topo_options(const Getter& get) {
  TopoOptions topo;
  Reader reader(get);
  read_topo(reader, topo);
  if (Status failure = reader.take(); !failure.is_ok()) return failure;
  return topo;
}

std::vector<std::string> variables_without_effect(const std::vector<std::string>& set) {
  std::set<std::string> asked = {"NCCL_CONF_FILE"};
  (void)parse_environment([&](const char* name) {
    asked.insert(name);
    return std::optional<std::string>();
  }).is_ok();
  std::vector<std::string> idle;
  std::copy_if(set.begin(), set.end(), std::back_inserter(idle),
               [&](const std::string& name) { return name.starts_with("NCCL_") && !asked.contains(name); });
  return idle;
}

const Result<Environment>& environment() {
  static const Result<Environment> once = [] {
    for (const std::string& complaint : conf_complaints()) log::warn(-1, "{}", complaint);
    std::string idle;
    for (const std::string& name : variables_without_effect(variables_set())) idle += (idle.empty() ? "" : ", ") + name;
    if (!idle.empty()) log::info(log::Subsystem::env, -1, "without effect in this library: {}", idle);
    return parse_environment(variable);
  }();
  return once;
}

}  // namespace shoal
