// SPDX-License-Identifier: Apache-2.0
#include "core/ib_options.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "core/environment.h"

using namespace shoal;

namespace {

using Set = std::map<std::string, std::string>;

std::function<std::optional<std::string>(const char*)> getter(const Set& set) {
  return [set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
}

// Those of mlx5_0:1, mlx5_0:2, mlx5_1:1, mlx5_10:1, rxe0:1 that the filter admits, in this order.
std::string admitted(const std::string& text) {
  const Result<NameFilter> filter = NameFilter::parse("NCCL_IB_HCA", text, NameFilter::Of::devices);
  INFO(filter.status().text());
  REQUIRE(filter.is_ok());
  std::string names;
  const std::pair<const char*, int> ports[] = {{"mlx5_0", 1}, {"mlx5_0", 2}, {"mlx5_1", 1}, {"mlx5_10", 1}, {"rxe0", 1}};
  for (const auto& [device, port] : ports)
    if (filter->admits(device, port)) names += std::string(names.empty() ? "" : " ") + device + ":" + std::to_string(port);
  return names;
}

}  // namespace

TEST_CASE("ib options: NCCL_IB_HCA takes prefixes, exact names, exclusions, and ports") {
  CHECK(admitted("") == "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_10:1 rxe0:1");
  CHECK(admitted("mlx5") == "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_10:1");
  CHECK(admitted("mlx5_1") == "mlx5_1:1 mlx5_10:1");
  CHECK(admitted("=mlx5_1") == "mlx5_1:1");
  CHECK(admitted("mlx5_0:2") == "mlx5_0:2");
  CHECK(admitted("=mlx5_0:1,rxe0") == "mlx5_0:1 rxe0:1");
  CHECK(admitted("^mlx5_1") == "mlx5_0:1 mlx5_0:2 rxe0:1");
  CHECK(admitted("^=mlx5_0:1,mlx5_1") == "mlx5_0:2 mlx5_10:1 rxe0:1");
  CHECK(admitted("=nosuch") == "");
  CHECK(admitted("rxe0,,mlx5_10,") == "mlx5_10:1 rxe0:1");
}

TEST_CASE("ib options: what is no device is an error that quotes it") {
  for (const char* text :
       {"^", "=", ",", "=^mlx5_0", "mlx5_0, mlx5_1", ":1", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:1:2", "mlx5_0:x"}) {
    CAPTURE(text);
    const Result<NameFilter> filter = NameFilter::parse("NCCL_IB_HCA", text, NameFilter::Of::devices);
    REQUIRE_FALSE(filter.is_ok());
    CHECK(filter.status().code() == Code::invalid_argument);
    CHECK_THAT(std::string(filter.status().text()),
               Catch::Contains("NCCL_IB_HCA='" + std::string(text) + "'") && Catch::Contains("[^][=]name[:port]"));
  }
}

TEST_CASE("ib options: every variable lands in its member, under either spelling") {
  const Result<IbOptions> none = parse_ib_options(getter({}));
  REQUIRE(none.is_ok());
  CHECK((!none->disable && none->gid_index == -1 && none->timeout == 20 && none->retry_count == 7 && none->queue_pairs == 1));
  const Result<IbOptions> all = parse_ib_options(getter({{"NCCL_IB_DISABLE", "1"},
                                                         {"NCCL_IB_HCA", "=rxe0"},
                                                         {"SHOAL_IB_GID_INDEX", "3"},
                                                         {"NCCL_IB_TIMEOUT", "18"},
                                                         {"NCCL_IB_RETRY_CNT", "0"},
                                                         {"NCCL_IB_SL", "5"},
                                                         {"NCCL_IB_TC", "0x6a"},
                                                         {"NCCL_IB_QPS_PER_CONNECTION", "4"}}));
  REQUIRE(all.is_ok());
  CHECK(all->disable);
  CHECK((all->devices.admits("rxe0", 1) && !all->devices.admits("rxe1", 1)));
  CHECK(all->gid_index == 3);
  CHECK(all->timeout == 18);
  CHECK(all->retry_count == 0);
  CHECK(all->service_level == 5);
  CHECK(all->traffic_class == 106);
  CHECK(all->queue_pairs == 4);
}

TEST_CASE("ib options: a malformed value is an error of the environment, and names variable, value and what is allowed") {
  const auto [name, value, allowed] = GENERATE(table<const char*, const char*, const char*>({
      {"NCCL_IB_DISABLE", "2", "0 or 1"},
      {"NCCL_IB_HCA", "^", "[^][=]name[:port]"},
      {"NCCL_IB_GID_INDEX", "256", "0 to 255, or -1"},
      {"NCCL_IB_TIMEOUT", "0", "1 to 31"},
      {"NCCL_IB_TIMEOUT", "32", "1 to 31"},
      {"NCCL_IB_RETRY_CNT", "8", "0 to 7"},
      {"NCCL_IB_SL", "16", "0 to 15"},
      {"NCCL_IB_TC", "256", "0 to 255"},
      {"NCCL_IB_QPS_PER_CONNECTION", "9", "1 to 8"},
  }));
  const Result<Environment> parsed = parse_environment(getter({{name, value}}));
  REQUIRE_FALSE(parsed.is_ok());
  CHECK_FALSE(parse_ib_options(getter({{name, value}})).is_ok());
  CHECK(parsed.status().code() == Code::invalid_argument);
  CHECK_THAT(std::string(parsed.status().text()),
             Catch::Contains(std::string(name) + "='" + value + "'") && Catch::Contains(allowed));
}
