"""A sweep: a template trial, named axes over its fields, and seeds; its cells, and the buckets they fall into."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, product
from operator import attrgetter
from typing import Any, NamedTuple, overload

import jax
import numpy as np

from lemmata.errors import BadInput, require, require_memory
from lemmata.trial import Trial, fields, fitted, identities, identity, put, put_all

CELL_BYTES = 1000
"""What a cell takes in the memory of the driver, about."""


@dataclass(frozen=True)
class Axis:
    """One named dimension of a sweep.

    `values` label the dimension. `place` puts a value into a trial: a field's dotted path, or a function
    `(trial, value) -> trial` when one axis moves several fields at once.
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

    def apply(self, trial: Any, value: Any) -> Any:
        """The trial with the value in its place. What a function has no use for is bad input: it comes from outside."""
        if isinstance(self.place, str):
            return put(trial, self.place, value)
        try:
            return self.place(trial, value)
        except BadInput:
            raise
        except (LookupError, ArithmeticError, TypeError, ValueError) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(f"axis '{self.name}' cannot be {value!r} for this trial ({why}).") from error

    def moved(self, template: Any) -> set[str]:
        """The fields that the axis decides, whatever the template says."""
        if isinstance(self.place, str):
            return {self.place}
        seen = [fields(template)] + [fields(self.apply(template, value)) for value in self.values]
        return {path for path in seen[0] if any(one.get(path) != seen[0][path] for one in seen[1:])}


def axis(path: str, values: Iterable[Any], name: str | None = None) -> Axis:
    """An axis over one field; its name is the last word of the path."""
    return Axis(
        name or path.rpartition(".")[2], tuple(v.item() if hasattr(v, "item") else v for v in values), path
    )


def geometric(low: float, high: float, count: int) -> tuple[float, ...]:
    """Numbers in equal ratios, in four digits: the last bits of NumPy's logarithms and powers are not the same on every
    processor, and a cell is known by all bits of its numbers.

    >>> geometric(0.1, 10, 5)
    (0.1, 0.3162, 1.0, 3.162, 10.0)
    """
    return tuple(float(f"{number:.4g}") for number in np.geomspace(low, high, count))


@dataclass(frozen=True)
class Cell:
    """A trial at one grid point (`point`: the value of every axis) with one seed."""

    trial: Trial
    seed: int
    point: Mapping[str, Any]

    @property
    def place(self) -> Mapping[str, Any]:
        """Its position in the results, by dimension."""
        return {**self.point, "seed": self.seed}

    @cached_property
    def id(self) -> str:
        return identity(self.trial, self.seed)


class Point(NamedTuple):
    """A grid point with the seeds that are run there."""

    trial: Trial
    place: Mapping[str, Any]
    seeds: tuple[int, ...]


class Cells(Sequence[Cell]):
    """Cells in order, kept as grid points with seeds and made when they are looked at: a million of them take little room."""

    def __init__(self, points: Iterable[Point]):
        self.points = tuple(points)
        self._ends = np.cumsum([len(point.seeds) for point in self.points], dtype=int)

    @staticmethod
    def of(cells: Iterable[Cell]) -> "Cells":
        """Cells that were made already."""
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
        """The cells at these places."""
        which = self.which(places)
        behind = places - self._ends[which]  # the places of their seeds, counted from the last
        found = []
        for number, seed in zip(which.tolist(), behind.tolist(), strict=True):
            trial, place, seeds = self.points[number]
            found.append(Cell(trial, seeds[seed], place))
        return found

    def named(self, ids: np.ndarray) -> list[Cell] | None:
        """The cells with these identities; nothing where one of them is not here."""
        if not len(self):
            return None
        at = np.searchsorted(self.ids, ids, sorter=self._by_id)
        places = self._by_id[np.minimum(at, len(self) - 1)]
        return self.at(places) if np.array_equal(self.ids[places], ids) else None

    @property
    def trials(self) -> Iterator[Trial]:
        """The trial of every grid point."""
        return (point.trial for point in self.points)

    def which(self, places: np.ndarray) -> np.ndarray:
        """The grid points (by number) of the cells at these places."""
        return np.searchsorted(self._ends, places, side="right")

    @cached_property
    def structures(self) -> tuple[list[Trial], np.ndarray]:
        """A trial of every structure, and which of them the trial of each grid point has: one compiled program each."""
        found: dict[Any, tuple[int, Trial]] = {}
        which = [found.setdefault(jax.tree.structure(t), (len(found), t))[0] for t in self.trials]
        return [trial for _, trial in found.values()], np.array(which, int)

    @cached_property
    def ids(self) -> np.ndarray:
        """The identities of all cells, as numbers."""
        found = [identities(point.trial, point.seeds) for point in self.points]
        return np.frombuffer(b"".join(found), ">u8").astype(np.uint64)

    @cached_property
    def _by_id(self) -> np.ndarray:
        return np.argsort(self.ids)


@dataclass(frozen=True)
class Sweep:
    """A template trial, axes over it, and seeds. `keep` leaves out places (grid values and seed) that a
    figure does not need."""

    template: Trial
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    keep: Callable[[Mapping[str, Any]], bool] | None = None

    def __post_init__(self):
        names = [a.name for a in self.axes]
        require(
            len(set(names)) == len(names), f"two axes of the sweep have the same name: {', '.join(names)}."
        )
        require(len(self.seeds) > 0, "a sweep needs at least one seed.")

    @property
    def dims(self) -> dict[str, tuple[Any, ...]]:
        """The dimensions of the results, in order, with their labels."""
        return {a.name: a.values for a in self.axes} | {"seed": self.seeds}

    @cached_property
    def cells(self) -> Cells:
        count = math.prod(map(len, self.dims.values()))
        require_memory(count * CELL_BYTES, f"a sweep of {count} cells")
        return Cells(self._points())

    def _points(self) -> Iterator[Point]:
        names, keep = [a.name for a in self.axes], self.keep
        made: list[Any] = [
            self.template
        ]  # with the values of no axis of the last point, of the first one, and so on
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
                    made.append(a.apply(made[-1], value))
                last = point
                yield Point(made[-1], place, seeds)

    def with_seeds(self, seeds: Sequence[int]) -> "Sweep":
        return replace(self, seeds=tuple(seeds))

    def with_fields(self, changes: Mapping[str, Any]) -> "Sweep":
        """The sweep with fields overridden, all at once: of the template, or the whole axis where a field is swept.

        A swept field takes one value or a comma-separated list ('2,4,8').
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
    """A value given as text, brought to the type of the labels of the axis."""
    try:
        return type(a.values[0])(value)
    except (TypeError, ValueError):
        raise BadInput(f"axis '{a.name}' takes values like {a.values[0]!r}, not {value!r}.") from None


def buckets(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells grouped by the structure of their trials: each group shares one compiled program."""
    cells = Cells.of(cells)
    trials, kinds = cells.structures
    group = kinds[cells.which(np.arange(len(cells)))]
    return [cells.at(np.flatnonzero(group == number)) for number in range(len(trials))]
