// SPDX-License-Identifier: Apache-2.0
// Arguments that several commands take. One thread; the targets belong to the caller.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"
#include "tools/cli/command_line.h"
#include "tools/topo/commands.h"
#include "topo/host.h"

namespace shoal::topo_tool {

// Which host a command is about.
struct Subject {
  std::string file;  // "": this_host()
  std::string root;
};

cli::CommandLine command_line(const std::string& name, const std::string& description, const std::string& usage);
void take_subject(cli::CommandLine& line, Subject& subject);  // FILE, --root
void take_path(cli::CommandLine& line, const std::string& names, std::string& target, const std::string& help);

// Nothing if the command goes on; else how it ended, help being printed.
std::optional<Ending> parse(cli::CommandLine& line, const Words& words);

Result<topo::Host> host_of(const Subject& subject);

// What the library would take this host for: the file that NCCL_TOPO_FILE names, which a line on standard error then says, else
// this machine.
Result<topo::Host> this_host();

// This machine, with what CUDA's driver knows, which a program may start.
topo::Host this_machine();

inline Ending usage(const Status& status) { return {kUsage, std::string(status.text())}; }

// Writes a file as a whole.
Status write_file(const std::string& path, const std::string& text);

}  // namespace shoal::topo_tool
