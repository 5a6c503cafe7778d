"""The judge on trial: how often intervals cover and verdicts err, on synthetic results whose truth is known.

    python -m benchmarks.judge --repetitions 1000 --write docs/verdicts.md

Each world draws results of the size of a `quick` figure (three to five seeds a grid point) from a known law and measures
them as a claim would. The table says how often the interval holds the truth (nominal 95 %), how often a true claim was
called `fails` (with the truth in the middle of its tolerance, and on its very edge), and how often a claim that is off by
0.5 in the exponent, or by a factor 2 in a size or constant, was called `holds`. A second table is about laws that are none:
crossovers whose exponent is right on the whole and wrong in either half of the grid.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from benchmarks import kinds
from lemmata.measure.boundary import boundary
from lemmata.measure.compare import Decision, Verdict, decide, leaves, together
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import power_law
from lemmata.measure.levelset import level_set
from lemmata.measure.line import straight_line
from lemmata.measure.orderwise import fit_then_test
from lemmata.measure.simple import bootstrap, fraction, mean, median
from lemmata.measure.threshold import critical_size
from lemmata.measure.times import GROWTHS, grows
from lemmata.measure.trend import difference, ordering
from lemmata.measure.worst import worst

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
    right = [judged(e, world.tolerance(truth)) for e, truth in drawn]
    edge = [judged(e, world.edge(truth)) for e, truth in drawn]
    wrong = [judged(e, world.wrong(truth)) for e, truth in drawn]
    return Trial(
        world.name,
        float(np.mean([e.low <= truth <= e.high for e, truth in drawn])),
        right.count("fails") / repetitions,
        edge.count("fails") / repetitions,
        wrong.count("holds") / repetitions,
        right.count("inconclusive") / repetitions,
    )


def judged(estimate: Estimate, tolerance: tuple[float, float]) -> Decision:
    """As the judge decides a law: `holds` is withheld from one that drifts out of its tolerance."""
    decision = decide(estimate, tolerance)
    return "inconclusive" if decision == "holds" and leaves(estimate, tolerance) else decision


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


def middle_of_skewed(seeds: int):
    return lambda rng: (median(rng.exponential(size=seeds)), float(np.log(2)))


def ratio_of_means(seeds: int):
    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        arms = xr.DataArray(np.exp(0.4 * rng.standard_normal((2, seeds))), dims=("arm", "seed"))
        return bootstrap(lambda a: float(a.values[0].mean() / a.values[1].mean()), arms), 1.0

    return draw


def shared_boundary(seeds: int, steep: float, paired: bool):
    """Cells of one seed share their data: each seed has a boundary of its own, whose place and exponent are drawn."""

    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        shift, tilt = 0.35 * rng.standard_normal(seeds), 0.15 * rng.standard_normal(seeds)
        x = np.log(SIZES)[:, None, None]
        away = (
            np.log(SIGNALS)[None, :, None]
            - (EXPONENT + tilt) * x
            - np.log(CONSTANT)
            + shift
            + tilt * x.mean()
        )
        success = (rng.random(away.shape) < logistic(steep * away)).astype(float)
        coords = {"size": SIZES, "signal": SIGNALS, "seed": range(seeds)}
        runs = xr.DataArray(success, coords, ("size", "signal", "seed"))
        return boundary(runs, "signal", "size", paired=paired).exponent, EXPONENT

    return draw


def curvature(seeds: int):
    """The curvature of a straight line over eight places, with noise of a twentieth of its rise."""

    def draw(rng: np.random.Generator) -> tuple[Estimate, float]:
        x = np.linspace(1.0, 8.0, 8)
        values = x[:, None] + 0.05 * 7 * rng.standard_normal((8, seeds))
        runs = xr.DataArray(values, {"x": x, "seed": range(seeds)}, ("x", "seed"))
        return straight_line(runs, "x").curvature, 0.0

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
    World("curvature of a line, 3 seeds", curvature(3), 1.0),
    World("curvature of a line, 5 seeds", curvature(5), 1.0),
    World("mean, 5 seeds", plain_mean(5), 6.0),
    World("fraction, 10 seeds", plain_fraction(10), 0.6),
    World("paired difference, 5 seeds", paired_difference(5), 1.0),
    World("ordering of three arms, 5 seeds", smallest_step(5), 1.0),
    World("median of skewed numbers, 8 seeds", middle_of_skewed(8), 6.0),
    World("median of skewed numbers, 20 seeds", middle_of_skewed(20), 2.0),
    World("bootstrap of a ratio of means, 5 seeds", ratio_of_means(5), 4.0, True),
    World("bootstrap of a ratio of means, 10 seeds", ratio_of_means(10), 4.0, True),
    World("boundary whose cells share seeds, 5 seeds, taken as independent", shared_boundary(5, 6.0, False)),
    World("boundary whose cells share seeds, 5 seeds, paired", shared_boundary(5, 6.0, True)),
    World("boundary whose cells share seeds, 10 seeds, paired", shared_boundary(10, 6.0, True)),
)


# Laws that are none ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """Results whose exponent is `middle - apart` below the middle of the grid and `middle + apart` above it."""

    name: str
    draw: Callable[[np.random.Generator, float], Estimate]
    middle: float
    reach: float = 0.25

    @property
    def tolerance(self) -> tuple[float, float]:
        return self.middle - self.reach, self.middle + self.reach


@dataclass(frozen=True)
class Range:
    """What became of straight and broken laws: shares of all repetitions.

    `alarms`: a straight law from which `holds` was withheld. `covered`: the interval of the drift held the truth.
    `called`: a crossover was called a law, its halves once and a half, and twice, as far off as the tolerance reaches; and
    without looking at the drift, twice as far off.
    """

    name: str
    covered: float
    alarms: float
    called: tuple[float, float]
    unseen: float


def range_on_trial(world: Broken, repetitions: int, seed: int = 20) -> Range:
    def drawn(apart: float) -> list[Estimate]:
        rng = np.random.default_rng(seed)
        return [world.draw(rng, apart) for _ in range(repetitions)]

    def share(flags: Sequence[bool]) -> float:
        return float(np.mean(flags))

    straight, near, far = drawn(0.0), drawn(1.5 * world.reach), drawn(2 * world.reach)
    drifts = [one.drift for one in straight if one.drift is not None]
    held = [decide(one, world.tolerance) == "holds" for one in straight]
    kept = [judged(one, world.tolerance) == "holds" for one in straight]
    return Range(
        world.name,
        share([d.low <= 0 <= d.high for d in drifts]),
        share([a and not b for a, b in zip(held, kept, strict=True)]),
        (
            share([judged(one, world.tolerance) == "holds" for one in near]),
            share([judged(one, world.tolerance) == "holds" for one in far]),
        ),
        share([decide(one, world.tolerance) == "holds" for one in far]),
    )


def bent(grid: np.ndarray, apart: float) -> np.ndarray:
    """What a line gains in log-log whose exponent is less by `apart` below the middle of the grid, and more above it."""
    x = np.log(grid)
    return apart * np.abs(x - (x[len(x) // 2] + x[(len(x) - 1) // 2]) / 2)


def bent_times(seeds: int, spread: np.ndarray, cap: float = np.inf):
    def draw(rng: np.random.Generator, apart: float) -> Estimate:
        law = 0.5 * np.log(EIGHT) + bent(EIGHT, apart)
        times = np.exp(law[:, None] + spread[:, None] * rng.standard_normal((8, seeds)))
        values = xr.DataArray(np.minimum(times, cap), {"size": EIGHT}, ("size", "seed"))
        return power_law(values, "size", xr.DataArray(times >= cap, dims=("size", "seed"))).exponent

    return draw


def bent_boundary(seeds: int, steep: float):
    def draw(rng: np.random.Generator, apart: float) -> Estimate:
        line = EXPONENT * np.log(SIZES) + bent(SIZES, apart) - 2 * apart * (apart > 0)
        away = np.log(SIGNALS)[None] - line[:, None] - np.log(CONSTANT)
        success = rng.random((10, 10, seeds)) < logistic(steep * away)[..., None]
        runs = xr.DataArray(
            success.astype(float), {"size": SIZES, "signal": SIGNALS}, ("size", "signal", "seed")
        )
        return boundary(runs, "signal", "size").exponent

    return draw


BROKEN = (
    Broken("exponent, 3 seeds", bent_times(3, EVEN), 0.5),
    Broken("exponent, 5 seeds", bent_times(5, EVEN), 0.5),
    Broken("exponent, 5 seeds, uneven noise", bent_times(5, UNEVEN), 0.5),
    Broken("exponent, 5 seeds, a third capped", bent_times(5, EVEN, cap=float(EIGHT[5] ** 0.5)), 0.5),
    Broken("boundary exponent, 3 seeds, wide transition", bent_boundary(3, 3.0), EXPONENT),
    Broken("boundary exponent, 5 seeds, wide transition", bent_boundary(5, 3.0), EXPONENT),
    Broken("boundary exponent, 5 seeds, narrow transition", bent_boundary(5, 8.0), EXPONENT),
)


def every_run(repetitions: int, runs: int = 30, seed: int = 0) -> tuple[float, float, float]:
    """Statements about every run, on `runs` runs: how often a true one was called `fails`, how often one that a run in ten
    violates was called `holds`, and how often the interval of that share held it."""
    rng = np.random.default_rng(seed)
    broken = 0.1
    failed = held = covered = 0
    for _ in range(repetitions):
        ratio = xr.DataArray(rng.random(runs), dims="seed")
        failed += not worst(ratio, (-np.inf, 1.0)).holds
        found = worst(ratio / (1 - broken), (-np.inf, 1.0))
        held += found.holds
        covered += found.violations.low <= broken <= found.violations.high
    return failed / repetitions, held / repetitions, covered / repetitions


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
        shares = {how: grows(rows, how).value for how in GROWTHS}
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
    lines += [
        "",
        "| laws and crossovers | drift covers 0 of a straight law | straight, `holds` withheld | crossover 1.5 times the "
        "tolerance apart, called `holds` | 2 times | 2 times, without a look at the drift |",
        "|---|---|---|---|---|---|",
    ]
    for broken in BROKEN:
        r = range_on_trial(broken, repetitions)
        shares = (r.covered, r.alarms, *r.called, r.unseen)
        lines.append(f"| {r.name} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |")
        report(lines[-1])
    failed, held, covered = every_run(repetitions)
    lines += [
        "",
        f"Statements about every run, 30 runs: a true one called `fails` in {100 * failed:.1f} %, one that a run in ten "
        f"violates called `holds` in {100 * held:.1f} %; the interval of that share covers {100 * covered:.1f} %.",
    ]
    jointly, alone = false_discoveries(repetitions)
    lines += [
        "",
        f"Wrong among decided, families of ten claims near the edge: {100 * jointly:.1f} % judged together, "
        f"{100 * alone:.1f} % when each is judged alone.",
    ]
    named = ", ".join(
        f"{n} {100 * a:.1f} % / {100 * b:.1f} %" for n, (a, b) in named_growth(repetitions).items()
    )
    lines += ["", f"Growth of noisy curves, named right / named wrong: {named}."]
    lines += [*kinds.table(repetitions), ""]
    lines.append(
        f"Made by `python -m benchmarks.judge --repetitions {repetitions} --write docs/verdicts.md`."
    )
    report("\n".join(lines[-8:]))
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
