// SPDX-License-Identifier: Apache-2.0
#include "perf/options.h"

#include <catch2/catch.hpp>

using namespace shoal::perf;
using Words = std::vector<std::string>;

namespace {

Options parsed(Words arguments, const std::string& program = "all_reduce_perf") {
  Options options;
  const auto outcome = parse_options(program, arguments, options);
  CAPTURE(arguments, outcome.text);
  REQUIRE(outcome.proceed);
  return options;
}

std::vector<std::uint64_t> sizes(const Options& options) {
  std::vector<std::uint64_t> result;
  for (std::optional<std::uint64_t> size = options.min_bytes; size; size = next_size(options, *size)) result.push_back(*size);
  return result;
}

}  // namespace

TEST_CASE("the defaults are nccl-tests' ones") {
  const Options o = parsed({"all_reduce"}, "shoal-perf");
  CHECK(std::string(o.collective->name) == "all_reduce");
  CHECK((o.threads == 1 && o.ranks_per_thread == 1));
  CHECK((o.min_bytes == 32 << 20 && o.max_bytes == 32 << 20 && o.step_bytes == 1 << 20 && o.step_factor == 0));
  CHECK((o.iterations == 20 && o.warmup == 1 && o.aggregate == 1 && o.cycles == 1 && o.checks == 1));
  CHECK((o.types.size() == 1 && o.types[0]->type == ncclFloat32));
  CHECK((o.reductions.size() == 1 && o.reductions[0]->reduction == Reduction::sum));
  CHECK((o.average == Average::mean && o.root == 0 && o.blocking == 0 && !o.host_stream && !o.parallel_init));
}

TEST_CASE("a program named after a collective needs no argument for it, and takes none") {
  CHECK(std::string(parsed({}).collective->name) == "all_reduce");
  Options options;
  CHECK_FALSE(parse_options("all_reduce_perf", {"all_reduce"}, options).proceed);
  CHECK(parse_options("nosuch_perf", {}, options).text == "nosuch: there is no such collective");
}

TEST_CASE("sizes in either case; one end given alone moves the other") {
  CHECK(parsed({"-b", "64m"}).min_bytes == 64 << 20);
  CHECK(parsed({"-b", "64m"}).max_bytes == 64 << 20);
  CHECK(parsed({"-e", "1K"}).min_bytes == 1024);
  CHECK(sizes(parsed({"-b", "8", "-e", "1K", "-f", "8"})) == std::vector<std::uint64_t>{8, 64, 512});
  CHECK(sizes(parsed({"-b", "1M", "-e", "3M"})) == std::vector<std::uint64_t>{1 << 20, 2 << 20, 3 << 20});
  CHECK(sizes(parsed({"-b", "0", "-e", "16", "-i", "8"})) == std::vector<std::uint64_t>{0, 8, 16});
  CHECK(sizes(parsed({"-b", "1", "-e", "1048576T", "-f", "2147483647"})).size() == 2);
}

TEST_CASE("all types and all operations") {
  const Options o = parsed({"-d", "all", "-o", "all"});
  CHECK(o.types.size() == 12);
  CHECK(o.reductions.size() == 6);
  CHECK(parsed({"-d", "half", "-o", "mulsum"}).types[0]->type == ncclFloat16);
}

TEST_CASE("long names mean the same") {
  const Options o = parsed({"--nthreads", "2",
                            "--ngpus=3",  "--minbytes",
                            "8",          "--maxbytes",
                            "16",         "--stepfactor",
                            "2",          "--iters",
                            "5",          "--warmup_iters",
                            "0",          "--agg_iters",
                            "4",          "--run_cycles",
                            "2",          "--parallel_init",
                            "1",          "--check",
                            "0",          "--op",
                            "max",        "--datatype",
                            "int8",       "--root",
                            "-1",         "--blocking",
                            "1",          "--timeout",
                            "9",          "--report_cputime",
                            "1",          "--report_timestamps",
                            "1",          "--output_file",
                            "x.json",     "--average",
                            "3",          "--memory",
                            "1",          "--unalign",
                            "1",          "--per_iter_timing",
                            "1",          "--per_iter_skip",
                            "2",          "--cudagraph",
                            "0",          "--local_register",
                            "0"});
  CHECK((o.threads == 2 && o.ranks_per_thread == 3 && o.iterations == 5 && o.warmup == 0 && o.aggregate == 4 && o.cycles == 2));
  CHECK((o.parallel_init && o.checks == 0 && o.root == -1 && o.blocking == 1 && o.timeout_s == 9 && o.cpu_time && o.timestamps));
  CHECK((o.json_path == "x.json" && o.average == Average::max && o.memory && o.unalign == 1 && o.per_iteration &&
         o.per_iteration_skip == 2));
}

TEST_CASE("nonsense is refused in one line that names option and value") {
  const std::vector<std::pair<Words, std::string>> cases = {{{"-b", "8M", "-e", "1K"}, "-b/--minbytes 8M: "},
                                                            {{"-b", "8x"}, "-b/--minbytes 8x: "},
                                                            {{"-b", "-5"}, "-b/--minbytes -5: "},
                                                            {{"-b", ""}, "-b/--minbytes '': "},
                                                            {{"-b", "99999999999G"}, "-b/--minbytes 99999999999G: "},
                                                            {{"-b", "0", "-e", "0"}, "-e/--maxbytes 0: "},
                                                            {{"-b", "0", "-f", "2"}, "-b/--minbytes 0: "},
                                                            {{"-f", "0"}, "-f/--stepfactor 0: "},
                                                            {{"-f", "1"}, "-f/--stepfactor 1: "},
                                                            {{"-i", "0"}, "-i/--stepbytes 0: "},
                                                            {{"-n", "-1"}, "-n/--iters -1: "},
                                                            {{"-n", "0"}, "-n/--iters 0: "},
                                                            {{"-w", "-1"}, "-w/--warmup_iters -1: "},
                                                            {{"-m", "0"}, "-m/--agg_iters 0: "},
                                                            {{"-o", "nosuch"}, "-o/--op nosuch: "},
                                                            {{"-d", "nosuch"}, "-d/--datatype nosuch: "},
                                                            {{"-g", "0"}, "-g/--ngpus 0: "},
                                                            {{"-t", "0"}, "-t/--nthreads 0: "},
                                                            {{"-t", "64", "-g", "64"}, "-t/--nthreads 64 times -g/--ngpus 64: "},
                                                            {{"-r", "-2"}, "-r/--root -2: "},
                                                            {{"-a", "4"}, "-a/--average 4: "},
                                                            {{"-c", "x"}, "-c/--check x: "},
                                                            {{"-y", "2"}, "-y/--stream_null 2: "},
                                                            {{"-z", "4"}, "-z/--blocking 4: "},
                                                            {{"-T", "-1"}, "-T/--timeout -1: "},
                                                            {{"-J", "out.txt"}, "-J/--output_file out.txt: "},
                                                            {{"-y", "1", "--stream"}, "-y/--stream_null 1: "},
                                                            {{"-I", "1", "-n", "5", "-K", "5"}, "-K/--per_iter_skip 5: "},
                                                            {{"--mem", "shared"}, "--mem shared: "},
                                                            {{"-R", "3"}, "-R/--local_register 3: "},
                                                            {{"-R", "1", "--mem", "mapped"}, "-R/--local_register 1: "},
                                                            {{"--plot", "p.png"}, "--plot p.png: "},
                                                            {{"--plot-with", "r.txt"}, "--plot-with r.txt: "},
                                                            {{"--plot-with", "r.json"}, "--plot-with r.json: needs a --plot"},
                                                            {{"--baseline", "b.txt"}, "--baseline b.txt: "},
                                                            {{"--tolerance", "0.9", "--baseline", "b.json"}, "--tolerance 0.9: "},
                                                            {{"--tolerance", "x"}, "--tolerance x: "},
                                                            {{"--tolerance", "2"}, "--tolerance 2: needs a --baseline"},
                                                            {{"--calibrate", ""}, "--calibrate '': "},
                                                            {{"--calibrate", "c.txt"}, "--calibrate c.txt: "},
                                                            {{"--fresh", "-z", "1"}, "-z/--blocking 1: "},
                                                            {{"--nosuch"}, "--nosuch: "},
                                                            {{"-q"}, "-q: "},
                                                            {{"-n"}, "--iters: "}};
  for (const auto& [arguments, start] : cases) {
    CAPTURE(arguments);
    Options options;
    const auto outcome = parse_options("all_reduce_perf", arguments, options);
    CHECK_FALSE(outcome.proceed);
    CHECK(outcome.exit_code == 255);
    CAPTURE(outcome.text);
    CHECK(outcome.text.find(start) == 0);
    CHECK(outcome.text.find('\n') == std::string::npos);
  }
}

TEST_CASE("options of GPUs are refused with a reason, but for the value that switches them off") {
  for (const std::string option : {"-G", "-D", "-V", "-x"}) {
    CAPTURE(option);
    Options options;
    CHECK(parse_options("all_reduce_perf", {option, "0"}, options).proceed);
    const auto outcome = parse_options("all_reduce_perf", {option, "1"}, options);
    CHECK_FALSE(outcome.proceed);
    CHECK(outcome.exit_code == 5);
    CHECK(outcome.text.find(option + "/--") == 0);
    CHECK(outcome.text.find(" 1: must be 0: ") != std::string::npos);
  }
}

TEST_CASE("a size above the memory of the host is refused with what there is") {
  const Options large = parsed({"-b", "1T", "-e", "1T"}), upper = parsed({"-b", "8", "-e", "1G", "-f", "2"});
  const std::uint64_t gib = std::uint64_t{1} << 30;
  CHECK(check_against_machine(large, 1, 1, 16 * gib).find("-b/--minbytes 1T: ") == 0);
  CHECK(check_against_machine(upper, 8, 8, 15 * gib).find("-e/--maxbytes 1G: ") == 0);
  CHECK(check_against_machine(upper, 8, 8, 16 * gib).empty());
  CHECK(available_memory() > 0);
}

TEST_CASE("buffers, pictures and baselines") {
  CHECK(parsed({}).buffers == Memory::own);
  CHECK(parsed({"--mem", "mapped"}).buffers == Memory::mapped);
  CHECK(parsed({"-R", "1"}).buffers == Memory::registered);
  CHECK(parsed({"-R", "2"}).buffers == Memory::window);
  const Options o = parsed({"--fresh", "--plot", "p.svg", "--plot-with", "a.json", "--plot-with=b.json", "--baseline", "c.json",
                            "--tolerance", "1.5"});
  CHECK(o.fresh);
  CHECK(o.plot_path == "p.svg");
  CHECK(o.plot_with == Words{"a.json", "b.json"});
  CHECK(o.baseline_path == "c.json");
  CHECK(o.tolerance == 1.5);
}

TEST_CASE("without a collective: a calibration, or a picture of earlier runs; else one is missing") {
  CHECK(parsed({"--calibrate", "here.txt"}, "shoal-perf").task == Task::calibrate);
  CHECK(parsed({"--plot", "p.svg", "--plot-with", "a.json"}, "shoal-perf").task == Task::plot);
  CHECK(parsed({"broadcast", "--plot", "p.svg", "--plot-with", "a.json"}, "shoal-perf").task == Task::measure);
  const auto refused = [](const Words& arguments) {
    Options options;
    const auto outcome = parse_options("shoal-perf", arguments, options);
    CHECK_FALSE(outcome.proceed);
    return outcome.text;
  };
  CHECK(refused({"--plot", "p.svg"}).find("COLLECTIVE is missing: one of: all_reduce all_gather ") == 0);
  CHECK(refused({"reduce", "--calibrate", "x"}) == "--calibrate x: takes no COLLECTIVE, but there is reduce");
  CHECK(refused({"scan"}).find("COLLECTIVE scan: is none of: ") == 0);
}

TEST_CASE("a compressor is checked before ranks meet, and goes with float sums and averages of all_reduce alone") {
  const Options o = parsed({"--compressor", "fp16:feedback=1", "-o", "avg"});
  CHECK(o.compressor == "fp16");
  CHECK(o.compressor_options == "feedback=1");
  const auto refused = [](Words arguments, const std::string& why) {
    Options options;
    const auto outcome = parse_options("all_reduce_perf", arguments, options);
    CAPTURE(arguments, outcome.text);
    CHECK_FALSE(outcome.proceed);
    CHECK(outcome.text.find(why) != std::string::npos);
  };
  refused({"--compressor", "zip"}, "there is no compressor \"zip\"; there are: ");
  refused({"--compressor", "fp16:speed=3"}, "options are: feedback");
  refused({"--compressor", "fp16", "-d", "double"}, "-d must be float");
  refused({"--compressor", "fp16", "-o", "max"}, "-o must be sum or avg");
}
