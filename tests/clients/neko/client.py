"""Neko: a virtual machine whose compiler is a Neko program, too."""

import subprocess

from harness.model import PLAIN, Client, Command, Failed, Place

PACKAGES = ["neko"]


def compile_program(place: Place) -> None:
    (place.prepared / "program.neko").write_bytes((place.source / "program.neko").read_bytes())
    place.prepare(["nekoc", "program.neko"])


def check_compiled(output: str, place: Place) -> None:
    """What was compiled runs, on the system's libgc, and prints what it must."""
    compiled = place.run / "program.n"
    if compiled.read_bytes()[:4] != b"NEKO":
        raise Failed("program.n is no module")
    done = subprocess.run(["neko", str(compiled), "1"], cwd=place.run, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=100, check=False)
    if done.stdout != (place.source / "program.small.expected").read_text():
        raise Failed(f"program.n ends with {done.returncode} and prints something else")


CLIENTS = [
    Client(name="neko-run", title="Neko: arrays, objects, hash tables, exceptions, a thread",
           packages=PACKAGES, programs=["neko", "nekoc"], prepare=compile_program,
           command=lambda place: Command(["neko", str(place.prepared / "program.n"),
                                          str(place.pick(40, 1))]),
           expected="program.{size}.expected", goal=PLAIN),
    Client(name="neko-compile", title="Neko: its compiler", packages=PACKAGES, programs=["nekoc"],
           command=lambda place: Command(["nekoc", "-o", ".", str(place.source / "program.neko")],
                                         files=["program.n"]),
           check=check_compiled, goal=PLAIN),
]
