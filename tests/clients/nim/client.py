"""Nim programs with --mm:boehm, which load libgc.so.1 by themselves (dlopen) at their start."""

from harness.model import PLAIN, Client, Command, Place

PACKAGES = ["nim", "gcc", "libc6-dev", "libgc1"]
PROGRAMS = ["nim", "gcc"]


def build(place: Place, source: str, *options: str) -> None:
    place.prepare(["nim", "c", "--mm:boehm", "-d:release", "--hints:off", "--warnings:off",
                   f"--nimcache:{place.prepared / 'cache'}", *options,
                   f"-o:{place.prepared / source.removesuffix('.nim')}", place.source / source])


CLIENTS = [
    Client(name="nim-run", title="Nim (--mm:boehm): trees, text, tables, closures, finalizers",
           packages=PACKAGES, programs=PROGRAMS,
           prepare=lambda place: build(place, "program.nim"),
           command=lambda place: Command([str(place.prepared / "program"), str(place.pick(40, 1))]),
           expected="program.{size}.expected", goal=PLAIN),
    Client(name="nim-threads", title="Nim (--mm:boehm): threads", packages=PACKAGES,
           programs=PROGRAMS, prepare=lambda place: build(place, "threads.nim", "--threads:on"),
           command=lambda place: Command([str(place.prepared / "threads"), str(place.pick(250, 60))]),
           # A thread unregisters itself and then frees a block that only it refers to (Nim's
           # system/threads.nim, threadProcWrapDispatch and threadProcWrapper): a collection in
           # between has freed it already. The peer aborts in some runs ("Duplicate large block
           # deallocation"); ours says so and goes on.
           ignore_stderr=True,
           expected="threads.{size}.expected", goal=PLAIN),
]
