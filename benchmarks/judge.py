"""The judge on trial: how often intervals cover and verdicts err, on synthetic results whose truth is known.

    python -m benchmarks.judge --repetitions 1000 --write docs/verdicts.md

Each world draws results of the size of a `quick` figure (three to five seeds a grid point) from a known law and measures
them as a claim would. The table says how often the interval holds the truth (nominal 95 %), how often a true claim was
called `fails` (with the truth in the middle of its tolerance, and on its very edge), and how often a claim that is off by
0.5 in the exponent, or by a factor 2 in a size or constant, was called `holds`.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.compare import Verdict, decide, together
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import power_law
from lemmata.measure.levelset import level_set
from lemmata.measure.orderwise import fit_then_test
from lemmata.measure.simple import fraction, mean
from lemmata.measure.threshold import critical_size
from lemmata.measure.times import grows
from lemmata.measure.trend import difference, ordering

SIZES = np.geomspace(10, 1000, 10)
SIGNALS = np.geomspace(0.02, 1, 10)
EIGHT = np.geomspace(10, 1000, 8)
EXPONENT, CONSTANT = -0.5, 1.6
BEGIN, END = "<!-- judge table: begin -->", "<!-- judge table: end -->"


@dataclass(frozen=True)
class World:
    """Results with a known truth. `draw(rng)` gives (estimate, truth) pairs by quantity.

    `off` is what a wrong claim is off by: added to the truth, or multiplied (`factor`). The tolerance reaches half as far.
    """

    name: str
    draw: Callable[[np.random.Generator], tuple[Estimate, float]]
    off: float = 0.5
    factor: bool = False

    def tolerance(self, around: float) -> tuple[float, float]:
        if self.factor:
            return around / self.off**0.5, around * self.off**0.5
        return around - self.off / 2, around + self.off / 2

    def edge(self, truth: float) -> tuple[float, float]:
        """A tolerance that the truth lies on the edge of."""
        return self.tolerance(truth * self.off**0.5 if self.factor else truth + self.off / 2)

    def wrong(self, truth: float) -> tuple[float, float]:
        """The tolerance of a claim that is off."""
        return self.tolerance(truth * self.off if self.factor else truth + self.off)


@dataclass(frozen=True)
class Trial:
    """What became of one world over many repetitions: shares of all repetitions."""

    name: str
    coverage: float
    false_fails: float
    edge_fails: float
    false_holds: float
    inconclusive: float


def put_on_trial(world: World, repetitions: int, seed: int = 20) -> Trial:
    rng = np.random.default_rng(seed)
    drawn = [world.draw(rng) for _ in range(repetitions)]
    right = [decide(e, world.tolerance(truth)) for e, truth in drawn]
    edge = [decide(e, world.edge(truth)) for e, truth in drawn]
    wrong = [decide(e, world.wrong(truth)) for e, truth in drawn]
    return Trial(
        world.name,
        float(np.mean([e.low <= truth <= e.high for e, truth in drawn])),
        right.count("fails") / repetitions,
        edge.count("fails") / repetitions,
        wrong.count("holds") / repetitions,
        right.count("inconclusive") / repetitions,
    )


# Worlds ----------------------------------------------------------------------------------------------------------------


def logistic(eta: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-eta))


def complementary(eta: np.ndarray) -> np.ndarray:
    """A lopsided transition, passing one half at 0: not the shape that the judge fits."""
    return 1 - np.exp(-np.exp(eta) * np.log(2))


def phase_diagram(
    rng: np.random.Generator, seeds: int, steep: float, constant: float, shape=logistic
) -> xr.DataArray:
    """Success of runs on a 10 x 10 grid with the boundary `signal = constant * size ** EXPONENT`."""
    away = np.log(SIGNALS)[None] - EXPONENT * np.log(SIZES)[:, None] - np.log(constant)
    success = rng.random((len(SIZES), len(SIGNALS), seeds)) < shape(steep * away)[..., None]
    return xr.DataArray(success.astype(float), {"size": SIZES, "signal": SIGNALS}, ("size", "signal", "seed"))


def boundary_exponent(seeds: int, steep: float, shape=logistic):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        constant = CONSTANT * np.exp(rng.uniform(-0.4, 0.4))
        return boundary(
            phase_diagram(rng, seeds, steep, constant, shape), "signal", "size"
        ).exponent, EXPONENT

    return draw


def boundary_constant(seeds: int, steep: float):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        truth = CONSTANT * np.exp(rng.uniform(-0.4, 0.4))
        law = boundary(phase_diagram(rng, seeds, steep, truth), "signal", "size", exponent=EXPONENT)
        return law.constant, truth

    return draw


def threshold_size(seeds: int, steep: float):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        truth = np.exp(rng.uniform(np.log(50), np.log(200)))
        success = rng.random((10, seeds)) < logistic(steep * np.log(SIZES / truth))[:, None]
        return critical_size(
            xr.DataArray(success.astype(float), {"size": SIZES}, ("size", "seed")), "size"
        ), truth

    return draw


def scaling(seeds: int, spread: np.ndarray, cap: float = np.inf, skewed: bool = False):
    """Times that grow as the square root of the size, with noise of a given spread along the grid, and a step cap."""

    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        noise = rng.gumbel(-np.euler_gamma, 0.78, (8, seeds)) if skewed else rng.standard_normal((8, seeds))
        times = np.exp(0.5 * np.log(EIGHT)[:, None] + spread[:, None] * noise)
        values = xr.DataArray(np.minimum(times, cap), {"size": EIGHT}, ("size", "seed"))
        return power_law(values, "size", xr.DataArray(times >= cap, dims=("size", "seed"))).exponent, 0.5

    return draw


def level_line(seeds: int):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        away = 3 * (np.log(SIGNALS)[None] - EXPONENT * np.log(SIZES)[:, None] - np.log(CONSTANT))
        loss = 0.6 * logistic(-away)[..., None] * np.exp(0.2 * rng.standard_normal((10, 10, seeds)))
        values = xr.DataArray(loss, {"size": SIZES, "signal": SIGNALS}, ("size", "signal", "seed"))
        return level_set(values, 0.2, "signal", "size").exponent, EXPONENT

    return draw


def held_out(seeds: int):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        values = 3 * EIGHT[:, None] * np.exp(0.3 * rng.standard_normal((8, seeds)))
        return fit_then_test(
            xr.DataArray(values, {"size": EIGHT}, ("size", "seed")), lambda n: n, "size"
        ), 1.0

    return draw


def plain_mean(seeds: int):
    return lambda rng: (mean(rng.standard_normal(seeds)), 0.0)


def plain_fraction(seeds: int):
    return lambda rng: (fraction((rng.random(seeds) < 0.7).astype(float)), 0.7)


def paired_difference(seeds: int):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        shared = 3 * rng.standard_normal(seeds)
        one, two = (xr.DataArray(shared + 0.2 * rng.standard_normal(seeds), dims="seed") for _ in range(2))
        return difference(one, two), 0.0

    return draw


def smallest_step(seeds: int):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        arms = [xr.DataArray(a * 0.3 + 0.2 * rng.standard_normal(seeds), dims="seed") for a in range(3)]
        return ordering(arms), 0.3

    return draw


EVEN, UNEVEN = np.full(8, 0.3), np.geomspace(0.1, 0.9, 8)

WORLDS = (
    World("boundary exponent, 3 seeds, wide transition", boundary_exponent(3, 3.0)),
    World("boundary exponent, 5 seeds, wide transition", boundary_exponent(5, 3.0)),
    World("boundary exponent, 5 seeds, narrow transition", boundary_exponent(5, 8.0)),
    World("boundary exponent, 5 seeds, lopsided transition", boundary_exponent(5, 3.0, complementary)),
    World("boundary constant, 3 seeds, wide transition", boundary_constant(3, 3.0), 2.0, True),
    World("boundary constant, 5 seeds, narrow transition", boundary_constant(5, 8.0), 2.0, True),
    World("critical size, 3 seeds", threshold_size(3, 3.0), 2.0, True),
    World("critical size, 5 seeds", threshold_size(5, 3.0), 2.0, True),
    World("exponent, 3 seeds", scaling(3, EVEN)),
    World("exponent, 5 seeds", scaling(5, EVEN)),
    World("exponent, 3 seeds, uneven noise", scaling(3, UNEVEN)),
    World("exponent, 5 seeds, uneven skewed noise", scaling(5, UNEVEN, skewed=True)),
    World("exponent, 3 seeds, a third capped", scaling(3, EVEN, cap=float(EIGHT[5] ** 0.5))),
    World("exponent, 5 seeds, a third capped, uneven noise", scaling(5, UNEVEN, cap=float(EIGHT[5] ** 0.5))),
    World("level set exponent, 4 seeds", level_line(4)),
    World("law with fitted constant, 5 seeds", held_out(5), 2.0, True),
    World("mean, 5 seeds", plain_mean(5), 6.0),
    World("fraction, 10 seeds", plain_fraction(10), 0.6),
    World("paired difference, 5 seeds", paired_difference(5), 1.0),
    World("ordering of three arms, 5 seeds", smallest_step(5), 1.0),
)


def false_discoveries(repetitions: int, seed: int = 0) -> tuple[float, float]:
    """The mean share of wrong verdicts among the decided ones in families of ten claims, judged together and alone.

    Half of the claims are true with the truth near the edge of the tolerance, half are false by as little: the hardest
    families, in which nearly every lucky interval would decide wrongly.
    """
    rng = np.random.default_rng(seed)
    jointly, alone = [], []
    for _ in range(repetitions):
        family = [_near_edge(rng, inside=i % 2 == 0) for i in range(10)]
        for verdicts, shares in (
            (together([v for v, _ in family]), jointly),
            ([v for v, _ in family], alone),
        ):
            decided = [
                (v.verdict, good)
                for v, (_, good) in zip(verdicts, family, strict=True)
                if v.verdict != "inconclusive"
            ]
            shares.append(sum(v != good for v, good in decided) / max(len(decided), 1))
    return float(np.mean(jointly)), float(np.mean(alone))


def _near_edge(rng: np.random.Generator, inside: bool) -> tuple[Verdict, str]:
    truth = 0.99 if inside else 1.01
    estimate = mean(truth + rng.standard_normal(5) * rng.choice([0.02, 0.5, 1.0]))
    tolerance = (-1.0, 1.0)
    return Verdict(
        "", "", decide(estimate, tolerance), "", estimate, tolerance, seeds=5
    ), "holds" if inside else "fails"


def named_growth(repetitions: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """For each shape of growth: the share of noisy curves named right, and named wrong; the rest are left undecided."""
    rng = np.random.default_rng(seed)
    steps = np.unique(np.round(np.geomspace(1, 1000, 30)))
    curves = {
        "linear": steps / 1000,
        "logarithmic": np.log(steps) / 7,
        "exponential": np.expm1(steps / 250) / 54,
    }
    found = {}
    for name, curve in curves.items():
        noise = rng.standard_normal((repetitions, len(steps)))
        for i in range(1, len(steps)):
            noise[:, i] += 0.5 * noise[:, i - 1]  # neighbouring points of a training curve err together
        rows = xr.DataArray(curve + 0.03 * noise, {"step": steps}, ("seed", "step"))
        shares = {shape: grows(rows, shape).value for shape in curves}  # pyright: ignore[reportArgumentType]
        found[name] = (shares[name], sum(shares.values()) - shares[name])
    return found


# The table -------------------------------------------------------------------------------------------------------------


def table(repetitions: int, report: Callable[[str], None] = print) -> str:
    lines = [
        "| results | covers the truth | true, called `fails` | true and on the edge, called `fails` | off by 0.5 or a "
        "factor 2, "
        "called `holds` | true, left open |",
        "|---|---|---|---|---|---|",
    ]
    for world in WORLDS:
        t = put_on_trial(world, repetitions)
        shares = (t.coverage, t.false_fails, t.edge_fails, t.false_holds, t.inconclusive)
        lines.append(f"| {t.name} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |")
        report(lines[-1])
    jointly, alone = false_discoveries(repetitions)
    lines += [
        "",
        f"Wrong among decided, families of ten claims near the edge: {100 * jointly:.1f} % judged together, ",
    ]
    lines[-1] += f"{100 * alone:.1f} % when each is judged alone."
    named = ", ".join(
        f"{n} {100 * a:.1f} % / {100 * b:.1f} %" for n, (a, b) in named_growth(repetitions).items()
    )
    lines += ["", f"Growth of noisy curves, named right / named wrong: {named}.", ""]
    lines.append(
        f"Made by `python -m benchmarks.judge --repetitions {repetitions} --write docs/verdicts.md`."
    )
    report("\n".join(lines[-5:]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--write", type=Path, help="put the table between the marks of this file")
    options = parser.parse_args()
    made = table(options.repetitions, lambda line: print(line, flush=True))
    if options.write:
        head, _, rest = options.write.read_text().partition(BEGIN)
        tail = rest.partition(END)[2]
        options.write.write_text(f"{head}{BEGIN}\n\n{made}\n\n{END}{tail}")


if __name__ == "__main__":
    main()
