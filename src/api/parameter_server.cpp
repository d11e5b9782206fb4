// SPDX-License-Identifier: Apache-2.0
// The parameter server in the C API: argument checks, translation, and the life of handles.
#include <shoal/parameter_server.h>

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "api/errors.h"
#include "api/handles.h"
#include "comm/unique_id.h"
#include "ps/server.h"
#include "ps/worker.h"

// A worker, or a server; the latter may run on a thread of its own.
struct shoalPs {
  std::unique_ptr<shoal::ps::Worker> worker;
  std::unique_ptr<shoal::ps::Server> server;
  std::atomic<shoal::ps::Fabric*> fabric{nullptr};  // set once this rank has joined; pairs with the readers in other threads
  std::atomic<bool> aborted{false};
  std::mutex serving;   // held while the server serves
  bool served = false;  // under serving
  std::thread background;
  shoal::Status outcome;  // of the background thread
};

namespace {

using namespace shoal;
using namespace shoal::api;

constexpr int kMostRequests = 1 << 16;

// Lives as long as the process: the last use may be in a destructor of the user's static objects.
Handles<shoalPs>& handles() {
  static auto* const all = std::make_unique<Handles<shoalPs>>("ps").release();
  return *all;
}

template <typename E>
Result<E> read_enum(const char* name, int value, int values) {
  if (value >= 0 && value < values) return static_cast<E>(value);
  return fail(Code::invalid_argument, "config.{} is {}, must be 0 .. {}", name, value, values - 1);
}

Result<ps::Config> read_config(const shoalPsConfig* config) {
  if (Status s = require(config, "config"); !s.is_ok()) return s;
  const std::optional<DataType> type = data_type_from(static_cast<int>(config->dtype));
  if (!type)
    return fail(Code::invalid_argument, "config.dtype is {}, must be ncclFloat32 or ncclFloat64",
                static_cast<int>(config->dtype));
  const Result<ps::Mode> mode = read_enum<ps::Mode>("mode", static_cast<int>(config->mode), ps::kModes);
  if (!mode.is_ok()) return mode.status();
  const Result<ps::Update> update = read_enum<ps::Update>("optimizer", static_cast<int>(config->optimizer), ps::kUpdates);
  if (!update.is_ok()) return update.status();
  ps::Config read{.workers = config->workers,
                  .servers = config->servers,
                  .keys = {config->keys},
                  .type = *type,
                  .mode = *mode,
                  .staleness = config->staleness,
                  .update = *update,
                  .rate = config->learningRate};
  if (read.servers > 0 && read.servers <= ps::kMaxRanks) {
    const auto servers = static_cast<std::size_t>(read.servers);
    if (config->shares != nullptr)
      read.shares.assign(config->shares, config->shares + servers);
    else
      read.shares = ps::equal_shares(read.keys.value, servers);
  }
  if (Status s = ps::check(read); !s.is_ok()) return s;
  return read;
}

Result<ps::Own> read_own(const shoalPsConfig& config, bool server) {
  if (config.window < 0 || config.window > kMostRequests)
    return fail(Code::invalid_argument, "config.window is {}, must be 0 (default) .. {}", config.window, kMostRequests);
  if (server && config.optimizer == shoalPsOptimizerCustom && config.update == nullptr)
    return fail(Code::invalid_argument, "config.update is NULL: shoalPsOptimizerCustom needs it on servers");
  ps::Own own{.initial = static_cast<const std::byte*>(config.initial), .function = config.update, .user = config.user};
  if (config.window > 0) own.window = static_cast<std::size_t>(config.window);
  return own;
}

// A rank that is to join, all arguments checked.
struct Joining {
  comm::UniqueId id;
  Rank rank;
  ps::Config config;
  ps::Own own;
};

Result<Joining> read_joining(shoalPs_t* out, const ncclUniqueId& id, int rank, const shoalPsConfig* config) {
  if (Status s = require(out, "ps"); !s.is_ok()) return s;
  Result<ps::Config> read = read_config(config);
  if (!read.is_ok()) return read.status();
  if (rank < 0 || rank >= read->world().value)
    return fail(Code::invalid_argument, "rank is {}, must be 0 .. {}: {} workers and {} servers", rank, read->world().value - 1,
                read->workers, read->servers);
  Result<ps::Own> own = read_own(*config, !read->is_worker({rank}));
  if (!own.is_ok()) return own.status();
  if (!environment().is_ok()) return environment().status();
  Result<comm::UniqueId> decoded = comm::UniqueId::decode(std::span<const char, NCCL_UNIQUE_ID_BYTES>(id.internal));
  if (!decoded.is_ok()) return decoded.status();
  return Joining{decoded.take(), {rank}, read.take(), own.take()};
}

Status join(shoalPs& handle, const Joining& joining) {
  Result<std::unique_ptr<ps::Fabric>> fabric = ps::Fabric::join(joining.id, joining.rank, joining.config, *environment());
  if (!fabric.is_ok()) return fabric.status();
  ps::Fabric* const joined = fabric->get();
  if (joining.config.is_worker(joining.rank))
    handle.worker = std::make_unique<ps::Worker>(fabric.take(), joining.own);
  else
    handle.server = std::make_unique<ps::Server>(fabric.take(), joining.own);
  handle.fabric.store(joined);
  return {};
}

Status serve(shoalPs& handle) {
  const std::lock_guard lock(handle.serving);
  if (handle.served) return fail(Code::invalid_usage, "this server has served already");
  handle.served = true;
  return handle.server->serve();
}

void serve_in_background(shoalPs& handle, const Joining& joining) {
  pthread_setname_np(pthread_self(), "shoal-ps-server");
  try {
    handle.outcome = join(handle, joining);
    if (!handle.outcome.is_ok()) return;
    if (handle.aborted.load()) handle.fabric.load()->abort();
    handle.outcome = serve(handle);
  } catch (const std::exception& error) {
    handle.outcome = Status(Code::system_error, error.what());
  }
}

// f(the live worker), or why there is none.
template <typename F>
ncclResult_t on_worker(const char* function, shoalPs_t handle, F&& f) {
  return guarded(function, [&]() -> Status {
    Result<std::shared_ptr<shoalPs>> found = handles().find(handle);
    if (!found.is_ok()) return found.status();
    if ((*found)->worker == nullptr) return fail(Code::invalid_usage, "ps is a server's: only workers may call this");
    return f(*(*found)->worker);
  });
}

ncclResult_t request(const char* function, shoalPs_t handle, const void* memory, const char* name, std::size_t count,
                     std::uint64_t* timestamp, const std::function<Result<ps::Timestamp>(ps::Worker&)>& issue) {
  return on_worker(function, handle, [&](ps::Worker& worker) -> Status {
    if (count > 0)
      if (Status s = require(memory, name); !s.is_ok()) return s;
    const Result<ps::Timestamp> issued = issue(worker);
    if (!issued.is_ok()) return issued.status();
    if (timestamp != nullptr) *timestamp = *issued;
    return {};
  });
}

Status end(shoalPs& handle, bool aborting) {
  if (aborting) {
    handle.aborted.store(true);
    if (ps::Fabric* const joined = handle.fabric.load()) joined->abort();
  }
  if (handle.background.joinable()) {
    handle.background.join();
    return aborting ? Status() : handle.outcome;
  }
  if (handle.worker != nullptr) {
    const Status left = handle.worker->leave();
    return aborting ? Status() : left;
  }
  const std::lock_guard lock(handle.serving);
  if (handle.served || aborting) return {};
  handle.fabric.load()->abort();
  return fail(Code::invalid_usage, "this server has not served: the group is aborted");
}

ncclResult_t end(const char* function, shoalPs_t handle, bool aborting) {
  return guarded(function, [&]() -> Status {
    if (handle == nullptr) return {};
    Result<std::shared_ptr<shoalPs>> removed = handles().remove(handle);
    return removed.is_ok() ? end(**removed, aborting) : removed.status();
  });
}

}  // namespace

extern "C" {

ncclResult_t shoalPsInit(shoalPs_t* ps, ncclUniqueId id, int rank, const shoalPsConfig* config) {
  return guarded("shoalPsInit", [&]() -> Status {
    const Result<Joining> joining = read_joining(ps, id, rank, config);
    if (!joining.is_ok()) return joining.status();
    const auto made = std::make_shared<shoalPs>();
    if (Status s = join(*made, *joining); !s.is_ok()) return s;
    *ps = handles().add(made);
    return {};
  });
}

ncclResult_t shoalPsServe(shoalPs_t ps) {
  return guarded("shoalPsServe", [&]() -> Status {
    Result<std::shared_ptr<shoalPs>> found = handles().find(ps);
    if (!found.is_ok()) return found.status();
    if ((*found)->worker != nullptr) return fail(Code::invalid_usage, "ps is a worker's: only servers may call this");
    if ((*found)->background.joinable()) return fail(Code::invalid_usage, "this server serves in the background");
    return serve(**found);
  });
}

ncclResult_t shoalPsServeInBackground(shoalPs_t* ps, ncclUniqueId id, int rank, const shoalPsConfig* config) {
  return guarded("shoalPsServeInBackground", [&]() -> Status {
    Result<Joining> joining = read_joining(ps, id, rank, config);
    if (!joining.is_ok()) return joining.status();
    if (joining->config.is_worker(joining->rank))
      return fail(Code::invalid_argument, "rank is {}, a worker's: the servers are {} .. {}", rank, joining->config.workers,
                  joining->config.world().value - 1);
    const auto made = std::make_shared<shoalPs>();
    made->background = std::thread([&handle = *made, joins = joining.take()] { serve_in_background(handle, joins); });
    *ps = handles().add(made);
    return {};
  });
}

ncclResult_t shoalPsPushAfter(shoalPs_t ps, size_t firstKey, size_t count, const void* values, uint64_t after,
                              uint64_t* timestamp) {
  return request("shoalPsPush", ps, values, "values", count, timestamp, [&](shoal::ps::Worker& worker) {
    return worker.push({firstKey, count}, static_cast<const std::byte*>(values), after);
  });
}

ncclResult_t shoalPsPullAfter(shoalPs_t ps, size_t firstKey, size_t count, void* out, uint64_t after, uint64_t* timestamp) {
  return request("shoalPsPull", ps, out, "out", count, timestamp, [&](shoal::ps::Worker& worker) {
    return worker.pull({firstKey, count}, static_cast<std::byte*>(out), after);
  });
}

ncclResult_t shoalPsPush(shoalPs_t ps, size_t firstKey, size_t count, const void* values, uint64_t* timestamp) {
  return shoalPsPushAfter(ps, firstKey, count, values, 0, timestamp);
}

ncclResult_t shoalPsPull(shoalPs_t ps, size_t firstKey, size_t count, void* out, uint64_t* timestamp) {
  return shoalPsPullAfter(ps, firstKey, count, out, 0, timestamp);
}

ncclResult_t shoalPsWait(shoalPs_t ps, uint64_t timestamp) {
  return on_worker("shoalPsWait", ps, [&](shoal::ps::Worker& worker) { return worker.wait(timestamp); });
}

ncclResult_t shoalPsClock(shoalPs_t ps) {
  return on_worker("shoalPsClock", ps, [](shoal::ps::Worker& worker) { return worker.tick(); });
}

ncclResult_t shoalPsClocks(shoalPs_t ps, uint64_t* own, uint64_t* slowest) {
  return on_worker("shoalPsClocks", ps, [&](shoal::ps::Worker& worker) -> Status {
    if (Status s = require(own, "own"); !s.is_ok()) return s;
    if (Status s = require(slowest, "slowest"); !s.is_ok()) return s;
    const shoal::ps::Worker::Clocks clocks = worker.clocks();
    *own = clocks.own;
    *slowest = clocks.slowest;
    return {};
  });
}

ncclResult_t shoalPsStats(shoalPs_t ps, int peer, shoalPsStatistics* statistics) {
  return guarded("shoalPsStats", [&]() -> Status {
    if (Status s = require(statistics, "statistics"); !s.is_ok()) return s;
    Result<std::shared_ptr<shoalPs>> found = handles().find(ps);
    if (!found.is_ok()) return found.status();
    const shoal::ps::Fabric* const fabric = (*found)->fabric.load();
    if (fabric == nullptr) return fail(Code::invalid_usage, "this server has not joined its group yet");
    const int world = fabric->config().world().value;
    if (peer < -1 || peer >= world) return fail(Code::invalid_argument, "peer is {}, must be -1 .. {}", peer, world - 1);
    shoal::ps::Counts sent, received;
    for (int rank = peer < 0 ? 0 : peer; rank < (peer < 0 ? world : peer + 1); ++rank) {
      sent += fabric->traffic({rank}).sent.counts();
      received += fabric->traffic({rank}).received.counts();
    }
    *statistics = {.payloadBytesSent = sent.payload_bytes,
                   .payloadBytesReceived = received.payload_bytes,
                   .payloadMessagesSent = sent.payload_messages,
                   .payloadMessagesReceived = received.payload_messages,
                   .headerBytesSent = sent.header_bytes,
                   .headerBytesReceived = received.header_bytes,
                   .messagesSent = sent.messages,
                   .messagesReceived = received.messages};
    return {};
  });
}

ncclResult_t shoalPsShare(const shoalPsConfig* config, int server, size_t* firstKey, size_t* count) {
  return guarded("shoalPsShare", [&]() -> Status {
    if (Status s = require(firstKey, "firstKey"); !s.is_ok()) return s;
    if (Status s = require(count, "count"); !s.is_ok()) return s;
    const Result<shoal::ps::Config> read = read_config(config);
    if (!read.is_ok()) return read.status();
    if (server < 0 || server >= read->servers)
      return fail(Code::invalid_argument, "server is {}, must be 0 .. {}", server, read->servers - 1);
    const shoal::ps::KeyRange range = shoal::ps::Partition(read->shares).range(static_cast<std::size_t>(server));
    *firstKey = range.first;
    *count = range.count;
    return {};
  });
}

ncclResult_t shoalPsBalancedShares(size_t keys, int workerMachines, int spareMachines, size_t* shares) {
  return guarded("shoalPsBalancedShares", [&]() -> Status {
    if (Status s = require(shares, "shares"); !s.is_ok()) return s;
    if (workerMachines < 1 || workerMachines > shoal::ps::kMaxMachines)
      return fail(Code::invalid_argument, "workerMachines is {}, must be 1 .. {}", workerMachines, shoal::ps::kMaxMachines);
    if (spareMachines < 0 || spareMachines > shoal::ps::kMaxMachines)
      return fail(Code::invalid_argument, "spareMachines is {}, must be 0 .. {}", spareMachines, shoal::ps::kMaxMachines);
    const std::vector<std::size_t> balanced = shoal::ps::balanced_shares(keys, workerMachines, spareMachines);
    std::copy(balanced.begin(), balanced.end(), shares);
    return {};
  });
}

ncclResult_t shoalPsDestroy(shoalPs_t ps) { return end("shoalPsDestroy", ps, false); }

ncclResult_t shoalPsAbort(shoalPs_t ps) { return end("shoalPsAbort", ps, true); }

}  // extern "C"
