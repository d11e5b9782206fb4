# SPDX-License-Identifier: Apache-2.0
"""What is measured in one start of a library's program: one collective at some sizes."""
import dataclasses
import os


@dataclasses.dataclass(frozen=True)
class Job:
    ranks: int
    low: int  # bytes, of the smallest size
    high: int
    factor: int  # from one size to the next
    iterations: int
    warmup: int
    collective: str = "all_reduce"
    seconds: float = 1.0  # what is timed for a size ends then; Shoal's share is given by iterations alone
    fresh: bool = False  # inputs are rewritten before each timed call
    mapped: bool = False  # Shoal's arrays are from ncclMemAlloc; peers have no such thing
    tcp: bool = False  # all that moves goes over TCP

    @property
    def crowded(self):
        """More ranks than processors."""
        return self.ranks > (os.cpu_count() or 1)

    @property
    def timeout(self):
        """Seconds after which a run is given up."""
        return 120 + 20 * self.seconds


# Sizes that are run together: smallest, largest, factor, iterations, warm-up. Few at a time: a machine that changes its speed
# within seconds shall find all libraries at the same size.
GROUPS = ((8, 4 << 10, 8, 3000, 300), (32 << 10, 256 << 10, 8, 400, 40), (1 << 20, 4 << 20, 4, 100, 10), (16 << 20, 64 << 20, 4, 12, 3),
          (256 << 20, 256 << 20, 2, 4, 3))
QUICK = ((8, 4 << 10, 512, 300, 30), (256 << 10, 256 << 10, 2, 40, 5), (1 << 20, 16 << 20, 16, 5, 2))


def jobs(quick, ranks, most, **how):
    """Those of a sweep of sizes up to `most` bytes."""
    made = []
    for low, high, factor, iterations, warmup in QUICK if quick else GROUPS:
        if low > most:
            continue
        while high > most:
            high //= factor
        job = Job(ranks, low, high, factor, iterations, warmup, seconds=0.1 if quick else 0.5, **how)
        if job.crowded:
            job = dataclasses.replace(job, iterations=max(5, iterations // 5))
        made.append(job)
    return made
