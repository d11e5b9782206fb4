# SPDX-License-Identifier: Apache-2.0
"""Runs commands that may hang, fail or be missing: each ends in time, and what went wrong is one line."""
import contextlib
import os
import signal
import subprocess
import sys

OURS = ("SHOAL_", "NCCL_", "OMPI_", "PMIX_", "PMI_", "MPIR_", "UCX_", "GLIBC_")


def say(text):
    print(f"make-performance: {text}", file=sys.stderr, flush=True)


def clean(**more):
    """The environment without what steers any of the libraries, and with `more`."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | more


def end(process):
    """Ends a process and all of its session: a launcher's children may have lost their launcher."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)
            return


def run(name, command, seconds, environment=None, **how):
    """Standard output. None, after a line that says why, where the command did not end well in so many seconds."""
    words = [str(word) for word in command]
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=clean() if environment is None else environment, start_new_session=True, **how)
    except OSError as error:
        say(f"{name} is left out: {words[0]}: {error.strerror}")
        return None
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end(process)
        say(f"{name} is left out: took more than {seconds:.0f} s: {' '.join(words)}")
        return None
    except BaseException:
        end(process)
        raise
    if process.returncode != 0:
        why = " / ".join(line.strip() for line in errors.strip().splitlines() if line.strip(" -"))[-300:]
        say(f"{name} is left out: exit code {process.returncode}: {' '.join(words)}: {why}")
        return None
    return output


def ranks_of(commands, seconds):
    """Runs (name, command, environment) side by side, one a rank. Rank 0's output, or None as run() says it."""
    running = []
    try:
        for name, command, environment in commands:
            running.append((name, subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)))
        output = None
        for rank, (name, process) in enumerate(running):
            said, errors = process.communicate(timeout=seconds)
            if process.returncode != 0:
                say(f"{name} is left out: rank {rank}: exit code {process.returncode}: {errors.strip()[-300:]}")
                return None
            output = said if rank == 0 else output
        return output
    except subprocess.TimeoutExpired:
        say(f"{running[0][0]} is left out: took more than {seconds:.0f} s")
        return None
    finally:
        for _, process in running:
            if process.poll() is None:
                end(process)
