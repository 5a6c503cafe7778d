"""A sweep: a template trial, named axes over its fields, and seeds; its cells, and the buckets they fall into."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import Any

import jax

from lemmata.errors import BadInput, require, require_memory
from lemmata.trial import Trial, fields, fitted, identity, put, put_all

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
        return put(trial, self.place, value) if isinstance(self.place, str) else self.place(trial, value)

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
    def cells(self) -> list[Cell]:
        count = math.prod(map(len, self.dims.values()))
        require_memory(count * CELL_BYTES, f"a sweep of {count} cells")
        found, names = [], [a.name for a in self.axes]
        for point in product(*(a.values for a in self.axes)):
            place = dict(zip(names, point, strict=True))
            keep = self.keep
            seeds = [seed for seed in self.seeds if keep is None or keep({**place, "seed": seed})]
            if not seeds:
                continue
            if point not in self._trials:
                trial = self.template
                for a, value in zip(self.axes, point, strict=True):
                    trial = a.apply(trial, value)
                self._trials[point] = trial
            found += [Cell(self._trials[point], seed, place) for seed in seeds]
        return found

    @cached_property
    def _trials(self) -> dict[tuple[Any, ...], Trial]:
        """The trials of the grid points that were asked for so far."""
        return {}

    def with_seeds(self, seeds: Sequence[int]) -> "Sweep":
        """The same grid, its trials not built again, with other seeds."""
        other = replace(self, seeds=tuple(seeds))
        other.__dict__["_trials"] = self._trials
        return other

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
    groups: dict[Any, list[Cell]] = {}
    trial, group = None, []
    for cell in cells:
        if cell.trial is not trial:  # seeds of one grid point share it
            trial = cell.trial
            group = groups.setdefault(jax.tree.structure(trial), [])
        group.append(cell)
    return list(groups.values())
