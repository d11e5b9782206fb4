// SPDX-License-Identifier: Apache-2.0
// shoal-bench-exchange: the least that an all-reduce of 8 bytes between two hosts can take over verbs, written by hand: both
// sides post one inlined RDMA write with immediate at once and poll until the other's is here. Beside it half a round trip of the
// same writes.
//   shoal-bench-exchange DEVICE GID_INDEX ITERATIONS PORT [SERVER]      (without SERVER: the one that is connected to)
// Prints one line: "exchange E us, half a round trip R us": medians.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReceives = 128;
constexpr int kSignalEvery = 64;
constexpr std::size_t kHalf = 64;  // the peer writes into the first half of the block, what is sent lies in the second

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "shoal-bench-exchange: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T* must(T* pointer, const char* what) {
  if (pointer == nullptr) give_up(std::string(what) + ": " + std::strerror(errno));
  return pointer;
}

void must_be_zero(int result, const char* what) {
  if (result != 0) give_up(std::string(what) + ": " + std::strerror(result > 0 ? result : errno));
}

// What one side tells the other, over TCP.
struct Card {
  std::uint32_t queue_pair = 0;
  std::uint32_t key = 0;
  std::uint64_t address = 0;
  ibv_gid gid{};
};

int meet(int port, const char* server) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (server != nullptr && inet_pton(AF_INET, server, &address.sin_addr) != 1) give_up(std::string("no IPv4 address: ") + server);
  for (int tries = 0; tries < 200; ++tries) {
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    if (server != nullptr && connect(made, where, sizeof address) == 0) return made;
    const int reuse = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    if (server == nullptr && bind(made, where, sizeof address) == 0 && listen(made, 1) == 0) {
      const int peer = accept(made, nullptr, nullptr);
      close(made);
      return peer;
    }
    close(made);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  give_up("the other side was not met");
}

template <typename T>
T swap_with_peer(int stream, const T& mine) {
  T theirs;
  if (send(stream, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine ||
      recv(stream, &theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs)
    give_up("the other side has left");
  return theirs;
}

class Side {
 public:
  Side(const char* device, int gid_index, int stream) {
    context_ = open(device);
    ibv_pd* const domain = must(ibv_alloc_pd(context_), "ibv_alloc_pd");
    region_ =
        must(ibv_reg_mr(domain, block_.data(), block_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), "ibv_reg_mr");
    sends_ = must(ibv_create_cq(context_, 2 * kReceives, nullptr, nullptr, 0), "ibv_create_cq");
    receives_ = must(ibv_create_cq(context_, 2 * kReceives, nullptr, nullptr, 0), "ibv_create_cq");
    ibv_qp_init_attr shape{};
    shape.send_cq = sends_;
    shape.recv_cq = receives_;
    shape.qp_type = IBV_QPT_RC;
    shape.cap = {
        .max_send_wr = 2 * kSignalEvery, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8};
    pair_ = must(ibv_create_qp(domain, &shape), "ibv_create_qp");
    Card mine{.queue_pair = pair_->qp_num, .key = region_->rkey, .address = reinterpret_cast<std::uintptr_t>(block_.data())};
    must_be_zero(ibv_query_gid(context_, 1, gid_index, &mine.gid), "ibv_query_gid");
    peer_ = swap_with_peer(stream, mine);
    join(gid_index);
    for (int i = 0; i < kReceives; ++i) post_receive();
    swap_with_peer(stream, 'r');
  }

  void put() {
    ibv_sge from{.addr = reinterpret_cast<std::uintptr_t>(block_.data() + kHalf), .length = 8, .lkey = region_->lkey};
    ibv_send_wr write{}, *bad = nullptr;
    const bool tells = ++sent_ % kSignalEvery == 0;
    write.sg_list = &from;
    write.num_sge = 1;
    write.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    write.send_flags = IBV_SEND_INLINE | (tells ? IBV_SEND_SIGNALED : 0);
    write.wr.rdma = {.remote_addr = peer_.address, .rkey = peer_.key};
    must_be_zero(ibv_post_send(pair_, &write, &bad), "ibv_post_send");
    if (tells) wait(sends_);
  }
  void get() {
    wait(receives_);
    post_receive();
  }

 private:
  static ibv_context* open(const char* name) {
    int found = 0;
    ibv_device** const all = must(ibv_get_device_list(&found), "ibv_get_device_list");
    for (int i = 0; i < found; ++i)
      if (std::strcmp(ibv_get_device_name(all[i]), name) == 0) return must(ibv_open_device(all[i]), "ibv_open_device");
    give_up(std::string("no device ") + name);
  }

  void join(int gid_index) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    must_be_zero(ibv_modify_qp(pair_, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = IBV_MTU_256;
    to.dest_qp_num = peer_.queue_pair;
    to.max_dest_rd_atomic = 1;
    to.min_rnr_timer = 12;
    to.ah_attr.is_global = 1;
    to.ah_attr.port_num = 1;
    to.ah_attr.grh.dgid = peer_.gid;
    to.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
    to.ah_attr.grh.hop_limit = 64;
    must_be_zero(ibv_modify_qp(pair_, &to,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                 "to RTR");
    to.qp_state = IBV_QPS_RTS;
    to.timeout = 14;
    to.retry_cnt = 7;
    to.rnr_retry = 7;
    to.max_rd_atomic = 1;
    must_be_zero(ibv_modify_qp(pair_, &to,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                   IBV_QP_MAX_QP_RD_ATOMIC),
                 "to RTS");
  }

  void post_receive() {
    ibv_recv_wr request{}, *bad = nullptr;
    must_be_zero(ibv_post_recv(pair_, &request, &bad), "ibv_post_recv");
  }

  static void wait(ibv_cq* queue) {
    ibv_wc done{};
    int got = 0;
    while ((got = ibv_poll_cq(queue, 1, &done)) == 0) {
    }
    if (got < 0 || done.status != IBV_WC_SUCCESS) give_up(std::string("a write failed: ") + ibv_wc_status_str(done.status));
  }

  alignas(64) std::array<char, 2 * kHalf> block_{};
  ibv_context* context_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq* sends_ = nullptr;
  ibv_cq* receives_ = nullptr;
  ibv_qp* pair_ = nullptr;
  Card peer_;
  int sent_ = 0;
};

template <typename F>
double median_us(int iterations, F&& each) {
  std::vector<double> times;
  for (int i = 0; i < iterations; ++i) {
    const auto begin = Clock::now();
    each();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + iterations / 2, times.end());
  return times[static_cast<std::size_t>(iterations / 2)];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || std::atoi(argv[3]) < 1) give_up("usage: shoal-bench-exchange DEVICE GID_INDEX ITERATIONS PORT [SERVER]");
  const char* const server = argc > 5 ? argv[5] : nullptr;
  const int stream = meet(std::atoi(argv[4]), server);
  Side side(argv[1], std::atoi(argv[2]), stream);
  const int iterations = std::atoi(argv[3]);
  const double exchange = median_us(iterations, [&] {
    side.put();
    side.get();
  });
  const double round_trip = median_us(iterations, [&] {
    if (server != nullptr) side.put();
    side.get();
    if (server == nullptr) side.put();
  });
  std::printf("exchange %.2f us, half a round trip %.2f us\n", exchange, round_trip / 2);
  swap_with_peer(stream, 'e');  // nobody leaves while the other may still wait for an acknowledgement
}
