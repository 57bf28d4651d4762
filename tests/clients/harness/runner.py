"""Runs a client on one libgc or the other: choosing the library, proving that it was loaded,
measuring, and judging what came out."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.model import Client, Command, Failed, NotRun, Place, environment

SONAME = "libgc.so.1"


@dataclass
class Library:
    """A libgc, in a folder of its own that LD_LIBRARY_PATH can name."""

    label: str
    file: Path
    folder: Path


@dataclass
class Sample:
    seconds: float
    mebibytes: float
    cpu_seconds: float


@dataclass
class Outcome:
    sample: Sample
    stdout: str
    stderr: str
    files: dict[str, bytes]


def find_system_library() -> Path:
    """The libgc.so.1 that the dynamic linker would take."""
    # A program needs no libgc for this; the linker's own cache knows.
    for tool in ("/sbin/ldconfig", "ldconfig"):
        try:
            listing = subprocess.run([tool, "-p"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        found = re.search(rf"^\s*{re.escape(SONAME)} .*x86-64.* => (\S+)$", listing, re.MULTILINE)
        found = found or re.search(rf"^\s*{re.escape(SONAME)} .* => (\S+)$", listing, re.MULTILINE)
        if found:
            return Path(found[1])
    raise SystemExit(f"no {SONAME} on this system; install it (apt-get install libgc1) or say --peer")


def end_on_signals() -> None:
    """Lets SIGTERM and SIGHUP end this program as Ctrl-C does: with what it started. One that is
    ignored (nohup) stays so."""
    ending = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) != signal.SIG_IGN]

    def end(number, _frame):
        for other in ending:
            signal.signal(other, signal.SIG_IGN)  # one is enough
        raise SystemExit(128 + number)

    for number in ending:
        signal.signal(number, end)


def make_library(label: str, given: Path, work: Path) -> Library:
    file = given / SONAME if given.is_dir() else given
    if not file.is_file():
        raise SystemExit(f"there is no library {file}"
                         + (" (./dev build makes ours)" if label == "ours" else ""))
    folder = work / f"lib-{label}"
    if set(":;") & set(str(folder)):
        raise SystemExit(f"the path {folder} has a colon or a semicolon in it, which LD_LIBRARY_PATH "
                         "cannot express; use a checkout whose path has none")
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / SONAME
    # Replaced at once, so that two runs side by side never find it missing.
    fresh = folder / f".{SONAME}.{os.getpid()}"
    fresh.symlink_to(file.resolve())
    os.replace(fresh, link)
    return Library(label, file.resolve(), folder)


def build_measure(work: Path) -> Path:
    """Builds the small program that measures another (see measure.cpp for why)."""
    source = Path(__file__).with_name("measure.cpp")
    binary = work / "measure"
    if binary.exists() and binary.stat().st_mtime >= source.stat().st_mtime:
        return binary
    work.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CXX") or next(
        (c for c in ("c++", "g++", "clang++", "g++-12", "clang++-16") if shutil.which(c)), None)
    if not compiler:
        raise SystemExit("measuring needs a C++ compiler: apt-get install g++")
    fresh = work / f".measure.{os.getpid()}"
    done = subprocess.run([*compiler.split(), "-std=c++20", "-O2", "-static", str(source), "-o",
                           str(fresh)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"compiling {source} failed:\n{done.stderr}")
    os.replace(fresh, binary)
    return binary


class Runner:
    def __init__(self, work: Path, size: str):
        self.work = work
        self.size = size
        self.measure = build_measure(work)

    def place(self, client: Client, label: str = "prepare") -> Place:
        base = self.work / "clients" / client.name
        prepared = base / "prepared"
        prepared.mkdir(parents=True, exist_ok=True)
        return Place(client.source, prepared, base / f"run-{label}", self.size)

    def prepare(self, client: Client) -> None:
        reason = client.missing()
        if reason:
            raise NotRun(reason)
        place = self.place(client)
        shutil.rmtree(place.prepared, ignore_errors=True)
        place.prepared.mkdir(parents=True)
        if client.prepare:
            client.prepare(place)

    def verify(self, client: Client, library: Library) -> Outcome:
        """A run that counts for nothing but shows which libgc the program and its children load."""
        place = self.place(client, library.label)
        log = place.run.with_name(f"loaded-{library.label}")
        shutil.rmtree(log, ignore_errors=True)
        log.mkdir(parents=True)
        outcome = self.run(client, library,
                           {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(log / "process")})
        loaded: set[Path] = set()
        for file in log.iterdir():
            text = file.read_text(encoding="utf-8", errors="replace")
            # To the line's end: a folder's name may have blanks.
            for path in re.findall(rf"calling init: (/.*/{re.escape(SONAME)}.*)", text):
                loaded.add(Path(path).resolve())
        shutil.rmtree(log, ignore_errors=True)
        if not loaded:
            raise Failed("no process of this client loaded a libgc")
        others = loaded - {library.file}
        if others:
            raise Failed(f"it loaded {', '.join(map(str, sorted(others)))} "
                         f"where {library.file} was meant")
        return outcome

    def run(self, client: Client, library: Library, more: dict[str, str] | None = None) -> Outcome:
        """One run, with its outputs checked for themselves."""
        place = self.place(client, library.label)
        shutil.rmtree(place.run, ignore_errors=True)
        place.run.mkdir(parents=True)
        command: Command = client.command(place)
        report = place.run.with_suffix(".cost")
        report.unlink(missing_ok=True)
        out = place.run.with_suffix(".stdout")
        err = place.run.with_suffix(".stderr")
        env = environment(place.run, command.env)
        with open(command.stdin or os.devnull, "rb") as stdin, out.open("wb") as stdout, \
                err.open("wb") as stderr:
            # The measuring program itself is static: the variables reach the client alone.
            env.update(LD_LIBRARY_PATH=str(library.folder), **(more or {}))
            process = subprocess.Popen(
                [str(self.measure), str(report), str(client.seconds), "--",
                 *[str(a) for a in command.argv]],
                cwd=place.run, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
            try:
                process.wait()
            except BaseException:
                process.send_signal(signal.SIGTERM)  # it ends the client's whole process group
                process.wait()
                raise
        try:
            outcome = self._outcome(client, command, place, report, out, err)
            self._check(client, outcome, place)
        except Failed as failure:
            raise Failed(f"on {library.label}: {failure}") from failure
        return outcome

    def _outcome(self, client: Client, command: Command, place: Place, report: Path, out: Path,
                 err: Path) -> Outcome:
        stderr = err.read_text(encoding="utf-8", errors="replace")
        fields = report.read_text().split() if report.exists() else []
        if len(fields) != 6:
            raise Failed(f"it could not be started: {last_line(stderr)}")
        wall, user, system, peak, status, out_of_time = map(int, fields)
        if out_of_time:
            raise Failed(f"it did not end within {client.seconds} s")
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            raise Failed(f"it died of {signal.Signals(number).name}; stderr: {last_line(stderr)}")
        code = os.WEXITSTATUS(status)
        if code != 0:
            raise Failed(f"it ended with status {code}; stderr: {last_line(stderr)}")
        stdout = out.read_text(encoding="utf-8", errors="replace")
        files = {}
        for name in command.files:
            file = place.run / name
            if not file.is_file():
                raise Failed(f"it did not write {name}; stderr: {last_line(stderr)}")
            files[name] = file.read_bytes()
        if client.normalise:
            stdout = client.normalise(stdout)
            files = {n: client.normalise(b.decode("utf-8", "surrogateescape"))
                     .encode("utf-8", "surrogateescape") for n, b in files.items()}
        return Outcome(Sample(wall / 1e9, peak / 1024, (user + system) / 1e6), stdout, stderr, files)

    def _check(self, client: Client, outcome: Outcome, place: Place) -> None:
        expected = client.expected_text(self.size)
        if expected is not None and outcome.stdout != expected:
            raise Failed(f"unexpected output: {first_difference(expected, outcome.stdout)}")
        if client.check:
            client.check(outcome.stdout, place)


def compare(client: Client, peer: Outcome, ours: Outcome) -> None:
    """Both libraries must make a program do the same."""
    if peer.stdout != ours.stdout:
        raise Failed(f"outputs differ: {first_difference(peer.stdout, ours.stdout)}")
    if not client.ignore_files:
        for name, content in peer.files.items():
            if content != ours.files[name]:
                raise Failed(f"{name} differs from what the peer's run wrote "
                             f"({len(content)} and {len(ours.files[name])} bytes)")
    if not client.ignore_stderr and peer.stderr != ours.stderr:
        raise Failed(f"error outputs differ: {first_difference(peer.stderr, ours.stderr)}")


def first_difference(expected: str, got: str) -> str:
    for line in difflib.unified_diff(expected.splitlines(), got.splitlines(), "", "", lineterm="", n=0):
        if line[:1] in "-+" and line[:3] not in ("---", "+++"):
            what = "missing" if line[0] == "-" else "unexpected"
            return f"{what} line '{line[1:][:160]}'"
    return f"{len(expected)} and {len(got)} characters"


def last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else "(empty)"
