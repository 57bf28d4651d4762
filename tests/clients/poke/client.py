"""GNU poke: an editor of binary data with a language of its own, compiled at run time."""

from harness.model import PLAIN, Client, Command, Place


def write_script(place: Place) -> None:
    """A script takes no arguments that its programs could see: the size is its first line."""
    program = (place.source / "program.pk").read_text(encoding="utf-8")
    (place.prepared / "script.pk").write_text(f"var size = {place.pick(40, 1)};\n{program}",
                                              encoding="utf-8")


def run(place: Place) -> Command:
    return Command(["poke", "--quiet", "--no-init-file", "--no-hserver",
                    "-L", str(place.prepared / "script.pk")])


CLIENTS = [
    Client(name="poke-run", title="GNU poke: structures, arrays, strings, calls",
           packages=["poke"], programs=["poke"], prepare=write_script, command=run,
           expected="program.{size}.expected", goal=PLAIN),
]
