"""Planted counter-examples: how often a search finds them, and how often it cries wolf on true claims.

    python -m benchmarks.refute --repetitions 200 --write docs/refute.md

Landscapes have six fields, conditions that half of the box or so meets, and noise. A claim about every run is violated, in more
than a tenth of the runs, in a known part of the inside. A search has 200 trainings, one a point; at most four candidates are
tried on ten fresh seeds, as `lemmata refute` does.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lemmata.report.readme import written
from lemmata.search import decide
from lemmata.search.engine import Budget, search
from lemmata.search.refute import CONFIRMING, candidates

FIELDS, TRAININGS, NOISE = 6, 200, 0.05
TENTH = 1.2816
"""At this many standard deviations above zero a tenth of the runs is below."""

BEGIN, END = "<!-- planted: begin -->", "<!-- planted: end -->"
Height = Callable[[np.ndarray], np.ndarray]


class Planted:
    """A landscape with a known share of violating points."""

    size, structural = FIELDS, ()

    def __init__(self, height: Callable[[np.random.Generator], Height], share: float, seed: int):
        self._rng = np.random.default_rng([seed, 7])
        own = np.random.default_rng([seed, 8])
        self._tilt = own.normal(size=FIELDS)
        self._level = float(np.quantile(own.random((4000, FIELDS)) @ self._tilt, 0.5))
        points = own.random((20_000, FIELDS))
        inside = points[points @ self._tilt >= self._level]
        self._zero, self._unit = 0.0, 0.0
        while self._unit <= 0:  # the place of a needle may lie outside the conditions
            self._raw = height(own)
            heights = self._raw(inside)
            self._zero = float(np.quantile(heights, share))
            self._unit = float(np.quantile(heights, 0.5)) - self._zero

    def snap(self, units: np.ndarray) -> np.ndarray:
        return np.round(np.clip(units, 0, 1), 4)

    def room(self, units: np.ndarray) -> float:
        return float(units @ self._tilt - self._level)

    def truth(self, units: np.ndarray) -> np.ndarray:
        """The height above the violated part, in units of its median over the inside."""
        return (self._raw(units) - self._zero) / self._unit

    def runs(self, units: np.ndarray, count: int) -> np.ndarray:
        """The margins of some runs: exactly a tenth is violated where the truth is zero."""
        noise = self._rng.normal(size=(len(units), count))
        return self.truth(units)[:, None] + NOISE * (TENTH + noise)

    def measure(self, units: np.ndarray) -> np.ndarray:
        return self.runs(units, 1)


def bowl(rng: np.random.Generator) -> Height:
    """A smooth bowl around a random place, with sides of different steepness."""
    centre, steep = rng.random(FIELDS), np.exp(rng.normal(0, 0.5, FIELDS))
    return lambda u: np.sqrt((steep * (u - centre) ** 2).sum(1))


def corner(rng: np.random.Generator) -> Height:
    """A slope into a random corner of the box, cut off by the conditions."""
    steep, end = np.exp(rng.normal(0, 0.5, FIELDS)), rng.integers(0, 2, FIELDS)
    return lambda u: (steep * np.abs(u - end)).sum(1)


def behind_decoy(rng: np.random.Generator) -> Height:
    """A wide bowl whose ground is not violated, and a steeper one elsewhere whose ground is."""
    wide, deep = rng.random(FIELDS), rng.random(FIELDS)
    while np.linalg.norm(wide - deep) < 0.6:
        deep = rng.random(FIELDS)
    return lambda u: np.minimum(
        0.3 + np.linalg.norm(u - wide, axis=1), 2.0 * np.linalg.norm(u - deep, axis=1)
    )


def needle(rng: np.random.Generator) -> Height:
    """A plain without any slope but for a funnel around a random place, which fills less than a tenth of the inside."""
    centre = 0.15 + 0.7 * rng.random(FIELDS)
    return lambda u: np.minimum(np.linalg.norm(u - centre, axis=1), 0.5)


CASES: dict[str, tuple[Callable[[np.random.Generator], Height], float, float]] = {
    "1 %, a smooth bowl": (bowl, 0.01, 0.95),
    "1 %, in a corner": (corner, 0.01, 0.95),
    "0.1 %, in a corner": (corner, 0.001, 0.65),
    "1 %, behind a decoy": (behind_decoy, 0.01, 0.85),
    "1 %, a needle: a plain with a funnel": (needle, 0.01, 0.65),
}
"""For each case: the landscape, the share of the inside that violates, and the rate of finds that is asked for."""


def found(
    height: Callable[[np.random.Generator], Height], share: float, seed: int, points: int = TRAININGS
) -> bool:
    """Whether one search finds and confirms what was planted."""
    land = Planted(height, share, seed)
    trace = search(land, 1, Budget(points=points), seed)
    for place, at in enumerate(candidates(trace, 0)):
        runs = land.runs(trace.units[at][None], CONFIRMING)[0]
        if decide.of_shares(runs, decide.ALARM * decide.SHARES[place]).refuted:
            return True
    return False


def alarms(kind: str, repetitions: int, first: int = 0) -> float:
    """The share of commands that call a true claim refuted. It is true on the very edge at all points."""
    return float(np.mean([_alarm(kind, first + seed) for seed in range(repetitions)]))


def _alarm(kind: str, seed: int) -> bool:
    """One simulated command: four candidates, the worst of many points, each on fresh seeds."""
    rng = np.random.default_rng([seed, 9])
    return any(_refuted(kind, rng, decide.ALARM * share) for share in decide.SHARES)


def _refuted(kind: str, rng: np.random.Generator, level: float) -> bool:
    """Whether ten fresh seeds of a true claim refute it."""
    if kind == "shares":
        return decide.of_shares(np.where(rng.random(CONFIRMING) < decide.DELTA, -1.0, 1.0), level).refuted
    if kind == "exact inequalities":  # an equality in all runs, with rounding either way
        return decide.of_shares(1e-13 * rng.normal(size=CONFIRMING), level).refuted
    noise = NOISES[kind](rng)
    half = 2.2622 * noise.std(ddof=1) / np.sqrt(CONFIRMING)
    return decide.of_estimate(noise.mean(), half, CONFIRMING - 1.0, noise, level).refuted


NOISES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "estimates": lambda rng: rng.normal(size=CONFIRMING),
    "estimates, exponential noise": lambda rng: rng.exponential(size=CONFIRMING) - 1,
    "estimates, exponential noise turned over": lambda rng: 1 - rng.exponential(size=CONFIRMING),
    "estimates, log-normal noise": lambda rng: np.exp(rng.normal(size=CONFIRMING)) - np.exp(0.5),
    "estimates, log-normal noise turned over": lambda rng: np.exp(0.5) - np.exp(rng.normal(size=CONFIRMING)),
}
"""Noise of mean zero, a value a seed. The claim says that the mean is not negative."""

LAWS = ("shares", "exact inequalities", *NOISES)


def tables(repetitions: int, commands: int, first: int = 0) -> str:
    """Both tables, in Markdown."""
    lines = ["| planted | found and confirmed | asked for |", "| --- | --- | --- |"]
    for name, (height, share, asked) in CASES.items():
        rate = np.mean([found(height, share, first + seed) for seed in range(repetitions)])
        lines.append(f"| {name} | {rate:.1%} | {asked:.0%} |")
    lines += ["", "| true claims, on the edge everywhere | called refuted |", "| --- | --- |"]
    lines += [f"| {kind} | {alarms(kind, commands, first):.2%} |" for kind in LAWS]
    said = f"{repetitions} searches of {TRAININGS} trainings a row, and {commands} simulated commands a row"
    command = f"python -m benchmarks.refute --repetitions {repetitions} --commands {commands} --first {first}"
    return "\n".join([*lines, "", f"{said}; made by `{command} --write docs/refute.md`."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--commands", type=int, default=2000)
    parser.add_argument("--first", type=int, default=10_000, help="the first seed")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    text = tables(options.repetitions, options.commands, options.first)
    print(text)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(written(page, text, (BEGIN, END)), encoding="utf-8")


if __name__ == "__main__":
    main()
