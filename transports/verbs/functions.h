// SPDX-License-Identifier: Apache-2.0
// libibverbs' functions, looked up by name in the library, which is opened when it is first wanted, and stays.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace shoal::transports::verbs {

inline constexpr const char* kLibrary = "libibverbs.so.1";

// The library's functions that are no part of a device's table.
struct Functions {
  decltype(&::ibv_fork_init) fork_init;
  ibv_device** (*get_device_list)(int*);
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  int (*query_port)(ibv_context*, std::uint8_t, _compat_ibv_port_attr*);
  decltype(&::_ibv_query_gid_table) query_gid_table;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr;  // null before rdma-core 34
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
};

// Opens the library; an error says what is missing.
Result<Functions> load_functions();

}  // namespace shoal::transports::verbs
