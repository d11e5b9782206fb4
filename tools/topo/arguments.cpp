// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/arguments.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/conf_file.h"
#include "core/topo_options.h"
#include "topo/discovery.h"
#include "topo/files/host_json.h"

namespace shoal::topo_tool {

cli::CommandLine command_line(const std::string& name, const std::string& description, const std::string& usage) {
  return {fmt::format("shoal-topo {}: {}", name, description), fmt::format("shoal-topo {} {}", name, usage), kUsage};
}

void take_path(cli::CommandLine& line, const std::string& names, std::string& target, const std::string& help) {
  line.value(names, help, names.starts_with('-') ? "PATH" : "", [&target](const std::string& text) {
    target = text;
    return text.empty() ? "names no file" : "";
  });
}

void take_subject(cli::CommandLine& line, Subject& subject) {
  take_path(line, "FILE", subject.file, "A host's file, of show --json or NCCL's XML; else NCCL_TOPO_FILE's, else this machine");
  take_path(line, "--root", subject.root, "Folder with the /sys and /proc of another machine");
}

std::optional<Ending> parse(cli::CommandLine& line, const Words& words) {
  const cli::Outcome outcome = line.parse(words);
  if (outcome.proceed) return {};
  if (!outcome.is_help) return Ending{outcome.exit_code, outcome.text};
  std::fputs(outcome.text.c_str(), stdout);
  return Ending{};
}

Result<topo::Host> host_of(const Subject& subject) {
  if (!subject.file.empty() && !subject.root.empty())
    return fail(Code::invalid_argument, "--root {}: not together with FILE", subject.root);
  if (!subject.file.empty()) return topo::load_host(subject.file);
  std::error_code error;
  if (!subject.root.empty() && !std::filesystem::is_directory(subject.root, error))
    return fail(Code::invalid_argument, "--root {}: is no folder", subject.root);
  return subject.root.empty() ? this_host() : topo::discover({.root = subject.root});
}

Result<topo::Host> this_host() {
  const Result<TopoOptions> options = parse_topo_options(variable);
  if (!options.is_ok()) return options.status();
  if (options->file.empty()) return this_machine();
  Result<topo::Host> host = topo::load_host(options->file);
  if (!host.is_ok()) return fail(host.status().code(), "{}={}", options->file_variable, host.status().text());
  std::fprintf(stderr, "shoal-topo: %s=%s: in place of this machine\n", options->file_variable.c_str(), options->file.c_str());
  return host;
}

topo::Host this_machine() {
  const std::unique_ptr<topo::CudaDriver> driver = topo::open_cuda_driver();
  return topo::discover({.driver = driver.get()});
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  return file ? Status() : fail(Code::system_error, "{}: {}", path, errno_text(errno));
}

}  // namespace shoal::topo_tool
