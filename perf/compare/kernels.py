# SPDX-License-Identifier: Apache-2.0
"""Reductions of every type beside memcpy, from shoal-bench-kernels: at as many bytes moved, and in elements beside float32's."""
import json
import statistics
import time

from . import picture, table
from .processes import run, say

WHERE = {"l2": "second-level cache", "dram": "memory"}


def measure(o, _libraries):
    """{"rounds", "rates": {where: {name: {"bytes": [bytes/s a round], "elements": [elements/s a round]}}}}."""
    rates, made = {where: {} for where in WHERE}, 0
    command = [f"{o.bin}/shoal-bench-kernels", "--benchmark_format=json", "--benchmark_filter=(memcpy|/sum)$",
               f"--benchmark_min_time={0.01 if o.quick else 0.1}"]
    while made < o.rounds and (made == 0 or time.monotonic() < o.until):
        output = run("shoal-bench-kernels", command, 600)
        if output is None:
            break
        for row in json.loads(output)["benchmarks"]:
            where, name = row["name"].split("/")[:2]
            of = rates[where].setdefault(name, {"bytes": [], "elements": []})
            of["bytes"].append(row["bytes_per_second"])
            of["elements"].append(row["items_per_second"])
        made += 1
    say(f"kernels: {made} of {o.rounds} rounds")
    return {"rounds": made, "rates": rates}


def shares(result):
    """{type: {where: (percent of memcpy's bytes, percent of float32's elements)}}."""
    found = {}
    for where, of in result["rates"].items():
        medians = {name: {what: statistics.median(values) for what, values in each.items()} for name, each in of.items()}
        for name, each in medians.items():
            if name not in ("memcpy", "copy"):
                found.setdefault(name, {})[where] = (100 * each["bytes"] / medians["memcpy"]["bytes"],
                                                     100 * each["elements"] / medians["float32"]["elements"])
    return found


def tables(result, _target):
    head = ["type"] + [f"{name}: {what}" for name in WHERE.values() for what in ("% of memcpy", "% of float32's elements")]
    body = []
    for name, of in shares(result).items():
        body.append([name] + [f"{value:.0f}" for where in WHERE if where in of for value in of[where]])
    return table.markdown(head, body)


def bars(result, title):
    return picture.bars(title, [(name, {WHERE[where]: pair[0] for where, pair in of.items()}) for name, of in shares(result).items()],
                        " %", 100)
