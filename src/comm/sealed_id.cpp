// SPDX-License-Identifier: Apache-2.0
#include "comm/sealed_id.h"

#include <sodium.h>

#include <array>

namespace shoal::comm {
namespace {

static_assert(kSealedId == UniqueId::kBytes + crypto_secretbox_MACBYTES);
constexpr std::array<unsigned char, crypto_secretbox_NONCEBYTES> kNonce{};

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

std::vector<std::byte> seal(const UniqueId& id, const link::Key& session, std::string_view purpose) {
  const std::array<char, UniqueId::kBytes> open = id.encode();
  const link::Key key = link::derive_key(session.bytes, purpose);
  std::vector<std::byte> sealed(kSealedId);
  crypto_secretbox_easy(raw(sealed.data()), reinterpret_cast<const unsigned char*>(open.data()), open.size(), kNonce.data(),
                        raw(key.bytes.data()));
  return sealed;
}

Result<UniqueId> unseal(std::span<const std::byte> sealed, const link::Key& session, std::string_view purpose) {
  std::array<char, UniqueId::kBytes> open;
  const link::Key key = link::derive_key(session.bytes, purpose);
  const bool right =
      sealed.size() == kSealedId && crypto_secretbox_open_easy(reinterpret_cast<unsigned char*>(open.data()), raw(sealed.data()),
                                                               sealed.size(), kNonce.data(), raw(key.bytes.data())) == 0;
  if (!right) return fail(Code::internal_error, "the {} bytes that came are no sealed unique id", sealed.size());
  return UniqueId::decode(open);
}

}  // namespace shoal::comm
