# SPDX-License-Identifier: Apache-2.0
"""What it takes to have a library ready: from the start of main() to the end of the first all-reduce, of one number, on the last
rank to have it; and the memory of a process then, before it has any arrays of its own: a mean over the ranks."""
import statistics
import time

from . import picture, table
from .processes import say

WORLDS = (2, 8, 16)


def measure(o, libraries):
    """{"rows": [{"library", "ranks", "seconds": [a round], "rss_kb": [...], "pss_kb": [...]}], "rounds"}."""
    rows, failed, made = {}, set(), 0
    while made < o.rounds and (made == 0 or time.monotonic() < o.until):
        for ranks in WORLDS[:2] if o.quick else WORLDS:
            for library in libraries:
                if library.name == table.LIMIT or (library.name, ranks) in failed:
                    continue
                found = library.startup(ranks)
                if len(found) != ranks:
                    failed.add((library.name, ranks))
                    continue
                row = rows.setdefault((library.name, ranks), {"seconds": [], "rss_kb": [], "pss_kb": []})
                row["seconds"].append(max(seconds for seconds, _, _ in found))
                row["rss_kb"].append(statistics.mean(rss for _, rss, _ in found))
                row["pss_kb"].append(statistics.mean(pss for _, _, pss in found))
        made += 1
    say(f"init: {made} of {o.rounds} rounds")
    return {"rounds": made, "rows": [{"library": name, "ranks": ranks} | row for (name, ranks), row in rows.items()]}


def tables(result, target):
    ours = {row["ranks"]: statistics.median(row["seconds"]) for row in result["rows"] if row["library"] == table.OURS}
    body = []
    for row in sorted(result["rows"], key=lambda row: row["ranks"]):  # stable: ours first
        seconds = statistics.median(row["seconds"])
        other = row["library"] != table.OURS and row["ranks"] in ours
        body.append([str(row["ranks"]), row["library"], f"{1e3 * seconds:,.1f}", f"{statistics.median(row['rss_kb']) / 1024:.1f}",
                     f"{statistics.median(row['pss_kb']) / 1024:.1f}", table.ratio_text(seconds / ours[row["ranks"]], target) if other else ""])
    return table.markdown(["ranks", "library", "ready after, ms", "resident, MiB a rank", "of it, shared out (Pss)", "its time / Shoal's"], body)


def bars(result, title):
    groups = {}
    for row in result["rows"]:
        groups.setdefault(f"{row['ranks']} ranks", {})[row["library"]] = 1e3 * statistics.median(row["seconds"])
    return picture.bars(title, list(groups.items()), " ms")
