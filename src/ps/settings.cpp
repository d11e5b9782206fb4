// SPDX-License-Identifier: Apache-2.0
#include "ps/settings.h"

#include <bit>
#include <optional>

#include "comm/wire.h"
#include "core/shim.h"

namespace shoal::ps {
namespace {

constexpr std::uint64_t kMagic = 0x3173'706c'616f'6873;  // "shoalps1"
constexpr std::size_t kDefaultMessage = 64 << 10;        // bytes; fits second-level caches, and costs a header in two thousand
constexpr int kDefaultCredits = 4;
constexpr std::size_t kLongestShim = 1024;  // bytes of text

}  // namespace

Settings make_settings(const Config& config, const Environment& environment) {
  return {.config = config,
          .max_message = {environment.slice_bytes > 0 ? static_cast<std::size_t>(environment.slice_bytes) : kDefaultMessage},
          .credits = environment.credits > 0 ? static_cast<int>(environment.credits) : kDefaultCredits,
          .shm_disable = environment.shm_disable,
          .loopback_disable = environment.loopback_disable,
          .shim = environment.shim};
}

std::string encode(const Settings& settings) {
  const Config& config = settings.config;
  comm::ByteWriter writer;
  writer.number(kMagic);
  writer.signed_number(config.workers);
  writer.signed_number(config.servers);
  writer.number(std::uint64_t{config.keys.value});
  writer.number(static_cast<std::uint8_t>(config.type));
  writer.number(static_cast<std::uint8_t>(config.mode));
  writer.signed_number(config.staleness);
  for (const std::size_t share : config.shares) writer.number(std::uint64_t{share});
  writer.number(static_cast<std::uint8_t>(config.update));
  writer.number(std::bit_cast<std::uint64_t>(config.rate));
  writer.number(std::uint64_t{settings.max_message.value});
  writer.signed_number(settings.credits);
  writer.number(static_cast<std::uint8_t>(settings.shm_disable));
  writer.number(static_cast<std::uint8_t>(settings.loopback_disable));
  writer.text(settings.shim);
  const std::vector<std::byte> bytes = writer.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Settings> decode_settings(const std::string& bytes) {
  const Status alien = fail(Code::invalid_usage, "rank 0 of this unique id is no rank of a parameter server");
  comm::ByteReader reader(std::as_bytes(std::span(bytes)));
  if (reader.number<std::uint64_t>() != kMagic) return alien;
  Settings settings;
  Config& config = settings.config;
  config.workers = reader.signed_number();
  config.servers = reader.signed_number();
  if (config.servers < 1 || config.servers > kMaxRanks) return alien;
  config.keys.value = reader.number<std::uint64_t>();
  const std::optional<DataType> type = data_type_from(static_cast<int>(reader.number<std::uint8_t>()));
  const auto mode = reader.number<std::uint8_t>();
  config.staleness = reader.signed_number();
  for (int i = 0; i < config.servers; ++i) config.shares.push_back(reader.number<std::uint64_t>());
  const auto update = reader.number<std::uint8_t>();
  if (!type || mode >= kModes || update >= kUpdates) return alien;
  config.type = *type;
  config.mode = static_cast<Mode>(mode);
  config.update = static_cast<Update>(update);
  config.rate = std::bit_cast<double>(reader.number<std::uint64_t>());
  settings.max_message.value = reader.number<std::uint64_t>();
  settings.credits = reader.signed_number();
  settings.shm_disable = reader.number<std::uint8_t>() != 0;
  settings.loopback_disable = reader.number<std::uint8_t>() != 0;
  settings.shim = reader.text(kLongestShim);
  if (!settings.shim.empty() && !parse_shim(settings.shim).is_ok()) return alien;
  if (!reader.finished() || !check(config).is_ok()) return alien;
  return settings;
}

}  // namespace shoal::ps
