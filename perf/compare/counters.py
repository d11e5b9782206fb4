# SPDX-License-Identifier: Apache-2.0
"""System calls of a small call: those of a run of twice as many calls less those of a run, as strace counts them."""
import dataclasses
import pathlib
import shutil
import tempfile
import time

from . import table
from .job import Job
from .processes import run, say

SIZES = (8, 4 << 10, 64 << 10)


def total(text):
    """The number of calls in what `strace -c` writes: its last line, "100.00 SECONDS [USECS] CALLS [ERRORS] total"."""
    for line in reversed(text.splitlines()):
        words = line.split()
        if words and words[-1] == "total":
            return int(words[3])
    return None


def count(library, job, way):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "strace"
        (pathlib.Path(folder) / "run").mkdir()
        command, environment = library.command(job, way, pathlib.Path(folder) / "run")
        output = run(library.name, ["strace", "-f", "-c", "-o", file, *command], 120, environment)
        return None if output is None else total(file.read_text())


def a_call(library, size, calls):
    """System calls a call and rank; None where they could not be counted."""
    job = Job(2, size, size, 2, calls // library.calls_an_iteration, 10, seconds=1e6)
    way = library.ways(job)[:1]
    both = [count(library, dataclasses.replace(job, iterations=n * job.iterations), way[0]) for n in (1, 2)] if way else [None]
    return None if None in both else max(0, both[1] - both[0]) / calls / job.ranks


def measure(o, libraries):
    """{"rows": [{"library", "bytes", "system_calls": a call and rank}], "calls"}."""
    if not shutil.which("strace"):
        say("counters are left out: there is no strace (Debian: strace)")
        return {"rows": [], "calls": 0}
    calls, rows = 500 if o.quick else 5000, []
    for size in SIZES:
        for library in libraries:
            if library.name == table.LIMIT:
                continue
            if time.monotonic() > o.until:
                say(f"counters: no time for {library.name} at {size} bytes")
                continue
            found = a_call(library, size, calls)
            if found is not None:
                rows.append({"library": library.name, "bytes": size, "system_calls": found})
    return {"rows": rows, "calls": calls}


def tables(result, _target):
    names = list(dict.fromkeys(row["library"] for row in result["rows"]))
    body = []
    for size in sorted({row["bytes"] for row in result["rows"]}):
        of = {row["library"]: row["system_calls"] for row in result["rows"] if row["bytes"] == size}
        body.append([table.size_text(size)] + [f"{of[name]:.3f}" if name in of else "" for name in names])
    return table.markdown(["size", *names], body)


def no_picture(_result, _title):
    return None
