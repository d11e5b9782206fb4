// SPDX-License-Identifier: Apache-2.0
#include "topo/limits.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>

#include "core/split.h"

namespace shoal::topo {
namespace {

// The folder of this process's control group, and the one above which there is none of its hierarchy.
struct Group {
  std::string folder, mount;
};

bool has_word(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Where the group `path` of a hierarchy is mounted, whose line in /proc/self/mountinfo `is_it` knows by file system and options.
template <typename IsIt>
std::optional<Group> mounted(const SystemFiles& files, const std::string& path, IsIt is_it) {
  for (const std::string& line : files.lines("/proc/self/mountinfo")) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto before = split(std::string_view(line).substr(0, dash), ' ');
    const auto after = split(std::string_view(line).substr(dash + 3), ' ');
    if (before.size() < 6 || after.size() < 3 || !is_it(after[0], after[2])) continue;
    const std::string root(before[3] == "/" ? "" : before[3]), mount(before[4]);
    // In a container the mount may begin in the middle of the hierarchy.
    return Group{mount + (path.starts_with(root) ? path.substr(root.size()) : ""), mount};
  }
  return std::nullopt;
}

// Of a controller in version 1, or of version 2 for the empty name.
std::optional<Group> group(const SystemFiles& files, std::string_view controller) {
  for (const std::string& line : files.lines("/proc/self/cgroup")) {
    const auto parts = split(line, ':');
    if (parts.size() < 3 || !(controller.empty() ? parts[0] == "0" && parts[1].empty() : has_word(parts[1], controller)))
      continue;
    std::string path(line, parts[0].size() + parts[1].size() + 2);
    if (path == "/") path.clear();
    return mounted(files, path, [&](std::string_view type, std::string_view options) {
      return controller.empty() ? type == "cgroup2" : type == "cgroup" && has_word(options, controller);
    });
  }
  return std::nullopt;
}

// Calls `each` with the group's folder and those above it.
template <typename Each>
void upwards(const std::optional<Group>& group, Each each) {
  if (!group) return;
  std::string folder = group->folder;
  each(folder);
  while (folder.size() > group->mount.size()) {
    folder.erase(folder.rfind('/'));
    each(folder);
  }
}

// "max 100000" or "200000 100000": microseconds in a period.
std::optional<double> quota_v2(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto parts = split(*text, ' ');
  double quota = 0, period = 100'000;
  const auto read = [](std::string_view part, double& value) {
    return std::from_chars(part.data(), part.data() + part.size(), value).ec == std::errc{} && value > 0;
  };
  if (!read(parts[0], quota) || (parts.size() > 1 && !read(parts[1], period))) return std::nullopt;
  return quota / period;
}

std::optional<double> find_quota(const SystemFiles& files) {
  std::optional<double> least;
  const auto take = [&](std::optional<double> quota) {
    if (quota && (!least || *quota < *least)) least = quota;
  };
  upwards(group(files, ""), [&](const std::string& folder) { take(quota_v2(files.line(folder + "/cpu.max"))); });
  upwards(group(files, "cpu"), [&](const std::string& folder) {
    const auto quota = files.number(folder + "/cpu.cfs_quota_us"), period = files.number(folder + "/cpu.cfs_period_us");
    if (quota && period && *period > 0 && *quota > 0) take(static_cast<double>(*quota) / static_cast<double>(*period));
  });
  return least;
}

}  // namespace

std::optional<ProcessorSet> cgroup_processors(const SystemFiles& files) {
  std::optional<ProcessorSet> found;
  const auto take = [&](const std::string& path) {
    const auto line = files.line(path);
    if (found || !line || line->empty()) return;
    if (const auto set = parse_processors(*line); set.is_ok()) found = *set;
  };
  upwards(group(files, ""), [&](const std::string& folder) { take(folder + "/cpuset.cpus.effective"); });
  upwards(group(files, "cpuset"), [&](const std::string& folder) { take(folder + "/cpuset.cpus"); });
  return found;
}

Limits find_limits(const SystemFiles& files) {
  Limits limits{.cpu_quota = find_quota(files)};
  if (!files.is_this_machine()) return limits;
  struct statvfs shm = {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    limits.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    limits.shm_free_bytes = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  rlimit locked = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0)
    limits.memlock_bytes = locked.rlim_cur == RLIM_INFINITY ? Limits::kUnlimited : std::uint64_t{locked.rlim_cur};
  return limits;
}

}  // namespace shoal::topo
