#!/usr/bin/env python3
"""Runs one allocation-heavy Guile program (demo.scm) on the system's libgc and on Jackdaw's,
alternately, checks that it prints the same, and shows what it took on each."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import runner  # noqa: E402
from harness.model import Client, Command, Failed, NotRun, environment  # noqa: E402

ROOT = HERE.parents[1]
GUILE = ["guile", "--no-auto-compile"]


def make_client(work: int) -> Client:
    def prepare(place):
        place.prepare([*GUILE, HERE / "guile/compile.scm", HERE / "demo.scm",
                       place.prepared / "demo.go"])

    def command(place):
        file = place.prepared / "demo.go"
        return Command([*GUILE, "-c", f'(load-compiled "{file}")', str(work)])

    return Client(name="demo", title="the demo", packages=["guile-3.0"], programs=["guile"],
                  prepare=prepare, command=command)


def collector_figures(client: Client, run: runner.Runner, library: runner.Library, jackdaw: Path):
    """Collections and pauses, measured in a run of its own: the probe takes a little time itself."""
    if not jackdaw.exists():
        return None, f"there is no {jackdaw}"
    place = run.place(client, library.label)
    place.run.mkdir(parents=True, exist_ok=True)
    report = place.run / "stats.json"
    report.unlink(missing_ok=True)
    process = subprocess.Popen(
        [str(jackdaw), "run", "--library", str(library.file), "--stats-json", str(report), "--",
         *client.command(place).argv], env=environment(place.run, {}), cwd=place.run,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True)
    try:
        _, stderr = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # Guile with it
        process.wait()
        return None, "jackdaw run did not end within 60 s"
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0 or not report.exists():
        return None, f"jackdaw run failed: {runner.last_line(stderr)}"
    return json.loads(report.read_text()), None


def show_table(samples: dict, stats: dict) -> None:
    print(f"{'':<22} {'system':>11} {'jackdaw':>11} {'ratio':>8}")

    def line(name: str, values: list, form, ratio: float | None = None) -> None:
        cells = [form(v) if v is not None else "not measured" for v in values]
        if ratio is None and None not in values and values[0]:
            ratio = values[1] / values[0]
        print(f"{name:<22} {cells[0]:>11} {cells[1]:>11} "
              f"{f'{ratio:.3f}' if ratio is not None else '':>8}")

    def measured(key: str) -> list:
        return [(stats[label] or {}).get(key) for label in ("peer", "ours")]

    line("collections", measured("collections"), lambda v: f"{v}")
    line("pauses, in all", measured("pauses_s"), lambda v: f"{v * 1000:.1f} ms")
    line("longest pause", measured("pauses_longest_s"), lambda v: f"{v * 1000:.2f} ms")
    for name, what, form in (("CPU time", "cpu_seconds", lambda v: f"{v:.3f} s"),
                             ("peak memory", "mebibytes", lambda v: f"{v:.1f} MiB"),
                             ("time", "seconds", lambda v: f"{v:.3f} s")):
        sides = [[getattr(s, what) for s in samples[label]] for label in ("peer", "ours")]
        pairs = [o / p for p, o in zip(*sides)]
        line(name, [statistics.median(side) for side in sides], form, statistics.median(pairs))
    spread = [o.seconds / p.seconds for p, o in zip(samples["peer"], samples["ours"])]
    print(f"\nMedians of {len(spread)} pairs of runs; the time ratios lie between {min(spread):.3f} "
          f"and {max(spread):.3f}.\nCollections and pauses come from one more run on each.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="pairs of runs (3)")
    parser.add_argument("--work", type=int, default=60, metavar="N",
                        help="how much the program does (60: one to two seconds)")
    parser.add_argument("--ours", type=Path, default=ROOT / "build/release/lib/libgc.so.1",
                        metavar="PATH", help="our libgc.so.1 (default: build/release/lib)")
    parser.add_argument("--peer", type=Path, metavar="PATH",
                        help="the libgc.so.1 to compare with (default: the system's)")
    parser.add_argument("--jackdaw", type=Path, default=ROOT / "build/release/bin/jackdaw",
                        metavar="PATH", help="the jackdaw command (default: build/release/bin)")
    options = parser.parse_args()
    if options.runs < 1 or options.work < 1:
        parser.error("--runs and --work are at least 1")

    runner.end_on_signals()
    folder = ROOT / "build/clients"
    libraries = [runner.make_library("peer", options.peer or runner.find_system_library(), folder),
                 runner.make_library("ours", options.ours, folder)]
    run = runner.Runner(folder, "full")
    client = make_client(options.work)

    print("One Scheme program, unchanged, on two libraries: symbolic algebra, an interpreter,\n"
          "balanced trees (tests/clients/demo.scm), run by Debian's Guile 3.0.\n"
          f"  system   {libraries[0].file}\n  jackdaw  {libraries[1].file}\n", flush=True)
    try:
        run.prepare(client)
        first = [run.verify(client, library) for library in libraries]
        runner.compare(client, *first)
        print("Both print:\n" + "".join(f"  {line}\n" for line in first[0].stdout.splitlines()))
        samples = {"peer": [], "ours": []}
        for number in range(options.runs):
            order = libraries if number % 2 == 0 else libraries[::-1]
            outcomes = {}
            for library in order:
                outcome = outcomes[library.label] = run.run(client, library)
                samples[library.label].append(outcome.sample)
            runner.compare(client, outcomes["peer"], outcomes["ours"])
            print(f"  pair {number + 1} of {options.runs}: system "
                  f"{outcomes['peer'].sample.seconds:.3f} s, jackdaw "
                  f"{outcomes['ours'].sample.seconds:.3f} s; the same output", flush=True)
    except (NotRun, Failed) as why:
        print(f"demo: {why}", file=sys.stderr)
        return 1

    stats = {}
    for library in libraries:
        stats[library.label], why = collector_figures(client, run, library,
                                                      options.jackdaw)
        if why:
            print(f"  collections and pauses on {library.file}: not measured: {why}")
    print()
    show_table(samples, stats)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
