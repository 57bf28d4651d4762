"""Guile 3.0: programs compiled to its virtual machine, a session, the compiler, start-up."""

from harness.model import HEAVY, PLAIN, START_UP, Client, Command, Failed, Place

PACKAGES = ["guile-3.0"]
GUILE = ["guile", "--no-auto-compile"]


def compiled(program: str):
    def prepare(place: Place) -> None:
        place.prepare([*GUILE, place.source / "compile.scm", place.source / f"{program}.scm",
                       place.prepared / f"{program}.go"])
    return prepare


def run(program: str, full: int, small: int):
    def command(place: Place) -> Command:
        file = place.prepared / f"{program}.go"
        return Command([*GUILE, "-c", f'(load-compiled "{file}")', str(place.pick(full, small))])
    return command


def program(name: str, title: str, full: int, small: int, goal=PLAIN, repeat=1) -> Client:
    return Client(name=f"guile-{name}", title=f"Guile: {title}", packages=PACKAGES,
                  programs=["guile"], prepare=compiled(name),
                  command=run(name, full, small),
                  expected=f"{name}.{{size}}.expected", goal=goal, repeat=repeat)


def write_session(place: Place) -> None:
    """A long session as someone types it: definitions, expressions, mistakes, more definitions.

    Each form is compiled and adds a set of roots, of which bdwgc takes 2048.
    """
    count = place.pick(150, 30)
    lines = ["(use-modules (srfi srfi-1) (ice-9 match) (ice-9 regex))", "(define table '())"]
    for i in range(count):
        lines += [
            f"(define (f{i} x) (let loop ((n x) (acc '())) "
            f"(if (zero? n) (reverse acc) (loop (- n 1) (cons (* n {i}) acc)))))",
            f"(set! table (acons 'k{i} (f{i} {20 + i % 30}) table))",
            f"(fold + 0 (f{i} 50))",
        ]
        if i % 7 == 0:
            lines.append(f"(match (list {i} \"text {i}\" 'sym{i}) ((a b c) (vector c b a)))")
        if i % 11 == 0:
            lines.append(f"(match:substring (string-match \"[0-9]+\" \"abc{i}def\"))")
        if i % 13 == 0:
            lines.append(f"(define-syntax-rule (twice{i} e) (begin e e))")
            lines.append(f"(twice{i} (string-pad (number->string {i}) 6))")
        if i % 50 == 49:
            lines.append(f"(car {i})")  # a mistake: the session goes on one level down
            lines.append(",q")
    lines.append("(list 'sum (apply + (append-map cdr table)) 'entries (length table))")
    (place.prepared / "session.scm").write_text("\n".join(lines) + "\n")


def session(place: Place) -> Command:
    return Command([*GUILE, "-q"], stdin=place.prepared / "session.scm")


def check_session(output: str, place: Place) -> None:
    count = place.pick(150, 30)
    total = sum(i * n * (n + 1) // 2 for i in range(count) for n in [20 + i % 30])
    answer = f"(sum {total} entries {count})"
    if answer not in output:
        raise Failed(f"the session should end with {answer}")


def compile_program(place: Place) -> Command:
    rounds = place.pick(
        ["sorts", "words", "control", "parallel", "weak", "trees"], ["pidigits"])
    sources = " ".join(f'"{place.source / name}.scm"' for name in rounds)
    return Command([*GUILE, "-c",
                    "(use-modules (system base compile)) (for-each (lambda (file) (compile-file file "
                    "#:output-file (string-append (basename file \".scm\") \".go\"))) "
                    f"'({sources}))"], files=[f"{name}.go" for name in rounds])


def check_compiled(_, place: Place) -> None:
    for file in place.run.glob("*.go"):
        if file.read_bytes()[:4] != b"\x7fELF":
            raise Failed(f"{file.name} is not an object file")


CLIENTS = [
    # With Debian's libgc the first three are a quarter of their time in the collector, pidigits
    # 0.85, control 0.77 and weak 0.41 (GC_PRINT_STATS): those three are what is GC-heavy here.
    program("trees", "binary trees of pairs, records and vectors", 18, 12),
    program("words", "strings, symbols and hash tables", 400000, 20000),
    program("sorts", "sorting and folding lists", 40000, 3000),
    program("pidigits", "digits of pi, on bignums", 2500, 300, HEAVY),
    program("control", "closures, continuations, prompts, streams", 60000, 4000, HEAVY),
    # Its peak memory differs by a third from run to run, on either library.
    program("parallel", "par-map, futures, threads and a queue", 150, 10, repeat=5),
    program("weak", "guardians, weak tables and vectors", 20000, 2000, HEAVY),
    Client(name="guile-compile", title="Guile: its compiler, on the programs above",
           packages=PACKAGES, programs=["guile"], command=compile_program, check=check_compiled),
    Client(name="guile-session", title="Guile: a long session at the prompt, fed from a file",
           packages=PACKAGES, programs=["guile"], prepare=write_session, command=session,
           check=check_session),
    Client(name="guile-start", title="Guile: start-up (guile -c 0)", packages=PACKAGES,
           programs=["guile"], command=lambda place: Command([*GUILE, "-c", "0"]), goal=START_UP,
           repeat=10, expected="nothing.expected"),
]
