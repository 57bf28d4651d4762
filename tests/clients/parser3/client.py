"""Parser 3: a language for web pages; C++ with its own allocator functions on libgc."""

from harness.model import PLAIN, Client, Command, Place


def run(place: Place) -> Command:
    return Command(["parser3", str(place.source / "program.p")],
                   env={"SIZE": str(place.pick(8, 1)), "ROUNDS": str(place.pick(6, 1))})


def without_blank_lines(text: str) -> str:
    """The loops of a page leave their line ends in the output."""
    return "".join(line.strip() + "\n" for line in text.splitlines() if line.strip())


CLIENTS = [
    Client(name="parser3-run", title="Parser 3: hashes, tables, texts, JSON",
           packages=["parser3-cgi"], programs=["parser3"], command=run,
           normalise=without_blank_lines, expected="program.{size}.expected", goal=PLAIN),
]
