"""The shape of a workload: a figure of the lab, the step of its trainings written plainly, what a step must cost by the
formulas, along which sizes it grows, and what else is measured. Everything else is made from this (`measure`, `peers`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.study import studies
from lemmata.threefry import key_of
from lemmata.trial import Descending, Key, put, put_all, with_precision

Arrays = dict[str, Any]
Sizes = Mapping[str, int]


class Plain(NamedTuple):
    """One run as a plain program has it: weights by name, what its first steps see (one entry: the same in every step), and
    the step size of each weight."""

    weights: Arrays
    batches: list[Arrays]
    rates: dict[str, float]


class Work(NamedTuple):
    """What one step of one run must do, by the formulas: operations of its products, numbers that it reads and writes at
    least once, in bytes, random words that it draws, and exponentials (or logarithms) that it takes."""

    operations: float
    bytes: float
    words: float = 0
    exponentials: float = 0


class Measure(NamedTuple):
    """A number that only one workload has."""

    value: float
    unit: str
    aim: str = ""


@dataclass(frozen=True)
class Simulator:
    """A way in which the lab follows a training: `trial(steps, **sizes)`, the sizes it is measured at, what a step must do
    there (`work(**sizes)`), and the sizes along which its steps grow, each with the values it takes."""

    trial: Callable[..., Descending]
    sizes: Sizes
    work: Callable[..., Work]
    growth: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Step(Simulator):
    """The step of a training, for the lab (by the simulator of its figure) and for its peers.

    `plain(trial, key, state, count)` is the lab's run (this key, this initial state) as a plain program has it, with `count`
    batches; the two losses are functions of weights and a batch. `loss` reads the loss of an iterate off the lab's state.
    `runs` advance together where peers can do that. Where the lab has several simulators, `simulator` names this one, and
    `others` has the rest by name: how their steps grow is measured, too.
    """

    tiny: Sizes
    plain: Callable[[Any, Key, Any, int], Plain]
    jax_loss: Callable[[Arrays, Arrays], Any]
    torch_loss: Callable[[Arrays, Arrays], Any]
    loss: Callable[[Any, Any], Any] = lambda trial, state: trial.loss(state)
    runs: int = 8
    simulator: str = ""
    others: Mapping[str, Simulator] = field(default_factory=dict)

    @property
    def simulators(self) -> dict[str, Simulator]:
        """All by name, that of the figure first."""
        return {self.simulator: self, **self.others}


@dataclass(frozen=True)
class Command:
    """What follows `lemmata run FIGURE`, and what its trainings cost peers: the sizes where they are not those of the step, and
    an axis along which they change (with the values at which peers are timed). Not `charged`: peers go another way, and
    their steps cannot be counted from the lab's."""

    flags: tuple[str, ...]
    sizes: Sizes = field(default_factory=dict)
    along: tuple[str, tuple[int, ...]] | None = None
    charged: bool = True


@dataclass(frozen=True)
class Workload:
    """`about` is what the README says of it beside its numbers. `short` takes a minute or less, `paper` is the size of the
    paper. `extra(paper)` measures what only this workload has."""

    about: str
    figure: str = ""
    short: Command | None = None
    paper: Command | None = None
    step: Step | None = None
    extra: Callable[[bool], dict[str, Measure]] | None = None


def names() -> list[str]:
    return [*studies(), "swarm"]


def workload(name: str) -> Workload:
    return import_module(f"benchmarks.{name.replace('-', '_')}").WORKLOAD


def batch_keys(state: Any, count: int) -> tuple[Key, list[Any]]:
    """The key that a learner makes its batches from, and the numbers of its first steps."""
    return key_of(state.key), [jnp.asarray(n, jnp.int32) for n in range(count)]


def changed(trial: Callable[..., Descending], fields: Mapping[str, Any]) -> Callable[..., Descending]:
    """The same trials with other fields."""
    return lambda steps, **sizes: put_all(trial(steps, **sizes), fields)


def by_tokens(trial: Any) -> Any:
    """The same trial with the simulator that keeps tokens and weights as they are."""
    declared = jax.tree.map(lambda leaf: leaf.item(), trial)
    return with_precision(put(declared, "simulator", "tokens"))


def plainly(tree: Any) -> Any:
    """As NumPy has it."""
    return jax.tree.map(np.asarray, tree)
