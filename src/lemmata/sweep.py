"""Sweeps: a template trial, named axes over its fields, and seeds. A sweep gives cells, which are grouped into buckets."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, product
from operator import attrgetter
from typing import Any, NamedTuple, overload

import jax
import numpy as np

from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, require, require_memory, shortened
from lemmata.names import name_of
from lemmata.notebook import Sheet, Shown, html, labels_text
from lemmata.trial import (
    Trial,
    changed_trial,
    fields,
    fitted,
    get,
    identities,
    identity,
    kind,
    put_all,
    require_fields,
    require_seeds,
)

CELL_BYTES = 1000
"""About how many bytes a cell takes in the memory of the driver."""

POINT_BYTES = 8000
"""About how many bytes a grid point takes, which holds a trial."""


@checks_arguments
@dataclass(frozen=True)
class Axis:
    """One named dimension of a sweep.

    `name`: the name of the dimension in the results.
    `values`: the labels of the dimension.
    `place`: the dotted path of the field to set, or a function `(trial, value) -> trial` that changes several fields.

    >>> from lemmata.trial import put_all
    >>> both = Axis("samples", (4, 8), lambda trial, n: put_all(trial, {"data.samples": n, "data.dim": 10 * n}))
    >>> from lemmata import study
    >>> both.apply(study("benign-overfitting").template(), 8).data.dim
    80
    """

    name: str
    values: tuple[Any, ...]
    place: str | Callable[[Any, Any], Any]

    def __post_init__(self):
        require(len(self.values) > 0, f"axis '{self.name}' has no values.")
        bad = [v for v in self.values if isinstance(v, float) and not math.isfinite(v)]
        require(
            not bad, f"axis '{self.name}' holds {bad[0] if bad else ''}; every grid value must be finite."
        )
        try:
            twice = len(set(self.values)) < len(self.values)
        except TypeError:
            raise BadInput(
                f"axis '{self.name}' takes numbers, words or tuples, not {self.values!r}."
            ) from None
        require(not twice, f"axis '{self.name}' holds a value twice.")

    @checks_arguments
    def apply(self, trial: Trial, value: Any) -> Any:
        """Return the trial with this value of the axis. Raises `BadInput` if the function of the axis cannot use the value."""
        return self._applied(trial, value)

    def _applied(self, trial: Trial, value: Any) -> Trial:
        """As `apply`, without checks of the arguments, because it is called for every grid point of a sweep."""
        if isinstance(self.place, str):
            return changed_trial(trial, {self.place: value})
        try:
            changed = self.place(trial, value)
        except BadInput:
            raise
        except (LookupError, ArithmeticError, TypeError, ValueError) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(f"axis '{self.name}' cannot be {value!r} for this trial ({why}).") from error
        require(
            isinstance(changed, Trial),
            f"the function of axis '{self.name}' must return a trial, not {shortened(changed)}.",
        )
        return changed

    @checks_arguments
    def moved(self, template: Trial) -> set[str]:
        """Return the fields that the axis sets."""
        if isinstance(self.place, str):
            return {self.place}
        seen = [fields(template)] + [fields(self._applied(template, value)) for value in self.values]
        return {path for path in seen[0] if any(one.get(path) != seen[0][path] for one in seen[1:])}


@checks_arguments
def axis(path: str, values: Iterable[Any], name: str | None = None) -> Axis:
    """Make an axis over one field.

    `path`: the dotted path of the field.
    `values`: the values that it takes.
    `name`: the name of the dimension in the results; by default the last word of the path.

    >>> axis("data.samples", (4, 8))
    Axis(name='samples', values=(4, 8), place='data.samples')
    """
    return Axis(name or path.rpartition(".")[2], tuple(map(_plain_value, values)), path)


def _plain_value(value: Any) -> Any:
    """Convert a number of NumPy or JAX to one of Python. Other values are returned as they are."""
    return value.item() if getattr(value, "shape", None) == () else value


def geometric(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return numbers in equal ratios, rounded to four digits.

    The identity of a cell depends on all bits of its numbers, and the last bits of NumPy's powers depend on the processor.

    >>> geometric(0.1, 10, 5)
    (0.1, 0.3162, 1.0, 3.162, 10.0)
    """
    return tuple(float(f"{number:.4g}") for number in np.geomspace(low, high, count))


@dataclass(frozen=True)
class Cell:
    """A trial at one grid point with one seed. `point` holds the value of every axis."""

    trial: Trial
    seed: int
    point: Mapping[str, Any]

    @property
    def place(self) -> Mapping[str, Any]:
        """The labels of the cell in the results, by dimension."""
        return {**self.point, "seed": self.seed}

    @cached_property
    def id(self) -> str:
        return identity(self.trial, self.seed)


class Point(NamedTuple):
    """A grid point: its trial, the value of every axis, and the seeds that are run there."""

    trial: Trial
    place: Mapping[str, Any]
    seeds: tuple[int, ...]


class Cells(Sequence[Cell]):
    """A sequence of cells. It stores grid points with seeds and makes cells on access: a million take little memory."""

    def __init__(self, points: Iterable[Point]):
        self.points = tuple(points)
        self._ends = np.cumsum([len(point.seeds) for point in self.points], dtype=int)

    @staticmethod
    def of(cells: Iterable[Cell]) -> "Cells":
        """Return cells as `Cells`."""
        if isinstance(cells, Cells):
            return cells
        runs = (list(run) for _, run in groupby(cells, lambda cell: (id(cell.trial), id(cell.point))))
        return Cells(Point(run[0].trial, run[0].point, tuple(cell.seed for cell in run)) for run in runs)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.points else 0

    def __iter__(self) -> Iterator[Cell]:
        return (Cell(trial, seed, place) for trial, place, seeds in self.points for seed in seeds)

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        places = np.arange(len(self))[index]
        return self.at(places) if isinstance(index, slice) else self.at(places[None])[0]

    def at(self, places: np.ndarray) -> list[Cell]:
        """Return the cells at these indices."""
        which = self.which(places)
        behind = places - self._ends[which]  # indices of their seeds, counted from the last one
        found = []
        for number, seed in zip(which.tolist(), behind.tolist(), strict=True):
            trial, place, seeds = self.points[number]
            found.append(Cell(trial, seeds[seed], place))
        return found

    def named(self, ids: np.ndarray) -> list[Cell] | None:
        """Return the cells with these identities, or None if one of them is not here."""
        if not len(self):
            return None
        at = np.searchsorted(self.ids, ids, sorter=self._by_id)
        places = self._by_id[np.minimum(at, len(self) - 1)]
        return self.at(places) if np.array_equal(self.ids[places], ids) else None

    @property
    def trials(self) -> Iterator[Trial]:
        """Yield the trial of every grid point."""
        return (point.trial for point in self.points)

    def which(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers of the grid points of the cells at these indices."""
        return np.searchsorted(self._ends, places, side="right")

    @cached_property
    def structures(self) -> tuple[list[Trial], np.ndarray]:
        """Return one trial of each structure, and for each grid point the number of its structure."""
        found: dict[Any, tuple[int, Trial]] = {}
        which = [found.setdefault(jax.tree.structure(t), (len(found), t))[0] for t in self.trials]
        return [trial for _, trial in found.values()], np.array(which, int)

    @cached_property
    def ids(self) -> np.ndarray:
        """The identities of all cells, as numbers of 64 bits."""
        found = [identities(point.trial, point.seeds) for point in self.points]
        return np.frombuffer(b"".join(found), ">u8").astype(np.uint64)

    @cached_property
    def _by_id(self) -> np.ndarray:
        return np.argsort(self.ids)


def _trial_sheet(trial: Trial) -> Sheet:
    """Return the settable fields of a trial, those that differ from the default first."""
    default = _defaults(type(trial))
    rows = []
    for path, value in fields(trial).items():
        name = name_of(type(trial), path)
        rows.append((path, str(value), str(default.get(path, "")), name.meaning, name.symbol))
    rows.sort(key=lambda row: row[1] == row[2])
    return Sheet(kind(trial), ("field", "value", "default", "meaning", "symbol"), rows)


def _defaults(kind_of_trial: type[Trial]) -> Mapping[str, Any]:
    """Return the fields of a trial made without arguments, or nothing if the class needs arguments."""
    try:
        return fields(kind_of_trial())
    except (BadInput, TypeError):
        return {}


Trial._repr_html_ = lambda trial: html(_trial_sheet(trial))  # pyright: ignore[reportAttributeAccessIssue]
# Set here, as the text of `trial.py` is part of the digest of every record, and a table changes no record.


@checks_arguments
@dataclass(frozen=True)
class Sweep(Shown):
    """A grid of cells.

    `template`: the trial whose fields the axes set.
    `axes`: the dimensions of the grid.
    `seeds`: the seeds that are run at every grid point.
    `keep`: a function of the labels of a cell, by dimension; cells for which it returns False are left out.

    >>> from lemmata import study
    >>> sweep = Sweep(study("benign-overfitting").template(), (axis("data.samples", (4, 8)),), seeds=(0, 1, 2))
    >>> len(sweep.cells), sweep.dims
    (6, {'samples': (4, 8), 'seed': (0, 1, 2)})
    """

    template: Trial
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    keep: Callable[[Mapping[str, Any]], bool] | None = None

    def __post_init__(self):
        names = [a.name for a in self.axes]
        require(
            len(set(names)) == len(names), f"two axes of the sweep have the same name: {', '.join(names)}."
        )
        require(
            "seed" not in names, "'seed' cannot be the name of an axis: it is the dimension of the seeds."
        )
        require(len(self.seeds) > 0, "a sweep needs at least one seed.")
        require(len(set(self.seeds)) == len(self.seeds), "the sweep holds a seed twice.")
        require_seeds(*self.seeds)
        require_fields(self.template)
        for one in self.axes:
            if not isinstance(one.place, str):
                break  # its function may return another kind of trial, with other fields
            get(self.template, one.place)  # refuses a path that does not exist

    def __repr__(self) -> str:
        grid = " x ".join(f"{name} ({labels_text(labels)})" for name, labels in self.dims.items())
        return f"Sweep of {kind(self.template)}: {grid}"

    def _sheet(self) -> Sheet:
        rows = [(name, str(len(labels)), labels_text(labels)) for name, labels in self.dims.items()]
        programs = len(self.cells.structures[0])
        title = f"Sweep of {kind(self.template)}: {len(self.cells)} trainings in {programs} programs"
        return Sheet(title, ("dimension", "size", "labels"), rows, f"{self.template}")

    @property
    def dims(self) -> dict[str, tuple[Any, ...]]:
        """The dimensions of the results, in order, with their labels."""
        return {a.name: a.values for a in self.axes} | {"seed": self.seeds}

    @cached_property
    def cells(self) -> Cells:
        count = math.prod(map(len, self.dims.values()))
        points = count // len(self.seeds)
        require_memory(count * CELL_BYTES + points * POINT_BYTES, f"a sweep of {count} cells")
        return Cells(self._points())

    def _points(self) -> Iterator[Point]:
        names, keep = [a.name for a in self.axes], self.keep
        made: list[Any] = [self.template]  # the last point: without axes, with the first one, and so on
        last: tuple[Any, ...] = ()
        for point in product(*(a.values for a in self.axes)):
            place, seeds = dict(zip(names, point, strict=True)), self.seeds
            if keep is not None:
                seeds = tuple(seed for seed in seeds if keep({**place, "seed": seed}))
            if seeds:
                same = next(
                    (k for k, (old, new) in enumerate(zip(last, point, strict=False)) if old is not new),
                    len(last),
                )
                del made[same + 1 :]
                for a, value in zip(self.axes[same:], point[same:], strict=True):
                    made.append(a._applied(made[-1], value))
                last = point
                yield Point(made[-1], place, seeds)

    @checks_arguments
    def with_seeds(self, seeds: Sequence[int]) -> "Sweep":
        return replace(self, seeds=tuple(seeds))

    @checks_arguments
    def with_fields(self, changes: Mapping[str, Any]) -> "Sweep":
        """Return the sweep with some fields changed, all at once.

        A field of an axis takes one value or a comma-separated list ('2,4,8'), which replaces the values of the axis.
        """
        swept = {name: a for a in self.axes for name in (a.name, a.place) if isinstance(name, str)}
        for path in changes:
            mover = next((a for a in self.axes if path not in swept and path in a.moved(self.template)), None)
            require(
                mover is None,
                f"'{path}' is moved by the axis '{mover.name if mover else ''}' of this sweep; set that axis instead, "
                f"for example {mover.name if mover else ''}={mover.values[0] if mover else ''}.",
            )
        template = put_all(self.template, {path: v for path, v in changes.items() if path not in swept})
        given: dict[str, Any] = {}
        for path in [path for path in changes if path in swept]:
            name = swept[path].name
            require(name not in given, f"the axis '{name}' is given twice, once as '{path}'.")
            given[name] = changes[path]
        axes = [_relabelled(a, template, given[a.name]) if a.name in given else a for a in self.axes]
        return replace(self, template=template, axes=tuple(axes))


def _relabelled(a: Axis, template: Trial, value: Any) -> Axis:
    values = value.split(",") if isinstance(value, str) else value
    values = list(values) if isinstance(values, list | tuple) else [values]
    if isinstance(a.place, str):
        owner, _, name = a.place.rpartition(".")
        part = attrgetter(owner)(template) if owner else template
        return replace(a, values=tuple(fitted(v, part, name) for v in values))
    return replace(a, values=tuple(_like(v, a) for v in values))


def _like(value: Any, a: Axis) -> Any:
    """Convert a value given as text to the type of the labels of the axis."""
    try:
        return type(a.values[0])(value)
    except (TypeError, ValueError):
        raise BadInput(f"axis '{a.name}' takes values like {a.values[0]!r}, not {value!r}.") from None


def buckets(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group cells by the structure of their trials. Each group shares one compiled program."""
    cells = Cells.of(cells)
    trials, kinds = cells.structures
    group = kinds[cells.which(np.arange(len(cells)))]
    return [cells.at(np.flatnonzero(group == number)) for number in range(len(trials))]
