#!/usr/bin/env python3
"""Runs real programs on two libgc.so.1, alternately, checks that they do the same, and compares
time and peak memory. docs/guide/clients.md tells what the programs are and what the columns mean."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import report, runner  # noqa: E402
from harness.model import SIZES, Failed, NotRun, load_clients  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77  # what ctest takes for "skipped"


class Progress:
    """One line on standard error that says what is going on."""

    def __init__(self):
        self.live = sys.stderr.isatty()

    def say(self, text: str) -> None:
        if self.live:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def done(self, text: str) -> None:
        self.say("")
        print(text, flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev clients", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the clients and end")
    parser.add_argument("--names", action="store_true", help="print the clients' names and end")
    parser.add_argument("--only", metavar="NAMES", action="append", default=[],
                        help="run these alone: names or folders, with commas between them")
    parser.add_argument("--runs", type=positive, default=None, metavar="N",
                        help="measured runs on each library (default 3)")
    parser.add_argument("--quick", action="store_true", help="one pair of runs with small inputs")
    parser.add_argument("--json", type=argparse.FileType("a", encoding="utf-8"), metavar="FILE",
                        help="write all the samples there")
    parser.add_argument("--ours", type=Path, metavar="PATH",
                        default=ROOT / "build/release/lib/libgc.so.1",
                        help="our libgc.so.1, or its folder (default: build/release/lib)")
    parser.add_argument("--peer", type=Path, metavar="PATH",
                        help="the libgc.so.1 to compare with (default: the system's)")
    parser.add_argument("--check", metavar="NAME",
                        help="run one client once, small, on ours alone (what ctest does); "
                             f"the status is {SKIPPED} if the client is not installed")
    parser.add_argument("--accept", action="store_true",
                        help="write the expected texts anew, from what the peer's library gives")
    parser.add_argument("--work", type=Path, default=ROOT / "build/clients", metavar="DIR",
                        help="where compiled programs and outputs go (default build/clients)")
    return parser.parse_args()


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def choose(clients: list, only: list[str]) -> list:
    wanted = [name for names in only for name in names.split(",") if name]
    if not only:
        return clients
    if not wanted:
        raise SystemExit("--only names no client; --list shows them")
    for name in wanted:
        if not any(name in (c.name, c.source.name) for c in clients):
            raise SystemExit(f"there is no client '{name}'; --list shows them")
    return [c for c in clients if c.name in wanted or c.source.name in wanted]


def list_clients(clients: list) -> None:
    for client in clients:
        print(f"{client.name:<18} {client.title}")
        print(f"{'':<18} {client.missing() or 'installed'}")


def check(client, run: runner.Runner, ours: runner.Library) -> int:
    reason = client.missing()
    try:
        run.prepare(client)
        run.verify(client, ours)
    except NotRun as why:
        print(f"{client.name}: not run: {why}")
        # What can't be prepared though it is installed is a fault, not a gap.
        return SKIPPED if reason else 1
    except Failed as why:
        print(f"{client.name}: {why}")
        return 1
    print(f"{client.name}: as expected")
    return 0


def accept(clients: list, work: Path, peer: runner.Library) -> None:
    for client in clients:
        if client.expected is None or "{size}" not in client.expected:
            continue
        expected, client.expected = client.expected, None
        for size in SIZES:
            run = runner.Runner(work, size)
            try:
                run.prepare(client)
                text = run.verify(client, peer).stdout
            except (NotRun, Failed) as why:
                raise SystemExit(f"{client.name}: {why}") from why
            (client.source / expected.format(size=size)).write_text(text, encoding="utf-8")
            print(f"{client.name}: {expected.format(size=size)}")


# The peer has crashes of its own (nim-threads: one run of 40 by hand); four in a row are no accident.
# A run of ours has no second try.
PEER_TRIES = 4


def on_peer(result: report.Result, run_once):
    for _ in range(PEER_TRIES):
        try:
            return run_once()
        except Failed as why:
            result.peer_failures.append(str(why))
    raise NotRun(f"it doesn't work on the peer's library, in {PEER_TRIES} runs: "
                 f"{result.peer_failures[-1]}")


def measure(client, run: runner.Runner, peer, ours, pairs: int, progress: Progress) -> report.Result:
    result = report.Result(client, judged=run.size == "full")
    try:
        progress.say(f"{client.name}: preparing")
        run.prepare(client)
        progress.say(f"{client.name}: a first run on {peer.label}")
        first = on_peer(result, lambda: run.verify(client, peer))
        progress.say(f"{client.name}: a first run on {ours.label}")
        runner.compare(client, first, run.verify(client, ours))
        for number in range(pairs):
            progress.say(f"{client.name}: pair {number + 1} of {pairs}")
            # The first of a pair may find caches colder; take turns.
            order = (peer, ours) if number % 2 == 0 else (ours, peer)
            outcomes = {}
            for library in order:
                def run_once(library=library):
                    return run.run(client, library)
                outcomes[library.label] = (on_peer(result, run_once) if library is peer
                                           else run_once())
            runner.compare(client, outcomes["peer"], outcomes["ours"])
            result.peer.append(outcomes["peer"].sample)
            result.ours.append(outcomes["ours"].sample)
        result.status = "same"
    except NotRun as why:
        result.status, result.reason = "not run", str(why)
        result.peer, result.ours = [], []
    except Failed as why:
        result.status, result.reason = "failed", str(why)
        result.peer, result.ours = [], []
    return result


def main() -> int:
    options = parse_arguments()
    clients = load_clients()
    if options.names:
        print("\n".join(c.name for c in clients))
        return 0
    if options.list:
        list_clients(choose(clients, options.only))
        return 0

    runner.end_on_signals()
    work = options.work.resolve()
    size = "small" if options.quick or options.check else "full"
    ours = None if options.accept else runner.make_library("ours", options.ours, work)
    run = runner.Runner(work, size)
    if options.check:
        chosen = [c for c in clients if c.name == options.check]
        if not chosen:
            raise SystemExit(f"there is no client '{options.check}'; --list shows them")
        return check(chosen[0], run, ours)

    peer = runner.make_library("peer", options.peer or runner.find_system_library(), work)
    clients = choose(clients, options.only)
    if options.accept:
        accept(clients, work, peer)
        return 0
    runs = options.runs or (1 if options.quick else 3)
    progress = Progress()
    print(f"peer: {peer.file}\nours: {ours.file}\n{runs} pair{'s' * (runs > 1)} of runs, {size} "
          "inputs; medians of wall time and of peak memory (the largest process)\n")
    print(report.HEADER, flush=True)
    results = []
    for client in clients:
        pairs = runs * (client.repeat if not options.quick else 1)
        result = measure(client, run, peer, ours, pairs, progress)
        results.append(result)
        progress.done(report.row(result))
        # After each, so that an interrupted series leaves what it has.
        if options.json:
            options.json.truncate(0)
            options.json.write(json.dumps({
                "peer": str(peer.file), "ours": str(ours.file), "runs": runs, "size": size,
                "machine": {"cpus": os.cpu_count(), "system": platform.platform()},
                "clients": [r.to_json() for r in results]}, indent=2) + "\n")
            options.json.flush()
    print("\n" + report.summary(results))

    # Where nothing ran, nothing was shown.
    ran = any(r.status != "not run" for r in results)
    return 1 if not ran or any(r.status == "failed" for r in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever reads has seen enough
        sys.stdout = None
        sys.exit(0)
