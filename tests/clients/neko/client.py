"""Neko: a virtual machine whose compiler is a Neko program, too."""

from harness.model import PLAIN, Client, Command, Place

PACKAGES = ["neko"]


def compile_program(place: Place) -> None:
    (place.prepared / "program.neko").write_bytes((place.source / "program.neko").read_bytes())
    place.prepare(["nekoc", "program.neko"])


CLIENTS = [
    Client(name="neko-run", title="Neko: arrays, objects, hash tables, exceptions, a thread",
           packages=PACKAGES, programs=["neko", "nekoc"], prepare=compile_program,
           command=lambda place: Command(["neko", str(place.prepared / "program.n"),
                                          str(place.pick(40, 1))]),
           expected="program.{size}.expected", goal=PLAIN),
    Client(name="neko-compile", title="Neko: its compiler", packages=PACKAGES, programs=["nekoc"],
           command=lambda place: Command(["nekoc", "-o", ".", str(place.source / "program.neko")],
                                         files=["program.n"]), goal=PLAIN),
]
