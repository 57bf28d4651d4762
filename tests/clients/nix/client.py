"""Nix: evaluation of pure expressions, without a store or a network."""

from harness.model import PLAIN, START_UP, Client, Command, Place, check_output

NIX = ["nix-instantiate", "--store", "dummy://", "--eval", "--strict"]


def environment(place: Place) -> dict[str, str]:
    # Nothing outside the run's folder is read or made.
    return {"NIX_STATE_DIR": str(place.run / "state"), "NIX_LOG_DIR": str(place.run / "log"),
            "NIX_CONF_DIR": str(place.run / "conf"), "NIX_PATH": ""}


def evaluate(place: Place) -> Command:
    return Command([*NIX, "--json", "--arg", "size", str(place.pick(20, 1)),
                    str(place.source / "program.nix")], env=environment(place))


CLIENTS = [
    Client(name="nix-eval", title="Nix: evaluate a heavy pure expression", packages=["nix-bin"],
           programs=["nix-instantiate"], command=evaluate, expected="program.{size}.expected",
           goal=PLAIN),
    # Nix asks for a heap of 384 MiB at its start, which this one outgrows.
    Client(name="nix-small-heap", title="Nix: the same with an initial heap of 8 MiB",
           packages=["nix-bin"], programs=["nix-instantiate"],
           command=lambda place: _with(evaluate(place), GC_INITIAL_HEAP_SIZE="8M"),
           expected="program.{size}.expected", goal=PLAIN),
    Client(name="nix-start", title="Nix: start-up", packages=["nix-bin"], goal=START_UP, repeat=5,
           programs=["nix-instantiate"], check=check_output("2\n"),
           command=lambda place: Command([*NIX, "--expr", "1 + 1"], env=environment(place))),
]


def _with(command: Command, **more: str) -> Command:
    command.env.update(more)
    return command
