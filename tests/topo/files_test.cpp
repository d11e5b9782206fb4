// SPDX-License-Identifier: Apache-2.0
// Hosts as files: what is written is read back, what is wrong is refused with its place.
#include <catch2/catch.hpp>

#include "topo/files/host_json.h"
#include "topo/files/nccl_xml.h"
#include "topo/files/xml.h"
#include "topo/samples.h"

using namespace shoal::topo;
using namespace shoal::testing;

namespace {

std::string error_of_xml(const std::string& text) {
  const auto host = parse_nccl_xml(text);
  return host.is_ok() ? "" : std::string(host.status().text());
}
std::string error_of_json(const std::string& text) {
  const auto host = parse_host(text);
  return host.is_ok() ? "" : std::string(host.status().text());
}
std::string in_cpu(const std::string& text) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + text + "\n</cpu></system>";
}

}  // namespace

TEST_CASE("every sample: JSON holds the whole host, XML what it can say of it") {
  for (const char* name : kHostSamples) {
    INFO(name);
    const auto host = load_host(sample(name));
    INFO(host.status().text());
    REQUIRE(host.is_ok());
    const auto again = parse_host(json_of(*host));
    REQUIRE(again.is_ok());
    CHECK(*again == *host);

    const std::string xml = nccl_xml_of(*host);
    const auto from_xml = parse_nccl_xml(xml);
    INFO(from_xml.status().text());
    REQUIRE(from_xml.is_ok());
    CHECK(nccl_xml_of(*from_xml) == xml);
    CHECK(from_xml->pci.size() == host->pci.size());
    CHECK(from_xml->gpus.size() == host->gpus.size());
    CHECK(from_xml->nodes.size() == host->nodes.size());
  }
}

TEST_CASE("NCCL's XML: a file of NCCL's becomes the host that it describes") {
  const auto host = load_host(sample("workstation4.xml"));
  REQUIRE(host.is_ok());
  CHECK(text_of(host->processors) == "0-31");
  CHECK(host->architecture == "x86_64");
  REQUIRE(host->gpus.size() == 4);
  CHECK(host->gpus[1].links == std::vector<GpuLink>{{.peer = 0, .links = 4}});
  CHECK(host->gpus[2].links.empty());
  CHECK(host->gpus[3].compute_capability == 86);
  CHECK(host->pci[static_cast<std::size_t>(host->gpus[3].pci)].width == 8);
  CHECK(host->gpus[3].numa == 0);
  REQUIRE(host->interfaces.size() == 1);
  CHECK(host->interfaces[0].Mbps == 10000);
  CHECK(host->packages[0].family == 25);

  const auto mixed = load_host(sample("mixed_a.xml"));
  REQUIRE(mixed.is_ok());
  REQUIRE(mixed->rdma.size() == 1);
  CHECK(mixed->rdma[0].ports.size() == 2);
  CHECK(mixed->rdma[0].guid == "1c34:da03:006b:4f2e");
  CHECK(mixed->interfaces[0].pci == -1);
  CHECK_FALSE(mixed->interfaces[0].numa.has_value());  // numaid -1 is unknown, and no index
}

TEST_CASE("NCCL's XML: switches of NVLink, whatever their bus ids") {
  const auto host = parse_nccl_xml(in_cpu(R"(<pci busid="0000:07:00.0" class="0x030200"><gpu dev="0" sm="80">
    <nvlink target="0000:c4:00.0" count="2" tclass="0x068000"/>
    <nvlink target="fffffff:ffff:ff" count="10" tclass="0x068000"/></gpu></pci>)"));
  REQUIRE(host.is_ok());
  CHECK(host->gpus[0].links == std::vector<GpuLink>{{.peer = GpuLink::kSwitch, .links = 12}});
}

TEST_CASE("FC-40: bad files are refused with line and reason") {
  const auto error = [](const char* name) { return std::string(load_host(sample(std::string("bad/") + name)).status().text()); };
  CHECK(error("truncated.xml").find("truncated.xml: line 6: ") != std::string::npos);
  CHECK(error("unknown_tag.xml").ends_with("unknown_tag.xml: line 3: <bridge>: only <pci> and <nic> may be here"));
  CHECK(error("no_such_bus_id.xml").ends_with("line 5: <nvlink>: target 0000:99:00.0: the file has no GPU of this bus id"));
  CHECK(error("twice.xml").ends_with("line 4: <pci>: busid 0000:23:00.0 is in line 3, too"));
  CHECK(error("cycle.json")
            .ends_with("cycle.json: pci[0] (0000:20:01.1): parent is 1: parents stand before their children, -1 is none"));
  CHECK(error("nosuch.xml").find("nosuch.xml: No such file or directory") != std::string::npos);
}

TEST_CASE("NCCL's XML: every number and name is looked at") {
  CHECK(error_of_xml("<systems/>") == "line 1: <systems>: the outermost element is <system>");
  CHECK(error_of_xml("<system version=\"2\"/>") == "line 1: <system>: version 2: only version 1 is known");
  CHECK(error_of_xml("<system><cpu/></system>") == "line 1: <cpu>: numaid is missing");
  CHECK(error_of_xml("<system><cpu numaid=\"x\"/></system>") == "line 1: <cpu>: numaid=\"x\" is no number from -1 to 65535");
  CHECK(error_of_xml("<system><cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>") == "line 2: <cpu>: numaid 0 is there twice");
  CHECK(error_of_xml("<system><cpu numaid=\"0\" affinity=\"xyz\"/></system>").find("<cpu>: affinity=\"xyz\": a mask") !=
        std::string::npos);
  CHECK(error_of_xml(in_cpu("<pci busid=\"7\"/>")) == "line 3: <pci>: busid=\"7\" is no bus id such as 0000:3b:00.0");
  CHECK(error_of_xml(in_cpu("<pci busid=\"0000:07:00.0\" link_width=\"65\"/>")) ==
        "line 3: <pci>: link_width=\"65\" is no number from 0 to 64");
  CHECK(error_of_xml(in_cpu("<nic><net/></nic>")) == "line 3: <net>: name is missing");
  CHECK(error_of_xml(in_cpu("<nic><gpu/></nic>")) == "line 3: <gpu>: only <net> may be here");
  CHECK(error_of_xml("<system><cpu numaid=\"0\" host_hash=\"1\"/><cpu numaid=\"1\" host_hash=\"2\"/></system>") ==
        "line 1: <cpu>: another host_hash: a file describes one host");
}

TEST_CASE("XML: what is not read is refused") {
  CHECK(parse_xml("<a>text</a>").status().text() == "line 1: text between elements");
  CHECK(parse_xml("<!DOCTYPE a [<!ENTITY b \"c\">]>\n<a/>").status().text() == "line 1: a document type is not read");
  CHECK(parse_xml("").status().text() == "line 1: no element found");
  CHECK(parse_xml("<a><b></a>").status().text() == "line 1: mismatched tag");
  std::string deep;
  for (int i = 0; i < 65; ++i) deep += "<a>";
  CHECK(parse_xml(deep).status().text() == "line 1: elements inside each other more than 64 deep");
  const Element odd{.name = "a", .attributes = {{"b", "<\"&\n>"}}, .children = {}};
  CHECK(*parse_xml(text_of(odd))->attribute("b") == "<\"&\n>");
}

TEST_CASE("JSON: every field is looked at") {
  CHECK(error_of_json("{}").empty());
  CHECK(error_of_json("[]") == "the text is []: an object");
  CHECK(error_of_json("{\"name\": 7}") == "name is 7: a text");
  CHECK(error_of_json("{\"nodes\": [{\"number\": -1}]}") == "nodes[0].number is -1: a whole number from 0 to 2147483647");
  CHECK(error_of_json("{\"ours\": \"0-\"}") == "ours: \"0-\": processors are numbers and ranges up to 65535, such as 0-3,8");
  CHECK(error_of_json("{\"gpu\": []}").find("gpu is []: not a field; there are: name, id,") == 0);
  CHECK(error_of_json("{\"limits\": {\"memlock_bytes\": 1, \"memlock_unlimited\": true}}") ==
        "limits.memlock_unlimited is true: not given beside limits.memlock_bytes");
  CHECK(error_of_json("{\"name\": \"a\", \"name\": \"b\"}") == "\"name\" comes twice in one object");
  CHECK(error_of_json("{\"name\": \"a\"").find("not JSON: ") == 0);
  CHECK(error_of_json("[[[[[[[[[[[[]]]]]]]]]]]]").find("more than 8 deep") != std::string::npos);
}
