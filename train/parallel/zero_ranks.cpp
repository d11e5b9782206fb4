// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/zero_ranks.h"

namespace shoal::train {
namespace {

OwnComm shard_group(const ZeroOptions& options, const Communicator& comm, const std::string& format) {
  const Seat seat = comm.seat();
  Communicator group = comm.split(static_cast<int>(seat.rank / (seat.world / options.replicas)), 0);
  group.set_wire_format(format);
  return OwnComm(std::move(group));
}

}  // namespace

ZeroRanks::ZeroRanks(const ZeroOptions& options, const Communicator& comm)
    : gathers(shard_group(options, comm, options.weight_format)),
      reduces(shard_group(options, comm, options.gradient_format)),
      world(comm.seat().world) {
  const std::size_t rank = comm.seat().rank;
  if (options.secondary) node.emplace(comm.split(static_cast<int>(rank / options.node), 0));
  if (options.node > 0 && options.stage > 0 && !options.gradient_format.empty())
    levels.emplace(*reduces, options.node, options.gradient_format);
  if (options.replicas > 1) {
    replicas.emplace(comm.split(static_cast<int>(seat().rank), 0));
    (*replicas)->set_wire_format(options.gradient_format);
  }
}

void ZeroRanks::count_in(Ledger& ledger, const ZeroOptions& options) {
  gathers->count_in(&ledger, options.node);
  reduces->count_in(&ledger, options.node);
  if (node) (*node)->count_in(&ledger);
  if (levels) levels->count_in(ledger);
  if (replicas) (*replicas)->count_in(&ledger, options.node > 0 ? 1 : 0);
}

void ZeroRanks::check_gathering() const {
  (*gathers).check_async();
  if (node) (**node).check_async();
}

void ZeroRanks::check_reducing() const {
  (*reduces).check_async();
  if (levels) levels->check_async();
  if (replicas) (**replicas).check_async();
}

void ZeroRanks::abort() {
  gathers.abort();
  reduces.abort();
  if (node) node->abort();
  if (levels) levels->abort();
  if (replicas) replicas->abort();
}

}  // namespace shoal::train
