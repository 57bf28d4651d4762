#!/usr/bin/env python3
"""Counts the cache misses of marking and of allocation, in a simulated cache.

    bench/cachegrind.py --ours build/release/lib/libgc.so.1 --peer /usr/lib/.../libgc.so.1

Runs small benchmarks under valgrind on our library, with the paper's strategies and the ring, and
on a peer's, and prints a table of Markdown; --json FILE writes the same figures as JSON. Misses in
a simulator are the same on every machine and in every run, so that a change of some percent shows.

How: callgrind has cachegrind's cache (--cache-sim=yes), and can begin a new account whenever a
certain function is called. The benchmarks call one of their own when marking begins and one when it
ends (bench/support/bench.hpp), at the library's events; so marking is told from the rest without
knowing any name inside a library, and a stripped one can be looked at like ours. In the rest, the
program's own misses are told from the library's by the file that the code is in. How many objects
all collections marked is counted in another run, without valgrind (JD_BENCH_COUNT).

Exit status: 0 all ran, 1 some did not, 2 a bad argument, 77 there is no valgrind.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Sizes of the caches: of one core's first level, and of the share of the last level that a
# collector can hope for. The same everywhere; the host's own would be taken otherwise.
FIRST_LEVEL = "32768,8,64"
LAST_LEVEL = "1048576,16,64"
QUICK_LAST_LEVEL = "262144,16,64"

STRATEGIES = ("none", "on-grey", "ring")

# What is run: name, program, arguments, and arguments with --quick. The heaps are several times the
# last-level cache; those of the full table are beyond the 32 MiB from which on our marker uses
# both of its rings.
WORK = (
    ("mark_random", "mark_random", ("1500000", "32"), ("60000", "32")),
    ("mark_tree shuffled", "mark_tree", ("shuffled", "20"), ("shuffled", "15")),
    ("gcbench", "gcbench", ("17", "15"), ("13", "12")),
)

CAPTION = """\
Misses in a simulated cache ({simulator}; first level {d1}, last level {ll}: bytes, ways, line).
D1 and LL are misses of data reads and writes in the two levels. Marking: for each object marked, from
the library's event at its beginning to that at its end. Sweeping and allocation: all else that the
library does, for each object the program made; the mark_ programs make theirs on fresh memory and
reuse none, gcbench nearly all on swept memory. Program: what the program itself misses, for each object it made.
The simulator takes a prefetch instruction for nothing: it is no load, and it brings no line.
(Seen with 100000 prefetches of as many lines, read or write: no reference and no miss more.) A line that was prefetched in time is therefore counted as a miss when it is used, and the strategies
differ here only by what they read, not by how long they wait for it."""


class Failure(Exception):
    """A run that cannot be used; the message says why."""


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    program: pathlib.Path
    arguments: tuple
    side: str  # ours or peer
    library: pathlib.Path
    strategy: str  # "" for the peer

    def environment(self):
        variables = dict(os.environ)
        # One marker: events of one thread, and the same work on both libraries.
        variables.update(LD_PRELOAD=str(self.library), GC_MARKERS="1")
        if self.strategy:
            variables["JACKDAW_MARK_STRATEGY"] = self.strategy
            # By the clock, which tells nothing here, it would choose between the ring and none.
            variables["JACKDAW_MARK_TURN"] = "0"
        return variables

    def label(self):
        return f"{self.name}, {self.side}" + (f", {self.strategy}" if self.strategy else "")


@dataclasses.dataclass
class Misses:
    instructions: int = 0
    d1: int = 0
    ll: int = 0

    def add(self, cost):
        self.instructions += cost.get("Ir", 0)
        self.d1 += cost.get("D1mr", 0) + cost.get("D1mw", 0)
        self.ll += cost.get("DLmr", 0) + cost.get("DLmw", 0)

    def for_each(self, objects):
        if objects == 0:
            return None
        return {
            "instructions": round(self.instructions / objects, 1),
            "d1": round(self.d1 / objects, 3),
            "ll": round(self.ll / objects, 3),
        }


# --- callgrind's files ---------------------------------------------------------------------------

NAME = re.compile(r"c?(ob|fi|fl|fe|fn)=\((\d+)\)(?: (.*))?$")
POSITION = re.compile(r"[+*-]?(0x)?[0-9a-f]*$")


def accounts(lines):
    """Yields, for each account in order, a list of (object file, cost); cost is a dict by event.

    The format is described in valgrind's manual, "Callgrind Format Specification". Only the costs of
    code itself are used; the line after "calls=" holds those of the function that was called.
    """
    account = None
    events = []
    positions = 1
    names = {}
    where = "???"
    skip = False
    for line in lines:
        line = line.rstrip("\n")
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("positions:"):
            positions = len(line.split()) - 1
        elif line.startswith("part:"):
            if account is not None:
                yield account
            account = []
            where = "???"
        elif line.startswith("calls="):
            skip = True
        elif match := NAME.match(line):
            kind, number, text = match.groups()
            if text is not None:
                names[kind, number] = text
            if line.startswith("ob="):
                where = names.get((kind, number), "???")
        elif line and (line[0].isdigit() or line[0] in "+-*"):
            fields = line.split()
            if skip:
                skip = False
            elif account is not None and len(fields) > positions:
                numbers = [int(field) for field in fields[positions:]]
                account.append((where, dict(zip(events, numbers))))
    if account is not None:
        yield account


def tell_apart(file, program):
    """The misses of marking, of the rest of the library, and of the program itself."""
    marking, rest, own = Misses(), Misses(), Misses()
    collections = 0
    with open(file, encoding="utf-8", errors="replace") as lines:
        for number, account in enumerate(accounts(lines)):
            # The account that a call of marking_begins() ends is followed by one of marking.
            is_marking = number % 2 == 1
            collections += is_marking
            for where, cost in account:
                base = pathlib.PurePath(where).name
                if base == program.name:
                    own.add(cost)
                elif is_marking:
                    marking.add(cost)
                elif not base.startswith("ld-linux"):
                    # The C library clears memory for the collector, and hardly does anything else.
                    rest.add(cost)
    return marking, rest, own, collections


# --- runs ----------------------------------------------------------------------------------------


def run(command, environment, job):
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Failure(f"{job.label()}: status {done.returncode}: {done.stderr.strip()[-500:]}")
    try:
        facts = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise Failure(f"{job.label()}: not a line of JSON: {error}") from error
    if os.path.realpath(facts["library"]) != os.path.realpath(job.library):
        raise Failure(f"{job.label()}: it ran on {facts['library']}")
    return facts


def simulate(job, last_level, folder):
    # Under valgrind, too: a few words more on the stack may hold objects, and bring a collection.
    counted = run(
        ["valgrind", "--quiet", "--tool=none", str(job.program), *job.arguments],
        {**job.environment(), "JD_BENCH_COUNT": "1"},
        job,
    )
    file = folder / f"{job.name}-{job.side}-{job.strategy}".replace(" ", "-")
    simulated = run(
        [
            "valgrind",
            "--quiet",
            "--tool=callgrind",
            "--cache-sim=yes",
            f"--I1={FIRST_LEVEL}",
            f"--D1={FIRST_LEVEL}",
            f"--LL={last_level}",
            "--dump-line=no",
            "--combine-dumps=yes",
            "--dump-before=bench::marking_begins*",
            "--dump-before=bench::marking_ends*",
            f"--callgrind-out-file={file}",
            str(job.program),
            *job.arguments,
        ],
        job.environment(),
        job,
    )
    if simulated["collections"] != counted["collections"]:
        raise Failure(
            f"{job.label()}: {simulated['collections']} collections with the cache and "
            f"{counted['collections']} without: the counted objects are not those of this run"
        )
    marking, rest, own, collections = tell_apart(file, job.program)
    if collections == 0:
        raise Failure(f"{job.label()}: no marking was seen")
    made = counted["made_objects"]
    return {
        "name": job.name,
        "arguments": list(job.arguments),
        "side": job.side,
        "strategy": job.strategy or None,
        "collections": collections,
        "marked_objects": counted["marked_objects"],
        "made_objects": made,
        "marking": marking.for_each(counted["marked_objects"]),
        "sweeping_and_allocation": rest.for_each(made),
        "program": own.for_each(made),
    }


def run_all(jobs, last_level, at_once):
    """The rows in the jobs' order, None for one that failed."""
    rows = [None] * len(jobs)
    with tempfile.TemporaryDirectory(prefix="jackdaw-cachegrind-") as folder:
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            started = {
                pool.submit(simulate, job, last_level, pathlib.Path(folder)): i
                for i, job in enumerate(jobs)
            }
            for count, done in enumerate(concurrent.futures.as_completed(started), 1):
                i = started[done]
                outcome = "done"
                try:
                    rows[i] = done.result()
                except Failure as failure:
                    outcome = f"FAILED: {failure}"
                print(f"[{count}/{len(jobs)}] {jobs[i].label()}: {outcome}", file=sys.stderr)
    return rows


# --- the report ----------------------------------------------------------------------------------


def markdown(rows, caption):
    lines = [
        caption,
        "",
        "| benchmark | library | strategy | marking: D1 | LL | instructions "
        "| sweeping and allocation: D1 | LL | instructions | program: D1 | LL |",
        "|---|---|---|" + "---:|" * 8,
    ]
    for row in rows:
        cells = [row["name"], row["side"], row["strategy"] or "its own"]
        for part in ("marking", "sweeping_and_allocation", "program"):
            figures = row[part]
            for what, digits in (("d1", 2), ("ll", 2), ("instructions", 0)):
                if part == "program" and what == "instructions":
                    continue
                cells.append("-" if figures is None else f"{figures[what]:.{digits}f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Cache misses of marking and of allocation, for each object, in a simulator."
    )
    parser.add_argument("--ours", type=pathlib.Path, help="our libgc.so.1", required=True)
    parser.add_argument("--peer", type=pathlib.Path, help="another libgc.so.1 to compare with")
    parser.add_argument(
        "--programs",
        type=pathlib.Path,
        help="folder of the benchmarks (jackdaw/bench beside our library)",
    )
    parser.add_argument(
        "--json",
        type=argparse.FileType("a", encoding="utf-8"),
        help="write the figures to this file",
    )
    parser.add_argument("--only", choices=[name for name, *_ in WORK], help="one benchmark alone")
    parser.add_argument("--quick", action="store_true", help="smaller inputs, in a smaller cache")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once (the CPUs)")
    arguments = parser.parse_args()
    arguments.ours = arguments.ours.absolute()
    if arguments.programs is None:
        arguments.programs = arguments.ours.parent / "jackdaw" / "bench"
    libraries = [arguments.ours]
    if arguments.peer is not None:
        arguments.peer = arguments.peer.absolute()
        libraries.append(arguments.peer)
    programs = [arguments.programs.absolute() / program for _, program, _, _ in WORK]
    for file in libraries + programs:
        if not file.is_file():
            parser.error(f"there is no {file}")
    if arguments.jobs < 1:
        parser.error("--jobs is 1 or more")
    return arguments


def main():
    arguments = parse_arguments()
    if shutil.which("valgrind") is None:
        print("cachegrind: valgrind is not installed (Debian: apt-get install valgrind)",
              file=sys.stderr)
        return 77
    last_level = QUICK_LAST_LEVEL if arguments.quick else LAST_LEVEL
    jobs = []
    for name, program, full, quick in WORK:
        if arguments.only not in (None, name):
            continue
        path = arguments.programs.absolute() / program
        sizes = quick if arguments.quick else full
        for strategy in STRATEGIES:
            jobs.append(Job(name, path, sizes, "ours", arguments.ours, strategy))
        if arguments.peer is not None:
            jobs.append(Job(name, path, sizes, "peer", arguments.peer, ""))
    rows = run_all(jobs, last_level, arguments.jobs)
    good = [row for row in rows if row is not None]

    version = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True)
    simulator = f"callgrind of {version.stdout.strip()}"
    caption = CAPTION.format(simulator=simulator, d1=FIRST_LEVEL, ll=last_level)
    print(markdown(good, caption))
    if arguments.json is not None:
        facts = {
            "format": 1,
            "simulator": simulator,
            "d1": FIRST_LEVEL,
            "ll": last_level,
            "quick": arguments.quick,
            "caption": caption,
            "rows": good,
        }
        with arguments.json as file:
            file.truncate(0)
            file.write(json.dumps(facts, indent=2) + "\n")
    return 0 if len(good) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
