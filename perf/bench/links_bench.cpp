// SPDX-License-Identifier: Apache-2.0
// What links cost: one message through a ring within one thread (instructions alone), and between two threads over every
// transport a round trip of a message and a stream of messages one way, which fills the link's credits. The last two need two
// idle cores to mean anything. Payloads are written by the sender and read by the receiver, as a collective does.
#include <benchmark/benchmark.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "link/ring.h"
#include "link/socket.h"
#include "transports/transports.h"

namespace shoal {
namespace {

struct alignas(link::kCacheLine) Line {
  std::array<std::byte, link::kCacheLine> bytes;
};

void ring_message(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const link::RingShape shape{{65536}, 4};
  std::vector<Line> lines(shape.bytes() / link::kCacheLine);
  const std::span<std::byte> memory{lines[0].bytes.data(), shape.bytes()};
  link::prepare_ring(memory, shape);
  link::RingProducer producer(memory, shape);
  link::RingConsumer consumer(memory, shape);
  for (auto _ : state) {
    benchmark::DoNotOptimize(producer.acquire({bytes}).data());
    producer.commit({1});
    benchmark::DoNotOptimize(consumer.front());
    consumer.release(nullptr);
  }
}
BENCHMARK(ring_message)->Arg(8)->Arg(40)->Arg(41);

// One rank of two in this process.
struct Side {
  Side(link::Transport& transport, int rank, link::Descriptor stream) {
    endpoint.self = identity(rank);
    endpoint.loopback_disable = transport.carrier() != link::Carrier::none;
    endpoint.doorbell = &page->doorbell();
    endpoint.doorbell_descriptor = page->descriptor();
    connection = transport.connect(endpoint, identity(1 - rank), 0, std::move(stream), rank == 0);
  }
  static link::PeerIdentity identity(int rank) {
    return {.rank = {rank}, .host = "here", .host_id = "here", .address = "127.0.0.1:1", .local_address = "here"};
  }
  // False after an error.
  bool connect() {
    auto made = connection->progress();
    if (made.is_ok()) link = made.take();
    return made.is_ok();
  }
  void send(std::size_t bytes) {
    std::span<std::byte> memory;
    while ((memory = link->acquire({bytes})).data() == nullptr) link->progress();
    std::memset(memory.data(), 1, bytes);
    link->commit({1});
  }
  bool receive() {
    const link::Message* message = link->front();
    if (message == nullptr) {
      link->progress();
      return false;
    }
    std::memcpy(taken.data(), message->payload.data(), message->payload.size());
    benchmark::ClobberMemory();
    link->release();
    return true;
  }

  Result<link::DoorbellPage> page = link::DoorbellPage::create();
  std::vector<std::byte> taken = std::vector<std::byte>(64 << 10);
  link::Endpoint endpoint;
  std::unique_ptr<link::Connection> connection;
  std::unique_ptr<link::Link> link;
};

std::array<link::Descriptor, 2> streams(link::Carrier carrier) {
  std::array<int, 2> local{-1, -1};
  if (carrier == link::Carrier::local && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, local.data()) != 0)
    return {};
  if (carrier != link::Carrier::network) return {link::Descriptor(local[0]), link::Descriptor(local[1])};
  auto listener = link::listen_tcp("127.0.0.1", 0);
  if (!listener.is_ok()) return {};
  auto connecting = link::start_connect_tcp(listener->address);
  if (!connecting.is_ok()) return {};
  while (true) {
    auto accepted = link::accept_stream(*listener);
    if (!accepted.is_ok()) return {};
    if (*accepted) return {connecting.take(), std::move(**accepted)};
  }
}

// Two ends that are connected.
struct Pair {
  explicit Pair(link::Transport& transport) : Pair(transport, streams(transport.carrier())) {}
  Pair(link::Transport& transport, std::array<link::Descriptor, 2> ends)
      : here(transport, 0, std::move(ends[0])), there(transport, 1, std::move(ends[1])) {
    while (good && (!here.link || !there.link)) good = (here.link || here.connect()) && (there.link || there.connect());
  }
  Side here, there;
  bool good = true;
};

void round_trip(benchmark::State& state, link::Transport& transport) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Pair pair(transport);
  if (!pair.good) return state.SkipWithError("no link");
  auto& [here, there, good] = pair;
  std::atomic<bool> stop{false};
  std::thread echo([&stop, &far = there, bytes] {
    while (!stop.load(std::memory_order_relaxed))
      if (far.receive()) far.send(bytes);
  });
  for (auto _ : state) {
    here.send(bytes);
    while (!here.receive()) {
    }
  }
  stop = true;
  echo.join();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * 2 * bytes));
}

// One way: an iteration is one message that the link took.
void one_way(benchmark::State& state, link::Transport& transport) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Pair pair(transport);
  if (!pair.good) return state.SkipWithError("no link");
  std::atomic<bool> stop{false};
  std::thread taker([&stop, &there = pair.there] {
    while (!stop.load(std::memory_order_relaxed)) there.receive();
  });
  for (auto _ : state) pair.here.send(bytes);
  stop = true;
  taker.join();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  for (shoal::link::Transport* transport : shoal::transports::transports()) {
    const std::string name(transport->name());
    benchmark::RegisterBenchmark(("round_trip/" + name).c_str(),
                                 [transport](benchmark::State& state) { shoal::round_trip(state, *transport); })
        ->Arg(8)
        ->Arg(4096)
        ->Arg(65536)
        ->UseRealTime();
    benchmark::RegisterBenchmark(("one_way/" + name).c_str(),
                                 [transport](benchmark::State& state) { shoal::one_way(state, *transport); })
        ->Arg(8)
        ->Arg(4096)
        ->Arg(65536)
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
