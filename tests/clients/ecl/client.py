"""ECL, which compiles Lisp to C: its compiler and a program made by it."""

from harness.model import PLAIN, START_UP, Client, Command, Place, check_output

PACKAGES = ["ecl", "gcc", "libc6-dev"]
PROGRAMS = ["ecl", "gcc"]


def quoted(path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def compile_form(source, output) -> str:
    return (f"(let ((*compile-verbose* nil) (*compile-print* nil) (c::*suppress-compiler-messages* t)) "
            f"(unless (compile-file {quoted(source)} :output-file {quoted(output)}) (ext:quit 1)))")


def prepare(place: Place) -> None:
    place.prepare(["ecl", "--norc", "--eval", "(defvar *size* 1)", "--eval",
                   compile_form(place.source / "program.lisp", place.prepared / "program.fas"),
                   "--eval", "(ext:quit 0)"])


def run(place: Place) -> Command:
    return Command(["ecl", "--norc", "--eval", f"(defvar *size* {place.pick(12, 1)})", "--eval",
                    f"(load {quoted(place.prepared / 'program.fas')} :verbose nil)", "--eval",
                    "(ext:quit 0)"])


def compile_and_run(place: Place) -> Command:
    """Compiles, in the same process loads what was compiled and runs it."""
    return Command(["ecl", "--norc", "--eval", "(setf *load-verbose* nil)", "--eval",
                    "(defvar *size* 1)", "--eval",
                    compile_form(place.source / "program.lisp", "program.fas"), "--eval",
                    '(load "program.fas" :verbose nil)', "--eval", "(ext:quit 0)"])


CLIENTS = [
    Client(name="ecl-run", title="ECL: a compiled program; lists, CLOS, bignums, finalizers, threads",
           packages=PACKAGES, programs=PROGRAMS, prepare=prepare, command=run,
           expected="program.{size}.expected", goal=PLAIN),
    Client(name="ecl-compile", title="ECL: compile-file, load, run", packages=PACKAGES,
           programs=PROGRAMS, command=compile_and_run, expected="program.small.expected",
           ignore_stderr=True),
    Client(name="ecl-start", title="ECL: start-up", packages=PACKAGES, programs=["ecl"],
           command=lambda place: Command(["ecl", "--norc", "--eval", "(print (+ 1 1))", "--eval",
                                          "(ext:quit 0)"]),
           check=check_output("\n2 "), goal=START_UP, repeat=5),
]
