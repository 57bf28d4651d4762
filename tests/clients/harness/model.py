"""What a client is: a real program on libgc, how it is run, and what must come out."""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

CLIENTS_DIR = Path(__file__).resolve().parent.parent

# A client is run in one of two sizes: `full` is what is timed, `small` what --quick and ctest run.
SIZES = ("full", "small")


class NotRun(Exception):
    """Why a client cannot be run here. Never an excuse for a wrong result."""


class Failed(Exception):
    """A client did not do what it must."""


@dataclass
class Goal:
    """What ours may cost, beside the peer's (which is 1)."""

    time: float = 1.03
    memory: float = 1.05
    # For start-up: absolute differences instead of ratios.
    milliseconds: float | None = None
    mebibytes: float | None = None


HEAVY = Goal(time=0.8)
PLAIN = Goal()
START_UP = Goal(milliseconds=1.0, mebibytes=1.0)


@dataclass
class Command:
    """One invocation. `files` are read from the run's folder and checked like standard output."""

    argv: list[str]
    stdin: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


@dataclass
class Place:
    """Where one client works: its sources, a folder for what is prepared once, one for each run."""

    source: Path
    prepared: Path
    run: Path
    size: str

    def pick(self, full, small):
        return full if self.size == "full" else small

    def prepare(self, argv: list[str], env: dict[str, str] | None = None) -> str:
        """Runs a step of the preparation (on the system's libgc); its failure means: not run."""
        argv = [str(a) for a in argv]
        try:
            done = subprocess.run(argv, cwd=self.prepared, env=environment(self.prepared, env or {}),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", timeout=300, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotRun(f"preparing it failed: {error}") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise NotRun(f"preparing it failed: {argv[0]}: {said[-1] if said else done.returncode}")
        return done.stdout


@dataclass
class Client:
    name: str
    title: str
    packages: list[str]
    programs: list[str]
    command: Callable[[Place], Command]
    goal: Goal = field(default_factory=Goal)
    # Files that must exist besides the programs (headers, say); patterns.
    needs: list[str] = field(default_factory=list)
    # Done once before the runs, on the system's libgc; not measured.
    prepare: Callable[[Place], None] | None = None
    # The committed text that standard output must equal, by size; {size} is replaced.
    expected: str | None = None
    # Removes from an output what two correct runs may differ in (dates, addresses).
    normalise: Callable[[str], str] | None = None
    # Looks at what a run left behind (output text, folder); raises Failed.
    check: Callable[[str, Place], None] | None = None
    # The files' bytes differ from run to run; `check` judges them.
    ignore_files: bool = False
    ignore_stderr: bool = False
    # Runs of this client for each run asked for; start-up needs many, and so does what differs from
    # run to run.
    repeat: int = 1
    seconds: int = 120
    source: Path = CLIENTS_DIR

    def missing(self) -> str | None:
        """Why the client can't be run here, or None."""
        absent = [p for p in self.programs if not shutil.which(p)]
        absent += [f for f in self.needs if not glob.glob(f)]
        if not absent:
            return None
        return f"not installed: {', '.join(absent)} (apt-get install {' '.join(self.packages)})"

    def expected_text(self, size: str) -> str | None:
        if self.expected is None:
            return None
        return (self.source / self.expected.format(size=size)).read_text(encoding="utf-8")


def check_output(text: str) -> Callable[[str, Place], None]:
    """A check that standard output is this text, whatever the size."""
    def check(output: str, _place: Place) -> None:
        if output != text:
            raise Failed(f"it printed {output[:200]!r}, not {text!r}")
    return check


def environment(folder: Path, more: dict[str, str]) -> dict[str, str]:
    """The environment that every client gets: the caller's, without what depends on the caller."""
    env = dict(os.environ)
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_DEBUG", "DISPLAY", "WAYLAND_DISPLAY",
                 "GUILE_LOAD_PATH", "GUILE_LOAD_COMPILED_PATH", "LINES", "COLUMNS"):
        env.pop(name, None)
    env.update(LC_ALL="C.UTF-8", TZ="UTC", TERM="dumb", HOME=str(folder), TMPDIR=str(folder),
               XDG_CACHE_HOME=str(folder / ".cache"), XDG_CONFIG_HOME=str(folder / ".config"))
    env.update(more)
    return env


def load_clients() -> list[Client]:
    """All clients, from the client.py of each folder, in the folders' order below."""
    clients: list[Client] = []
    for file in sorted(CLIENTS_DIR.glob("*/client.py"), key=_rank):
        spec = importlib.util.spec_from_file_location(f"client_{file.parent.name}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for client in module.CLIENTS:
            client.source = file.parent
            clients.append(client)
    names = [c.name for c in clients]
    for client in clients:
        # Or a program that does nothing would pass.
        if client.expected is None and client.check is None:
            raise SystemExit(f"nothing says what {client.name} must print")
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise SystemExit(f"clients with the same name: {', '.join(sorted(twice))}")
    return clients


_ORDER = ["guile", "ecl", "w3m", "asymptote", "crystal", "nix", "nim", "objc"]


def _rank(file: Path):
    folder = file.parent.name
    return (_ORDER.index(folder) if folder in _ORDER else len(_ORDER), folder)
