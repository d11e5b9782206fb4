# SPDX-License-Identifier: Apache-2.0
"""Parts that time collectives at several sizes: all libraries in turn in every round, so that a machine that drifts hits all alike.

A result is {"tables": [{"title", "rounds", "rows": [{"library", "way", "bytes", "us": [one a round]}]}]}.
"""
import dataclasses
import time

from . import picture, table
from .job import Job, jobs
from .processes import say


def rounds(libraries, plan, count, until, measure=None):
    """(rows, rounds made): at most `count` rounds of all jobs of the plan, at least one, none begun after `until`. A way that fails
    a job once is left out of it from then on."""
    measure = measure or (lambda library, job, way: library.measure(job, way))
    rows, failed, made = {}, set(), 0
    while made < count and (made == 0 or time.monotonic() < until):
        for job in plan:
            for library in libraries:
                for way in library.ways(job):
                    if (library.name, way, job) in failed:
                        continue
                    found = measure(library, job, way)
                    if not found:
                        failed.add((library.name, way, job))
                    for named, size, us in found or []:
                        rows.setdefault((library.name, named, size), []).append(us)
        made += 1
    return [{"library": name, "way": way, "bytes": size, "us": us} for (name, way, size), us in rows.items()], made


def tables_of(o, libraries, plans):
    """A result of the plans [(title, jobs)], whose share of the part's time is equal."""
    tables = []
    for number, (title, plan) in enumerate(plans):
        left = o.until - time.monotonic()
        rows, made = rounds(libraries, plan, o.rounds, time.monotonic() + left / (len(plans) - number))
        tables.append({"title": title, "rounds": made, "rows": rows})
        say(f"{title}: {made} of {o.rounds} rounds")
        print(f"{title}\n{table.times(rows, o.target)}", flush=True)
    return {"tables": tables}


def all_reduces(o, most, titles="{} ranks", worlds=(2, 4, 8), **how):
    plans = []
    for ranks in worlds if not o.quick else worlds[:2]:
        largest = min(most[ranks], 16 << 20) if o.quick else most[ranks]
        plans.append((titles.format(ranks), jobs(o.quick, ranks, largest, **how)))
    return plans


MOST = {2: 256 << 20, 4: 64 << 20, 8: 64 << 20}  # bytes, by ranks


def private(o, libraries):
    return tables_of(o, libraries, all_reduces(o, MOST))


def mapped(o, libraries):
    return tables_of(o, libraries, all_reduces(o, MOST, mapped=True))


def fresh(o, libraries):
    return tables_of(o, libraries, all_reduces(o, MOST, "{} ranks", (2, 4), fresh=True) +
                     all_reduces(o, MOST, "{} ranks, Shoal's arrays mapped", (2, 4), fresh=True, mapped=True))


def tcp(o, libraries):
    return tables_of(o, libraries, all_reduces(o, {2: 64 << 20, 4: 64 << 20}, worlds=(2, 4), tcp=True))


def collectives(o, libraries):
    plans = []
    for collective in ("all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce"):
        for ranks in (2, 4):
            sizes = [(1 << 10, 3000, 300), (1 << 20, 100, 10), (64 << 20, 12, 3)]
            plan = [Job(ranks, size, size, 2, iterations, warmup, collective, seconds=0.5) for size, iterations, warmup in sizes]
            if o.quick:
                plan = [dataclasses.replace(job, iterations=max(5, job.iterations // 10), seconds=0.1) for job in plan[:2]]
            plans.append((f"{collective}, {ranks} ranks", plan))
    return tables_of(o, libraries, plans)


def tables(result, target):
    text = ""
    for each in result["tables"]:
        text += f"**{each['title']}** (us, median of rounds: {each['rounds']})\n\n{table.times(each['rows'], target)}\n"
    return text


def curves(result, title):
    panels = []
    for each in result["tables"]:
        best = table.bests(each["rows"])
        panels.append((each["title"], {name: sorted(of.items()) for name, of in sorted(best.items(), key=lambda item: item[0] != table.OURS)}))
    return picture.lines(title, panels, table.size_text, lambda us: f"{us:g} us" if us < 1e3 else f"{us / 1e3:g} ms")


def ratios(result, title):
    """Bars of best peer / Shoal: for many tables of few sizes."""
    groups = []
    for each in result["tables"]:
        best = table.bests(each["rows"])
        values = {table.size_text(size): table.ratio(best, size) for size in sorted(best.get(table.OURS, {}))}
        groups.append((each["title"], {size: value for size, value in values.items() if value}))
    return picture.bars(title, groups, "", 1)
