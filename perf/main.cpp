// SPDX-License-Identifier: Apache-2.0
// shoal-perf: nccl-tests' measurements for Shoal. Also called by a collective's name: all_reduce_perf.
#include <filesystem>

#include "perf/program.h"

int main(int argc, char** argv) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "shoal-perf";
  return shoal::perf::run_program(program, {argv + (argc > 0 ? 1 : 0), argv + argc});
}
