// SPDX-License-Identifier: Apache-2.0
// A peer that sends messages with any headers, of any length, in any order, while this side reads, releases and expects as it
// may: what is shown is whole and in order, and all that UCX let this side keep is given back once.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "transports/ucx/context.h"
#include "transports/ucx/fake_ucx.h"
#include "transports/ucx/receiver.h"

namespace {

using namespace shoal::transports::ucx;

constexpr std::size_t kMax = 200;

int fetched = 0;

class Input {
 public:
  Input(const unsigned char* data, std::size_t size) : rest_(data, size) {}
  bool is_over() const { return rest_.empty(); }
  unsigned byte() {
    if (rest_.empty()) return 0;
    const unsigned first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }

 private:
  std::span<const unsigned char> rest_;
};

std::shared_ptr<Worker> make_worker() {
  Api api = fake_api();
  api.am_recv_data_nbx = [](ucp_worker_h, void* from, void* into, std::size_t bytes,
                            const ucp_request_param_t*) -> ucs_status_ptr_t {
    ++fetched;
    if (bytes > 0) std::memcpy(into, from, bytes);
    return nullptr;
  };
  auto context = Context::create(api);
  if (!context.is_ok()) std::abort();
  auto worker = Worker::create(context.take());
  if (!worker.is_ok()) std::abort();
  return worker.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const std::shared_ptr<Worker> worker = make_worker();
  fake_ucx().released = fetched = 0;
  int kept = 0;
  Input input(data, size);
  std::deque<std::vector<std::byte>> sent;
  std::vector<std::byte> target(kMax);
  Receiver receiver(*worker, {kMax}, 2);
  std::uint32_t released = 0;
  while (!input.is_over()) {
    switch (input.byte() % 4) {
      case 0: {
        // A message says its number in its tag and in every byte.
        const std::uint32_t number = released + input.byte() - 2;
        const std::size_t bytes = input.byte();
        std::vector<std::byte>& payload =
            sent.emplace_back(bytes + 1, static_cast<std::byte>(number));  // UCX's pointers are never null
        const unsigned how = input.byte();
        const FrameHeader header{.number = number, .tag = number, .kind = static_cast<Kind>(how % 4)};
        const std::uint64_t flags = (how & 16) != 0   ? UCP_AM_RECV_ATTR_FLAG_RNDV
                                    : (how & 32) != 0 ? UCP_AM_RECV_ATTR_FLAG_DATA
                                                      : 0;
        const ucs_status_t took = receiver.take(header, payload.data(), bytes, flags);
        if (took != UCS_OK && took != UCS_INPROGRESS) std::abort();
        if (took == UCS_INPROGRESS) ++kept;
        const bool may_be = bytes <= kMax && (header.kind == Kind::eager || header.kind == Kind::direct);
        if (!may_be && receiver.violation().empty()) std::abort();
        break;
      }
      case 1:
        if (const shoal::link::Message* message = receiver.front()) {
          if (message->tag.value != released || message->payload.size() > kMax) std::abort();
          for (const std::byte each : message->payload)
            if (each != static_cast<std::byte>(released)) std::abort();
          receiver.release();
          ++released;
        }
        break;
      case 2: receiver.expect(std::span(target).first(std::min<std::size_t>(input.byte(), kMax))); break;
      case 3: receiver.move(); break;
    }
  }
  receiver.drop();
  if (kept != fake_ucx().released + fetched) std::abort();
  return 0;
}
