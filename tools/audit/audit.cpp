// SPDX-License-Identifier: Apache-2.0
// libshoal-audit.so: gives Shoal to programs that would load NCCL from a place which LD_LIBRARY_PATH does not reach, as those
// with a fixed RPATH do. Named in LD_AUDIT, the dynamic linker asks it where each library is; it answers for every libnccl.so*
// and leaves all others alone. Lives in a namespace of its own, so it uses nothing but the C library.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// libnccl.so, libnccl.so.2, libnccl.so.2.28.9; not libnccl.so.20, nor libnccl-net.so.
bool is_nccl(const char* name) {
  const char* const slash = std::strrchr(name, '/');
  const char* const file = slash != nullptr ? slash + 1 : name;
  constexpr std::size_t kStem = sizeof "libnccl.so" - 1;
  if (std::strncmp(file, "libnccl.so", kStem) != 0) return false;
  const char* const version = file + kStem;
  return *version == '\0' || (std::strncmp(version, ".2", 2) == 0 && (version[2] == '\0' || version[2] == '.'));
}

// SHOAL_NCCL_PATH, or the libnccl.so.2 beside this file; null, once a process with a complaint, if that cannot be read.
const char* replacement() {
  static std::array<char, 4096> path;
  if (path[0] != '\0') return path.data();
  const char* const given = std::getenv("SHOAL_NCCL_PATH");
  int length = 0;
  if (given != nullptr && *given != '\0') {
    length = std::snprintf(path.data(), path.size(), "%s", given);
  } else {
    Dl_info self;
    if (dladdr(reinterpret_cast<const void*>(&is_nccl), &self) == 0 || self.dli_fname == nullptr) return nullptr;
    const char* const slash = std::strrchr(self.dli_fname, '/');
    const int folder = slash != nullptr ? static_cast<int>(slash - self.dli_fname) : 1;
    length = std::snprintf(path.data(), path.size(), "%.*s/libnccl.so.2", folder, slash != nullptr ? self.dli_fname : ".");
  }
  if (length > 0 && static_cast<std::size_t>(length) < path.size() && access(path.data(), R_OK) == 0) return path.data();
  static bool said = false;
  if (!said) std::fprintf(stderr, "libshoal-audit: %s: %s; NCCL is loaded as without it\n", path.data(), std::strerror(errno));
  said = true;
  path[0] = '\0';
  return nullptr;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] unsigned int la_version(unsigned int offered) {
  return offered < LAV_CURRENT ? offered : LAV_CURRENT;
}

// Asked with the name as the program has it first, then with each place the linker would look.
[[gnu::visibility("default")]] char* la_objsearch(const char* name, uintptr_t*, unsigned int flag) {
  const char* const instead = flag == LA_SER_ORIG && is_nccl(name) ? replacement() : nullptr;
  return const_cast<char*>(instead != nullptr ? instead : name);
}

}  // extern "C"
