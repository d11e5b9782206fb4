// SPDX-License-Identifier: Apache-2.0
// What shoal-perf --calibrate writes is what the library reads.
#include "perf/calibrate.h"

#include <catch2/catch.hpp>

#include "comm/calibration.h"

using namespace shoal;

namespace {

const std::vector<perf::RankInfo> kRanks = {{0, 1, "node", 0}, {1, 2, "node", 0}};

comm::Calibration read(const perf::CalibrationFigures& figures) {
  const std::string text = perf::calibration_text(figures, kRanks, "2026-11-30 12:00:00");
  CAPTURE(text);
  CHECK(text.starts_with("# "));
  const Result<comm::Calibration> parsed = comm::parse_calibration(text);
  INFO(parsed.status().text());
  REQUIRE(parsed.is_ok());
  return *parsed;
}

}  // namespace

TEST_CASE("calibration: what is written is read, to four digits") {
  const perf::CalibrationFigures figures = {.within_transport = "shm",
                                            .within = {1.25e-7, 2.5e-8, 7.5e9},
                                            .between = {1.5e-5, 1e-6, 1.1e9},
                                            .copy_Bps = 1.2e10,
                                            .reduce_Bps = 8.765e9};
  const comm::Calibration back = read(figures);
  CHECK(back.within_transport == "shm");
  CHECK(back.within == comm::Calibration::Wire{1.25e-7, 2.5e-8, 7.5e9});
  CHECK(back.between == comm::Calibration::Wire{1.5e-5, 1e-6, 1.1e9});
  CHECK(back.copy_Bps == 1.2e10);
  CHECK(back.reduce_Bps == 8.765e9);
}

TEST_CASE("calibration: what was not measured is left out") {
  const comm::Calibration one_host = read({.within_transport = "tcp", .within = {1e-6, 0, 1e9}, .between = {}, .copy_Bps = 1e9});
  CHECK(one_host.within == comm::Calibration::Wire{1e-6, 0, 1e9});
  CHECK(one_host.between == comm::Calibration::Wire{});
  const comm::Calibration far = read({.within_transport = "", .within = {}, .between = {1e-5, 1e-6, 1e9}, .copy_Bps = 1e9});
  CHECK(far.within_transport.empty());
  CHECK(far.reduce_Bps == 0);
}
