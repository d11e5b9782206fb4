# SPDX-License-Identifier: Apache-2.0
"""The libraries that stand side by side, each with the settings that a careful user of a small machine would choose.

A library has one or several ways to run a job; measure() makes one run and returns [(way, bytes, us)], or None after a line that
says why. With `hosts` (hosts.py) every rank runs on a host of its own, and all that moves goes over their network.
"""
import json
import pathlib
import tempfile

from .job import Job
from .processes import clean, run

# Without it glibc gives freed memory back, and peers that allocate in every call collapse at 64 MiB where fresh pages are dear.
KEEP = "glibc.malloc.mmap_threshold=17179869184:glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456"
STARTUP_S = 120


def client_arguments(job):
    words = [job.collective, job.low, job.high, job.factor, job.iterations, job.warmup, job.seconds]
    return [str(word) for word in words] + (["fresh"] if job.fresh else [])


def footprints(output):
    """[(seconds, rss_kb, pss_kb)] of lines "init RANK SECONDS RSS_KB PSS_KB"; others are none."""
    lines = [line.split() for line in (output or "").splitlines()]
    return [(float(words[2]), int(words[3]), int(words[4])) for words in lines if len(words) == 5 and words[0] == "init"]


class Library:
    calls_an_iteration = 1  # of the program that is timed
    launcher_reaches_hosts = False

    def __init__(self, name, version):
        self.name, self.version = name, version

    def ways(self, job):
        """None at all where it has not got the job's collective."""
        return ["tcp" if job.tcp else ""]

    def command(self, job, way, folder, hosts=None):
        """The words, and the environment. `folder` is there for the run alone. On hosts: what each of them runs."""
        raise NotImplementedError

    def rows(self, _job, way, output, _folder):
        """Of lines "BYTES MICROSECONDS"; others are no rows."""
        lines = [line.split() for line in output.splitlines()]
        return [(way, int(words[0]), float(words[1])) for words in lines if len(words) == 2 and words[0].isdigit()]

    def measure(self, job, way, hosts=None):
        with tempfile.TemporaryDirectory() as folder:
            command, environment = self.command(job, way, folder, hosts)
            name = f"{self.name} {way}".strip()
            if hosts and not self.launcher_reaches_hosts:
                output = hosts.run(name, command, environment, job.timeout)
            elif hosts:
                output = run(name, [*hosts.on(0), *command], job.timeout, environment)
            else:
                output = run(name, command, job.timeout, environment)
            return None if output is None else self.rows(job, way, output, folder)

    def startup(self, ranks):
        """What footprints() finds of every rank; none where it failed."""
        raise NotImplementedError


class Shoal(Library):
    calls_an_iteration = 2  # out of place, then in place

    def __init__(self, bin_):
        super().__init__("Shoal", "of this source")
        self.bin = pathlib.Path(bin_).resolve()

    def ways(self, job):
        return [""]

    def command(self, job, way, folder, hosts=None):
        words = [self.bin / "shoal-perf", job.collective, "-b", job.low, "-e", job.high, "-f", job.factor, "-n", job.iterations, "-w", job.warmup,
                 "-c", "0", "-J", pathlib.Path(folder) / "run.json"]
        words += ["--fresh"] if job.fresh else []
        words += ["--mem", "mapped"] if job.mapped else []
        launch = [] if hosts else [self.bin / "shoal-run", "-n", job.ranks]
        return [*launch, *words], clean(**({"NCCL_SHM_DISABLE": "1"} if job.tcp else {}))

    def rows(self, job, way, output, folder):
        results = json.loads((pathlib.Path(folder) / "run.json").read_text())["results"]
        buffers = "in_place" if job.collective == "broadcast" else "out_of_place"  # MPI_Bcast knows one buffer
        return [(way, row["size"], row[buffers]["time"]) for row in results]

    def startup(self, ranks):
        return footprints(run(self.name, [self.bin / "shoal-run", "-n", ranks, "--no-label", self.bin / "shoal-bench-init"], STARTUP_S))


class Gloo(Library):
    """Its ranks are started by shoal-run, which it knows nothing of. Everything goes over TCP, always."""

    def __init__(self, bin_, client, version):
        super().__init__("Gloo", version)
        self.launcher, self.client = pathlib.Path(bin_).resolve() / "shoal-run", client

    def ways(self, job):
        return [] if job.collective == "reduce_scatter" else super().ways(job)

    def command(self, job, way, folder, hosts=None):
        words = [self.client, folder, "eth0" if hosts else "lo", *client_arguments(job)]
        return (words if hosts else [self.launcher, "-n", job.ranks, "--no-label", *words]), clean(GLIBC_TUNABLES=KEEP)

    def startup(self, ranks):
        with tempfile.TemporaryDirectory() as folder:
            return footprints(run(self.name, [self.launcher, "-n", ranks, "--no-label", self.client, folder, "lo", "init"], STARTUP_S))


class Mpi(Library):
    """What Open MPI and MPICH have in common."""
    launcher_reaches_hosts = True

    def __init__(self, name, mpirun, client, version):
        super().__init__(name, version)
        self.mpirun, self.client = mpirun, client

    def command(self, job, way, folder, hosts=None):
        words, environment = self.launch(job, way, hosts)
        return [*words, self.client, *client_arguments(job)], environment

    def startup(self, ranks):
        words, environment = self.launch(Job(ranks, 4, 4, 2, 1, 1), "", None)
        return footprints(run(self.name, [*words, self.client, "init"], STARTUP_S, environment))


class OpenMpi(Mpi):
    # By version: shared memory, and what forbids one process to read another one's arrays.
    MEMORY = {4: "self,vader", 5: "self,sm"}
    COPIES = {4: ["--mca", "btl_vader_single_copy_mechanism", "none"], 5: ["--mca", "smsc", "^cma,xpmem,knem"]}

    def __init__(self, number, *rest):
        super().__init__(*rest)
        self.number = number

    def ways(self, job):
        return ["tcp"] if job.tcp else ["", "copies", "coll-sm"]

    def launch(self, job, way, hosts):
        words = [self.mpirun, "--allow-run-as-root", "-n", job.ranks, "--mca", "pml", "ob1", "--mca", "btl_base_warn_component_unused", "0"]
        words += ["--mca", "mpi_yield_when_idle", "1"] if job.crowded else []
        words += ["--bind-to", "none" if job.crowded or hosts else "core"]
        words += ["--oversubscribe"] if self.number == 4 else ["--map-by", ":OVERSUBSCRIBE"]
        if hosts or job.tcp:
            words += ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "eth0" if hosts else "lo"]
        else:
            words += ["--mca", "btl", self.MEMORY[self.number]]
        words += self.COPIES[self.number] if way == "copies" else []
        words += ["--mca", "coll_sm_priority", "90"] if way == "coll-sm" else []
        if hosts:
            words += ["--host", ",".join(f"{each}:1" for each in hosts.names)]
            words += (["--mca", "plm_rsh_agent", hosts.agent, "--mca", "oob_tcp_if_include", "eth0"] if self.number == 4 else
                      ["--prtemca", "plm_ssh_agent", hosts.agent, "--prtemca", "prte_if_include", "eth0"])
        return words, clean(GLIBC_TUNABLES=KEEP)


class Mpich(Mpi):
    def launch(self, job, way, hosts):
        environment = {"GLIBC_TUNABLES": KEEP}
        if job.crowded:
            environment |= {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "10"}
        if hosts or job.tcp:
            interface = "eth0" if hosts else "lo"
            # Newer UCX reaches nobody by the loopback interface alone: the versions that have libfabric, too, take that.
            environment |= {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": interface, "MPIR_CVAR_CH4_NETMOD": "ofi",
                            "FI_PROVIDER": "tcp", "FI_TCP_IFACE": interface}
        words = [self.mpirun, "-n", job.ranks, "-bind-to", "none" if job.crowded or hosts else "core"]
        if hosts:
            words += ["-launcher", "ssh", "-launcher-exec", hosts.agent, "-iface", "eth0", "-hosts", ",".join(hosts.names)]
        return words, clean(**environment)


class Limit(Library):
    """limit.c: two processes, one all-reduce, no library. Its ways are as many as it prints."""

    def __init__(self, program):
        super().__init__("limit", "written by hand")
        self.program = program

    def ways(self, job):
        return [""] if job.ranks == 2 and job.collective == "all_reduce" and not job.tcp and not job.crowded else []

    def command(self, job, way, folder, hosts=None):
        words = [self.program, "mapped" if job.mapped else "private", job.low, job.high, job.factor, job.seconds / 5]
        return words + (["fresh"] if job.fresh else []), clean()

    def rows(self, _job, _way, output, _folder):
        return [(words[0], int(words[1]), float(words[2])) for words in map(str.split, output.splitlines())]
