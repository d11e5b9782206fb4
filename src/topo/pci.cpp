// SPDX-License-Identifier: Apache-2.0
#include "topo/pci.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/split.h"

namespace shoal::topo {
namespace {

bool are_hex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// "16.0 GT/s PCIe"
std::optional<double> speed(const std::optional<std::string>& text) {
  double value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{} || !(value > 0))
    return std::nullopt;
  return value;
}

// 0 lanes, and 255, which the kernel writes where there is no link: unknown.
std::optional<int> width(std::optional<std::int64_t> lanes) {
  return lanes && *lanes > 0 && *lanes < 255 ? std::optional(static_cast<int>(*lanes)) : std::nullopt;
}

std::optional<int> node(std::optional<std::int64_t> number) {
  return number && *number < ProcessorSet::kHighest ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::optional<std::string> normal_bus_id(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon < 4 || text.size() != colon + 8) return std::nullopt;
  std::string id = text.substr(text.substr(0, colon).find_first_not_of('0') < colon - 4 ? 0 : colon - 4);
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string_view tail = std::string_view(id).substr(id.size() - 8);  // ":3b:00.0"
  const bool right = tail[0] == ':' && are_hex(tail.substr(1, 2)) && tail[3] == ':' && are_hex(tail.substr(4, 2)) &&
                     tail[6] == '.' && are_hex(tail.substr(7)) && are_hex(std::string_view(id).substr(0, id.size() - 8));
  return right ? std::optional(id) : std::nullopt;
}

int PciTree::take_in(const std::string& folder, const std::string& bus_id, int parent) {
  const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const PciDevice& d) { return d.bus_id == bus_id; });
  if (known != devices_.end()) return static_cast<int>(known - devices_.begin());
  devices_.push_back({.bus_id = bus_id,
                      .parent = parent,
                      .class_code = files_.line(folder + "/class").value_or(""),
                      .vendor = files_.line(folder + "/vendor").value_or(""),
                      .product = files_.line(folder + "/device").value_or(""),
                      .speed_GTs = speed(files_.line(folder + "/current_link_speed")),
                      .most_GTs = speed(files_.line(folder + "/max_link_speed")),
                      .width = width(files_.number(folder + "/current_link_width")),
                      .most_width = width(files_.number(folder + "/max_link_width")),
                      .numa = node(files_.number(folder + "/numa_node"))});
  return static_cast<int>(devices_.size()) - 1;
}

PciTree::Place PciTree::place_of(const std::string& path) {
  const std::optional<std::string> target = files_.target(path);
  if (!target) return {};
  Place place;
  std::string folder;
  for (const std::string_view part : split(std::string_view(*target).substr(1), '/')) {
    folder += "/";
    folder += part;
    if (const auto id = normal_bus_id(std::string(part))) place.pci = take_in(folder, *id, place.pci);
  }
  if (place.pci >= 0) place.numa = devices_[static_cast<std::size_t>(place.pci)].numa;
  if (!place.numa) place.numa = node(files_.number(path + "/numa_node"));
  return place;
}

PciTree::Place PciTree::place_of_bus_id(const std::string& bus_id) {
  const auto id = normal_bus_id(bus_id);
  if (!id) return {};
  Place place = place_of("/sys/bus/pci/devices/" + *id);
  if (place.pci < 0) place.pci = take_in("/sys/bus/pci/devices/" + *id, *id, -1);  // hidden from us, but the driver sees it
  return place;
}

std::vector<std::string> PciTree::with_class(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const std::string& name : files_.names_in("/sys/bus/pci/devices"))
    if (files_.line(fmt::format("/sys/bus/pci/devices/{}/class", name)).value_or("").starts_with(prefix)) found.push_back(name);
  return found;
}

}  // namespace shoal::topo
