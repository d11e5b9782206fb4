# SPDX-License-Identifier: Apache-2.0
"""Communication on a stream beside computation, from shoal-bench-async: 2 ranks, free to move or one a core, over shared memory and
over a wire whose slowness costs no processor (SHOAL_SHIM)."""
import os
import time

from . import picture, table
from .processes import clean, run, say

RANKS = 2
WIRES = {"shared memory": {}, "10 Gbit/s": {"SHOAL_SHIM": "bandwidth=10Gbit"}, "1 Gbit/s": {"SHOAL_SHIM": "bandwidth=1Gbit"}}
BINDINGS = {"none": "free", "core": "a core each"}


def measure(o, _libraries):
    """{"rows": [{"wire", "binding", NAME: ms ...}]}; the names are the program's."""
    rows = []
    count, compute_ms = (1, 20) if o.quick else (2 * o.rounds, 100)
    for wire, shim in WIRES.items():
        for binding, words in BINDINGS.items():
            if time.monotonic() > o.until:
                say(f"async: no time for {wire}, {words}")
                continue
            command = [f"{o.bin}/shoal-run", "-n", RANKS, "--bind", binding, f"{o.bin}/shoal-bench-async", count, compute_ms]
            output = run("shoal-bench-async", command, 300, clean(**shim))
            if output is None:
                continue
            pairs = [line.split() for line in output.splitlines()]
            rows.append({"wire": wire, "binding": words} | {name: float(value) for name, value in pairs})
    say(f"async: {len(rows)} rows, of {count} repetitions")
    return {"rows": rows, "processors": os.cpu_count()}


def slower(row):
    """Percent by which arithmetic takes longer beside an all-reduce."""
    return 100 * (row["beside_compute"] / row["beside_compute_alone"] - 1)


def hidden(row):
    """Percent of what could be hidden, the shorter of both, that is."""
    saved = row["buckets_in_turn"] - row["buckets_overlapped"]
    return 100 * saved / min(row["buckets_compute"], row["buckets_all_reduce"])


MOST_SLOWER = 10  # percent


def tables(result, _target):
    one, two = [], []
    for row in result["rows"]:
        percent = f"{slower(row):+.1f} %"
        one.append([row["wire"], row["binding"], f"{row['beside_compute_alone']:.1f}", f"{row['beside_all_reduce_alone']:.1f}",
                    f"{row['beside_compute']:.1f}", percent if slower(row) <= MOST_SLOWER else f"**{percent}**", f"{row['beside_both']:.1f}"])
        two.append([row["wire"], row["binding"], f"{row['buckets_compute']:.0f}", f"{row['buckets_all_reduce']:.0f}",
                    f"{row['buckets_in_turn']:.0f}", f"{row['buckets_overlapped']:.0f}",
                    f"{row['buckets_in_turn'] / row['buckets_overlapped']:.2f}", f"{hidden(row):.0f} %"])
    return ("An all-reduce of 16 MiB on a stream, and arithmetic on the calling thread; ms.\n\n" +
            table.markdown(["wire", "ranks", "arithmetic alone", "all-reduce alone", "arithmetic beside it", "longer", "until both are done"], one) +
            "\nEight buckets of 25 MiB, arithmetic before each; ms.\n\n" +
            table.markdown(["wire", "ranks", "arithmetic", "all-reduces", "in turn", "on a stream", "in turn / on a stream", "hidden"], two))


def bars(result, title):
    groups = [(f"{row['wire']}, {row['binding']}", {"arithmetic": row["buckets_compute"], "all-reduces": row["buckets_all_reduce"],
                                                   "in turn": row["buckets_in_turn"], "on a stream": row["buckets_overlapped"]})
              for row in result["rows"]]
    return picture.bars(title, groups, " ms")
