"""Crystal: the compiler, itself a Crystal program on libgc, and programs made by it."""

import os

from harness.model import PLAIN, Client, Command, Place

PACKAGES = ["crystal", "gcc", "libc6-dev", "libgc-dev", "libpcre3-dev", "libevent-dev", "libgmp-dev"]
PROGRAMS = ["crystal", "gcc"]
# What the linker is asked for.
NEEDS = [f"/usr/lib/*/lib{name}.so" for name in ("gc", "pcre", "event", "gmp")]


def build(place: Place, source: str, *options: str) -> None:
    place.prepare(["crystal", "build", "--no-color", "--no-debug", *options, place.source / source,
                   "-o", place.prepared / source.removesuffix(".cr")],
                  # Kept from one invocation to the next: an optimised build takes half a minute.
                  env={"CRYSTAL_CACHE_DIR": str(place.prepared.parent / "compiler-cache")})


def compiler(place: Place) -> Command:
    """Compiles a program and runs what came out; both are on the library under test."""
    return Command(["crystal", "run", "--no-color", "--no-debug", str(place.source / "program.cr"),
                    "--", "1"])


def threads(place: Place) -> Command:
    """As many workers as CPUs. With more, Crystal's spin locks decide the time: two thirds of it go
    to waiting for a thread that has no CPU, and longest where nothing but a collection interrupts
    those that wait (docs/design/cycle-measured.md, "How many workers crystal-threads has")."""
    return Command([str(place.prepared / "threads"), str(place.pick(40, 2))],
                   env={"CRYSTAL_WORKERS": str(max(2, len(os.sched_getaffinity(0))))})


CLIENTS = [
    Client(name="crystal-compile", title="Crystal: compile a program and run it", packages=PACKAGES,
           programs=PROGRAMS, needs=NEEDS, command=compiler, expected="program.small.expected",
           goal=PLAIN, seconds=240, ignore_stderr=True),
    Client(name="crystal-run", title="Crystal: trees, text, fibers and channels, finalizers",
           packages=PACKAGES, programs=PROGRAMS, needs=NEEDS,
           prepare=lambda place: build(place, "program.cr", *place.pick(["--release"], [])),
           command=lambda place: Command([str(place.prepared / "program"), str(place.pick(40, 1))]),
           expected="program.{size}.expected", goal=PLAIN),
    Client(name="crystal-threads", title="Crystal: fibers on several threads (preview_mt)",
           packages=PACKAGES, programs=PROGRAMS, needs=NEEDS,
           prepare=lambda place: build(place, "threads.cr", "-Dpreview_mt"),
           command=threads,
           expected="threads.{size}.expected", goal=PLAIN),
]
