#!/usr/bin/env python3
"""What the harness makes of a client's runs: which outputs are the same, the figures and the goals."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import report, runner  # noqa: E402
from harness.model import START_UP, Client, Command, Failed, Goal, Place  # noqa: E402
from harness.runner import Outcome, Sample  # noqa: E402


def client(**fields) -> Client:
    return Client(name="some", title="", packages=[], programs=["sh"],
                  command=lambda place: Command(["true"]), **fields)


def outcome(stdout: str = "", stderr: str = "", files: dict[str, bytes] | None = None) -> Outcome:
    return Outcome(Sample(1, 1, 1), stdout, stderr, files or {})


def result(peer: list[tuple[float, float]], ours: list[tuple[float, float]],
           goal: Goal = Goal()) -> report.Result:
    """Of runs that took so many seconds and mebibytes."""
    def samples(runs):
        return [Sample(seconds, mebibytes, seconds) for seconds, mebibytes in runs]
    return report.Result(client(goal=goal), "same", peer=samples(peer), ours=samples(ours))


class Comparing(unittest.TestCase):
    def test_the_same_is_the_same(self):
        runner.compare(client(), outcome("a\n", "b\n", {"f": b"c"}),
                       outcome("a\n", "b\n", {"f": b"c"}))

    def test_each_output_counts(self):
        peer = outcome("a\nb\n", "b\n", {"f": b"c"})
        for ours, what in ((outcome("a\nx\n", "b\n", {"f": b"c"}), "outputs differ: missing line 'b'"),
                           (outcome("a\nb\n", "x\n", {"f": b"c"}), "error outputs differ"),
                           (outcome("a\nb\n", "b\n", {"f": b"cd"}), r"f differs .*\(1 and 2 bytes\)")):
            with self.subTest(what), self.assertRaisesRegex(Failed, what):
                runner.compare(client(), peer, ours)

    def test_what_a_client_ignores_does_not_count(self):
        runner.compare(client(ignore_files=True, ignore_stderr=True), outcome("a", "b", {"f": b"c"}),
                       outcome("a", "x", {"f": b"y"}))

    def test_the_expected_text_is_demanded(self):
        with_text = client(expected="expected")
        with_text.expected_text = lambda size: "right\n"
        place = Place(Path(), Path(), Path(), "small")
        harness = runner.Runner.__new__(runner.Runner)  # no folder, no measuring program
        harness.size = "small"
        harness._check(with_text, outcome("right\n"), place)
        with self.assertRaisesRegex(Failed, "unexpected output: missing line 'right'"):
            harness._check(with_text, outcome("wrong\n"), place)

    def test_a_client_judges_itself(self):
        def judge(text, place):
            raise Failed("not so")
        harness = runner.Runner.__new__(runner.Runner)
        harness.size = "small"
        with self.assertRaisesRegex(Failed, "not so"):
            harness._check(client(check=judge), outcome(), Place(Path(), Path(), Path(), "small"))


class Figures(unittest.TestCase):
    def test_ratios_are_ours_by_the_peers_pair_by_pair(self):
        r = result([(2, 100), (4, 100), (1, 100)], [(1, 50), (1, 80), (1, 120)])
        self.assertEqual(r.ratios("seconds"), [0.5, 0.25, 1])
        self.assertEqual(r.ratios("mebibytes"), [0.5, 0.8, 1.2])
        entry = r.to_json()
        self.assertEqual(entry["time_ratio"], {"median": 0.5, "min": 0.25, "max": 1})
        self.assertEqual(entry["memory_ratio"]["median"], 0.8)
        self.assertEqual(entry["peer"]["peak_mebibytes"], [100, 100, 100])
        self.assertEqual(r.missed(), [])

    def test_goals_are_of_the_medians(self):
        # Of the ratios: the medians of each side are the same.
        slow = result([(1, 100), (2, 50), (3, 10)], [(2, 50), (2.08, 53), (1, 20)])
        self.assertEqual(slow.missed(), ["time 1.040 > 1.03", "memory 1.060 > 1.05"])
        self.assertEqual(result([(1, 100)], [(1.03, 105)]).missed(), [])
        slow.judged = False
        self.assertEqual(slow.missed(), [])
        self.assertEqual(result([(1, 100)], [(0.81, 100)], Goal(time=0.8)).missed(),
                         ["time 0.810 > 0.8"])
        slow.status = "failed"
        self.assertEqual(slow.missed(), [])

    def test_start_up_has_goals_in_milliseconds(self):
        self.assertEqual(result([(0.010, 10)], [(0.0109, 10.9)], START_UP).missed(), [])
        self.assertEqual(result([(0.010, 10)] * 3, [(0.0115, 11.5), (0.010, 10), (0.1, 100)],
                                START_UP).missed(), ["time +1.50 ms", "memory +1.50 MiB"])

    def test_a_peer_of_zero_seconds_gives_no_ratio(self):
        self.assertEqual(result([(0, 1), (1, 1)], [(1, 1), (2, 1)]).ratios("seconds"), [2])

    def test_the_table_shows_medians_and_spread(self):
        text = report.row(result([(2, 100), (4, 100), (1, 100)], [(1, 50), (1, 80), (1, 120)]))
        for part in ("2.000", "1.000", "0.500", "0.25-1.00", "0.800", "0.50-1.20", "same output"):
            self.assertIn(part, text)

    def test_the_summary_counts(self):
        good = result([(1, 100)], [(0.5, 50)])
        over = result([(1, 100)], [(2, 50)])
        start = result([(1, 100)], [(1.0005, 100)], START_UP)
        failed = report.Result(client(), "failed", "it died")
        absent = report.Result(client(), "not run", "not installed")
        over.peer_failures = ["it died"]
        text = report.summary([good, over, start, failed, absent])
        self.assertIn("3 clients do the same on both libraries, 1 failed, 1 not run", text)
        self.assertIn("2 of 3 are within their goals", text)
        self.assertIn("geometric mean of the time ratios, start-up left out: 1.000", text)
        self.assertIn("geometric mean of the peak memory ratios, start-up left out: 0.500", text)
        self.assertIn("failed: some: it died", text)
        self.assertIn("over the goal: time 2.000 > 1.03", report.verdict(over))
        self.assertIn("the peer failed in 1 runs more", report.verdict(over))
        self.assertEqual(report.verdict(failed), "FAILED: it died")
        self.assertEqual(failed.to_json()["reason"], "it died")


if __name__ == "__main__":
    unittest.main()
