// SPDX-License-Identifier: Apache-2.0
#include "perf/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <fstream>
#include <limits>

namespace shoal::perf {
namespace {

using cli::CommandLine;
using cli::Outcome;

Outcome refuse(std::string why, int code = kRefusedOption) { return {false, code, std::move(why), false}; }

// nccl-tests' options that mean nothing for host memory: accepted with the value that switches them off.
struct HostRefusal {
  const char* names;
  const char* why;
};
constexpr std::array<HostRefusal, 4> kHostRefusals = {{
    {"-G,--cudagraph", "graphs capture GPU work; these ranks use host memory"},
    {"-D,--device_implementation", "device kernels need GPUs; these ranks use host memory"},
    {"-V,--device_cta_count", "thread blocks need GPUs; these ranks use host memory"},
    {"-x,--cta_policy", "thread blocks need GPUs; these ranks use host memory"},
}};

void add_host_refusals(CommandLine& line, std::string& refused) {
  for (const HostRefusal& option : kHostRefusals) {
    line.value(option.names, "Only 0 on host memory", "0", [&refused, option](const std::string& text) {
      if (text != "0" && refused.empty()) refused = cli::refusal(option.names, text, fmt::format("must be 0: {}", option.why));
      return std::string();
    });
  }
}

// In the order of the enumeration; -R's numbers speak of some of them.
constexpr std::array<const char*, 4> kMemories = {"private", "mapped", "registered", "window"};
constexpr std::array<Memory, 3> kLocalRegister = {Memory::own, Memory::registered, Memory::window};

// A path that ends as it must.
std::string accept_path(const std::string& text, std::string_view ending, std::string& path) {
  if (!text.ends_with(ending)) return fmt::format("must end in {}", ending);
  path = text;
  return "";
}

template <typename Item>
std::vector<std::string> names_with_all(std::span<const Item> items) {
  std::vector<std::string> names;
  for (const Item& item : items) names.emplace_back(item.name);
  names.emplace_back("all");
  return names;
}

// "-o sum", "-d half", or all of `items`.
template <typename Item>
void add_selection(CommandLine& line, const std::string& names, const std::string& help, const std::string& type_name,
                   std::span<const Item> items, std::vector<const Item*>& target) {
  line.value(names, help, type_name, [items, &target](const std::string& text) {
    const auto choice = cli::parse_choice(text, names_with_all(items));
    if (!choice.is_ok()) return choice.why();
    target.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (*choice == items.size() || *choice == i) target.push_back(&items[i]);
    }
    return std::string();
  });
}

void add_shape_options(CommandLine& line, Options& o) {
  line.integer("-t,--nthreads", o.threads, 1, "Threads per process (1)", kMaxRanksPerProcess);
  line.integer("-g,--ngpus", o.ranks_per_thread, 1, "Ranks per thread (1)", kMaxRanksPerProcess);
  line.size("-b,--minbytes", o.min_bytes, "Smallest size (32M)");
  line.size("-e,--maxbytes", o.max_bytes, "Largest size (32M)");
  line.size("-i,--stepbytes", o.step_bytes, "Sizes grow by so many bytes (1M)");
  line.integer("-f,--stepfactor", o.step_factor, 2, "Sizes grow by this factor (off)");
}

void add_run_options(CommandLine& line, Options& o) {
  constexpr int kMany = 1'000'000'000;
  line.integer("-n,--iters", o.iterations, 1, "Timed iterations (20)", kMany);
  line.integer("-w,--warmup_iters", o.warmup, 0, "Iterations before the clock starts (1)", kMany);
  line.integer("-m,--agg_iters", o.aggregate, 1, "Calls per group and iteration (1)", 1'000'000);
  line.integer("-N,--run_cycles", o.cycles, 0, "Sweeps; 0: for ever (1)");
  line.boolean("-p,--parallel_init", o.parallel_init, "Threads initialise their ranks (0)");
  line.integer("-c,--check", o.checks, 0, "Checked calls per row; 0: none (1)", kMany);
  add_selection(line, "-o,--op", "sum, prod, min, max, avg, mulsum, all (sum)", "OP", reductions(), o.reductions);
  add_selection(line, "-d,--datatype",
                "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 all (float)", "TYPE",
                element_types(), o.types);
  line.value("--compressor", "All-reduce compressed: dgc, powersgd, int8, ... (docs/compression.md); float, sum or avg",
             "NAME[:KEY=VALUE,...]", [&o](const std::string& text) {
               const std::size_t colon = std::min(text.find(':'), text.size());
               o.compressor = text.substr(0, colon);
               o.compressor_options = text.substr(std::min(colon + 1, text.size()));
               shoalCompressor_t made = nullptr;
               if (shoalCompressorCreate(&made, o.compressor.c_str(), o.compressor_options.c_str()) != ncclSuccess)
                 return std::string(ncclGetLastError(nullptr));
               shoalCompressorDestroy(made);
               return std::string();
             });
  line.integer("-r,--root", o.root, -1, "Root of rooted collectives; -1: each in turn (0)");
  line.integer("-z,--blocking", o.blocking, 0, "0: back to back, 1: wait after each call, 2, 3: wait and meet after each (0)", 3);
  line.boolean("-y,--stream_null", o.null_stream, "1: the null stream, where a call returns when it is done; the default here");
  line.flag("--stream", o.host_stream, "A stream for each rank instead of the null stream");
  line.seconds("-T,--timeout", o.timeout_s, "Longest wait in seconds, unless SHOAL_TIMEOUT_MS says; 0: the library's (0)");
}

void add_report_options(CommandLine& line, Options& o) {
  line.boolean("-C,--report_cputime", o.cpu_time, "The time column is CPU time of the calling thread (0)");
  line.boolean("-S,--report_timestamps", o.timestamps, "Rows end with date and time (0)");
  line.value("-J,--output_file", "Write the results to this JSON file, too", "FILE.json",
             [&o](const std::string& text) { return accept_path(text, ".json", o.json_path); });
  line.value("-a,--average", "Times over ranks: 0 rank 0's, 1 mean, 2 min, 3 max (1)", "0-3", [&o](const std::string& text) {
    const auto parsed = cli::parse_integer(text, 0, 3);
    if (parsed.is_ok()) o.average = static_cast<Average>(*parsed);
    return parsed.why();
  });
  line.boolean("-M,--memory", o.memory, "Report memory use (0)");
  line.boolean("-I,--per_iter_timing", o.per_iteration, "Time each iteration; rows end with min, max, p99, cv (0)");
  line.integer("-K,--per_iter_skip", o.per_iteration_skip, 0, "Iterations to leave out of -I's figures (0)", 1'000'000'000);
}

void add_memory_options(CommandLine& line, Options& o) {
  line.value(
      "--mem",
      "Buffers: private (huge pages asked for), mapped (ncclMemAlloc), registered (and ncclCommRegister), window (private)",
      "KIND", [&o](const std::string& text) {
        const auto choice = cli::parse_choice(text, {kMemories.begin(), kMemories.end()});
        if (choice.is_ok()) o.buffers = static_cast<Memory>(*choice);
        return choice.why();
      });
  line.value("-R,--local_register", "1: as --mem registered, 2: as --mem window (ncclCommWindowRegister) (0)", "0-2",
             [&o](const std::string& text) {
               const auto choice = cli::parse_integer(text, 0, kLocalRegister.size() - 1);
               if (choice.is_ok() && *choice > 0) o.buffers = kLocalRegister[static_cast<std::size_t>(*choice)];
               return choice.why();
             });
  line.integer("-u,--unalign", o.unalign, 0, "Move buffers off their alignment by so many elements (0)", 4096);
  line.flag("--fresh", o.fresh, "Inputs are rewritten by their owner before each timed call, outside the clock");
}

void add_comparison_options(CommandLine& line, Options& o) {
  line.value("--plot", "Draw time and bus bandwidth over the size", "FILE.svg",
             [&o](const std::string& text) { return accept_path(text, ".svg", o.plot_path); });
  line.list("--plot-with",
            "One more run in the picture, its -J file, also nccl-tests'; may be repeated; without COLLECTIVE: only these",
            "FILE.json", [&o](const std::string& text) {
              o.plot_with.emplace_back();
              return accept_path(text, ".json", o.plot_with.back());
            });
  line.value("--baseline", "Compare with an earlier run, its -J file: exit code 1 if a row takes longer than the tolerance",
             "FILE.json", [&o](const std::string& text) { return accept_path(text, ".json", o.baseline_path); });
  line.value("--tolerance", "Times the baseline's time that still pass (1.25)", "RATIO", [&o](const std::string& text) {
    const auto ratio = cli::parse_seconds(text);  // a number with or without a fraction
    if (!ratio.is_ok() || *ratio < 1) return std::string("must be a number of at least 1");
    o.tolerance = *ratio;
    return std::string();
  });
  line.value("--calibrate",
             "Measure links, copies and sums between these ranks and write what SHOAL_CALIBRATION reads; no COLLECTIVE", "FILE",
             [&o](const std::string& text) {
               o.calibration_path = text;
               return text.empty() ? std::string("is no path") : std::string();
             });
}

// What single options cannot know of each other. Returns why not, or "".
std::string cross_check(const CommandLine& line, Options& o) {
  if (o.threads * o.ranks_per_thread > kMaxRanksPerProcess) {
    return fmt::format("-t/--nthreads {} times -g/--ngpus {}: asks for {} ranks per process, at most {} are possible", o.threads,
                       o.ranks_per_thread, o.threads * o.ranks_per_thread, kMaxRanksPerProcess);
  }
  // One end given: the other one follows rather than leave an empty range.
  if (!line.given("-e")) o.max_bytes = std::max(o.max_bytes, o.min_bytes);
  if (!line.given("-b")) o.min_bytes = std::min(o.max_bytes, o.min_bytes);
  if (o.max_bytes == 0) return "-e/--maxbytes 0: there is nothing to measure";
  if (o.min_bytes > o.max_bytes) {
    return fmt::format("-b/--minbytes {}: is above -e/--maxbytes {}: the range is empty", cli::size_text(o.min_bytes),
                       cli::size_text(o.max_bytes));
  }
  if (o.step_factor == 0 && o.step_bytes == 0) return "-i/--stepbytes 0: must be at least 1";
  if (o.step_factor != 0 && o.min_bytes == 0)
    return fmt::format("-b/--minbytes 0: -f/--stepfactor {} leads nowhere from 0", o.step_factor);
  if (o.null_stream && o.host_stream) return "-y/--stream_null 1: --stream says the opposite";
  if (o.per_iteration && o.per_iteration_skip >= o.iterations) {
    return fmt::format("-K/--per_iter_skip {}: must be below -n/--iters {}", o.per_iteration_skip, o.iterations);
  }
  if (line.given("--mem") && line.given("-R"))
    return fmt::format("-R/--local_register {}: --mem says the same in other words: give one of them", line.text_of("-R"));
  if (line.given("--tolerance") && o.baseline_path.empty())
    return fmt::format("--tolerance {:g}: needs a --baseline", o.tolerance);
  if (!o.plot_with.empty() && o.plot_path.empty()) return fmt::format("--plot-with {}: needs a --plot", o.plot_with.front());
  if (o.fresh && o.blocking != 0) return fmt::format("-z/--blocking {}: --fresh waits after each call as it is", o.blocking);
  return "";
}

// Compressed calls are all-reduces of float32, summed or averaged.
std::string check_compressed(const Options& o) {
  if (o.compressor.empty()) return "";
  if (std::string_view(o.collective->name) != "all_reduce")
    return fmt::format("--compressor {}: {} is not compressed, all_reduce is", o.compressor, o.collective->name);
  for (const ElementType* type : o.types)
    if (type->type != ncclFloat32) return fmt::format("--compressor {}: -d must be float", o.compressor);
  for (const ReductionInfo* reduction : o.reductions)
    if (reduction->op != ncclSum && reduction->op != ncclAvg)
      return fmt::format("--compressor {}: -o must be sum or avg", o.compressor);
  return o.unalign == 0 ? "" : fmt::format("--compressor {}: -u must be 0", o.compressor);
}

// What to do without a collective; false if nothing says so.
bool choose_task(Options& o) {
  if (!o.calibration_path.empty())
    o.task = Task::calibrate;
  else if (!o.plot_path.empty() && !o.plot_with.empty())
    o.task = Task::plot;
  return o.task != Task::measure;
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Collective* collective : collectives()) names.emplace_back(collective->name);
  return names;
}

// The blocks of a matrix are as long as they are, whatever the size; a matrix must fit into the buffers.
std::string check_traffic(const Options& o, int world) {
  if (o.traffic.matrix.empty() || o.collective->blocks == nullptr) return "";
  if (o.min_bytes != o.max_bytes)
    return fmt::format(
        "-b/--minbytes {}: must be -e/--maxbytes {}, since NCCL_TESTS_ALLTOALLV_MATRIX_FILE says how long blocks are",
        cli::size_text(o.min_bytes), cli::size_text(o.max_bytes));
  const std::uint64_t most = o.traffic.most(o.max_bytes, world);
  if (most <= o.max_bytes) return "";
  return fmt::format("-e/--maxbytes {}: a rank of NCCL_TESTS_ALLTOALLV_MATRIX_FILE sends or receives {} bytes",
                     cli::size_text(o.max_bytes), most);
}

}  // namespace

Outcome parse_options(const std::string& program, const std::vector<std::string>& arguments, Options& options) {
  constexpr std::string_view kSuffix = "_perf";
  const bool named = program.ends_with(kSuffix);
  CommandLine line("shoal-perf: times a collective over host memory and checks its results, as nccl-tests do.",
                   named ? program + " [OPTIONS]" : "shoal-perf [COLLECTIVE] [OPTIONS]", kRefusedOption);
  std::string collective, refused;
  if (named) {
    collective = program.substr(0, program.size() - kSuffix.size());
  } else {
    line.value("COLLECTIVE", fmt::format("{}", fmt::join(collective_names(), ", ")), "NAME", [&](const std::string& text) {
      collective = text;
      return find_collective(text) != nullptr ? std::string() : fmt::format("is none of: {}", fmt::join(collective_names(), " "));
    });
  }
  add_shape_options(line, options);
  add_run_options(line, options);
  add_memory_options(line, options);
  add_report_options(line, options);
  add_comparison_options(line, options);
  add_host_refusals(line, refused);
  line.app().footer(
      "\nRanks are processes (shoal-run, torchrun, mpirun, srun) x threads x ranks per thread.\n"
      "Exit code: 0 good, 1 slower than --baseline, 3 a call failed, 4 timeout, 5 not available, 7 wrong results or too slow "
      "(NCCL_TESTS_MIN_BW), 255 bad "
      "option.\n"
      "\nExamples:\n  shoal-run -n 4 shoal-perf all_reduce -b 8 -e 64M -f 2\n  shoal-perf all_reduce -t 2 -b 1M -d bfloat16 -o "
      "all\n  shoal-run -n 2 shoal-perf all_gather -b 1K -e 16M -f 4 -J now.json --plot now.svg --baseline before.json\n"
      "  shoal-perf --plot both.svg --plot-with before.json --plot-with nccl.json\n"
      "  shoal-run -n 4 shoal-perf --calibrate here.txt");
  const Outcome outcome = line.parse(arguments);
  if (!outcome.proceed) return outcome;
  if (!refused.empty()) return refuse(refused, kNotImplemented);
  if (named && !options.calibration_path.empty())
    return refuse(fmt::format("--calibrate {}: goes with shoal-perf, not with {}", options.calibration_path, program));
  if (collective.empty() && !choose_task(options))
    return refuse(fmt::format("COLLECTIVE is missing: one of: {}", fmt::join(collective_names(), " ")));
  if (!collective.empty() && !options.calibration_path.empty())
    return refuse(fmt::format("--calibrate {}: takes no COLLECTIVE, but there is {}", options.calibration_path, collective));
  if (options.task != Task::measure) return Outcome{};
  options.collective = find_collective(collective);
  if (options.collective == nullptr) return refuse(fmt::format("{}: there is no such collective", collective));
  if (options.types.empty()) options.types = {find_element_type("float")};
  if (options.reductions.empty()) options.reductions = {find_reduction("sum")};
  std::string why = cross_check(line, options);
  if (why.empty()) why = check_compressed(options);
  return why.empty() ? Outcome{} : refuse(why);
}

std::optional<std::uint64_t> next_size(const Options& options, std::uint64_t size) {
  const auto factor = static_cast<std::uint64_t>(options.step_factor);
  if (factor != 0 && size > options.max_bytes / factor) return std::nullopt;
  const std::uint64_t next = factor != 0 ? size * factor : size + options.step_bytes;
  return next <= options.max_bytes ? std::optional(next) : std::nullopt;
}

std::string check_against_machine(const Options& options, int world, int ranks_here, std::uint64_t available) {
  constexpr std::uint64_t kBuffers = 2;  // input and output
  const std::uint64_t most = available / (kBuffers * static_cast<std::uint64_t>(ranks_here));
  const auto refuse_size = [&](const char* names, std::uint64_t size) {
    return cli::refusal(
        names, cli::size_text(size),
        fmt::format("asks for {} such buffers a rank, ranks on this host: {}; its memory has room for {} bytes each", kBuffers,
                    ranks_here, most));
  };
  if (options.min_bytes > most) return refuse_size("-b,--minbytes", options.min_bytes);
  if (options.max_bytes > most) return refuse_size("-e,--maxbytes", options.max_bytes);
  if (options.collective->rooted && options.root >= world) {
    return fmt::format("-r/--root {}: there are ranks 0 to {}", options.root, world - 1);
  }
  if (options.collective->power_of_two && (world & (world - 1)) != 0)
    return fmt::format("{}: needs a power of two of ranks, there are {}", options.collective->name, world);
  return check_traffic(options, world);
}

const char* name_of(Memory memory) { return kMemories[static_cast<std::size_t>(memory)]; }

std::uint64_t available_memory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream info("/proc/meminfo");
  std::string name, rest;
  std::uint64_t kib = 0;
  while (info >> name >> kib) {
    if (name == "MemAvailable:") available = kib << 10;
    std::getline(info, rest);
  }
  // The control group of a container, seen from inside ("max" where there is no limit: does not read as a number).
  std::ifstream limit_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
  std::uint64_t limit = 0, used = 0;
  if (limit_file >> limit && used_file >> used) available = std::min(available, limit - std::min(limit, used));
  return available;
}

}  // namespace shoal::perf
