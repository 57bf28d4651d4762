"""Asymptote: a figure, drawn to EPS without TeX or a display."""

import re

from harness.model import PLAIN, START_UP, Client, Command, Failed, Place, check_output


def draw(place: Place) -> Command:
    return Command(["asy", "-noV", "-noprc", "-f", "eps", "-u", f"size={place.pick(9, 1)}", "-o", "figure",
                    str(place.source / "figure.asy")], files=["figure.eps"])


def without_dates(text: str) -> str:
    return re.sub(r"^%%(CreationDate|Creator):.*$", r"%%\1", text, flags=re.MULTILINE)


def check(output: str, place: Place) -> None:
    figure = (place.run / "figure.eps").read_text(errors="replace")
    segments = place.pick(4094, 126)
    strokes = len(re.findall(r"\bstroke$", figure, re.MULTILINE))
    fills = len(re.findall(r"\bfill$", figure, re.MULTILINE))
    if not figure.startswith("%!PS-Adobe") or "%%EOF" not in figure:
        raise Failed("figure.eps is not a whole EPS file")
    if strokes != segments + 1 or fills != 20:
        raise Failed(f"figure.eps has {strokes} strokes and {fills} fills, "
                     f"not {segments + 1} and 20")


CLIENTS = [
    Client(name="asy-figure", title="Asymptote: draw a figure to EPS", packages=["asymptote"],
           programs=["asy"], command=draw, normalise=without_dates, check=check,
           expected="figure.{size}.expected", goal=PLAIN),
    Client(name="asy-start", title="Asymptote: start-up (its libraries are loaded)",
           packages=["asymptote"], programs=["asy"], goal=START_UP, repeat=5,
           check=check_output("2\n"),
           command=lambda place: Command(["asy", "-noV", "-noprc", "-c", "write(1+1)"])),
]
