"""Inkscape without a display: shapes and strokes become paths. Its own objects are on libgc's heap."""

import re

from harness.model import PLAIN, Client, Command, Failed, Place


def write_drawing(place: Place) -> None:
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000">']
    for i in range(place.pick(300, 20)):
        x, y = (i * 37) % 970, (i * 61) % 970
        parts.append(f'<g id="g{i}"><rect id="r{i}" x="{x}" y="{y}" width="20" height="{5 + i % 20}" rx="2"/>'
                     f'<path id="p{i}" d="M{x} {y} C {y} {x} 10 20 {x + 30} {y + 9} z" stroke="#123"/>'
                     f'<circle id="c{i}" cx="{y}" cy="{x}" r="{1 + i % 9}" fill="none" stroke="red"/></g>')
    (place.prepared / "drawing.svg").write_text("\n".join(parts) + "\n</svg>\n")


def convert(place: Place) -> Command:
    return Command(["inkscape", "--actions=select-all:all;object-to-path;object-stroke-to-path",
                    "--export-plain-svg", "--export-filename=paths.svg",
                    str(place.prepared / "drawing.svg")], files=["paths.svg"])


def check(output: str, place: Place) -> None:
    drawing = (place.run / "paths.svg").read_text(errors="replace")
    paths = len(re.findall(r"<path\b", drawing))
    if "</svg>" not in drawing:
        raise Failed("paths.svg is not a whole drawing")
    if paths < 3 * place.pick(300, 20) or "<circle" in drawing:
        raise Failed(f"paths.svg has {paths} paths, or circles are left")


CLIENTS = [
    Client(name="inkscape-paths", title="Inkscape: objects to paths, without a display",
           packages=["inkscape"], programs=["inkscape"], prepare=write_drawing, command=convert,
           check=check, ignore_stderr=True, goal=PLAIN),
]
