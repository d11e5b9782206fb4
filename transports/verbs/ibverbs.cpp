// SPDX-License-Identifier: Apache-2.0
// The face over libibverbs. What its header defines in place (posting, polling, arming) goes through the device's own table; the
// rest through functions.h.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "transports/verbs/face.h"
#include "transports/verbs/functions.h"

namespace shoal::transports::verbs {
namespace {

constexpr const char* kDevices = "/sys/class/infiniband";
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
constexpr std::uint8_t kReceiverPatience = 12;  // 0.64 ms between tries where the receiver was not ready
constexpr std::uint8_t kForEver = 7;            // such tries; its own death ends them otherwise

Status refused(const char* what, int error) { return fail(Code::system_error, "{}: {}", what, errno_text(error)); }

void never_block(int descriptor) { ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK); }

std::uint16_t bytes_of(ibv_mtu mtu) { return static_cast<std::uint16_t>(128u << static_cast<unsigned>(mtu)); }
ibv_mtu mtu_of(std::uint16_t bytes) {
  int code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && bytes_of(static_cast<ibv_mtu>(code + 1)) <= bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

// Lanes times the speed of one, in the codes of the InfiniBand specification.
double bandwidth(const ibv_port_attr& port) {
  constexpr std::array<std::pair<int, double>, 9> kGbps = {
      {{1, 2.5}, {2, 5}, {4, 10}, {8, 10}, {16, 14}, {32, 25}, {64, 50}, {128, 100}, {0, 0}}};
  constexpr std::array<std::pair<int, int>, 6> kLanes = {{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}, {0, 0}}};
  double gbps = 0;
  int lanes = 0;
  for (const auto& [code, speed] : kGbps)
    if (port.active_speed == code) gbps = speed;
  for (const auto& [code, count] : kLanes)
    if (port.active_width == code) lanes = count;
  return gbps * 1e9 / 8 * lanes;
}

Outcome outcome_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS: return Outcome::ok;
    case IBV_WC_WR_FLUSH_ERR: return Outcome::flushed;
    case IBV_WC_RETRY_EXC_ERR: return Outcome::retries_exceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR: return Outcome::receiver_not_ready;
    case IBV_WC_REM_ACCESS_ERR: return Outcome::remote_access;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_REM_INV_REQ_ERR: return Outcome::remote_error;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR: return Outcome::local_error;
    default: return Outcome::other;  // datagrams, memory windows, vendors' own
  }
}

class IbRegion final : public Region {
 public:
  IbRegion(const Functions& f, ibv_mr* mr) : f_(f), mr_(mr) {}
  ~IbRegion() override { f_.dereg_mr(mr_); }
  std::uint32_t local_key() const override { return mr_->lkey; }
  std::uint32_t remote_key() const override { return mr_->rkey; }

 private:
  const Functions& f_;
  ibv_mr* mr_;
};

class IbCompletions final : public Completions {
 public:
  IbCompletions(const Functions& f, ibv_comp_channel* channel) : f_(f), channel_(channel) { never_block(channel->fd); }
  ~IbCompletions() override {
    take_events();  // the library waits for those that are not acknowledged
    if (writes_ != nullptr) f_.destroy_cq(writes_);
    if (receives_ != nullptr) f_.destroy_cq(receives_);
    f_.destroy_comp_channel(channel_);
  }
  Status open(ibv_context* context, int writes, int receives) {
    writes_ = f_.create_cq(context, writes, nullptr, channel_, 0);
    receives_ = writes_ == nullptr ? nullptr : f_.create_cq(context, receives, nullptr, channel_, 0);
    return receives_ != nullptr ? Status() : refused("no completion queue", errno);
  }

  int poll_writes(std::span<Completion> into) override { return poll(writes_, into); }
  int poll_receives(std::span<Completion> into) override { return poll(receives_, into); }
  bool arm_receives() override { return ::ibv_req_notify_cq(receives_, 0) == 0; }
  bool arm_writes() override { return ::ibv_req_notify_cq(writes_, 0) == 0; }
  int descriptor() const override { return channel_->fd; }
  void take_events() override {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (f_.get_cq_event(channel_, &cq, &context) == 0) f_.ack_cq_events(cq, 1);
  }

  ibv_cq* writes() const { return writes_; }
  ibv_cq* receives() const { return receives_; }

 private:
  static constexpr int kAtOnce = 16;
  static int poll(ibv_cq* cq, std::span<Completion> into) {
    std::array<ibv_wc, kAtOnce> found;
    const int got = ::ibv_poll_cq(cq, std::min(kAtOnce, static_cast<int>(into.size())), found.data());
    for (int i = 0; i < got; ++i) {
      const ibv_wc& each = found[static_cast<std::size_t>(i)];
      into[static_cast<std::size_t>(i)] = {.id = each.wr_id,
                                           .queue_pair = each.qp_num,
                                           .immediate = be32toh(each.imm_data),
                                           .outcome = outcome_of(each.status),
                                           .code = static_cast<int>(each.status)};
    }
    return got;
  }

  const Functions& f_;
  ibv_comp_channel* channel_;
  ibv_cq* writes_ = nullptr;
  ibv_cq* receives_ = nullptr;
};

class IbQueuePair final : public QueuePair {
 public:
  IbQueuePair(const Functions& f, ibv_qp* qp, std::size_t inline_bytes) : f_(f), qp_(qp), inline_bytes_(inline_bytes) {}
  ~IbQueuePair() override { f_.destroy_qp(qp_); }

  std::uint32_t number() const override { return qp_->qp_num; }
  std::size_t inline_bytes() const override { return inline_bytes_; }

  Status initialise(int port) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.pkey_index = 0;
    attr.port_num = static_cast<std::uint8_t>(port);
    attr.qp_access_flags = kAccess;
    const int error = f_.modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return error == 0 ? Status() : refused("a queue pair cannot be initialised", error);
  }

  Status post_receives(int count) override {
    ibv_recv_wr empty{};
    for (; count > 0; --count) {
      ibv_recv_wr* bad = nullptr;
      if (const int error = ::ibv_post_recv(qp_, &empty, &bad); error != 0) return refused("a receive cannot be posted", error);
    }
    return {};
  }

  Status connect(const Path& path, const RemoteEnd& remote) override {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = mtu_of(path.mtu);
    attr.dest_qp_num = remote.queue_pair;
    attr.rq_psn = remote.first_packet;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = kReceiverPatience;
    attr.ah_attr.port_num = path.port;
    attr.ah_attr.sl = path.service_level;
    attr.ah_attr.dlid = remote.lid;
    if (path.global) {
      attr.ah_attr.is_global = 1;
      std::memcpy(attr.ah_attr.grh.dgid.raw, remote.gid.bytes.data(), remote.gid.bytes.size());
      attr.ah_attr.grh.sgid_index = path.gid_index;
      attr.ah_attr.grh.hop_limit = 255;
      attr.ah_attr.grh.traffic_class = path.traffic_class;
    }
    int error = f_.modify_qp(qp_, &attr,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error != 0) return refused("a queue pair cannot be made ready to receive", error);
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = path.timeout;
    attr.retry_cnt = path.retry_count;
    attr.rnr_retry = kForEver;
    attr.sq_psn = path.first_packet;
    attr.max_rd_atomic = 1;
    error = f_.modify_qp(
        qp_, &attr,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return error == 0 ? Status() : refused("a queue pair cannot be made ready to send", error);
  }

  Status post(const Write& write) override {
    ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(write.from.data()),
                  .length = static_cast<std::uint32_t>(write.from.size()),
                  .lkey = write.local_key};
    ibv_send_wr request{};
    request.wr_id = write.id;
    request.sg_list = &piece;
    request.num_sge = write.from.empty() ? 0 : 1;
    request.opcode = write.immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    if (write.signalled) request.send_flags |= IBV_SEND_SIGNALED;
    if (write.inlined) request.send_flags |= IBV_SEND_INLINE;
    request.imm_data = htobe32(write.immediate.value_or(0));
    request.wr.rdma.remote_addr = write.to;
    request.wr.rdma.rkey = write.remote_key;
    ibv_send_wr* bad = nullptr;
    const int error = ::ibv_post_send(qp_, &request, &bad);
    return error == 0 ? Status() : refused("a write cannot be posted", error);
  }

 private:
  const Functions& f_;
  ibv_qp* qp_;
  std::size_t inline_bytes_;
};

class IbContext final : public Context {
 public:
  IbContext(const Functions& f, ibv_context* context, ibv_pd* pd, int ports) : f_(f), context_(context), pd_(pd), ports_(ports) {
    never_block(context->async_fd);
  }
  ~IbContext() override {
    f_.dealloc_pd(pd_);
    f_.close_device(context_);
  }

  int ports() const override { return ports_; }

  Result<PortFacts> port(int number) override {
    ibv_port_attr attr{};
    const int error = f_.query_port(context_, static_cast<std::uint8_t>(number), reinterpret_cast<_compat_ibv_port_attr*>(&attr));
    if (error != 0) return refused("the port cannot be queried", error);
    return PortFacts{.active = attr.state == IBV_PORT_ACTIVE,
                     .ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET,
                     .lid = attr.lid,
                     .mtu = bytes_of(attr.active_mtu),
                     .bandwidth_Bps = bandwidth(attr)};
  }

  Result<std::vector<GidEntry>> gids(int port) override {
    constexpr std::size_t kMost = 1024;  // of all ports; the kernel takes a table of less than 64 KiB
    std::vector<ibv_gid_entry> table(kMost);
    const ssize_t count = f_.query_gid_table(context_, table.data(), table.size(), 0, sizeof table.front());
    if (count < 0) return refused("the GIDs cannot be queried", static_cast<int>(-count));
    std::vector<GidEntry> found;
    for (const ibv_gid_entry& entry : std::span(table).first(static_cast<std::size_t>(count))) {
      if (entry.port_num != static_cast<std::uint32_t>(port)) continue;
      GidEntry& made = found.emplace_back();
      std::memcpy(made.gid.bytes.data(), entry.gid.raw, made.gid.bytes.size());
      made.kind = entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? GidKind::roce_v2
                  : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidKind::roce_v1
                                                           : GidKind::infiniband;
      made.index = static_cast<int>(entry.gid_index);
    }
    return found;
  }

  Result<std::unique_ptr<Region>> pin(std::span<std::byte> memory) override {
    return own(f_.reg_mr(pd_, memory.data(), memory.size(), kAccess));
  }
  Result<std::unique_ptr<Region>> pin_dmabuf(int descriptor, std::uint64_t offset, std::size_t bytes,
                                             std::uint64_t address) override {
    if (f_.reg_dmabuf_mr == nullptr) return fail(Code::system_error, "{} has no ibv_reg_dmabuf_mr", kLibrary);
    return own(f_.reg_dmabuf_mr(pd_, offset, bytes, address, descriptor, kAccess));
  }

  Result<std::unique_ptr<Completions>> completions(int writes, int receives) override {
    ibv_comp_channel* const channel = f_.create_comp_channel(context_);
    if (channel == nullptr) return refused("no completion channel", errno);
    auto made = std::make_unique<IbCompletions>(f_, channel);
    if (Status opened = made->open(context_, writes, receives); !opened.is_ok()) return opened;
    return std::unique_ptr<Completions>(std::move(made));
  }

  Result<std::unique_ptr<QueuePair>> queue_pair(Completions& completions, int port, const QueueShape& shape) override {
    const auto& ours = static_cast<const IbCompletions&>(completions);
    ibv_qp_init_attr attr{};
    attr.send_cq = ours.writes();
    attr.recv_cq = ours.receives();
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = static_cast<std::uint32_t>(shape.writes);
    attr.cap.max_recv_wr = static_cast<std::uint32_t>(shape.receives);
    attr.cap.max_send_sge = 1;
    attr.cap.max_recv_sge = 1;
    attr.cap.max_inline_data = static_cast<std::uint32_t>(shape.inline_bytes);
    ibv_qp* qp = f_.create_qp(pd_, &attr);
    if (qp == nullptr && shape.inline_bytes > 0) {  // a device that inlines less, and does not say how much
      attr.cap.max_inline_data = 0;
      qp = f_.create_qp(pd_, &attr);
    }
    if (qp == nullptr) return refused("no queue pair", errno);
    auto made = std::make_unique<IbQueuePair>(f_, qp, attr.cap.max_inline_data);
    if (Status ready = made->initialise(port); !ready.is_ok()) return ready;
    return std::unique_ptr<QueuePair>(std::move(made));
  }

  std::optional<Event> next_event() override {
    ibv_async_event event{};
    if (f_.get_async_event(context_, &event) != 0) return std::nullopt;
    const Event found = translate(event);
    f_.ack_async_event(&event);
    return found;
  }

 private:
  Result<std::unique_ptr<Region>> own(ibv_mr* mr) {
    if (mr == nullptr) return refused("the device cannot pin it", errno);
    return std::unique_ptr<Region>(std::make_unique<IbRegion>(f_, mr));
  }
  static Event translate(const ibv_async_event& event) {
    switch (event.event_type) {
      case IBV_EVENT_PORT_ERR: return {Event::Kind::port_down, event.element.port_num};
      case IBV_EVENT_PORT_ACTIVE: return {Event::Kind::port_up, event.element.port_num};
      case IBV_EVENT_DEVICE_FATAL: return {Event::Kind::device_gone, 0};
      default: return {};
    }
  }

  const Functions& f_;
  ibv_context* context_;
  ibv_pd* pd_;
  int ports_;
};

class IbVerbs final : public Verbs {
 public:
  explicit IbVerbs(const Functions& f) : f_(f) {}

  Result<std::vector<std::string>> devices(std::vector<std::string>& unsuited) override {
    std::vector<std::string> names;
    const Status listed = with_list([&](ibv_device* device) {
      const std::string name = f_.get_device_name(device);
      const bool suits = device->transport_type == IBV_TRANSPORT_IB && device->node_type == IBV_NODE_CA;
      (suits ? names : unsuited).push_back(name);
    });
    if (!listed.is_ok()) return listed;
    return names;
  }

  Result<std::unique_ptr<Context>> open(const std::string& name) override {
    ibv_context* context = nullptr;
    int error = ENODEV;
    const Status listed = with_list([&](ibv_device* device) {
      if (context != nullptr || name != f_.get_device_name(device)) return;
      context = f_.open_device(device);
      error = errno;
    });
    if (!listed.is_ok()) return listed;
    if (context == nullptr) return refused("the device cannot be opened", error);
    ibv_device_attr attr{};
    ibv_pd* pd = nullptr;
    if (f_.query_device(context, &attr) != 0 || (pd = f_.alloc_pd(context)) == nullptr) {
      error = errno;
      f_.close_device(context);
      return refused("the device gives no protection domain", error);
    }
    return std::unique_ptr<Context>(std::make_unique<IbContext>(f_, context, pd, attr.phys_port_cnt));
  }

 private:
  template <typename F>
  Status with_list(F&& f) {
    int count = 0;
    ibv_device** const list = f_.get_device_list(&count);
    if (list == nullptr) return refused("the devices cannot be listed", errno);
    for (int i = 0; i < count; ++i) f(list[i]);
    f_.free_device_list(list);
    return {};
  }

  const Functions& f_;
};

}  // namespace

Result<std::unique_ptr<Verbs>> open_ibverbs() {
  // The library has no other source, and takes a millisecond to find that out.
  std::error_code error;
  if (std::filesystem::is_empty(kDevices, error) || error)
    return fail(Code::system_error, "there is no device ({} is empty, or not there)", kDevices);
  static const Result<Functions> functions = load_functions();
  if (!functions.is_ok()) return functions.status();
  return std::unique_ptr<Verbs>(std::make_unique<IbVerbs>(*functions));
}

}  // namespace shoal::transports::verbs
