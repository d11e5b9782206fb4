// SPDX-License-Identifier: Apache-2.0
#include "comm/launch.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/job.h"
#include "comm/task_list.h"
#include "core/host_port.h"

namespace shoal::comm {
namespace {

// One variable: its name for texts, its value if it is set and not empty.
struct Variable {
  const char* name;
  std::optional<std::string> value;
};

Variable read(const GetVariable& get, const char* name) {
  std::optional<std::string> value = get(name);
  if (value && value->empty()) value.reset();
  return {name, std::move(value)};
}

// The first of several names that is set, else the first.
Variable read_any(const GetVariable& get, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (Variable found = read(get, name); found.value) return found;
  return {*names.begin(), std::nullopt};
}

bool is_set(const GetVariable& get, const char* name) { return read(get, name).value.has_value(); }

std::string show(const Variable& variable) {
  return variable.value ? fmt::format("{}={}", variable.name, *variable.value) : fmt::format("{} is not set", variable.name);
}

Result<int> number(const Variable& variable) {
  int value = -1;
  const std::string& text = *variable.value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    return fail(Code::invalid_usage, "{}: must be a whole number from 0 on", show(variable));
  return value;
}

// Where a launcher writes who we are. Local ones may be unset.
struct Numbers {
  Variable rank, world, local_rank, local_world;
};

// Parses and compares. Without local numbers all ranks count as this host's.
Result<Launch> launch_from(const char* launcher, const Numbers& from) {
  if (!from.rank.value || !from.world.value)
    return fail(Code::invalid_usage, "half a launch environment ({}): {}, {}; set both or none", launcher, show(from.rank),
                show(from.world));
  Launch launch;
  launch.launcher = launcher;
  const std::pair<const Variable*, int*> fields[] = {{&from.rank, &launch.rank},
                                                     {&from.world, &launch.world},
                                                     {&from.local_rank, &launch.local_rank},
                                                     {&from.local_world, &launch.local_world}};
  for (const auto& [variable, field] : fields) {
    if (!variable->value) continue;
    const Result<int> value = number(*variable);
    if (!value.is_ok()) return value.status();
    *field = *value;
  }
  if (!from.local_rank.value)
    launch.local_rank = from.local_world.value ? launch.rank % std::max(1, launch.local_world) : launch.rank;
  if (!from.local_world.value) launch.local_world = launch.world;
  const bool fits = launch.rank < launch.world && launch.local_rank < launch.local_world && launch.local_world <= launch.world;
  if (!fits)
    return fail(Code::invalid_usage, "contradictory launch environment ({}): {}, {}, {}, {}", launcher, show(from.rank),
                show(from.world), show(from.local_rank), show(from.local_world));
  return launch;
}

std::string value_or(const GetVariable& get, const char* name, std::string otherwise = "") {
  return read(get, name).value.value_or(std::move(otherwise));
}

// SHOAL_RENDEZVOUS, else MASTER_ADDR and MASTER_PORT, else nothing.
Result<std::string> rendezvous(const GetVariable& get) {
  if (const Variable own = read(get, "SHOAL_RENDEZVOUS"); own.value) {
    const Result<HostPort> where = parse_host_port(*own.value);
    if (!where.is_ok() || where->port == 0) return fail(Code::invalid_usage, "{}: must be host:port", show(own));
    return *own.value;
  }
  const Variable address = read(get, "MASTER_ADDR");
  const Variable port = read(get, "MASTER_PORT");
  if (!address.value && !port.value) return std::string();
  if (!address.value || !port.value)
    return fail(Code::invalid_usage, "half a meeting place: {}, {}; set both, or SHOAL_RENDEZVOUS=host:port", show(address),
                show(port));
  const Result<int> number_of_port = number(port);
  if (!number_of_port.is_ok()) return number_of_port.status();
  if (*number_of_port < 1 || *number_of_port > 65'535)
    return fail(Code::invalid_usage, "{}: must be a port, 1 to 65535", show(port));
  return to_text({*address.value, static_cast<std::uint16_t>(*number_of_port)});
}

// torchrun's agent keeps its own store at MASTER_PORT for the life of the job: ranks of one host meet locally, others at the
// port after it (before it, if it is the last). A pure function of variables that all ranks have alike.
Result<std::string> beside_agent_store(const std::string& store, const Launch& launch) {
  if (launch.local_world == launch.world) return std::string();
  Result<HostPort> where = parse_host_port(store);
  if (!where.is_ok()) return where.status();
  where->port = static_cast<std::uint16_t>(where->port == 65'535 ? where->port - 1 : where->port + 1);
  return to_text(*where);
}

bool is_torchrun(const GetVariable& get) { return is_set(get, "RANK") && is_set(get, "WORLD_SIZE") && is_set(get, "LOCAL_RANK"); }

// Only a step's own processes: salloc and sbatch shells carry most of these variables, too, in steps with numbers of their own.
bool is_slurm_step(const GetVariable& get) {
  const Variable step = read(get, "SLURM_STEP_ID");
  if (!step.value || !is_set(get, "SLURM_PROCID")) return false;
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(step.value->data(), step.value->data() + step.value->size(), id);
  constexpr std::uint32_t kFirstSpecialStep = 0xffff'fff0;  // batch script, interactive shell, external step, ...
  return error == std::errc{} && id < kFirstSpecialStep;
}

Result<Launch> from_shoal(const GetVariable& get) {
  Result<Launch> launch = launch_from("shoal-run", {read(get, "SHOAL_RANK"), read(get, "SHOAL_WORLD_SIZE"),
                                                    read(get, "SHOAL_LOCAL_RANK"), read(get, "SHOAL_LOCAL_WORLD_SIZE")});
  if (launch.is_ok()) launch->job = value_or(get, "SHOAL_JOB");
  return launch;
}

Result<Launch> from_torchrun(const GetVariable& get) {
  Result<Launch> launch = launch_from(
      "torchrun", {read(get, "RANK"), read(get, "WORLD_SIZE"), read(get, "LOCAL_RANK"), read(get, "LOCAL_WORLD_SIZE")});
  if (!launch.is_ok()) return launch;
  const std::string run = value_or(get, "TORCHELASTIC_RUN_ID");
  const std::string port = value_or(get, "MASTER_PORT");
  if (!run.empty() || !port.empty())
    launch->job = fmt::format("torchrun {} {} {}", run, port, value_or(get, "TORCHELASTIC_RESTART_COUNT", "0"));
  return launch;
}

Result<Launch> from_openmpi(const GetVariable& get) {
  Result<Launch> launch =
      launch_from("openmpi", {read(get, "OMPI_COMM_WORLD_RANK"), read(get, "OMPI_COMM_WORLD_SIZE"),
                              read(get, "OMPI_COMM_WORLD_LOCAL_RANK"), read(get, "OMPI_COMM_WORLD_LOCAL_SIZE")});
  if (!launch.is_ok()) return launch;
  if (const Variable name = read_any(get, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}); name.value)
    launch->job = "openmpi " + *name.value;
  return launch;
}

std::string slurm_job(const GetVariable& get) {
  return fmt::format("slurm {}.{}", read_any(get, {"SLURM_JOB_ID", "SLURM_JOBID"}).value.value_or(""),
                     value_or(get, "SLURM_STEP_ID"));
}

// A step's local size comes as a compressed list of nodes.
Variable slurm_local_world(const GetVariable& get) {
  Variable list = read_any(get, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  const Variable node = read(get, "SLURM_NODEID");
  if (!list.value) return list;
  const Result<int> index = node.value ? number(node) : Result<int>(0);
  const std::optional<int> tasks = index.is_ok() ? tasks_of_node(*list.value, *index) : std::nullopt;
  return {list.name, tasks ? std::optional(std::to_string(*tasks)) : std::nullopt};
}

Result<Launch> from_pmi(const GetVariable& get) {
  Numbers numbers{read(get, "PMI_RANK"), read(get, "PMI_SIZE"), read(get, "MPI_LOCALRANKID"), read(get, "MPI_LOCALNRANKS")};
  const bool in_slurm = is_slurm_step(get);
  if (in_slurm && !numbers.local_rank.value) {
    numbers.local_rank = read(get, "SLURM_LOCALID");
    numbers.local_world = slurm_local_world(get);
  }
  Result<Launch> launch = launch_from("mpich", numbers);
  if (!launch.is_ok()) return launch;
  if (in_slurm)
    launch->job = slurm_job(get);
  else if (const Variable id = read(get, "PMI_JOBID"); id.value)
    launch->job = "mpich " + *id.value;
  else if (launch->local_world == launch->world)
    launch->job = "mpich " + ancestor_job("hydra_pmi_proxy");
  return launch;
}

Result<Launch> from_slurm(const GetVariable& get) {
  Result<Launch> launch =
      launch_from("slurm", {read(get, "SLURM_PROCID"), read_any(get, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}),
                            read(get, "SLURM_LOCALID"), slurm_local_world(get)});
  if (launch.is_ok()) launch->job = slurm_job(get);
  return launch;
}

// Whoever set some of torchrun's names by hand wants several ranks: running each alone would be wrong in silence.
Result<Launch> from_nothing(const GetVariable& get) {
  const Variable rank = read(get, "RANK");
  const Variable world = read(get, "WORLD_SIZE");
  const Variable local = read(get, "LOCAL_RANK");
  if (rank.value || world.value || local.value)
    return fail(Code::invalid_usage,
                "half a launch environment: {}, {}, {}; set all three (as torchrun does), or SHOAL_RANK and SHOAL_WORLD_SIZE",
                show(rank), show(world), show(local));
  return Launch{};
}

Result<Launch> from_launcher(const GetVariable& get) {
  if (is_set(get, "SHOAL_RANK") || is_set(get, "SHOAL_WORLD_SIZE")) return from_shoal(get);
  if (is_torchrun(get)) return from_torchrun(get);
  if (is_set(get, "OMPI_COMM_WORLD_RANK") || is_set(get, "OMPI_COMM_WORLD_SIZE")) return from_openmpi(get);
  if (is_set(get, "PMI_RANK") || is_set(get, "PMI_SIZE")) return from_pmi(get);
  if (is_slurm_step(get)) return from_slurm(get);
  return from_nothing(get);
}

}  // namespace

Result<Launch> detect_launch(const GetVariable& get) {
  Result<Launch> launch = from_launcher(get);
  if (!launch.is_ok() || launch->world == 1) return launch;
  launch->secret = value_or(get, "SHOAL_SECRET");
  Result<std::string> where = rendezvous(get);
  if (!where.is_ok()) return where.status();
  const bool agent_store =
      is_torchrun(get) && !is_set(get, "SHOAL_RENDEZVOUS") && value_or(get, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (agent_store && !where->empty()) where = beside_agent_store(*where, *launch);
  if (!where.is_ok()) return where.status();
  launch->rendezvous = where.take();
  if (launch->job.empty() && launch->rendezvous.empty()) launch->job = std::string(kParentJob) + ancestor_job("");
  return launch;
}

}  // namespace shoal::comm
