# SPDX-License-Identifier: Apache-2.0
"""From measured rows to Markdown. A row is {"library", "way", "bytes", "us": [one a round]}."""
import math
import re
import statistics

UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
OURS, LIMIT = "Shoal", "limit"


def size_text(n):
    for unit, name in UNITS:
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return f"{n} B"


def time_text(us):
    return f"{us:.2f}" if us < 100 else f"{us:,.0f}"


def slow_rounds(rows):
    """{bytes: {round}}: those in which the limit took more than twice its least, a machine in another state than in most."""
    limits = {}
    for row in rows:
        if row["library"] == LIMIT:
            of = limits.setdefault(row["bytes"], {})
            for number, us in enumerate(row["us"]):
                of[number] = min(us, of.get(number, us))
    return {size: {number for number, us in of.items() if us > 2 * min(of.values())} for size, of in limits.items()}


def bests(rows):
    """{library: {bytes: us}}: the median over the rounds that were not slow, of a library's ways the best."""
    found, slow = {}, slow_rounds(rows)
    for row in rows:
        of, left_out = found.setdefault(row["library"], {}), slow.get(row["bytes"], ())
        us = statistics.median([each for number, each in enumerate(row["us"]) if number not in left_out] or row["us"])
        of[row["bytes"]] = min(us, of.get(row["bytes"], us))
    return found


def ratio(best, size, ours=OURS):
    """The best peer's time over ours; None where one of them is missing."""
    peers = [of[size] for name, of in best.items() if name not in (ours, LIMIT) and size in of]
    return min(peers) / best[ours][size] if peers and best.get(ours, {}).get(size) else None


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(value) for value in values)) if values else None


def ratio_text(value, target):
    """Bold where the target is missed."""
    if value is None:
        return ""
    return f"{value:.2f}" if value >= target else f"**{value:.2f}**"


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def times(rows, target, first="size", label=size_text):
    """A line a size with every library's time, and best peer / Shoal; the last line is the geometric mean of the ratios."""
    best = bests(rows)
    names = sorted(best, key=lambda name: (name != OURS, name == LIMIT))  # stable: ours, the peers as they were run, the limit
    sizes = sorted({size for of in best.values() for size in of})
    ratios = {size: ratio(best, size) for size in sizes}
    slow = slow_rounds(rows)
    last = (lambda size: [str(len(slow.get(size, ())))]) if any(slow.values()) else lambda size: []
    body = []
    for size in sizes:
        cells = [time_text(best[name][size]) if size in best[name] else "" for name in names]
        body.append([label(size), *cells, ratio_text(ratios[size], target), *last(size)])
    mean = geometric_mean([value for value in ratios.values() if value])
    if mean is not None:
        body.append(["geometric mean", *[""] * len(names), ratio_text(mean, target), *([""] if last(0) else [])])
    return markdown([first, *names, "best peer / Shoal", *(["slow rounds left out"] if last(0) else [])], body)


def replace(text, mark, body):
    """The page with `body` between the marks; an error where it has none of that name."""
    pattern = rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)"
    if not re.search(pattern, text, flags=re.S):
        raise ValueError(f"the page has no place for {mark}: <!-- {mark} --> and <!-- end -->")
    return re.sub(pattern, lambda m: m.group(1) + body + m.group(2), text, count=1, flags=re.S)
