// SPDX-License-Identifier: Apache-2.0
// Any bytes from a peer that does not know the key: neither side of the handshake may be proven, block, or crash. The first byte
// chooses the side, the second in how large pieces the rest arrives, the third after what the peer closes.
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "link/handshake.h"

using namespace shoal::link;

namespace {

void require(bool held) {
  if (!held) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 3) return 0;
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  Descriptor peer(ends[1]);
  const Key key = random_key();
  const bool as_client = data[0] % 2 == 1;
  Handshake side = as_client ? Handshake::client(Descriptor(ends[0]), key,
                                                 std::as_bytes(std::span(data, std::min<std::size_t>(size, kMaxHello))))
                             : Handshake::server(Descriptor(ends[0]), key);
  const std::size_t piece = 1 + data[1];
  std::span<const std::byte> rest = std::as_bytes(std::span(data + 3, size - 3));
  bool failed = false;
  while (!rest.empty() && !failed) {
    const Transfer put = write_some(peer.get(), rest.first(std::min(piece, rest.size())));
    if (put.closed || put.bytes == 0) break;
    rest = rest.subspan(put.bytes);
    const shoal::Result<bool> proven = side.progress();
    failed = !proven.is_ok();
    require(failed || !*proven);
  }
  if (data[2] % 2 == 1) {
    peer.reset();
    require(!side.progress().is_ok());
  }
  require(!failed || side.wakeup().descriptor == -1);
  return 0;
}
