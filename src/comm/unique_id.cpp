// SPDX-License-Identifier: Apache-2.0
// Layout, numbers little endian, everything unused zero:
//   0  8  magic            16 16  IP address, network order (IPv4: the first 4)     88 32  digest of bytes 0..87
//   8  4  version          32 16  IPv6 scope: name of an interface, zero-padded    120  8  zero
//  12  2  family: 4 or 6   48  8  number of the communicator
//  14  2  port             56 32  key
#include "comm/unique_id.h"

#include <arpa/inet.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "comm/wire.h"
#include "core/expects.h"
#include "link/socket.h"

namespace shoal::comm {
namespace {

constexpr std::string_view kMagic = "ShoalUID";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kScopeBytes = 16;
constexpr std::size_t kDigested = 88;

struct BinaryAddress {
  std::uint16_t family = 0;  // 4 or 6
  std::uint16_t port = 0;
  std::array<std::byte, 16> ip{};
  std::string scope;
};

std::optional<BinaryAddress> to_binary(const std::string& text) {
  const Result<link::HostPort> where = link::parse_host_port(text);
  if (!where.is_ok() || where->port == 0) return std::nullopt;
  BinaryAddress out;
  out.port = where->port;
  const std::size_t percent = where->host.find('%');
  const std::string ip = where->host.substr(0, percent);
  if (percent != std::string::npos) {
    out.scope = where->host.substr(percent + 1);
    if (out.scope.empty() || out.scope.size() >= kScopeBytes) return std::nullopt;
  }
  if (out.scope.empty() && inet_pton(AF_INET, ip.c_str(), out.ip.data()) == 1) {
    out.family = 4;
    return out;
  }
  if (inet_pton(AF_INET6, ip.c_str(), out.ip.data()) != 1) return std::nullopt;
  out.family = 6;
  return out;
}

std::optional<std::string> to_text(const BinaryAddress& address) {
  if (address.family != 4 && address.family != 6) return std::nullopt;
  char text[INET6_ADDRSTRLEN];
  if (inet_ntop(address.family == 4 ? AF_INET : AF_INET6, address.ip.data(), text, sizeof text) == nullptr) return std::nullopt;
  const std::string scope = address.scope.empty() ? "" : "%" + address.scope;
  return link::to_text({text + scope, address.port});
}

std::array<std::byte, 32> digest(std::span<const std::byte> bytes) {
  std::array<std::byte, 32> out;
  crypto_generichash(reinterpret_cast<unsigned char*>(out.data()), out.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
  return out;
}

std::optional<UniqueId> parse(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  const std::span<const std::byte> magic = from.raw(kMagic.size());
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0 || from.number<std::uint32_t>() != kVersion)
    return std::nullopt;
  BinaryAddress address;
  address.family = from.number<std::uint16_t>();
  address.port = from.number<std::uint16_t>();
  std::ranges::copy(from.raw(address.ip.size()), address.ip.begin());
  for (const std::byte letter : from.raw(kScopeBytes))
    if (letter != std::byte{0}) address.scope.push_back(static_cast<char>(letter));
  UniqueId id;
  id.communicator = from.number<std::uint64_t>();
  std::ranges::copy(from.raw(id.key.bytes.size()), id.key.bytes.begin());
  std::optional<std::string> text = to_text(address);
  if (!text || !to_binary(*text)) return std::nullopt;
  id.address = *std::move(text);
  return id;
}

}  // namespace

std::array<char, UniqueId::kBytes> UniqueId::encode() const {
  const std::optional<BinaryAddress> where = to_binary(address);
  expects(where.has_value(), "a unique id's address is ip:port");
  ByteWriter out;
  out.raw(std::as_bytes(std::span(kMagic)));
  out.number(kVersion);
  out.number(where->family);
  out.number(where->port);
  out.raw(where->ip);
  std::array<char, kScopeBytes> scope{};
  std::ranges::copy(where->scope, scope.begin());
  out.raw(std::as_bytes(std::span(scope)));
  out.number(communicator);
  out.raw(key.bytes);
  const std::vector<std::byte> bytes = out.take();
  const std::array<std::byte, 32> check = digest(bytes);
  std::array<char, kBytes> all{};
  std::memcpy(all.data(), bytes.data(), kDigested);
  std::memcpy(all.data() + kDigested, check.data(), check.size());
  return all;
}

Result<UniqueId> UniqueId::decode(std::span<const char, kBytes> bytes) {
  // Whatever parse understood must encode to the same bytes: so the digest, the padding and the one spelling of an address.
  std::optional<UniqueId> id = parse(std::as_bytes(bytes));
  if (!id || !std::ranges::equal(id->encode(), bytes))
    return fail(Code::invalid_argument,
                "not a unique id of this library: the {} bytes that ncclGetUniqueId wrote must reach every rank unchanged",
                kBytes);
  return *std::move(id);
}

}  // namespace shoal::comm
