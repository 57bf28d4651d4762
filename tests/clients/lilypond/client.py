"""LilyPond: engraves a score, on Guile 2.2.

It sets the free-space divisor to 1, so that heaps may grow to three times their live data; and it
registers links by the ten thousand, for which both libraries collect when there are many more of them
(docs/design/cycle.md, "Finalizers and links"). Which one meets the end of the score with more garbage
depends on the score: 0.84 to 1.05 of Debian's memory for 30 to 130 bars.
"""

import re

from harness.model import PLAIN, Client, Command, Failed, Place

SCORE = r"""\version "2.22.0"
\header { tagline = ##f }
\score {
  \new PianoStaff <<
    \new Staff { \relative c' { \repeat unfold %d { c4( d8 e) f16-. g-. a-. b-. <c e g>4\f | } } }
    \new Staff { \clef bass \relative c { \repeat unfold %d { c2 g4 \tuplet 3/2 { e8 f g } } } }
  >>
  \layout { }
}
"""


def write_score(place: Place) -> None:
    bars = place.pick(80, 4)
    (place.prepared / "score.ly").write_text(SCORE % (bars, bars), encoding="utf-8")


def engrave(place: Place) -> Command:
    # Without point-and-click no path of this machine gets into the pages.
    return Command(["lilypond", "--loglevel=ERROR", "-dno-point-and-click", "--ps", "-o", "score",
                    str(place.prepared / "score.ly")], files=["score.ps"])


def without_dates(text: str) -> str:
    return re.sub(r"^%%(CreationDate|Creator|Title):.*$", r"%%\1", text, flags=re.MULTILINE)


def check(output: str, place: Place) -> None:
    pages = (place.run / "score.ps").read_text(errors="replace")
    noteheads = len(re.findall(r"/noteheads\.s2\b", pages))
    if "%%EOF" not in pages or not pages.startswith("%!PS-Adobe"):
        raise Failed("score.ps is not a whole PostScript file")
    # One a bar at least: what is compared exactly is the whole file, on both libraries.
    if noteheads < place.pick(80, 4):
        raise Failed(f"score.ps has {noteheads} black note heads")


CLIENTS = [
    Client(name="lilypond-score", title="LilyPond: engrave a piano score to PostScript",
           packages=["lilypond"], programs=["lilypond"], prepare=write_score, command=engrave,
           normalise=without_dates, check=check, goal=PLAIN),
]
