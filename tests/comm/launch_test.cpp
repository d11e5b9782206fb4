// SPDX-License-Identifier: Apache-2.0
#include "comm/launch.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "comm/job.h"
#include "comm/task_list.h"

namespace shoal::comm {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Launch> detect(const Variables& variables) {
  return detect_launch([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Variables operator+(Variables left, const Variables& right) {
  for (const auto& [name, value] : right) left[name] = value;
  return left;
}

const Variables kShoal = {{"SHOAL_RANK", "1"}, {"SHOAL_WORLD_SIZE", "3"}, {"SHOAL_JOB", "job-7"}};
const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "run"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "1959198721"}};
const Variables kMpich = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "6"}};
const Variables kSlurm = {
    {"SLURM_PROCID", "4"}, {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"},
    {"SLURM_NODEID", "1"}, {"SLURM_JOB_ID", "77"},        {"SLURM_STEP_ID", "3"}, {"SLURM_NTASKS", "9"}};

std::string show(const Result<Launch>& launch) {
  if (!launch.is_ok()) return fmt::format("error {}: {}", static_cast<int>(launch.status().code()), launch.status().text());
  return fmt::format("{} {}/{} local {}/{} job '{}' at '{}'", launch->launcher, launch->rank, launch->world, launch->local_rank,
                     launch->local_world, launch->job, launch->rendezvous);
}

TEST_CASE("detect_launch: each launcher's variables") {
  CHECK(show(detect({})) == "none 0/1 local 0/1 job '' at ''");
  CHECK(show(detect(kShoal)) == "shoal-run 1/3 local 1/3 job 'job-7' at ''");
  CHECK(show(detect(kTorchrun)) == "torchrun 5/8 local 1/4 job 'torchrun run 29500 2' at 'node0:29500'");
  CHECK(show(detect(kOpenMpi)) == "openmpi 2/4 local 2/4 job 'openmpi 1959198721' at ''");
  CHECK(show(detect(kMpich)) == "mpich 1/2 local 1/2 job 'mpich " + ancestor_job("hydra_pmi_proxy") + "' at ''");
  CHECK(show(detect(kSlurm)) == "slurm 4/7 local 1/3 job 'slurm 77.3' at ''");
}

TEST_CASE("detect_launch: the order of launchers when several are set") {
  CHECK(show(detect(kShoal + kTorchrun + kOpenMpi + kMpich + kSlurm)).starts_with("shoal-run 1/3"));
  CHECK(show(detect(kTorchrun + kOpenMpi + kMpich + kSlurm)).starts_with("torchrun 5/8"));
  CHECK(show(detect(kTorchrun + kSlurm)).starts_with("torchrun 5/8"));  // torchrun inside srun
  CHECK(show(detect(kOpenMpi + kMpich + kSlurm)).starts_with("openmpi 2/4"));
  CHECK(show(detect(kMpich + kSlurm)).starts_with("mpich 1/2"));
}

TEST_CASE("detect_launch: some of torchrun's names are no launcher where another one is complete") {
  CHECK(show(detect(kOpenMpi + Variables{{"RANK", "0"}, {"WORLD_SIZE", "9"}})).starts_with("openmpi 2/4"));
  CHECK(show(detect(kSlurm + Variables{{"RANK", "0"}, {"WORLD_SIZE", "9"}})).starts_with("slurm 4/7"));
}

TEST_CASE("detect_launch: half-set variables are invalid usage that names them") {
  const std::pair<Variables, const char*> cases[] = {
      {{{"SHOAL_RANK", "1"}},
       "error 5: half a launch environment (shoal-run): SHOAL_RANK=1, SHOAL_WORLD_SIZE is not set; set both or none"},
      {{{"SHOAL_WORLD_SIZE", "2"}},
       "error 5: half a launch environment (shoal-run): SHOAL_RANK is not set, SHOAL_WORLD_SIZE=2; set both or none"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}},
       "error 5: half a launch environment: RANK=1, WORLD_SIZE=2, LOCAL_RANK is not set; set all three (as torchrun does), or "
       "SHOAL_RANK and "
       "SHOAL_WORLD_SIZE"},
      {{{"LOCAL_RANK", "0"}},
       "error 5: half a launch environment: RANK is not set, WORLD_SIZE is not set, LOCAL_RANK=0; set all three (as torchrun "
       "does), or "
       "SHOAL_RANK and SHOAL_WORLD_SIZE"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}},
       "error 5: half a launch environment (openmpi): OMPI_COMM_WORLD_RANK is not set, OMPI_COMM_WORLD_SIZE=2; set both or none"},
      {{{"PMI_RANK", "0"}}, "error 5: half a launch environment (mpich): PMI_RANK=0, PMI_SIZE is not set; set both or none"},
      {kShoal + Variables{{"MASTER_ADDR", "node0"}},
       "error 5: half a meeting place: MASTER_ADDR=node0, MASTER_PORT is not set; set both, or SHOAL_RENDEZVOUS=host:port"},
  };
  for (const auto& [variables, text] : cases) CHECK(show(detect(variables)) == text);
}

TEST_CASE("detect_launch: an empty variable is an unset one") {
  CHECK(show(detect(kShoal + Variables{{"SHOAL_RANK", ""}, {"SHOAL_WORLD_SIZE", ""}})) == "none 0/1 local 0/1 job '' at ''");
}

TEST_CASE("detect_launch: contradictions and what is no number are invalid usage with the values") {
  const std::pair<Variables, const char*> cases[] = {
      {{{"SHOAL_RANK", "3"}}, "error 5: contradictory launch environment (shoal-run): SHOAL_RANK=3, SHOAL_WORLD_SIZE=3"},
      {{{"SHOAL_LOCAL_RANK", "2"}, {"SHOAL_LOCAL_WORLD_SIZE", "2"}}, "SHOAL_LOCAL_RANK=2, SHOAL_LOCAL_WORLD_SIZE=2"},
      {{{"SHOAL_LOCAL_WORLD_SIZE", "4"}}, "SHOAL_LOCAL_RANK is not set, SHOAL_LOCAL_WORLD_SIZE=4"},
      {{{"SHOAL_WORLD_SIZE", "0"}}, "SHOAL_RANK=1, SHOAL_WORLD_SIZE=0"},
      {{{"SHOAL_RANK", "-1"}}, "error 5: SHOAL_RANK=-1: must be a whole number from 0 on"},
      {{{"SHOAL_RANK", "1x"}}, "error 5: SHOAL_RANK=1x: must be a whole number from 0 on"},
      {{{"SHOAL_WORLD_SIZE", "99999999999"}}, "error 5: SHOAL_WORLD_SIZE=99999999999: must be a whole number from 0 on"},
      {{{"SHOAL_RENDEZVOUS", "node0"}}, "error 5: SHOAL_RENDEZVOUS=node0: must be host:port"},
      {{{"SHOAL_RENDEZVOUS", "node0:0"}}, "error 5: SHOAL_RENDEZVOUS=node0:0: must be host:port"},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}, "error 5: MASTER_PORT=70000: must be a port, 1 to 65535"},
  };
  for (const auto& [variables, text] : cases) {
    const std::string shown = show(detect(kShoal + variables));
    CAPTURE(shown, text);
    CHECK(shown.find(text) != std::string::npos);
  }
}

TEST_CASE("detect_launch: the meeting place") {
  const Variables master = {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
  CHECK(detect(kOpenMpi + master)->rendezvous == "10.0.0.1:29500");
  CHECK(detect(kOpenMpi + master + Variables{{"SHOAL_RENDEZVOUS", "[::1]:7"}})->rendezvous == "[::1]:7");
  CHECK(detect(kOpenMpi + Variables{{"MASTER_ADDR", "fe80::1"}, {"MASTER_PORT", "1"}})->rendezvous == "[fe80::1]:1");
  CHECK(detect(kShoal + Variables{{"SHOAL_SECRET", "s3"}})->secret == "s3");
  // A lone rank meets nobody.
  CHECK(show(detect({{"SHOAL_RANK", "0"}, {"SHOAL_WORLD_SIZE", "1"}, {"MASTER_ADDR", "x"}})).starts_with("shoal-run 0/1"));
}

TEST_CASE("detect_launch: torchrun's own store holds MASTER_PORT") {
  const Variables agent = {{"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  const Variables one_host = {{"LOCAL_WORLD_SIZE", "8"}, {"LOCAL_RANK", "5"}};
  CHECK(detect(kTorchrun + agent + one_host)->rendezvous.empty());
  CHECK(detect(kTorchrun + agent)->rendezvous == "node0:29501");
  CHECK(detect(kTorchrun + agent + Variables{{"MASTER_PORT", "65535"}})->rendezvous == "node0:65534");
  CHECK(detect(kTorchrun + agent + Variables{{"SHOAL_RENDEZVOUS", "node0:1"}})->rendezvous == "node0:1");
  CHECK(detect(kTorchrun + one_host)->rendezvous == "node0:29500");
}

TEST_CASE("detect_launch: Slurm counts only inside a step") {
  Variables shell = kSlurm;
  shell.erase("SLURM_STEP_ID");
  CHECK(show(detect(shell)) == "none 0/1 local 0/1 job '' at ''");
  CHECK(show(detect(kSlurm + Variables{{"SLURM_STEP_ID", "4294967291"}})) ==
        "none 0/1 local 0/1 job '' at ''");  // the batch script
  CHECK(show(detect(kSlurm + Variables{{"SLURM_STEP_ID", "4294967290"}})) ==
        "none 0/1 local 0/1 job '' at ''");  // an interactive shell
}

TEST_CASE("detect_launch: MPICH's names set by srun take the local ones from Slurm") {
  Variables variables = kSlurm + Variables{{"PMI_RANK", "4"}, {"PMI_SIZE", "7"}};
  CHECK(show(detect(variables)) == "mpich 4/7 local 1/3 job 'slurm 77.3' at ''");
}

TEST_CASE("detect_launch: without a name the job is the parent process, the same for all its children") {
  Variables variables = kShoal;
  variables.erase("SHOAL_JOB");
  CHECK(detect(variables)->job == "parent " + ancestor_job(""));
  CHECK(ancestor_job("no such launcher") == ancestor_job(""));
  CHECK(ancestor_job("").find('.') != std::string::npos);
  // At a port, which ranks of several hosts use, nothing of this host may enter.
  CHECK(detect(variables + Variables{{"SHOAL_RENDEZVOUS", "node0:1"}})->job.empty());
}

TEST_CASE("tasks_of_node: Slurm's compressed list") {
  CHECK(tasks_of_node("4", 0) == 4);
  CHECK(tasks_of_node("4", 1) == std::nullopt);
  CHECK(tasks_of_node("2(x3),1", 2) == 2);
  CHECK(tasks_of_node("2(x3),1", 3) == 1);
  CHECK(tasks_of_node("2(x3),1", 4) == std::nullopt);
  CHECK(tasks_of_node("1(x2000000000),5(x2000000000)", 2'100'000'000) == 5);
  for (const char* wrong : {"", "x", "2(", "2(x", "2(x3", "2(x)", "2,", ",2", "0", "-1", "2(x0)", "2 ,3", "99999999999"}) {
    CAPTURE(wrong);
    CHECK(tasks_of_node(wrong, 0) == std::nullopt);
  }
}

}  // namespace
}  // namespace shoal::comm
