// SPDX-License-Identifier: Apache-2.0
// Times Gloo's collectives as client.h says, or, with "init", what it takes to have one ready. Every rank is a process that
// finds SHOAL_RANK and SHOAL_WORLD_SIZE in its environment, as shoal-run sets them; they meet in a folder, which must be new.
//
//   c++ -O3 -march=native -o gloo_perf gloo_perf.cpp -lgloo
//   shoal-run -n 4 ./gloo_perf FOLDER INTERFACE all_reduce 8 67108864 8 1000 100 1
//
// The collectives are those that PyTorch calls. Gloo has no reduce-scatter of that kind: its place is left empty.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "client.h"

namespace {

using Context = std::shared_ptr<gloo::Context>;

constexpr auto kAdd = static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>);

void call(client* self, float* in, float* out, std::size_t count) {
  const auto& context = *static_cast<Context*>(self->library);
  const std::string name = self->collective;
  const std::size_t share = count / static_cast<std::size_t>(self->ranks);
  if (name == "all_reduce") {
    gloo::AllreduceOptions options(context);
    options.setInput(in, count);
    options.setOutput(out, count);
    options.setReduceFunction(kAdd);
    gloo::allreduce(options);
  } else if (name == "all_gather") {
    gloo::AllgatherOptions options(context);
    options.setInput(in, share);
    options.setOutput(out, share * static_cast<std::size_t>(self->ranks));
    gloo::allgather(options);
  } else if (name == "alltoall") {
    gloo::AlltoallOptions options(context);
    options.setInput(in, share * static_cast<std::size_t>(self->ranks));
    options.setOutput(out, share * static_cast<std::size_t>(self->ranks));
    gloo::alltoall(options);
  } else if (name == "broadcast") {
    gloo::BroadcastOptions options(context);
    options.setOutput(out, count);
    options.setRoot(0);
    gloo::broadcast(options);
  } else {
    gloo::ReduceOptions options(context);
    options.setInput(in, count);
    options.setOutput(out, count);
    options.setRoot(0);
    options.setReduceFunction(kAdd);
    gloo::reduce(options);
  }
}

double sum(client* self, double mine) {
  gloo::AllreduceOptions options(*static_cast<Context*>(self->library));
  options.setOutput(&mine, 1);
  options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<double>));
  gloo::allreduce(options);
  return mine;
}

int run(int argc, char** argv) {
  const double started = seconds_now();
  const char *rank = std::getenv("SHOAL_RANK"), *ranks = std::getenv("SHOAL_WORLD_SIZE");
  if (argc < 4 || rank == nullptr || ranks == nullptr) {
    std::fprintf(stderr,
                 "usage: shoal-run -n N gloo_perf FOLDER INTERFACE init | COLLECTIVE MIN MAX FACTOR ITERATIONS WARMUP SECONDS\n");
    return 2;
  }
  if (std::string(argv[3]) == "reduce_scatter") {
    std::fprintf(stderr, "gloo_perf: there is no reduce_scatter\n");
    return 2;
  }
  gloo::transport::tcp::attr where;
  where.iface = argv[2];
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(argv[1]);
  auto made = std::make_shared<gloo::rendezvous::Context>(std::atoi(rank), std::atoi(ranks));
  made->connectFullMesh(store, device);
  Context context = made;
  client self{};
  self.rank = made->rank;
  self.ranks = made->size;
  self.library = &context;
  self.call = call;
  self.sum = sum;
  int code = 0;
  if (argc == 4 && std::string(argv[3]) == "init") {
    sum(&self, 1);
    print_footprint(self.rank, seconds_now() - started);
  } else {
    code = measure(&self, argc - 3, argv + 3);
  }
  sum(&self, 0);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo_perf: %s\n", error.what());
    return 1;
  }
}
