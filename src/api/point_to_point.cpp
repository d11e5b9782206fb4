// SPDX-License-Identifier: Apache-2.0
// ncclSend and ncclRecv.
#include "api/arguments.h"
#include "api/errors.h"
#include "api/group.h"
#include "api/streams.h"

namespace {

using namespace shoal;
using namespace shoal::api;

Status transfer(bool sending, void* memory, std::size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                cudaStream_t stream) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const Result<DataType> type = read_type(datatype);
  if (!type.is_ok()) return type.status();
  if (Status s = check_count("count", count, *type); !s.is_ok()) return s;
  if (Status s = check_rank("peer", peer, entered->communicator().world()); !s.is_ok()) return s;
  if (count > 0)
    if (Status s = require(memory, sending ? "sendbuff" : "recvbuff"); !s.is_ok()) return s;
  Result<std::shared_ptr<device::Stream>> found = find_stream(stream);
  if (!found.is_ok()) return found.status();
  Issued issued{.on = entered.take(), .stream = found.take()};
  issued.exchange.transfers.push_back(
      {.peer = {peer}, .sending = sending, .memory = static_cast<std::byte*>(memory), .size = size_of({count}, *type)});
  return submit(std::move(issued));
}

}  // namespace

extern "C" {

ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return guarded("ncclSend",
                 [&] { return poison_group(transfer(true, const_cast<void*>(sendbuff), count, datatype, peer, comm, stream)); });
}

ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream) {
  return guarded("ncclRecv", [&] { return poison_group(transfer(false, recvbuff, count, datatype, peer, comm, stream)); });
}

[[gnu::weak, gnu::alias("pncclSend")]] decltype(pncclSend) ncclSend;
[[gnu::weak, gnu::alias("pncclRecv")]] decltype(pncclRecv) ncclRecv;

}  // extern "C"
