"""One experiment in one place: a figure, the claims that its results can refute, and made results that show it.

    gap = Figure(
        "fig7-5", "Chain of thought against in-context learning",
        setup="One layer, W trained directly.", sweep=sweep, picture=picture,
        claims=[
            Claim(
                "icl-fails", "Where Condition 7.3.2 fails, the in-context error is of order one at any length",
                theorem("Theorem 5 (a)"), headline=True,
                number=lambda r: r.icl_error.min("length"),
                holds=every_run(at_least(0.25, because="half of the limit 1/2")),
                cells=lambda r: r.errors == "pairs-fail",
                refuted_by=made(icl_error=lambda t, length: 0.02),
                upheld_by=made(icl_error=lambda t, length: 0.5),
            ),
        ],
    )

A claim refers to functions as functions and names neither its figure nor its study. `number` takes the results of the figure:
an `xarray.Dataset` in which runs that do not count are NaN. It returns an `Estimate`, or one value a run where `holds` speaks
of runs (`every_run`, `most_runs`, `identity`), or several estimates by name where one statement has many parts. Functions of
`lemmata.measure` do most of the work.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from inspect import signature
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import xarray as xr

from lemmata.arguments import checks_arguments
from lemmata.errors import require, unknown
from lemmata.notebook import Sheet, Shown
from lemmata.results import Question, require_results_of, trials
from lemmata.results import made as made_results
from lemmata.scale import SCALES, Scale, scale_named
from lemmata.trial import Descending

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import matplotlib.figure

    from lemmata.measure.compare import Condition, Verdict
    from lemmata.order import Order
    from lemmata.sweep import Sweep

Results = xr.Dataset
Number = Callable[[Results], Any]
Cells = Callable[[Results], xr.DataArray]
Conditions = Callable[[Any], "Sequence[Condition]"]

# Where a claim comes from ----------------------------------------------------------------------------------------------

SourceKind = Literal["theorem", "proof", "experiment", "ours"]


@dataclass(frozen=True)
class Source:
    """Names the source of a claim: its kind, and the number of the theorem, equation, figure or table.

    `proxy`: for an experiment that is repeated with other data, sizes or networks than the paper's, what differs.
    """

    kind: SourceKind
    where: str
    proxy: str = ""


def theorem(where: str) -> Source:
    """A numbered result of the paper."""
    return Source("theorem", where)


def proof(where: str) -> Source:
    """A lemma or a step inside a proof."""
    return Source("proof", where)


def experiment(where: str, proxy: str = "") -> Source:
    """What the paper's own figure or table shows; `proxy` says what differs from the paper's protocol, if anything."""
    return Source("experiment", where, proxy)


def ours(where: str = "") -> Source:
    """A conjecture or a check of the lab; `where` names what it belongs to."""
    return Source("ours", where)


# What a number must be -------------------------------------------------------------------------------------------------

Kind = Literal["law", "bound", "for-all", "probability", "order", "rival", "identity", "equivalence"]


@dataclass(frozen=True)
class Holds:
    """A claim holds when the interval of its number lies in `low` to `high`.

    `kind`: how the judge reads the number. A `law` (an exponent, a constant), a `bound` (one side), `for-all` (every run), a
        `probability` (a share of runs), an `order` (a sign), a `rival` (the paper's number against others'), an `identity`, an
        `equivalence` (no change by more than the tolerance).
    `because`: why the tolerance ends there.
    `value`: the predicted number.
    `rivals`: numbers of competing predictions, which the interval must exclude.
    """

    kind: Kind
    low: float
    high: float
    because: str
    value: float | None = None
    rivals: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if self.kind not in get_args(Kind):
            raise unknown("kind of claim", self.kind, get_args(Kind))
        require(self.low < self.high, f"no number lies between {self.low:g} and {self.high:g}.")
        one_sided = isinf(self.low) != isinf(self.high)
        require(self.kind != "bound" or one_sided, "a bound has one end; the other is infinite.")
        require(self.kind != "rival" or bool(self.rivals), "a rival claim names its rivals.")

    @property
    def tolerance(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def predicted(self) -> str:
        """The prediction in words: "1, within 0.8 to 1.25", "in every run at least 0.9"."""
        if self.kind == "identity":
            return f"0 in every run, up to {self.high:g}"
        if self.kind == "order":
            return f"below {self.high:g}" if self.low == -inf else f"above {self.low:g}"
        one_end = f"at most {self.high:g}" if self.low == -inf else f"at least {self.low:g}"
        words = one_end if inf in (-self.low, self.high) else f"{self.low:g} to {self.high:g}"
        words = words if self.value is None else f"{self.value:g}, within {words}"
        sentences = {
            "for-all": f"in every run {words}",
            "probability": f"a share of runs of {words}",
            "equivalence": f"no change beyond {words}",
        }
        return sentences.get(self.kind, words)


def at_least(low: float, because: str, value: float | None = None) -> Holds:
    """A lower bound."""
    return Holds("bound", low, inf, because, value)


def at_most(high: float, because: str, value: float | None = None) -> Holds:
    """An upper bound."""
    return Holds("bound", -inf, high, because, value)


def positive(because: str) -> Holds:
    """Only a sign is claimed, such as an order or an increase."""
    return Holds("order", 0.0, inf, because)


def about(
    value: float, low: float, high: float, because: str, rivals: Mapping[str, float] | None = None
) -> Holds:
    """A law: `value`, within `low` to `high`. The interval must exclude the numbers of the `rivals`."""
    return Holds("rival" if rivals else "law", low, high, because, value, rivals or {})


def between(low: float, high: float, because: str) -> Holds:
    """A law whose number the paper leaves open: `low` to `high`."""
    return Holds("law", low, high, because)


def every_run(holds: Holds) -> Holds:
    """Every single run must lie within the tolerance; one run outside refutes the claim."""
    return replace(holds, kind="for-all")


def most_runs(share: float, because: str, value: float | None = None) -> Holds:
    """At least this share of runs. `number` says of each run whether it is so: 1 or 0."""
    return Holds("probability", share, inf, because, value)


def flat(low: float, high: float, because: str) -> Holds:
    """No dependence: the change lies within `low` to `high`. Judged by two one-sided tests, so that flat is an answer.

    `because`: which change the theory would allow, or what a reader would call none.
    """
    return Holds("equivalence", low, high, because)


def identity(rounding: float, because: str) -> Holds:
    """Zero in every run, up to rounding."""
    return Holds("identity", -inf, rounding, because)


# Made results ----------------------------------------------------------------------------------------------------------

Law = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Made:
    """Results without training: a law for every record, over the grid of a figure. See `made`."""

    laws: Mapping[str, Law]
    noise: float
    seeds: int | None = None

    def results(self, figure: "Figure", scale: Scale = "quick", sweep: "Sweep | None" = None) -> Results:
        """The results of a figure, or of a `sweep` like its own, as they would be if runs followed these laws."""
        if sweep is not None:
            figure = replace(figure, sweep=lambda scale: sweep)
        known: dict[str, tuple[str, ...]] = {}
        for kind in {type(trial) for trial in figure.sweep(scale).cells.trials}:
            known |= kind.dims
        records = {
            name: _record(figure, name, law, self.noise, known.get(name.removesuffix("_curve"), ()))
            for name, law in self.laws.items()
        }
        return made_results(figure, records, scale, self.seeds)


def made(
    laws: Mapping[str, Law] | None = None, /, *, noise: float = 0.01, seeds: int | None = None, **more: Law
) -> Made:
    """Make up results, to show what a claim says of them: `made(cot_error=lambda t, length: 1 / length)`.

    `laws`, `more`: by name of a record, a function of the trial and, by name, of its dimensions (`length`, `step`; `rng` for
        chance). A dimension is an array of its labels. The value is broadcast to the shape of the record.
    `noise`: every record of a run is multiplied by a random factor near 1 with this standard deviation, so that seeds differ.
        The `status` of a run is not.
    `seeds`: the number of seeds; by default that of the figure, which may be too small for a share of runs to be decided.
    """
    return Made({**(laws or {}), **more}, noise, seeds)


def _record(
    figure: "Figure", name: str, law: Law, noise: float, known: tuple[str, ...]
) -> Callable[[Any, np.random.Generator], np.ndarray]:
    asked = list(signature(law).parameters)[1:]
    noise = 0.0 if name == "status" else noise

    def record(trial: Any, rng: np.random.Generator) -> np.ndarray:
        curve = name.endswith("_curve")
        own = tuple(type(trial).dims.get(name.removesuffix("_curve"), ()))
        if known and not own:  # only another kind of trial of this figure has the record
            return np.full((0,) * (curve + len(known)), np.nan)
        dims = ("step",) * curve + own
        labels = dict(figure.labels(trial))
        if isinstance(trial, Descending):
            labels["step"] = trial.log_steps
        for dim in dims:
            require(dim in labels, f"'{figure.id}' gives no labels for '{dim}', a dimension of '{name}'.")
        axes = {d: np.asarray(labels[d]).reshape([-1 if one == d else 1 for one in dims]) for d in dims}
        for word in asked:
            require(word in (*dims, "rng"), f"a law of '{name}' takes {[*dims, 'rng']}, not '{word}'.")
        value = law(trial, *(rng if word == "rng" else axes[word] for word in asked))
        whole = np.broadcast_to(value, [len(labels[dim]) for dim in dims])
        return np.asarray(whole * np.exp(noise * rng.normal()) if noise else whole)

    return record


# The experiment --------------------------------------------------------------------------------------------------------


def nothing_asked(trial: Any) -> "Sequence[Condition]":
    """Return the conditions of a statement that has none."""
    return ()


@dataclass(frozen=True)
class Claim:
    """A statement that results can refute.

    `id`, `statement`, `source`: its name, what the paper says (sign, quantifier and set included), and where it comes from.
    `number`: what is measured, a function of the results.
    `holds`: what the number must be.
    `refuted_by`: made results on which the claim must fail.
    `upheld_by`: made results on which it must hold; by default those of the figure.
    `cells`: marks the cells and runs that are measured, a function of the results; by default all.
    `conditions`: the theorem's own conditions, a function of the trial. They are looked at in the cells that are measured. A
        statement that holds without any has `nothing_asked`.
    `uses`: statuses of runs that count beside `converged`.
    `headline`: whether the claim belongs to the study's main results.
    `not_computable`: the reason why no finite run can decide the statement, for one that speaks of a limit alone. The number is
        measured and shown all the same.
    `unnoticed`: mutants of the number that no made case can notice, with the reason (see `lemmata.testing`).
    `figure`: the id of its figure; the study fills it in.
    """

    id: str
    statement: str
    source: Source
    _: KW_ONLY
    number: Number
    holds: Holds
    refuted_by: Made
    upheld_by: Made | None = None
    cells: Cells | None = None
    conditions: Conditions | None = None
    uses: tuple[str, ...] = ()
    headline: bool = False
    not_computable: str = ""
    unnoticed: Mapping[str, str] = field(default_factory=dict)
    figure: str = ""

    def margin(self, results: Results) -> xr.DataArray:
        """Return how far inside its tolerance the claim lies, below 0 where it is violated: see `lemmata.measure.margin`."""
        from lemmata.measure.margin import margin

        return margin(self, results)


@dataclass(frozen=True)
class Rule:
    """A number that the theory gives to a user: how much of `vary` it takes until `quantity` has a value.

    `quantity`: a record of the figure. `vary`: an axis of the figure, or a dimension of the record.
    `says`: whose number it is, in a few words.
    `number`: a function of the trial and the value.
    `field`: the field that `vary` is set by, where it is no axis.
    """

    quantity: str
    vary: str
    says: str
    number: Callable[[Any, float], float]
    field: str = ""


def _no_labels(trial: Any) -> Mapping[str, Sequence[Any]]:
    return {}


@dataclass(frozen=True)
class Figure(Shown):
    """An experiment: what is run, what its results can refute, and its picture.

    `id`, `title`: the paper's own number (`fig3`), or a name; what it shows.
    `setup`: how the paper was read.
    `sweep`: what to run at a scale.
    `picture`: draws results and verdicts as a matplotlib figure.
    `claims`: what the results can refute.
    `upheld_by`: made results on which every claim holds that has none of its own.
    `labels`: names of the places along the dimensions of a trial's records.
    `derived`: adds coordinates and variables to the results (the SNR of a signal norm).
    `question`: the boundary that an adaptive run refines.
    `readings`: ways in which the paper can be read, by name: fields to set. The first is the nearest to the text.
    `space`: what a search for counter-examples varies, by field: two numbers are a range, words or more numbers a choice. By
        default the fields that move a condition, a factor 10 each way (`lemmata.search.space`).
    `forecast`: results as the theory foretells them, which a search looks at before it trains.
    `rules`: what the theory answers to `lemmata plan`, the sharpest rule last.
    `study`, `draw_number`: the study's id, and which draw of the seeds judges its claims. The study fills them in.
    """

    id: str
    title: str
    setup: str
    sweep: "Callable[[Scale], Sweep]"
    picture: "Callable[..., matplotlib.figure.Figure]"
    claims: Sequence[Claim] = ()
    upheld_by: Made | None = None
    labels: Callable[[Any], Mapping[str, Sequence[Any]]] = _no_labels
    derived: Callable[[Results], Results] = lambda results: results
    question: Question | None = None
    readings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    space: Mapping[str, Any] = field(default_factory=dict)
    forecast: Made | None = None
    rules: Sequence[Rule] = ()
    study: str = ""
    draw_number: int = 0

    def __repr__(self) -> str:
        return f"Figure('{self.study}/{self.id}': {self.title}; {len(self.claims)} claims)"

    def _sheet(self) -> Sheet:
        rows = []
        for scale in SCALES:
            sweep = self.sweep(scale)
            grid = " x ".join(f"{name} ({len(labels)})" for name, labels in sweep.dims.items())
            rows.append((scale, str(len(sweep.cells)), str(len(sweep.cells.structures[0])), grid))
        claims = "\n".join(f"{claim.id}: {claim.statement}" for claim in self.claims)
        title = f"{self.study}/{self.id}: {self.title}"
        return Sheet(title, ("scale", "trainings", "programs", "grid"), rows, f"{self.setup}\n\n{claims}")

    @checks_arguments
    def complete(self, results: Results) -> Results:
        """Return the results with their labels and derived coordinates."""
        longest: dict[str, Sequence[Any]] = {}  # trials of one grid may have records of different sizes
        for trial in trials(results):
            for dim, names in self.labels(trial).items():
                if len(names) > len(longest.get(dim, ())):
                    longest[dim] = names
        known = {d: list(names)[: results.sizes[d]] for d, names in longest.items() if d in results.dims}
        return self.derived(results.assign_coords(known))

    @checks_arguments
    def order(
        self,
        scale: str = "quick",
        changes: Mapping[str, Any] | None = None,
        axes: Mapping[str, Sequence[Any]] | None = None,
        seeds: int | None = None,
        out: Path | str | None = None,
        reading: str = "",
    ) -> "Order":
        """Return an order for this figure.

        `changes`: fields or axes by dotted path, with their new values.
        `axes`: fields to sweep over, with their values.
        `seeds`: the number of seeds; `None` takes those of the scale.
        `out`: the folder of the results; by default `runs/STUDY/FIGURE/SCALE`.
        `reading`: one of the figure's `readings`; by default the first.
        """
        from lemmata.order import Order

        return Order(self, scale_named(scale), changes or {}, axes or {}, seeds, out, reading)

    @checks_arguments
    def run(
        self,
        scale: str = "quick",
        workers: int = 0,
        progress: bool | None = None,
        executor: "Executor | None" = None,
        set: Mapping[str, Any] | None = None,
        axes: Mapping[str, Sequence[Any]] | None = None,
        seeds: int | None = None,
        out: Path | str | None = None,
        reading: str = "",
    ) -> Results:
        """Run what is missing of the figure and return its results.

        `workers`: the number of worker processes; 0 runs everything in this process.
        `progress`: whether a progress bar is shown; by default in a terminal and in a notebook.
        `executor`: any `concurrent.futures.Executor`, in place of `workers`.
        `set`: fields or axes by dotted path, with their new values.
        The others are those of `order`.
        """
        from lemmata.order import run_here

        return run_here(self.order(scale, set, axes, seeds, out, reading), workers, progress, executor)

    @checks_arguments
    def draw(self, results: Results, verdicts: "list[Verdict] | None" = None) -> "matplotlib.figure.Figure":
        """Draw some results of this figure."""
        require_results_of(results, self.study, [self.id])
        return self.picture(results, verdicts or [])
