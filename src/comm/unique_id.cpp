// SPDX-License-Identifier: Apache-2.0
// Layout, numbers little endian, everything unused zero:
//   0  8  magic                        12  8  number of the communicator
//   8  2  version                      20 32  key
//  10  2  port of all addresses        52 16  digest of all other bytes
//  68 60  addresses: 4 and 4 bytes, or 6 and 16 bytes, in network order
#include "comm/unique_id.h"

#include <arpa/inet.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "comm/wire.h"
#include "core/expects.h"
#include "link/interfaces.h"
#include "link/socket.h"

namespace shoal::comm {
namespace {

constexpr std::string_view kMagic = "ShoalUID";
constexpr std::uint16_t kVersion = 2;
constexpr std::size_t kDigestAt = 52, kDigestBytes = 16;
constexpr std::size_t kAddressesAt = kDigestAt + kDigestBytes;
constexpr std::size_t kAddressBytes = UniqueId::kBytes - kAddressesAt;

struct BinaryAddress {
  std::uint8_t family = 0;  // 4 or 6
  std::uint16_t port = 0;
  std::array<std::byte, 16> ip{};  // IPv4: the first 4

  std::span<const std::byte> bytes() const { return std::span(ip).first(family == 4 ? 4 : 16); }
};

std::optional<BinaryAddress> to_binary(const std::string& text) {
  const Result<link::HostPort> where = link::parse_host_port(link::without_scope(text));
  if (!where.is_ok() || where->port == 0) return std::nullopt;
  BinaryAddress out;
  out.port = where->port;
  if (inet_pton(AF_INET, where->host.c_str(), out.ip.data()) == 1)
    out.family = 4;
  else if (inet_pton(AF_INET6, where->host.c_str(), out.ip.data()) == 1)
    out.family = 6;
  else
    return std::nullopt;
  return out;
}

std::string to_text(const BinaryAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  (void)inet_ntop(address.family == 4 ? AF_INET : AF_INET6, address.ip.data(), text, sizeof text);
  return link::to_text({text, address.port});
}

using IdBytes = std::array<std::byte, UniqueId::kBytes>;

void set_digest(IdBytes& all) {
  const std::span<std::byte> place = std::span(all).subspan(kDigestAt, kDigestBytes);
  std::ranges::fill(place, std::byte{0});
  std::array<unsigned char, kDigestBytes> digest;
  crypto_generichash(digest.data(), digest.size(), reinterpret_cast<const unsigned char*>(all.data()), all.size(), nullptr, 0);
  std::memcpy(place.data(), digest.data(), digest.size());
}

std::optional<UniqueId> parse(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  const std::span<const std::byte> magic = from.raw(kMagic.size());
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0 || from.number<std::uint16_t>() != kVersion)
    return std::nullopt;
  BinaryAddress address;
  address.port = from.number<std::uint16_t>();
  UniqueId id;
  id.communicator = from.number<std::uint64_t>();
  std::ranges::copy(from.raw(id.key.bytes.size()), id.key.bytes.begin());
  from.raw(kDigestBytes);
  while (from.left() > 0 && (address.family = from.number<std::uint8_t>()) != 0) {
    if (address.family != 4 && address.family != 6) return std::nullopt;
    address.ip = {};
    std::ranges::copy(from.raw(address.bytes().size()), address.ip.begin());
    if (from.failed() || address.port == 0) return std::nullopt;
    id.addresses.push_back(to_text(address));
  }
  if (id.addresses.empty()) return std::nullopt;
  return id;
}

}  // namespace

std::array<char, UniqueId::kBytes> UniqueId::encode() const {
  ByteWriter list;
  std::optional<std::uint16_t> port;
  for (const std::string& each : addresses) {
    const std::optional<BinaryAddress> where = to_binary(each);
    expects(where.has_value() && (!port || *port == where->port), "a unique id's addresses are ip:port, with one port");
    port = where->port;
    list.number(where->family);
    list.raw(where->bytes());
  }
  const std::vector<std::byte> places = list.take();
  expects(port.has_value() && places.size() <= kAddressBytes, "a unique id has an address, and room for all it has");
  ByteWriter head;
  head.raw(std::as_bytes(std::span(kMagic)));
  head.number(kVersion);
  head.number(*port);
  head.number(communicator);
  head.raw(key.bytes);
  const std::vector<std::byte> first = head.take();
  IdBytes all{};
  std::ranges::copy(first, all.begin());
  std::ranges::copy(places, all.begin() + kAddressesAt);
  set_digest(all);
  std::array<char, kBytes> out;
  std::memcpy(out.data(), all.data(), all.size());
  return out;
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

std::string UniqueId::address() const {
  std::string list;
  for (const std::string& each : addresses) list += (list.empty() ? "" : ", ") + each;
  return list;
}

std::vector<std::string> UniqueId::fit(std::span<const std::string> addresses) {
  std::vector<std::string> fitting;
  std::size_t room = kAddressBytes;
  for (const std::string& each : addresses) {
    const std::optional<BinaryAddress> where = to_binary(each);
    if (!where || room < 1 + where->bytes().size()) continue;
    room -= 1 + where->bytes().size();
    fitting.push_back(link::without_scope(each));
  }
  return fitting;
}

}  // namespace shoal::comm
