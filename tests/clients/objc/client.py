"""An Objective-C program on GCC's run-time that collects (libobjc_gc)."""

from harness.model import PLAIN, Client, Command, Place

PACKAGES = ["gobjc", "libc6-dev", "libgc1"]


def build(place: Place) -> None:
    place.prepare(["gcc", "-std=gnu11", "-O2", "-x", "objective-c",
                   str(place.source / "program.m"), "-o", str(place.prepared / "program"),
                   "-lobjc_gc"])


CLIENTS = [
    Client(name="objc-run", title="Objective-C (libobjc_gc): trees, a table of strings",
           packages=PACKAGES, programs=["gcc"], needs=["/usr/lib/gcc/*/*/cc1obj"], prepare=build,
           command=lambda place: Command([str(place.prepared / "program"),
                                          str(place.pick(50, 2))]),
           expected="program.{size}.expected", goal=PLAIN),
]
