// SPDX-License-Identifier: Apache-2.0
// The collectives that NCCL's API lacks: blocks of different lengths, and the barrier. Numerics modes.
#include <shoal/shoal.h>

#include <algorithm>

#include "api/arguments.h"
#include "api/errors.h"
#include "api/group.h"
#include "api/streams.h"

namespace {

using namespace shoal;
using namespace shoal::api;
using plan::Collective;

// Counts and displacements as the caller gave them; without displacements the blocks follow each other.
Result<engine::Blocks> read_blocks(const char* name, const std::size_t* counts, const std::size_t* displacements, DataType type,
                                   World world) {
  if (Status s = require(counts, name); !s.is_ok()) return s;
  engine::Blocks blocks;
  std::size_t next = 0;
  for (std::size_t q = 0; q < static_cast<std::size_t>(world.value); ++q) {
    if (Status s = check_count(name, counts[q], type, static_cast<std::size_t>(world.value)); !s.is_ok()) return s;
    blocks.counts.push_back(counts[q]);
    blocks.offsets.push_back(displacements != nullptr ? displacements[q] : next);
    if (Status s = check_count("displacement", blocks.offsets[q], type, static_cast<std::size_t>(world.value)); !s.is_ok())
      return s;
    next += counts[q];
  }
  return blocks;
}

std::size_t longest(const engine::Blocks& blocks) {
  return blocks.counts.empty() ? 0 : *std::max_element(blocks.counts.begin(), blocks.counts.end());
}

bool any(const engine::Blocks& blocks) { return longest(blocks) > 0; }

// Two blocks that are written must not overlap.
Status check_apart(const char* name, const engine::Blocks& blocks) {
  std::vector<std::size_t> order;
  for (std::size_t q = 0; q < blocks.counts.size(); ++q)
    if (blocks.counts[q] > 0) order.push_back(q);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return blocks.offsets[a] < blocks.offsets[b]; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (blocks.offsets[order[i - 1]] + blocks.counts[order[i - 1]] > blocks.offsets[order[i]])
      return fail(Code::invalid_argument, "{}: the blocks of ranks {} and {} overlap", name, order[i - 1], order[i]);
  return {};
}

Status submit_on(Entered entered, engine::Call call, cudaStream_t stream) {
  Result<std::shared_ptr<device::Stream>> found = find_stream(stream);
  if (!found.is_ok()) return found.status();
  return submit(Issued{.on = std::move(entered), .call = std::move(call), .stream = found.take()});
}

Status all_gather_v(const void* input, std::size_t count, void* output, const std::size_t* counts,
                    const std::size_t* displacements, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const Result<DataType> type = read_type(datatype);
  if (!type.is_ok()) return type.status();
  const World world = entered->communicator().world();
  const auto self = static_cast<std::size_t>(entered->communicator().rank().value);
  Result<engine::Blocks> blocks = read_blocks("recvcounts", counts, displacements, *type, world);
  if (!blocks.is_ok()) return blocks.status();
  if (count != blocks->counts[self])
    return fail(Code::invalid_argument, "sendcount is {}, but recvcounts[{}] (this rank's) is {}", count, self,
                blocks->counts[self]);
  if (Status s = check_apart("displacements", *blocks); !s.is_ok()) return s;
  if (count > 0)
    if (Status s = require(input, "sendbuff"); !s.is_ok()) return s;
  if (any(*blocks))
    if (Status s = require(output, "recvbuff"); !s.is_ok()) return s;
  auto uneven = std::make_shared<engine::Uneven>();
  uneven->input.counts = blocks->counts;
  uneven->output = blocks.take();
  const Count most{longest(uneven->output)};
  return submit_on(
      entered.take(),
      {.collective = Collective::all_gather_v, .input = input, .output = output, .count = most, .type = *type, .uneven = uneven},
      stream);
}

Status all_to_all_v(const void* input, const std::size_t* sendcounts, const std::size_t* senddispls, void* output,
                    const std::size_t* recvcounts, const std::size_t* recvdispls, ncclDataType_t datatype, ncclComm_t comm,
                    cudaStream_t stream) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const Result<DataType> type = read_type(datatype);
  if (!type.is_ok()) return type.status();
  const World world = entered->communicator().world();
  const auto self = static_cast<std::size_t>(entered->communicator().rank().value);
  Result<engine::Blocks> out = read_blocks("sendcounts", sendcounts, senddispls, *type, world);
  if (!out.is_ok()) return out.status();
  Result<engine::Blocks> in = read_blocks("recvcounts", recvcounts, recvdispls, *type, world);
  if (!in.is_ok()) return in.status();
  if (out->counts[self] != in->counts[self])
    return fail(Code::invalid_argument, "rank {} sends {} elements to itself and receives {}", self, out->counts[self],
                in->counts[self]);
  if (Status s = check_apart("rdispls", *in); !s.is_ok()) return s;
  if (any(*out))
    if (Status s = require(input, "sendbuff"); !s.is_ok()) return s;
  if (any(*in))
    if (Status s = require(output, "recvbuff"); !s.is_ok()) return s;
  const Count most{std::max(longest(*out), longest(*in))};
  auto uneven = std::make_shared<engine::Uneven>(engine::Uneven{out.take(), in.take()});
  return submit_on(
      entered.take(),
      {.collective = Collective::all_to_all_v, .input = input, .output = output, .count = most, .type = *type, .uneven = uneven},
      stream);
}

Status set_numerics(ncclComm_t comm, shoalNumerics mode) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const Result<engine::Numerics> numerics = read_numerics(mode);
  if (!numerics.is_ok()) return numerics.status();
  entered->communicator().set_numerics(*numerics);
  entered->handle().checked.forget();
  return {};
}

Status explain(ncclComm_t comm, const char* name, std::size_t count, ncclDataType_t datatype, int root, char* text,
               std::size_t bytes) {
  if (Status s = require(name, "collective"); !s.is_ok()) return s;
  if (Status s = require(text, "text"); !s.is_ok()) return s;
  if (bytes == 0) return fail(Code::invalid_argument, "bytes is 0: there must be room for the end of the text");
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const std::optional<Collective> collective = plan::collective_from(name);
  if (!collective) return fail(Code::invalid_argument, "collective is \"{}\": there is none of that name", name);
  const Result<DataType> type = read_type(datatype);
  if (!type.is_ok()) return type.status();
  const comm::Communicator& communicator = entered->communicator();
  if (Status s = check_count("count", count, *type, static_cast<std::size_t>(communicator.world().value)); !s.is_ok()) return s;
  if (Status s = check_rank("root", root, communicator.world()); !s.is_ok()) return s;
  engine::Call call{.collective = *collective, .count = {count}, .type = *type, .root = {root}};
  if (plan::is_reduction(*collective)) call.numerics = communicator.numerics();
  const std::string said = communicator.explain(call);
  const std::size_t n = std::min(said.size(), bytes - 1);
  std::copy_n(said.data(), n, text);
  text[n] = '\0';
  return {};
}

}  // namespace

extern "C" {

ncclResult_t shoalExplain(ncclComm_t comm, const char* collective, size_t count, ncclDataType_t datatype, int root, char* text,
                          size_t bytes) {
  return guarded("shoalExplain", [&] { return explain(comm, collective, count, datatype, root, text, bytes); });
}

ncclResult_t shoalAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                             const size_t* displs, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return guarded("shoalAllGatherV", [&] {
    return poison_group(all_gather_v(sendbuff, sendcount, recvbuff, recvcounts, displs, datatype, comm, stream));
  });
}

ncclResult_t shoalAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                            const size_t* recvcounts, const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm,
                            cudaStream_t stream) {
  return guarded("shoalAllToAllV", [&] {
    return poison_group(all_to_all_v(sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls, datatype, comm, stream));
  });
}

ncclResult_t shoalBarrier(ncclComm_t comm, cudaStream_t stream) {
  return guarded("shoalBarrier", [&]() -> Status {
    Result<Entered> entered = Entered::enter(comm);
    if (!entered.is_ok()) return poison_group(entered.status());
    return poison_group(submit_on(entered.take(), {.collective = Collective::barrier}, stream));
  });
}

ncclResult_t shoalCommSetNumerics(ncclComm_t comm, shoalNumerics mode) {
  return guarded("shoalCommSetNumerics", [&] { return set_numerics(comm, mode); });
}

ncclResult_t shoalCommGetNumerics(ncclComm_t comm, shoalNumerics* mode) {
  return guarded("shoalCommGetNumerics", [&]() -> Status {
    if (Status s = require(mode, "mode"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm);
    if (!entered.is_ok()) return entered.status();
    *mode = static_cast<shoalNumerics>(entered->communicator().numerics());
    return {};
  });
}

}  // extern "C"
