"""Small trials for tests of the lab itself, with answers that one can work out on paper."""

import os
from typing import ClassVar

import jax
import jax.numpy as jnp

from lemmata.lab.plan import plan
from lemmata.lab.pool import Pool
from lemmata.lab.work import run_chunk
from lemmata.source import digests
from lemmata.trial import Computed, Descending, Precision, fixed


class Decay(Descending):
    """x <- (1 - rate) x from x = 1: below `target` after log(target)/log(1 - rate) steps; diverges for rate > 2."""

    name: ClassVar = "toys/decay"
    dims: ClassVar = {"pair": ("which",)}

    rate: float = 0.5
    target: float = 1e-3
    cap: int = fixed(default=100)
    precision: Precision = fixed(default="float64")

    @property
    def steps(self):
        return self.cap

    @property
    def log_steps(self):
        return (0, 1, 2, 5, 10, 50, 100)

    def start(self, key):
        return jnp.ones((), self.precision), jax.random.uniform(key, (), self.precision)

    def step(self, state):
        x = state[0] * (1 - self.rate)
        return jnp.where(jnp.abs(x) > 1e6, jnp.nan, x), state[1]

    def loss(self, state):
        return jnp.abs(state[0])

    def finished(self, state):
        return self.loss(state) <= self.target

    def watch(self, state):
        return {"x": state[0]}

    def record(self, state):
        return {"x": state[0], "draw": state[1], "pair": jnp.stack([state[0], state[1]])}


class Square(Computed):
    """A plain function: the square of a number; raises for negative ones, kills its process where told to."""

    name: ClassVar = "toys/square"

    value: float = 0.0
    deadly: bool = fixed(default=False)

    def compute(self, key):
        if self.deadly:
            os._exit(1)
        if self.value < 0:
            raise ValueError("negative")
        return {"square": self.value**2}


class Broken(Decay):
    """Fails in one of its functions where the rate is a half."""

    name: ClassVar = "toys/broken"

    function: str = fixed(default="start")

    def start(self, key):
        self.fail("start")
        return super().start(key)

    def step(self, state):
        self.fail("step")
        return super().step(state)

    def record(self, state):
        self.fail("record")
        return super().record(state)

    def fail(self, function):
        if function == self.function:
            raise ArithmeticError(f"no {function}")


class Odd(Computed):
    """Gives records that cannot be kept, and some that can."""

    name: ClassVar = "toys/odd"

    kind: str = fixed(default="fine")

    def compute(self, key):
        return {
            "fine": {"x": 1.0},
            "text": {"x": "one"},
            "object": {"x": [1, [2, 3]]},
            "none": {"x": None},
            "slash": {"a/b": 1.0},
            "dots": {"..": 1.0},
            "surrogate": {"\ud800": 1.0},
            "status": {"status": 1},
            "not a mapping": [1.0],
            "complex": {"z": 1 + 2j},
            "number as name": {1: 1.0},
            "bfloat16": {"x": jnp.ones((), jnp.bfloat16)},
        }[self.kind]


def drive(sweep, store, pool=None, manifest=None):
    """Carry out what is missing of a sweep, as the lab does, and give the number of cells of every write."""
    cells = sweep.cells
    with store.locked(), pool or Pool() as used:
        store.create(manifest or {})
        planned = plan(cells, used.workers, store.done(digests(cells.trials)))
        for chunk, result in used.run(run_chunk, planned, home=store.path):
            outcomes = planned.record_result(chunk, result)
            store.write(outcomes, chunk.width)
            yield len(outcomes)


def cores(_):
    """Where this process may run."""
    return os.sched_getaffinity(0)
