// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/launch.h"

#include <shoal/shoal.h>

#include <numeric>

namespace shoal::topo_tool {

Status status_of(ncclResult_t result, const std::string& what) {
  if (result == ncclSuccess) return {};
  return fail(Code::system_error, "{}: {}", what, ncclGetLastError(nullptr));
}

Result<Launch> join(int most, const std::string& command) {
  shoalLaunch launch = {};
  ncclComm_t comm = nullptr;
  if (Status s = status_of(shoalGetLaunch(&launch), "launch"); !s.is_ok()) return s;
  if (launch.world < 2)
    return fail(Code::invalid_argument, "one rank: run it under a launcher, such as shoal-run -n 4 shoal-topo {}", command);
  if (launch.world > most) return fail(Code::invalid_argument, "{} ranks: at most {}", launch.world, most);
  if (Status s = status_of(shoalCommInitLaunch(&comm), "init"); !s.is_ok()) return s;
  return Launch{Communicator(comm), launch.rank, launch.world, launch.launcher};
}

Result<std::vector<std::string>> gather(const Launch& launch, const std::string& own) {
  std::vector<std::size_t> lengths(static_cast<std::size_t>(launch.world));
  const std::size_t length = own.size();
  if (Status s = status_of(ncclAllGather(&length, lengths.data(), 1, ncclUint64, launch.comm.get(), nullptr), "all-gather");
      !s.is_ok())
    return s;
  std::string all(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), '\0');
  if (Status s = status_of(
          shoalAllGatherV(own.data(), length, all.data(), lengths.data(), nullptr, ncclInt8, launch.comm.get(), nullptr),
          "all-gather");
      !s.is_ok())
    return s;
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (const std::size_t each : lengths) {
    texts.push_back(all.substr(at, each));
    at += each;
  }
  return texts;
}

}  // namespace shoal::topo_tool
