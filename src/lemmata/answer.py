"""Answers whether a training will succeed and how much it needs: what `lemmata predict` and `lm.predict` say.

A study has a module `answer` with `ANSWER`, an `Answer`: a sentence, what it calls success, and which of its predictions count
things. `predict` puts it beside the conditions and predictions of `Study.predict`, and how right such predictions were.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, require, unknown
from lemmata.notebook import Sheet, Shown
from lemmata.study import Prediction, Study, study
from lemmata.trial import fields, get, put, put_all

if TYPE_CHECKING:
    import matplotlib.figure

    from lemmata.measure.compare import Condition

OUT_OF_REACH = 1e12
"""A number of samples, steps, heads or the like that no training has: a bound that asks for more is vacuous."""

MOST_SETTINGS = 1000
SEARCHED = 1e12
"""The largest value that `smallest` looks at."""


@dataclass(frozen=True)
class Answer:
    """How a study answers.

    `sentence`: a function of the trial that answers in plain English.
    `success`: a function of the trial: whether the study predicts success.
    `goal`: what success means, in words.
    `inputs`: the fields that matter most, by dotted path.
    `main`: the predictions that a short table shows, by the beginnings of their names.
    `counts`: predictions that count things, by the beginnings of their names. They are rounded up.
    `useless_from`: upper bounds, by the beginnings of their names, with the number from which they say nothing.
    `claims`: the claims that hold the answer against trainings.
    """

    sentence: Callable[[Any], str]
    success: Callable[[Any], bool]
    goal: str
    inputs: tuple[str, ...]
    main: tuple[str, ...]
    counts: tuple[str, ...] = ()
    useless_from: Mapping[str, float] = field(default_factory=dict)
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Forecast(Shown):
    """What a study predicts for one trial, without training it.

    `inputs`: the fields that matter most and those that were set, with their values.
    `success`, `sentence`: None and empty if the study has no answer.
    `vacuous`: predictions that say nothing here, by name, with the reason.
    `main`, `counts`: as in `Answer`, the counts by their whole names.
    `record`: how right the study was where it was held against trainings, a sentence a claim.
    """

    study: str
    trial: Any
    inputs: Mapping[str, Any]
    goal: str
    success: bool | None
    sentence: str
    conditions: "tuple[Condition, ...]"
    predictions: tuple[Prediction, ...]
    main: tuple[str, ...]
    counts: frozenset[str]
    vacuous: Mapping[str, str]
    record: tuple[str, ...]

    def __getitem__(self, name: str) -> float | str:
        """Return the prediction of this name."""
        for one in self.predictions:
            if one.name == name:
                return one.value
        raise unknown(f"prediction of {self.study}", name, [one.name for one in self.predictions])

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The predictions with their values in words, and what is wrong with those that say nothing."""
        return [(p.name, self.text(p), self.vacuous.get(p.name, "")) for p in self.predictions]

    def text(self, one: Prediction) -> str:
        """Return a prediction in words. A count is rounded up."""
        return one.value if isinstance(one.value, str) else number_text(one.value, one.name in self.counts)

    @property
    def inputs_text(self) -> str:
        return ", ".join(f"{path}={value}" for path, value in self.inputs.items())

    def __repr__(self) -> str:
        lines = [f"{self.study} at {self.inputs_text}", self.sentence, *self.record]
        lines += [f"  {name}: {value}{f' ({why})' if why else ''}" for name, value, why in self.rows]
        return "\n".join(filter(None, lines))

    def _sheet(self) -> Sheet:
        conditions = "\n".join(
            f"{c.name}: {outcome(c.holds)}, margin {c.margin:.3g}" for c in self.conditions
        )
        title = f"{self.sentence or self.study} Inputs: {self.inputs_text}."
        folded = "\n".join((*self.record, "", "Conditions", conditions))
        return Sheet(title, ("prediction", "value", "remark"), self.rows, folded.strip())


@dataclass(frozen=True, repr=False)
class Forecasts(Shown):
    """The forecasts of a grid: one or two fields with several values each.

    `axes`: the values by field. `each`: the forecasts, the last field moving fastest. `main`: names of the short table.
    """

    axes: Mapping[str, tuple[Any, ...]]
    each: tuple[Forecast, ...]
    main: tuple[str, ...]

    def table(self, everything: bool = False) -> tuple[list[str], list[list[str]]]:
        """Return the head and the rows of a table: a row for each setting, with all predictions or the main ones."""
        kept = [
            p.name for p in self.each[0].predictions if everything or p.name.startswith(self.main or p.name)
        ]
        head = [*self.axes, self.each[0].goal or "success", *kept]
        rows = []
        for place, one in zip(product(*self.axes.values()), self.each, strict=True):
            found = {p.name: one.text(p) + ("*" if p.name in one.vacuous else "") for p in one.predictions}
            success = {True: "yes", False: "no", None: ""}[one.success]
            rows.append([*map(str, place), success, *(found.get(name, "") for name in kept)])
        return head, rows

    def __repr__(self) -> str:
        head, rows = self.table()
        return "\n".join("\t".join(row) for row in (head, *rows))

    def _sheet(self) -> Sheet:
        return Sheet(f"{self.each[0].study}: {' x '.join(self.axes)}", *self.table())

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the main predictions over one field, or success over two."""
        from lemmata.draw.forecasts import forecast_curves, forecast_map

        values = list(self.axes.values())
        require(
            all(isinstance(v, int | float) for one in values for v in one),
            "only fields with numbers are drawn.",
        )
        success = np.array([float("nan") if one.success is None else one.success for one in self.each], float)
        names = list(self.axes)
        if len(names) == 2:
            shape = (len(values[0]), len(values[1]))
            return forecast_map(
                names[0], values[0], names[1], values[1], success.reshape(shape), self.each[0].goal
            )
        kept = [p.name for p in self.each[0].predictions if p.name.startswith(self.main or p.name)]
        curves = {name: [_number(one, name) for one in self.each] for name in kept}
        drawn = {name: ys for name, ys in curves.items() if np.isfinite(ys).sum() > 1}
        return forecast_curves(names[0], values[0], drawn, success, self.each[0].goal)


def _number(one: Forecast, name: str) -> float:
    value = next((p.value for p in one.predictions if p.name == name), float("nan"))
    return float(value) if not isinstance(value, str) else float("nan")


@checks_arguments
def predict(name: str, set: Mapping[str, Any] | None = None) -> Forecast | Forecasts:
    """Predict what the theory of a study says of a setting, without training.

    `name`: the id of a study.
    `set`: fields with their values. The last word of a path is enough where it is unique. One or two fields may have a list of
        values; the answer is then a table.

    >>> predict("benign-overfitting", {"samples": 50}).success
    True
    """
    own = study(name)
    template = own.template()
    given: dict[str, Any] = {}
    for path, value in (set or {}).items():
        full = full_path(template, path)
        require(full not in given, f"'{full}' is set twice.")
        given[full] = _listed(template, full, value)
    axes = {path: tuple(value) for path, value in given.items() if isinstance(value, list)}
    require(len(axes) <= 2, f"at most two fields can have several values, not {', '.join(axes)}.")
    count = math.prod(map(len, axes.values()))
    require(0 < count <= MOST_SETTINGS, f"a table has 1 to {MOST_SETTINGS} settings, not {count}.")
    fixed = {path: value for path, value in given.items() if path not in axes}
    if not axes:
        return _forecast(own, put_all(template, fixed), [*fixed])
    each = [
        _forecast(own, put_all(template, {**fixed, **dict(zip(axes, place, strict=True))}), [*given])
        for place in product(*axes.values())
    ]
    labels = {path: tuple(dict.fromkeys(get(one.trial, path) for one in each)) for path in axes}
    require(
        math.prod(map(len, labels.values())) == len(each), f"a value of {', '.join(axes)} is given twice."
    )
    answer = own.answer
    return Forecasts(labels, tuple(each), answer.main if answer else ())


@checks_arguments
def solve(name: str, path: str, set: Mapping[str, Any] | None = None) -> tuple[str, int | float]:
    """Return a field and its smallest value at which a study predicts success, the other fields as they are set.

    >>> solve("chain-of-thought", "samples")
    Traceback (most recent call last):
    lemmata.errors.BadInput: unknown field 'samples'; ...
    """
    own = study(name)
    require(own.answer is not None, f"'{name}' does not say what success is, so nothing can be solved for.")
    template = own.template()
    changes = {full_path(template, given): value for given, value in (set or {}).items()}
    full = full_path(template, path)
    require(full not in changes, f"'{full}' is set and solved for at the same time.")
    trial = put_all(template, changes)
    found = smallest(own.answer.success, trial, full)  # pyright: ignore[reportOptionalMemberAccess]
    require(
        found is not None,
        f"the study predicts no success at any '{full}' that was tried, up to {SEARCHED:.0e}; change another field.",
    )
    return full, found  # pyright: ignore[reportReturnType]


def smallest(success: Callable[[Any], bool], trial: Any, path: str) -> int | float | None:
    """Return the smallest value of a field at which `success(trial)` is true, or None.

    Values in ratios of about 1.25 are tried from small to large; the first success is then refined by bisection. Values that
    the trial refuses count as no success. Whole numbers are exact, others have three digits.
    """
    start = get(trial, path)
    require(
        isinstance(start, int | float) and not isinstance(start, bool),
        f"'{path}' is {start!r}; only a field with one number can be solved for.",
    )
    whole = isinstance(start, int)

    def works(value: int | float) -> bool:
        try:
            return bool(success(put(trial, path, value)))
        except BadInput:
            return False

    low: int | float | None = None
    for value in _ladder(whole, float(start)):
        if works(value):
            return value if low is None else _between(works, low, value, whole)
        low = value
    return None


def _ladder(whole: bool, start: float) -> list[int | float]:
    if whole:
        return sorted({max(1, round(value)) for value in np.geomspace(1, SEARCHED, 125)})
    middle = abs(start) or 1.0
    return [float(f"{value:.4g}") for value in np.geomspace(middle * 1e-4, middle * 1e4, 83)]


def _between(
    works: Callable[[int | float], bool], low: int | float, high: int | float, whole: bool
) -> int | float:
    while (high - low > 1) if whole else (high / low > 1.0005):
        middle = (low + high) // 2 if whole else math.sqrt(low * high)
        low, high = (low, middle) if works(middle) else (middle, high)
    return high if whole else float(f"{high:.3g}")


@checks_arguments
def full_path(trial: Any, name: str) -> str:
    """Return the dotted path of a field that is named by its path or by the end of it.

    >>> full_path(study("benign-overfitting").template(), "samples")
    'data.samples'
    """
    known = fields(trial)
    if name in known:
        return name
    ends = [path for path in known if path.endswith(f".{name}")]
    require(len(ends) < 2, f"'{name}' is one of {', '.join(ends)}; write the whole path.")
    if not ends:
        raise unknown("field", name, known)
    return ends[0]


def _listed(trial: Any, path: str, value: Any) -> Any:
    """A list of values for a field, where several are given; any other value as it is."""
    if isinstance(get(trial, path), tuple):
        return value
    if isinstance(value, str) and "," in value:
        return value.split(",")
    return list(value) if isinstance(value, list | tuple | range | np.ndarray) else value


def _forecast(own: Study, trial: Any, changed: Sequence[str]) -> Forecast:
    conditions, predictions = own.predict(trial)
    answer, known = own.answer, fields(trial)
    if answer is None:
        inputs = {path: known[path] for path in changed}
        return Forecast(
            own.id,
            trial,
            inputs,
            "",
            None,
            "",
            tuple(conditions),
            tuple(predictions),
            (),
            frozenset(),
            {},
            (),
        )
    inputs = {path: known[path] for path in dict.fromkeys((*answer.inputs, *changed))}
    counts = frozenset(p.name for p in predictions if p.name.startswith(answer.counts or ("\0",)))
    vacuous = {p.name: why for p in predictions if (why := _useless(p, answer, p.name in counts))}
    sentence, success = own.computed(lambda: (answer.sentence(trial), answer.success(trial)))
    record = tuple(sentence for id in answer.claims for sentence in _held_out(own, id))
    return Forecast(
        own.id, trial, inputs, answer.goal, bool(success), sentence,
        tuple(conditions), tuple(predictions), answer.main, counts, vacuous, record,
    )  # fmt: skip


def _useless(one: Prediction, answer: Answer, count: bool) -> str:
    """Why a prediction says nothing; empty if it says something."""
    if isinstance(one.value, str):
        return ""
    if count and one.value > OUT_OF_REACH:
        return "vacuous: no training has so many"
    limit = next((end for name, end in answer.useless_from.items() if one.name.startswith(name)), math.inf)
    return f"vacuous: {limit:.3g} holds without any theorem" if one.value >= limit else ""


def _held_out(own: Study, id: str) -> list[str]:
    """How right a claim was in the published trainings, a sentence for each reading."""
    said = []
    for v in [v for v in own.published if v["id"] == id]:
        reading = f" ({v['reading']})" if v["reading"] else ""
        number = "no number" if v["value"] is None else f"{v['value']:.3g}"
        if None not in (v["low"], v["high"], v["value"]) and v["low"] < v["high"]:
            number += f" [{v['low']:.3g}, {v['high']:.3g}]"
        entry = own.entries[id]
        said.append(f"{id}{reading}: {v['word']}, measured {number}, asked for {entry.holds}.")
    return said


# In words --------------------------------------------------------------------------------------------------------------


def outcome(holds: bool | None) -> str:
    """Return whether a condition is met, in words."""
    return {True: "met", False: "violated", None: "order only"}[holds]


def number_text(value: float, count: bool = False) -> str:
    """Return a number in four digits, or a count rounded up.

    >>> number_text(13.1072), number_text(13.1072, count=True), number_text(9.8e30, count=True)
    ('13.11', '14', '9.8e+30')
    """
    if not count or not math.isfinite(value) or abs(value) > OUT_OF_REACH:
        return f"{value:.4g}"
    return f"{math.ceil(value * (1 - 1e-12)):,}"


def needed(value: int | float | None, what: str) -> str:
    """Return how much is needed, in words.

    >>> needed(32, "samples"), needed(None, "samples")
    ('about 32 samples', 'more samples than were tried')
    """
    return f"more {what} than were tried" if value is None else f"about {number_text(value, True)} {what}"
