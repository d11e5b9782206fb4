#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shoal-train pipeline over ranks: what it computes is what one process computes, with the same bits for every schedule and every
number of stages; what it sends and keeps is what its schedule promises, to the byte. Timing is nobody's verdict.

Usage: pipeline_test.py SHOAL_RUN SHOAL_TRAIN equal|resumed|few|large|refusals
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

RUN, TRAIN, GROUP = sys.argv[1:4]
FOLDER = tempfile.TemporaryDirectory()
failures = 0


def complain(words):
    global failures
    failures += 1
    print(f"FAILED: {words}")


def launch(ranks, arguments):
    command = [RUN, "-n", str(ranks), "--timeout", "200", TRAIN, "pipeline", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def train(ranks, *arguments):
    path = os.path.join(FOLDER.name, "run.json")
    done = launch(ranks, [*arguments, "--json", path, "--log-every", "0", "--validation", "0"])
    if done.returncode != 0:
        complain(f"{ranks} stages, {' '.join(arguments)}: exit code {done.returncode}: {done.stdout[-700:]}{done.stderr[-500:]}")
        return None
    with open(path) as file:
        return json.load(file)


def in_flight(schedule, p, m, v, stage):
    if schedule == "gpipe":
        return m
    if schedule == "1f1b":
        return min(m, p - stage)
    if schedule == "zero-bubble":
        return min(m, p)
    return min(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1)  # of one chunk each


def slices_sent(p, v, stage):
    """Slices of the stage that have one after them, and slices that have one before."""
    return v - (stage == p - 1), v - (stage == 0)


def kept(own, stage, promised, recomputes, message):
    """Bytes of activations that a stage of one slice keeps at most."""
    if recomputes:  # inputs, and all of the micro-batch that it works on
        return (promised - 1) * (message if stage > 0 else 0) + own["micro_batch_bytes"]
    return promised * own["micro_batch_bytes"]


def check_promises(name, run, schedule, p, m, v, message, recomputes):
    figures = run["figures"]
    for stage, own in enumerate(figures["by_stage"]):
        forward, back = slices_sent(p, v, stage) if p > 1 else (0, 0)
        expected = m * (forward + back)
        if (own["messages_per_step"], own["sent_bytes_per_step"]) != (expected, expected * message):
            complain(f"{name}: stage {stage} sends {own['sent_bytes_per_step']} bytes in {own['messages_per_step']} messages, "
                     f"expected {expected} of {message}")
        promised = in_flight(schedule, p, m, v, stage)
        if own["in_flight"] != promised:
            complain(f"{name}: stage {stage} has {own['in_flight']} in flight, expected {promised}")
        bytes_kept = kept(own, stage, promised, recomputes, message)
        if v == 1 and own["activation_bytes"] != bytes_kept:
            complain(f"{name}: stage {stage} keeps {own['activation_bytes']} bytes, expected {bytes_kept}")
    if p > 1 and figures["sent_bytes_per_step"] != 2 * m * message * (p * v - 1):
        complain(f"{name}: {figures['sent_bytes_per_step']} bytes in all, expected 2 x {m} x {message} x {p * v - 1} boundaries")


def run_case(p, schedule, m, v=1, layers=6, width=32, length=8, batch=12, steps=5, extra=()):
    name = f"{p} stages, {schedule}, {m} micro-batches, {v} chunks{' ' + ' '.join(extra) if extra else ''}, width {width}, length {length}"
    run = train(p, "--schedule", schedule, "--micro-batches", str(m), "--chunks", str(v), "--layers", str(layers), "--width", str(width),
                "--heads", "2", "--length", str(length), "--batch", str(batch), "--steps", str(steps), *extra)
    if run is None:
        return None
    check_promises(name, run, schedule, p, m, v, batch // m * length * width * 4, "--recompute" in extra)
    check = run.get("check")
    if check and m == 1 and "--tied" not in extra and (check["loss"], check["gradient"], check["values"]) != (0, 0, 0):
        complain(f"{name}: one micro-batch has not the bits of one process: {check}")
    print(f"ok: {name}", flush=True)
    return run


def same_bits(name, run, reference):
    if run is not None and reference is not None and run["losses"] != reference["losses"]:
        first = next(i for i, (a, b) in enumerate(zip(run["losses"], reference["losses"])) if a != b)
        complain(f"{name}: step {first} has loss {run['losses'][first]!r}, with one stage {reference['losses'][first]!r}")


def equal():
    """1 to 4 stages, all schedules, tied and untied: one process's result, and the bits of one stage."""
    for extra in ([], ["--tied"]):
        reference = run_case(1, "gpipe", 4, extra=["--check", *extra])
        for p, schedule, v in [(1, "zero-bubble", 1), (1, "interleaved", 2), (2, "gpipe", 1), (2, "interleaved", 2), (3, "1f1b", 1),
                               (4, "zero-bubble", 1), (4, "gpipe", 1), (4, "interleaved", 2), (4, "1f1b", 1)]:
            run = run_case(p, schedule, 4, v, extra=["--check", *extra])
            if not extra:  # a tied table of two copies adds up its two gradients at the end
                untied = reference
                same_bits(f"{p} stages, {schedule}, {v} chunks", run, reference)
    for p, schedule, v in [(3, "gpipe", 1), (2, "1f1b", 1), (2, "interleaved", 2)]:
        same_bits(f"{p} stages, {schedule}, recomputed", run_case(p, schedule, 4, v, extra=["--recompute"]), untied)
    run_case(3, "interleaved", 3, 2, extra=["--check"])
    run_case(2, "1f1b", 3, extra=["--check", "--split", "5,3", "--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.05"])


def resumed():
    """What 3 stages saved, others go on from, with the losses of the run that was not interrupted."""
    folder = os.path.join(FOLDER.name, "checkpoints")
    tied = ["--tied", "--checkpoints", folder, "--checkpoint-every", "3"]
    whole = run_case(3, "1f1b", 4, steps=6, extra=tied)
    for p, schedule, v in [(1, "gpipe", 1), (2, "interleaved", 2)]:
        shutil.rmtree(os.path.join(folder, "step-6"))
        run = run_case(p, schedule, 4, v, steps=6, extra=[*tied, "--resume"])
        if whole is None or run is None:
            return
        apart = max(abs(a - b) / b for a, b in zip(run["losses"], whole["losses"][3:], strict=True))
        if apart > 1e-6:
            complain(f"resumed by {p} stages, {schedule}: losses {run['losses']}, expected {whole['losses'][3:]}")


def few():
    """Few micro-batches, and as many as stages; messages of 64 bytes."""
    small = dict(layers=4, width=16, length=1, steps=3, extra=["--check"])
    kinds = ["gpipe", "1f1b", "zero-bubble"]
    for p in (2, 3, 4):
        for i, m in enumerate((1, 2, 3, 4, 5, 8)):
            run_case(p, kinds[(i + p) % 3], m, batch=m, **small)
            if m % p == 0 and p < 4:
                run_case(p, "interleaved", m, 2, batch=m, **small)


def large():
    """Messages of 8 MiB: all schedules with nothing computed, and one that is."""
    message = dict(layers=6, width=128, length=16384, steps=2)
    for p, schedule, m, v in [(2, "1f1b", 1, 1), (3, "gpipe", 5, 1), (4, "1f1b", 4, 1), (3, "zero-bubble", 2, 1), (2, "interleaved", 4, 2)]:
        run_case(p, schedule, m, v, batch=m, **message, extra=["--stand-in", "0,0,0"])
    run_case(2, "1f1b", 2, layers=1, length=64, width=32, batch=2048, steps=1, extra=["--hidden", "32", "--check"])


def refusals():
    for words, ranks, arguments in [
            ("4 units (embedding, 2 blocks, head) do not go over 5 slices", 5, ["--layers", "2"]),
            ("6 sequences a step do not divide into --micro-batches 4", 2, ["--batch", "6"]),
            ("--micro-batches 4 do not divide by the 3 stages", 3, ["--schedule", "interleaved"]),
            ("--chunks 2: a stage of --schedule 1f1b has 1", 2, ["--chunks", "2"]),
            ("--split 1,2: these are 3 units, but the model has 6", 2, ["--split", "1,2"]),
            ("--schedule: zb not in", 1, ["--schedule", "zb"]),
            ("--stand-in: x is not a number", 1, ["--stand-in", "1,x,1"]),
            ("--check: with --stand-in nothing is computed", 1, ["--stand-in", "1,1,1", "--check"]),
            ("--timeline: /nonexistent/a.svg: cannot be written", 1, ["--timeline", "/nonexistent/a.svg"]),
    ]:
        done = launch(ranks, arguments)
        lines = [line for line in done.stderr.splitlines() if line.startswith("shoal-train: ")]
        if done.returncode != 2 or len(lines) != 1 or words not in lines[0]:
            complain(f"{' '.join(arguments)}: exit code {done.returncode}, {done.stderr!r} lacks '{words}'")
    path = os.path.join(FOLDER.name, "timeline.svg")
    run = train(2, "--schedule", "1f1b", "--stand-in", "1,1,1", "--steps", "2", "--timeline", path)
    if run is not None:
        with open(path) as file:
            picture = file.read()
        if picture.count("<svg") != 1 or "1f1b, 2 stages, 4 micro-batches" not in picture:
            complain(f"the timeline is {picture[:300]}")
        if not (0 < run["figures"]["measured"]["utilisation"] <= 1 and abs(run["figures"]["predicted"]["utilisation"] - 0.8) < 1e-9):
            complain(f"figures of a stand-in: {run['figures']}")


{"equal": equal, "resumed": resumed, "few": few, "large": large, "refusals": refusals}[GROUP]()
sys.exit(1 if failures else 0)
