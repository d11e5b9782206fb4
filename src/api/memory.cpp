// SPDX-License-Identifier: Apache-2.0
// Memory of the library's own making, and buffers that the user announces. Registration changes no result.
#include "api/errors.h"
#include "api/group.h"
#include "api/handle.h"
#include "device/host_memory.h"

namespace {

using namespace shoal;
using namespace shoal::api;
using comm::Registrations;

Status register_buffer(ncclComm_t comm, const void* start, std::size_t size, void** handle) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  if (Status s = require(handle, "handle"); !s.is_ok()) return s;
  if (Status s = require(start, "buff"); !s.is_ok()) return s;
  if (size == 0) return fail(Code::invalid_argument, "size is 0: there is nothing to register");
  const std::uintptr_t made = entered->communicator().registrations().add({Registrations::Kind::buffer, start, {size}});
  *handle = reinterpret_cast<void*>(made);
  return {};
}

Status deregister_buffer(ncclComm_t comm, const void* handle) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  if (handle == nullptr) return {};
  if (entered->communicator().registrations().remove(Registrations::Kind::buffer, reinterpret_cast<std::uintptr_t>(handle)))
    return {};
  return fail(Code::invalid_usage, "handle {} is no registered buffer of this communicator, or was deregistered already", handle);
}

}  // namespace

extern "C" {

ncclResult_t pncclMemAlloc(void** ptr, size_t size) {
  return guarded("ncclMemAlloc", [&]() -> Status {
    if (Status s = require(ptr, "ptr"); !s.is_ok()) return s;
    Result<void*> made = device::allocate_host({size});
    if (!made.is_ok()) return made.status();
    *ptr = *made;
    return {};
  });
}

ncclResult_t pncclMemFree(void* ptr) {
  return guarded("ncclMemFree", [&] { return device::free_host(ptr); });
}

ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded("ncclCommRegister", [&] { return poison_group(register_buffer(comm, buff, size, handle)); });
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle) {
  return guarded("ncclCommDeregister", [&] { return poison_group(deregister_buffer(comm, handle)); });
}

[[gnu::weak, gnu::alias("pncclMemAlloc")]] decltype(pncclMemAlloc) ncclMemAlloc;
[[gnu::weak, gnu::alias("pncclMemFree")]] decltype(pncclMemFree) ncclMemFree;
[[gnu::weak, gnu::alias("pncclCommRegister")]] decltype(pncclCommRegister) ncclCommRegister;
[[gnu::weak, gnu::alias("pncclCommDeregister")]] decltype(pncclCommDeregister) ncclCommDeregister;

}  // extern "C"
