"""Where descent ends from many starts around W*: the experiment behind the maps of sample complexity (Figures 4.2,
4.3)."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.errors import require
from lemmata.own import Taken, require_between
from lemmata.studies.group_imbalance.data import Population, World
from lemmata.studies.group_imbalance.network import (
    Newton,
    aligned,
    arrived,
    gradients,
    newton_begin,
    newton_step,
)
from lemmata.studies.group_imbalance.trials.descents import around
from lemmata.trial import Descending, Key, Precision, fixed


class State(NamedTuple):
    search: Newton
    data: tuple[Float[Array, "samples dim"], Float[Array, " samples"]]
    world: World
    step_size: Float[Array, ""]


class Starts(Descending):
    """`starts` random points at distance `radius` of W*, each followed to its critical point on the same samples.

    `solver=newton` goes there by Newton steps; `descent` by gradient descent with the step 1 / lambda_max of the
    Hessian at the first start, as Algorithm 1 does. The spread is V_W = sqrt(mean_m |W^(m) - mean|_F^2), columns
    aligned to W*."""

    name: ClassVar = "group-imbalance/starts"
    lockstep: ClassVar = False
    paired: ClassVar = ("solver", "most_steps", "tolerance")

    population: Population = Population()
    radius: float = 0.1
    tolerance: float = 1e-8
    starts: int = fixed(default=20)
    solver: Literal["newton", "descent"] = fixed(default="newton")
    most_steps: int = fixed(default=60)
    precision: Precision = fixed(default="float64")

    def __check_init__(self):
        require(self.starts > 1, f"a spread needs at least two starts, not {self.starts}.")
        require(self.radius > 0, f"the starts need a positive radius, not {self.radius}.")
        require(self.most_steps > 0, f"a search needs at least one step, not {self.most_steps}.")

    @property
    def steps(self) -> int:
        return self.most_steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return (0,)

    def world(self, key: Key) -> World:
        """Mixture and teacher of the run with this key."""
        return self.population.world(jax.random.split(key, 3)[0])

    def start(self, key: Key) -> State:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """Inputs and labels of any number of samples, and one matrix of weights a start."""
        drawn = jax.eval_shape(lambda: self.start(key))
        return Taken(drawn.data, drawn.search.weights, any_number=True)

    def check_own(self, data: tuple[Array, Array] | None, weights: Array | None) -> None:
        if data is not None:
            require_between("data[1] (labels)", data[1], 0, 1)

    def start_from(
        self, key: Key, data: tuple[Array, Array] | None = None, weights: Array | None = None
    ) -> State:
        world_key, data_key, start_key = jax.random.split(key, 3)
        world = self.population.world(world_key)
        data = self.population.draw(data_key, world)[:2] if data is None else data
        keys = jax.random.split(start_key, self.starts)
        near = world.teacher + jax.vmap(lambda k: around(k, world.teacher.shape, self.radius))(keys)
        search = newton_begin(near if weights is None else weights, *data, self.population.activation)
        return State(search, data, world, 1 / jnp.linalg.eigvalsh(search.here.hessian[0])[-1])

    def step(self, state: State) -> State:
        (inputs, labels), kind = state.data, self.population.activation
        if self.solver == "newton":
            return state._replace(search=newton_step(state.search, inputs, labels, self.tolerance, kind))
        search = state.search
        weights = search.weights - state.step_size * search.here.gradient
        _, gradient = gradients(weights, inputs, labels, kind, valued=False)
        here = search.here._replace(gradient=gradient)
        return state._replace(search=search._replace(weights=weights, here=here, steps=search.steps + 1))

    def loss(self, state: State) -> Float[Array, ""]:
        """The mean square of the gradients: a descent has no other use for the risk, and does not compute it."""
        return jnp.mean(state.search.here.gradient**2)

    def finished(self, state: State) -> Bool[Array, ""]:
        return jnp.all(arrived(state.search, self.tolerance))

    def watch(self, state: State) -> dict[str, Array]:
        return {"slope": self.loss(state)}

    def record(self, state: State) -> dict[str, Array]:
        ends = aligned(state.search.weights, state.world.teacher)
        mean = jnp.mean(ends, 0)
        away = jnp.sqrt(jnp.sum((ends - state.world.teacher) ** 2, (1, 2)))
        return {
            "init_spread": jnp.sqrt(jnp.mean(jnp.sum((ends - mean) ** 2, (1, 2)))),
            "error": jnp.median(away),
            "arrived": jnp.mean(arrived(state.search, self.tolerance), dtype=ends.dtype),
            "largest_gradient": jnp.max(jnp.sqrt(jnp.sum(state.search.here.gradient**2, (1, 2)))),
        }
