// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/passing.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "core/expects.h"

namespace shoal::transports {
namespace {

// Ancillary data for kMaxPassed descriptors.
struct alignas(cmsghdr) ControlBuffer {
  std::array<std::byte, CMSG_SPACE(kMaxPassed * sizeof(int))> bytes{};
};

bool is_try_again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Owns every descriptor that came with `header`, wanted or not.
void adopt_descriptors(msghdr& header, std::vector<link::Descriptor>& into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
      into.emplace_back(number);
    }
  }
}

}  // namespace

Result<bool> pass(const link::Descriptor& stream, std::span<const std::byte> message, std::span<const int> descriptors) {
  expects(!descriptors.empty() && descriptors.size() <= kMaxPassed, "a parcel carries one to three descriptors");
  ControlBuffer control;
  iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());

  const ssize_t sent = ::sendmsg(stream.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && is_try_again(errno)) return false;
  if (sent < 0) return fail(Code::system_error, "cannot pass {} descriptors: {}", descriptors.size(), errno_text(errno));
  // A fresh UNIX stream takes so few bytes whole or not at all.
  if (static_cast<std::size_t>(sent) != message.size())
    return fail(Code::system_error, "passed {} of {} bytes with {} descriptors", sent, message.size(), descriptors.size());
  return true;
}

Result<bool> Parcel::receive(const link::Descriptor& stream, std::span<std::byte> message, std::size_t wanted) {
  while (bytes_ < message.size()) {
    ControlBuffer control;
    iovec piece{message.data() + bytes_, message.size() - bytes_};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    const ssize_t got = ::recvmsg(stream.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && is_try_again(errno)) return false;
    if (got < 0) return fail(Code::system_error, "receiving descriptors: {}", errno_text(errno));
    adopt_descriptors(header, descriptors_);
    if ((header.msg_flags & MSG_CTRUNC) != 0 || descriptors_.size() > wanted)
      return fail(Code::remote_error, "more descriptors came than the {} wanted", wanted);
    if (got == 0) return fail(Code::remote_error, "the stream was closed after {} of {} bytes", bytes_, message.size());
    bytes_ += static_cast<std::size_t>(got);
  }
  if (descriptors_.size() != wanted)
    return fail(Code::remote_error, "{} descriptors came, {} wanted", descriptors_.size(), wanted);
  return true;
}

}  // namespace shoal::transports
