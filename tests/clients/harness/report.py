"""The figures of one client and the table of all."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from harness.model import Client
from harness.runner import Sample


@dataclass
class Result:
    client: Client
    status: str = "not run"  # same, failed, not run
    reason: str = ""
    peer: list[Sample] = field(default_factory=list)
    ours: list[Sample] = field(default_factory=list)
    peer_failures: list[str] = field(default_factory=list)  # runs of the peer's that were repeated
    judged: bool = True  # small inputs, run once, are held to no goal

    def ratios(self, what: str) -> list[float]:
        return [getattr(o, what) / getattr(p, what) for p, o in zip(self.peer, self.ours)
                if getattr(p, what) > 0]

    def median(self, side: str, what: str) -> float:
        return statistics.median(getattr(s, what) for s in getattr(self, side))

    def difference(self, what: str) -> float:
        return statistics.median(getattr(o, what) - getattr(p, what)
                                 for p, o in zip(self.peer, self.ours))

    def missed(self) -> list[str]:
        """The goals that these figures don't reach."""
        if self.status != "same" or not self.peer or not self.judged:
            return []
        goal, missed = self.client.goal, []
        if goal.milliseconds is not None:
            if (late := self.difference("seconds") * 1000) > goal.milliseconds:
                missed.append(f"time {late:+.2f} ms")
            if (more := self.difference("mebibytes")) > goal.mebibytes:
                missed.append(f"memory {more:+.2f} MiB")
            return missed
        if (time := statistics.median(self.ratios("seconds"))) > goal.time:
            missed.append(f"time {time:.3f} > {goal.time:g}")
        if (memory := statistics.median(self.ratios("mebibytes"))) > goal.memory:
            missed.append(f"memory {memory:.3f} > {goal.memory:g}")
        return missed

    def to_json(self) -> dict:
        entry = {"name": self.client.name, "title": self.client.title, "status": self.status}
        if self.reason:
            entry["reason"] = self.reason
        if self.peer_failures:
            entry["peer_failures"] = self.peer_failures
        for side in ("peer", "ours"):
            samples = getattr(self, side)
            if samples:
                entry[side] = {"seconds": [s.seconds for s in samples],
                               "cpu_seconds": [s.cpu_seconds for s in samples],
                               "peak_mebibytes": [s.mebibytes for s in samples]}
        if self.peer and self.ours:
            for what, name in (("seconds", "time_ratio"), ("mebibytes", "memory_ratio")):
                ratios = self.ratios(what)
                entry[name] = {"median": statistics.median(ratios), "min": min(ratios),
                               "max": max(ratios)}
            entry["goals_missed"] = self.missed()
        return entry


HEADER = (f"{'client':<18} {'peer s':>8} {'ours s':>8} {'ratio':>6} {'min-max':>12}  "
          f"{'peer MiB':>8} {'ours MiB':>8} {'ratio':>6} {'min-max':>12}  result")


def row(result: Result) -> str:
    name = f"{result.client.name:<18}"
    if not result.peer:
        return f"{name} {'':>78}  {verdict(result)}"

    def figures(what: str, digits: int) -> str:
        ratios = result.ratios(what)
        spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
        return (f"{result.median('peer', what):>8.{digits}f} {result.median('ours', what):>8.{digits}f} "
                f"{statistics.median(ratios):>6.3f} {spread:>12}")

    return f"{name} {figures('seconds', 3)}  {figures('mebibytes', 1)}  {verdict(result)}"


def verdict(result: Result) -> str:
    if result.status != "same":
        return f"{result.status.upper()}: {result.reason}"
    text = "same output"
    if result.client.goal.milliseconds is not None and result.peer:
        text += (f" ({result.difference('seconds') * 1000:+.2f} ms, "
                 f"{result.difference('mebibytes'):+.2f} MiB)")
    if result.peer_failures:
        text += f"; the peer failed in {len(result.peer_failures)} runs more"
    missed = result.missed()
    return text + (f"; over the goal: {', '.join(missed)}" if missed else "")


def summary(results: list[Result]) -> str:
    same = [r for r in results if r.status == "same"]
    failed = [r for r in results if r.status == "failed"]
    absent = [r for r in results if r.status == "not run"]
    lines = [f"{len(same)} client{' does' if len(same) == 1 else 's do'} the same on both libraries, {len(failed)} failed, "
             f"{len(absent)} not run"]
    measured = [r for r in same if r.peer]
    if any(r.judged for r in measured):
        met = sum(not r.missed() for r in measured)
        lines.append(f"{met} of {len(measured)} are within their goals")
    if measured:
        ratios = [r for r in measured if r.client.goal.milliseconds is None]
        if len(ratios) > 1:
            for what, name in (("seconds", "time"), ("mebibytes", "peak memory")):
                mean = statistics.geometric_mean(
                    statistics.median(r.ratios(what)) for r in ratios)
                lines.append(f"geometric mean of the {name} ratios, start-up left out: {mean:.3f}")
    for label, group in (("failed", failed), ("not run", absent)):
        lines += [f"  {label}: {r.client.name}: {r.reason}" for r in group]
    return "\n".join(lines)
