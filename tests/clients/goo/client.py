"""GOO: a dynamic language, at its prompt. Its run-time writes past objects of 16 and 48 bytes."""

from harness.model import PLAIN, Client, Command, Failed, Place


def write_session(place: Place) -> None:
    """GOO reads its program from standard input: the sizes are its first lines."""
    program = (place.source / "program.goo").read_text(encoding="utf-8")
    sizes = (f"(dv size-of-table {place.pick(10000, 1000)})\n"
             f"(dv size-of-fib {place.pick(17, 10)})\n"
             f"(dv depth-of-tree {place.pick(13, 8)})\n")
    (place.prepared / "session.goo").write_text(sizes + program, encoding="utf-8")


def check_session(output: str, place: Place) -> None:
    for answer in ("103041", "(1 4 9 16)", "meant", "4096"):
        if answer not in output:
            raise Failed(f"the session's output lacks {answer}")


CLIENTS = [
    Client(name="goo-session", title="GOO: trees, tables, arithmetic and an error at the prompt",
           packages=["goo"], programs=["goo"], prepare=write_session,
           command=lambda place: Command(["goo"], stdin=place.prepared / "session.goo"),
           check=check_session, goal=PLAIN),
]
