# SPDX-License-Identifier: Apache-2.0
"""All-reduces between hosts whose cables have a rate: how much of it the collective's bytes use.

The bus bandwidth, 2 (n - 1) / n of the array over the time, is what each host sends and is sent. It is given as a share of what a
cable can carry of payload (hosts.py), so 100 % cannot be beaten.
"""
import dataclasses
import time

from . import picture, table
from .hosts import PAYLOAD_SHARE, Hosts, Trouble
from .job import Job
from .processes import say
from .sweep import rounds

RATES = {"100 Mbit/s": 100e6, "1 Gbit/s": 1e9}  # bits a second
SIZES = (1 << 20, 64 << 20)


def seconds_at_best(rate, ranks, size):
    return 2 * (ranks - 1) / ranks * size * 8 / (rate * PAYLOAD_SHARE)


def share(rate, ranks, size, us):
    """Percent of the payload limit."""
    return 100 * seconds_at_best(rate, ranks, size) / (us * 1e-6)


def plan(o, rate, ranks):
    jobs = []
    for size in SIZES[:1] if o.quick else SIZES:
        calls = max(2, min(20, int(2 / seconds_at_best(rate, ranks, size))))  # some 2 s
        jobs.append(Job(ranks, size, size, 2, calls, 1, seconds=2.0, tcp=True))
    return [dataclasses.replace(job, iterations=2, seconds=0.3) for job in jobs] if o.quick else jobs


def measure(o, libraries):
    """{"tables": [{"rate", "ranks", "rounds", "rows"}]}."""
    cases = [(name, ranks) for name in RATES for ranks in (2, 4)]
    tables = []
    for number, (name, ranks) in enumerate(cases):
        left = (o.until - time.monotonic()) / (len(cases) - number)
        try:
            with Hosts(ranks, RATES[name]) as hosts:
                rows, made = rounds([each for each in libraries if each.name != table.LIMIT], plan(o, RATES[name], ranks), o.rounds,
                                    time.monotonic() + left, lambda library, job, way: library.measure(job, way, hosts))
        except Trouble as trouble:
            say(f"links of {name} are left out: {trouble}")
            continue
        tables.append({"rate": name, "ranks": ranks, "rounds": made, "rows": rows})
        say(f"{name}, {ranks} ranks: {made} of {o.rounds} rounds")
    return {"tables": tables}


def shares(each):
    """[(bytes, {library: percent})], Shoal first."""
    best = table.bests(each["rows"])
    sizes = sorted({size for of in best.values() for size in of})
    names = sorted(best, key=lambda name: name != table.OURS)
    return [(size, {name: share(RATES[each["rate"]], each["ranks"], size, best[name][size]) for name in names if size in best[name]})
            for size in sizes]


def tables(result, target):
    names = list(dict.fromkeys(name for each in result["tables"] for _, of in shares(each) for name in of))
    body = []
    for each in result["tables"]:
        best = table.bests(each["rows"])
        for size, of in shares(each):
            cells = [f"{of[name]:.1f} %" if name in of else "" for name in names]
            body.append([each["rate"], str(each["ranks"]), table.size_text(size), *cells, table.ratio_text(table.ratio(best, size), target)])
    return table.markdown(["rate", "ranks", "size", *names, "best peer / Shoal"], body)


def bars(result, title):
    groups = [(f"{each['rate']}, {each['ranks']} ranks, {table.size_text(size)}", of)
              for each in result["tables"] for size, of in shares(each)]
    return picture.bars(title, groups, " %", 100)
