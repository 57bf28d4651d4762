"""Macaulay2: resolutions and Groebner bases, whose engine and interpreter both live on libgc's heap."""

from harness.model import PLAIN, Client, Command, Place


def write_script(place: Place) -> None:
    program = (place.source / "program.m2").read_text(encoding="utf-8")
    (place.prepared / "script.m2").write_text(f"rounds = {place.pick(8, 1)}\n{program}",
                                              encoding="utf-8")


CLIENTS = [
    Client(name="macaulay2-run", title="Macaulay2: resolutions, Groebner bases, hash tables",
           packages=["macaulay2"], programs=["M2"], prepare=write_script,
           command=lambda place: Command(["M2", "--script", str(place.prepared / "script.m2")]),
           expected="program.{size}.expected", goal=PLAIN),
]
