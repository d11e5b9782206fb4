// SPDX-License-Identifier: Apache-2.0
// Variables that stand in files: NCCL_CONF_FILE, or else ~/.nccl.conf, and then /etc/nccl.conf, with KEY=VALUE lines and # at the
// start of comments. What the environment sets wins over a file, the first file over the second. Nothing in a file is fatal.
// Any thread; files are read once a process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

struct ConfFile {
  std::map<std::string, std::string> values;  // only NCCL_... and SHOAL_...; of several lines for one name the first counts
  std::vector<std::string> complaints;        // each names the file and the line
};

// Pure; `path` is for the complaints.
ConfFile parse_conf_file(std::string_view text, std::string_view path);

// The process's variable of this name, from its environment or its files. SHOAL_X of a file does not hide NCCL_X of the
// environment.
std::optional<std::string> variable(const char* name);
// The names of all NCCL_... and SHOAL_... of this process, set here or there, sorted.
std::vector<std::string> variables_set();
// What is wrong with the process's files.
const std::vector<std::string>& conf_complaints();

}  // namespace shoal
