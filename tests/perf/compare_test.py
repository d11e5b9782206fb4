#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/make-performance without measuring: what it reads, computes, writes and draws; and that what fails or hangs is left out."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf"))
from compare import counters, hosts, job, kernels, libraries, links, overlap, picture, processes, startup, sweep, table  # noqa: E402


def row(library, size, *us, way=""):
    return {"library": library, "way": way, "bytes": size, "us": list(us)}


class Scripted(libraries.Library):
    """A library whose runs are given, one after the other; None fails."""

    def __init__(self, name, *runs):
        super().__init__(name, "1")
        self.runs = list(runs)

    def measure(self, job, way, hosts=None):
        return self.runs.pop(0)


def quietly(function, *arguments):
    """What it returns, and what it said."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        return function(*arguments), said.getvalue()


def within_seconds(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def alive(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


class Tables(unittest.TestCase):
    ROWS = [row("Shoal", 8, 2, 9, 1), row("A", 8, 4, 4, 4, way="x"), row("A", 8, 3, 3, 3, way="y"), row("limit", 8, 1), row("B", 8, 5),
            row("Shoal", 1 << 20, 200), row("A", 1 << 20, 100)]

    def test_a_figure_is_the_median_over_rounds_and_the_best_of_ways(self):
        self.assertEqual(table.bests(self.ROWS), {"Shoal": {8: 2, 1 << 20: 200}, "A": {8: 3, 1 << 20: 100}, "limit": {8: 1}, "B": {8: 5}})

    def test_the_ratio_is_the_best_peer_over_ours_and_the_limit_is_no_peer(self):
        best = table.bests(self.ROWS)
        self.assertEqual(table.ratio(best, 8), 1.5)
        self.assertEqual(table.ratio(best, 1 << 20), 0.5)
        self.assertIsNone(table.ratio(best, 16))
        self.assertIsNone(table.ratio({"Shoal": {8: 1}, "limit": {8: 1}}, 8))
        self.assertIsNone(table.ratio({"A": {8: 1}}, 8))

    def test_rounds_in_which_the_limit_was_slow_are_left_out(self):
        rows = [row("limit", 8, 10, 50, 11, way="publish"), row("limit", 8, 12, 21, 13, way="pull"), row("Shoal", 8, 20, 90, 22),
                row("Gloo", 8, 40, 41, 400), row("Shoal", 64, 5, 6, 7)]
        self.assertEqual(table.slow_rounds(rows), {8: {1}})
        best = table.bests(rows)
        self.assertEqual((best["Shoal"][8], best["Gloo"][8], best["Shoal"][64]), (21, 220, 6))
        text = table.times(rows, 1)
        self.assertIn("| best peer / Shoal | slow rounds left out |", text)
        self.assertRegex(text, r"\| 8 B \|.*\| 10.48 \| 1 \|")
        self.assertRegex(text, r"\| 64 B \|.*\| 0 \|")

    def test_a_missed_target_is_bold_and_holes_stay_empty(self):
        self.assertEqual(table.times(self.ROWS, 1.0).splitlines(), [
            "| size | Shoal | A | B | limit | best peer / Shoal |",
            "|---|---|---|---|---|---|",
            "| 8 B | 2.00 | 3.00 | 5.00 | 1.00 | 1.50 |",
            "| 1 MiB | 200 | 100 |  |  | **0.50** |",
            "| geometric mean |  |  |  |  | **0.87** |"])

    def test_sizes_are_exact(self):
        self.assertEqual([table.size_text(n) for n in (8, 1000, 1024, 1536, 4 << 20, 1 << 30)], ["8 B", "1000 B", "1 KiB", "1536 B", "4 MiB", "1 GiB"])

    def test_only_the_named_place_of_a_page_changes(self):
        page = "a\n<!-- x -->\nold\n<!-- end -->\nb\n<!-- y -->\nkept\n<!-- end -->\n"
        self.assertEqual(table.replace(page, "x", r"new \1" + "\n"), page.replace("old", r"new \1"))
        with self.assertRaisesRegex(ValueError, "no place for z"):
            table.replace(page, "z", "")


class Readers(unittest.TestCase):
    def test_a_clients_rows_are_pairs_of_numbers(self):
        library = libraries.Library("A", "1")
        self.assertEqual(library.rows(None, "w", "8 1.5\nhost: a warning of 3 words\n\n64 2\n", None), [("w", 8, 1.5), ("w", 64, 2.0)])

    def test_shoals_broadcasts_are_in_place_and_all_else_is_not(self):
        row = {"size": 8, "in_place": {"time": 1.0}, "out_of_place": {"time": 2.0}}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "run.json").write_text(json.dumps({"results": [row]}))
            for collective, us in (("broadcast", 1.0), ("all_reduce", 2.0), ("reduce", 2.0)):
                what = job.Job(2, 8, 8, 2, 1, 1, collective)
                self.assertEqual(libraries.Shoal(folder).rows(what, "", "", folder), [("", 8, us)])

    def test_footprints(self):
        self.assertEqual(libraries.footprints("init 0 0.25 4096 1024\n[1] init 1 1 1 1\ninit 1 0.5 8192 2048\n"),
                         [(0.25, 4096, 1024), (0.5, 8192, 2048)])
        self.assertEqual(libraries.footprints(None), [])

    def test_straces_total(self):
        head = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ------\n"
        self.assertEqual(counters.total(head + " 60.00    0.000006           1        10         2 read\n100.00    0.000010           0        12         2 total\n"), 12)
        self.assertEqual(counters.total(head + "100.00    0.000010           0        12           total\n"), 12)
        self.assertIsNone(counters.total(""))

    def test_every_command_names_its_job(self):
        some = job.Job(2, 8, 4096, 8, 30, 3, fresh=True, mapped=True, seconds=0.5)
        for library in (libraries.Shoal("bin"), libraries.Gloo("bin", "g", "1"), libraries.OpenMpi(4, "O", "r", "c", "1"),
                        libraries.OpenMpi(5, "O", "r", "c", "1"), libraries.Mpich("M", "r", "c", "1")):
            for way in library.ways(some):
                words, environment = library.command(some, way, "folder")
                words = [str(word) for word in words]
                self.assertTrue({"all_reduce", "8", "4096", "30"} <= set(words), words)
                self.assertTrue("fresh" in words or "--fresh" in words, words)
                self.assertFalse([name for name in environment if name.startswith("NCCL_")])

    def test_what_a_library_has_not_is_not_run(self):
        self.assertEqual(libraries.Gloo("bin", "g", "1").ways(job.Job(2, 8, 8, 2, 1, 1, "reduce_scatter")), [])
        self.assertEqual(libraries.Limit("l").ways(job.Job(4, 8, 8, 2, 1, 1)), [])


class Sweeps(unittest.TestCase):
    def test_the_sizes_of_a_sweep_end_at_the_most(self):
        plan = job.jobs(False, 2, 64 << 20)
        sizes = [s for each in plan for s in [each.low * each.factor ** k for k in range(12)] if s <= each.high]
        self.assertEqual((min(sizes), max(sizes), len(sizes)), (8, 64 << 20, 10))
        self.assertEqual([(each.low, each.high) for each in job.jobs(False, 2, 1 << 20)][-1], (1 << 20, 1 << 20))

    def test_what_fails_is_left_out_from_then_on(self):
        job_ = job.Job(2, 8, 8, 2, 1, 1)
        good = Scripted("Shoal", [("", 8, 1.0)], [("", 8, 3.0)])
        bad = Scripted("A", [("", 8, 2.0)], None)
        rows, made = sweep.rounds([good, bad], [job_], 2, time.monotonic() + 60)
        self.assertEqual((rows, made), ([row("Shoal", 8, 1.0, 3.0), row("A", 8, 2.0)], 2))
        rows, _ = sweep.rounds([Scripted("A", None)], [job_], 3, time.monotonic() + 60)
        self.assertEqual(rows, [])

    def test_no_round_begins_after_the_end_but_the_first(self):
        library = Scripted("Shoal", [("", 8, 1.0)], [("", 8, 1.0)])
        _, made = sweep.rounds([library], [job.Job(2, 8, 8, 2, 1, 1)], 2, time.monotonic() - 1)
        self.assertEqual((made, len(library.runs)), (1, 1))


class Processes(unittest.TestCase):
    def test_output_failure_absence_and_hanging(self):
        self.assertEqual(quietly(processes.run, "A", ["sh", "-c", "echo 8 1"], 20), ("8 1\n", ""))
        result, said = quietly(processes.run, "A", ["sh", "-c", "echo why >&2; exit 3"], 20)
        self.assertIsNone(result)
        self.assertEqual(said, "make-performance: A is left out: exit code 3: sh -c echo why >&2; exit 3: why\n")
        result, said = quietly(processes.run, "A", ["/no/such/program"], 20)
        self.assertEqual((result, said), (None, "make-performance: A is left out: /no/such/program: No such file or directory\n"))
        with tempfile.TemporaryDirectory() as folder:  # with its children
            file = pathlib.Path(folder) / "child"
            result, said = quietly(processes.run, "A", ["sh", "-c", f"sleep 1000 & echo $! > {file}; wait"], 0.5)
            self.assertIsNone(result)
            self.assertIn("A is left out: took more than", said)
            self.assertTrue(within_seconds(10, lambda: not alive(int(file.read_text()))))

    def test_ranks_side_by_side(self):
        def ranks(*scripts):
            return quietly(processes.ranks_of, [("A", ["sh", "-c", script], dict(os.environ)) for script in scripts], 20)
        self.assertEqual(ranks("echo 8 1", "echo no"), ("8 1\n", ""))
        result, said = ranks("echo 8 1", "echo why >&2; exit 2")
        self.assertEqual((result, said), (None, "make-performance: A is left out: rank 1: exit code 2: why\n"))


class Parts(unittest.TestCase):
    def test_links_as_shares_of_the_payload_limit(self):
        us = 2 * (4 - 1) / 4 * (1 << 20) * 8 / 1e9 * 1e6  # as if frames were all payload
        self.assertAlmostEqual(links.share(1e9, 4, 1 << 20, us), 100 / hosts.PAYLOAD_SHARE)
        result = {"tables": [{"rate": "1 Gbit/s", "ranks": 4, "rounds": 1, "rows": [row("Shoal", 1 << 20, 2 * us), row("A", 1 << 20, 4 * us)]}]}
        self.assertEqual(links.tables(result, 1).splitlines()[2], "| 1 Gbit/s | 4 | 1 MiB | 52.3 % | 26.1 % | 2.00 |")
        xml.fromstring(links.bars(result, "t"))

    def test_kernels_beside_memcpy_and_float32(self):
        of = {"memcpy": {"bytes": [100], "elements": [50]}, "float32": {"bytes": [90], "elements": [10]},
              "int8": {"bytes": [50, 60, 70], "elements": [40, 40, 40]}}
        result = {"rates": {"l2": of, "dram": of}, "rounds": 1}
        self.assertEqual(kernels.tables(result, 1).splitlines()[2:], ["| float32 | 90 | 100 | 90 | 100 |", "| int8 | 60 | 400 | 60 | 400 |"])
        xml.fromstring(kernels.bars(result, "t"))

    def test_kernels_are_read_as_google_benchmark_writes_them(self):
        rows = [{"name": f"{where}/{name}", "bytes_per_second": 2.0, "items_per_second": 3.0}
                for where in ("l2", "dram") for name in ("memcpy", "float32/sum")]
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "shoal-bench-kernels"
            program.write_text("#!/bin/sh\ncat <<'END'\n" + json.dumps({"benchmarks": rows}) + "\nEND\n")
            program.chmod(0o755)
            o = types.SimpleNamespace(bin=folder, quick=False, rounds=2, until=time.monotonic() + 60)
            result, _ = quietly(kernels.measure, o, [])
        of = {name: {"bytes": [2.0, 2.0], "elements": [3.0, 3.0]} for name in ("memcpy", "float32")}
        self.assertEqual(result, {"rounds": 2, "rates": {"l2": of, "dram": of}})

    def test_the_last_rank_to_be_ready_counts_and_memory_is_a_mean(self):
        library = libraries.Library("Shoal", "1")
        library.startup = lambda ranks: [(0.1, 10, 4), (0.3, 20, 8)] if ranks == 2 else []  # 8 ranks: fails
        result, _ = quietly(startup.measure, types.SimpleNamespace(quick=True, rounds=1, until=0), [library])
        self.assertEqual(result["rows"], [{"library": "Shoal", "ranks": 2, "seconds": [0.3], "rss_kb": [15], "pss_kb": [6]}])

    def test_startup(self):
        rows = [{"library": name, "ranks": 2, "seconds": [s], "rss_kb": [2048], "pss_kb": [1024]} for name, s in (("Shoal", 0.02), ("A", 0.01))]
        self.assertEqual(startup.tables({"rows": rows}, 1).splitlines()[2:],
                         ["| 2 | Shoal | 20.0 | 2.0 | 1.0 |  |", "| 2 | A | 10.0 | 2.0 | 1.0 | **0.50** |"])
        xml.fromstring(startup.bars({"rows": rows}, "t"))

    def test_overlap(self):
        one = {"wire": "w", "binding": "b", "beside_compute_alone": 100.0, "beside_all_reduce_alone": 20.0, "beside_compute": 112.0,
               "beside_both": 113.0, "buckets_compute": 80.0, "buckets_all_reduce": 100.0, "buckets_in_turn": 180.0, "buckets_overlapped": 120.0}
        self.assertAlmostEqual(overlap.slower(one), 12)
        self.assertAlmostEqual(overlap.hidden(one), 75)
        text = overlap.tables({"rows": [one]}, 1)
        self.assertIn("| w | b | 100.0 | 20.0 | 112.0 | **+12.0 %** | 113.0 |", text)
        self.assertIn("| w | b | 80 | 100 | 180 | 120 | 1.50 | 75 % |", text)

    def test_counters(self):
        rows = [{"library": "Shoal", "bytes": 8, "system_calls": 0.0}, {"library": "A", "bytes": 8, "system_calls": 2.25}]
        self.assertEqual(counters.tables({"rows": rows}, 1).splitlines()[2], "| 8 B | 0.000 | 2.250 |")

    def test_pictures_are_documents_and_nothing_of_nothing(self):
        svg = picture.lines("a < b", [("p", {"Shoal": [(8, 0.5), (64, 2000)], "A": [(8, 1)]}), ("q", {"A": [(8, 1)]})], str, str)
        self.assertEqual(xml.fromstring(svg).find("{http://www.w3.org/2000/svg}title").text, "a < b")
        self.assertIsNone(picture.lines("t", [("p", {"A": []})], str, str))
        self.assertIsNone(picture.bars("t", [], ""))
        xml.fromstring(picture.bars("t", [("g", {"a": 0.0})], "", None))


class Program(unittest.TestCase):
    def run_program(self, *words):
        return subprocess.run([sys.executable, ROOT / "docs" / "make-performance", *words], capture_output=True, text=True, timeout=60)

    def test_refusals_name_the_argument_and_what_is_allowed(self):
        with tempfile.TemporaryDirectory() as empty:
            for words, text in ((["privat"], "PART privat: is none of private, mapped,"), (["--peers", "nccl"], "--peers nccl: is none of openmpi4,"),
                                (["--bin", empty], "has no shoal-perf"), (["--again", "--rounds", "0"], "--rounds and --minutes: must be above 0")):
                done = self.run_program(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(text, done.stderr)

    def test_a_run_that_is_ended_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("shoal-perf", ""), ("shoal-bench-kernels", f"sleep 1000 & echo $! > {folder}/child.new; mv {folder}/child.new "
                                                                           f"{folder}/child; wait")):
                (pathlib.Path(folder) / name).write_text(f"#!/bin/sh\n{text}\n")
                (pathlib.Path(folder) / name).chmod(0o755)
            process = subprocess.Popen([sys.executable, ROOT / "docs" / "make-performance", "kernels", "--bin", folder, "--peers", "", "--no-page",
                                        "--results", folder], stderr=subprocess.DEVNULL)
            file = pathlib.Path(folder) / "child"
            self.assertTrue(within_seconds(30, file.exists))
            process.terminate()
            process.wait(30)
            self.assertTrue(within_seconds(10, lambda: not alive(int(file.read_text()))))

    def test_again_prints_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            result = {"tables": [{"title": "2 ranks", "rounds": 3, "rows": Tables.ROWS}], "machine": {}, "libraries": {}, "quick": False}
            (pathlib.Path(folder) / "tcp.json").write_text(json.dumps(result))
            done = self.run_program("tcp", "--again", "--no-page", "--results", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("| 8 B | 2.00 | 3.00 | 5.00 | 1.00 | 1.50 |", done.stdout)
            missing = self.run_program("mapped", "--again", "--no-page", "--results", folder)
            self.assertIn("mapped: there is no ", missing.stderr)

    def test_the_page_has_a_place_for_every_part(self):
        page = (ROOT / "docs" / "performance.md").read_text()
        names = self.run_program("x").stderr.split("is none of ")[1].strip().split(", ")
        for name in names:
            table.replace(page, name, "")


if __name__ == "__main__":
    unittest.main()
