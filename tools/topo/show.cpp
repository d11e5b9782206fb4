// SPDX-License-Identifier: Apache-2.0
// shoal-topo show: a host as a tree, a picture, or a file.
#include <cstdio>

#include "tools/topo/arguments.h"
#include "tools/topo/outline.h"
#include "tools/topo/picture.h"
#include "topo/files/host_json.h"
#include "topo/files/nccl_xml.h"

namespace shoal::topo_tool {

Ending show(const Words& words) {
  Subject subject;
  std::string svg;
  bool json = false, xml = false;
  cli::CommandLine line = command_line("show", "what a host is made of.", "[FILE] [OPTIONS]");
  take_subject(line, subject);
  take_path(line, "--svg", svg, "Draws it into this file");
  line.flag("--json", json, "As JSON, everything that is known");
  line.flag("--nccl-xml", xml, "As XML of NCCL's kind (NCCL_TOPO_FILE)");
  if (const auto ending = parse(line, words)) return *ending;
  if (json && xml) return {kUsage, "--nccl-xml: not together with --json"};
  const Result<topo::Host> host = host_of(subject);
  if (!host.is_ok()) return usage(host.status());

  const Branch tree = outline(*host);
  if (!svg.empty()) {
    if (Status s = write_file(svg, picture(tree)); !s.is_ok()) return {kFound, "--svg " + std::string(s.text())};
    if (!json && !xml) return {};
  }
  if (json) {
    std::fputs(topo::json_of(*host).c_str(), stdout);
  } else if (xml) {
    std::fputs(topo::nccl_xml_of(*host).c_str(), stdout);
  } else {
    std::string text = tree_text(tree);
    for (const std::string& matrix : {matrix_text(*host), p2p_text(*host)}) text += (matrix.empty() ? "" : "\n") + matrix;
    std::fputs(text.c_str(), stdout);
  }
  return {};
}

}  // namespace shoal::topo_tool
