"""One training of the graph convolution with a sampled graph at every step: the practical setting of the experiments
(section 5.4) and Algorithm 2 in full."""

from functools import cached_property
from math import log
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from lemmata.descent import Descent, Trained
from lemmata.errors import require
from lemmata.kernels import kernel, refuse_unless
from lemmata.own import Taken, require_between
from lemmata.studies.gcn_sampling import network
from lemmata.studies.gcn_sampling.data import (
    ChungLu,
    DegreeGroups,
    FileGroups,
    OwnGraph,
    World,
    aggregate,
    check_own_graph,
)
from lemmata.studies.gcn_sampling.network import Weights
from lemmata.studies.gcn_sampling.network.fields import Field, field_outputs, in_field, rooms_for, whole_field
from lemmata.studies.gcn_sampling.trials.samplers import (
    ROWS,
    SCALED,
    Sampler,
    Sampling,
    factors,
    kept,
    sample_counts,
    words_of,
)
from lemmata.threefry import key_of
from lemmata.trial import Key, Precision, Record, fixed


class Algorithm(eqx.Module):
    """The parts of Algorithm 2 that the practical setting leaves out, sized by Table 5.1 (D.2) for accuracy eps_0 and size C_0.

    In every step W^rho and V^rho (of spread sigma_w, sigma_v) are added, random signs Sigma turn the learnt part, W Sigma and
    Sigma V, all is scaled by sqrt(lambda_t), lambda_t = (1 - eta)^t after t rounds of `inner` steps, and
    lambda_w |sqrt(lambda_t) W|_{2,4}^4 + lambda_v |sqrt(lambda_t) V|_F^2 is added to the loss. At the end the best of
    `output_draws` draws of noise and signs is taken, by its loss on the labelled nodes.
    """

    accuracy: float = 0.01
    size: float = 30.0
    inner: int = fixed(default=100)
    output_draws: int = fixed(default=4)

    def __check_init__(self):
        require(0 < self.accuracy <= 1, f"the accuracy eps_0 lies in (0, 1], not {self.accuracy}.")
        require(self.size > 0, f"the size C_0 is positive, not {self.size}.")
        require(
            self.inner >= 1 and self.output_draws >= 1, "a round has at least one step, the output one draw."
        )

    def noise(self, width: int) -> tuple[float, float]:
        """sigma_w = m^-(1 - 0.01) and sigma_v = m^-(1/2 + 0.01)."""
        return width**-0.99, width**-0.51

    def regularisers(self, width: int) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """lambda_w = 2 eps_0 m^(3 - 0.02) / C_0^4 and lambda_v = 2 eps_0 m^0.01."""
        eps, size = jnp.asarray(self.accuracy), jnp.asarray(self.size)
        return 2 * eps * width**2.98 / size**4, 2 * eps * width**0.01


class State(NamedTuple):
    """Weights on their way and at the start, the memory of the optimiser, the world, the loss of the last batch, and how
    many nodes the fields of the batches had."""

    weights: Weights
    begun: Weights
    memory: PyTree
    world: World
    key: Array
    step: Int[Array, ""]
    loss: Float[Array, ""]
    seen: Float[Array, ""]


Moved = tuple[Weights, PyTree, Float[Array, ""], Float[Array, ""]]
"""Weights and memory of the optimiser after a step, the loss of its batch, and how many nodes it looked at."""


class Training(Trained):
    """SGD on half the squared error (for the classes of a file: their cross-entropy) of `labels` labelled nodes, `passes` steps
    for each of them (or `budget` steps), batches drawn with replacement, the graph sampled anew in every step.

    `scaling` is p*, `rates` S_l/N_l. `parametrisation`: `document` trains W and V, with frozen readout and biases;
    `conventional` trains the readout too and has no biases. `engine`: `field` computes where the batch looks, `whole`
    everywhere (for comparison). Dropout (both hidden layers, entry by entry, survivors scaled up, none in the test) stands
    for Sigma in the practical setting; `full` is Algorithm 2.
    """

    name: ClassVar[str] = "gcn-sampling/training"
    paired: ClassVar[tuple[str, ...]] = (
        "graph", "sampler", "scaling", "rates", "engine", "precision", "mode", "algorithm", "dropout", "labels", "width",
        "passes", "budget", "descent",
    )  # fmt: skip
    lockstep: ClassVar[bool] = False

    graph: DegreeGroups | ChungLu | FileGroups = DegreeGroups()
    sampler: Sampler = fixed(default="groups")
    scaling: tuple[float, ...] = (0.7, 0.3)
    rates: tuple[float, ...] = (0.9, 0.9)
    width: int = fixed(default=500)
    labels: int = 1500
    dropout: float = 0.4
    passes: int = 4
    budget: int = 0
    mode: Literal["practical", "full"] = fixed(default="practical")
    algorithm: Algorithm = Algorithm()
    parametrisation: Literal["document", "conventional"] = fixed(default="document")
    engine: Literal["field", "whole"] = fixed(default="field")
    descent: Descent = Descent(
        loss="squared",
        learning_rate=1e-3,
        batches="with-replacement",
        batch=5,
        stop="cap",
        steps=8000,
        logs=7,
        spacing="even",
    )
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        groups, nodes = len(self.graph.sizes), self.graph.nodes
        require(
            len(self.scaling) == len(self.rates) == groups,
            f"scaling and rates take one number for each of {groups} groups, not {len(self.scaling)} and {len(self.rates)}.",
        )
        for rate in self.rates:
            require(0 < rate <= 1, f"a sampling rate S_l/N_l lies in (0, 1], not {rate}.")
        require(min(self.scaling) >= 0, f"p* is not negative, but {min(self.scaling)} was given.")
        require(
            self.descent.batch <= self.labels < nodes,
            f"the labelled nodes are at least a batch ({self.descent.batch}) and fewer than all {nodes}, not {self.labels}.",
        )
        require(
            self.descent.loss == "squared"
            or (self.descent.loss == "cross-entropy" and isinstance(self.graph, FileGroups)),
            f"the loss is squared, or cross-entropy for the classes of a graph file, not {self.descent.loss}.",
        )
        require(self.width >= 1, f"the network has at least one neuron a layer, not {self.width}.")
        require(0 <= self.dropout < 1, f"the share dropped lies in [0, 1), not {self.dropout}.")
        require(
            self.passes >= 1 and self.budget >= 0,
            "passes is at least 1, budget not negative (0: passes x labels).",
        )
        require(
            bool(self.wanted <= self.descent.steps),
            f"{self.wanted} steps are wanted, but descent.steps stops at {self.descent.steps}; raise it.",
        )

    @property
    def wanted(self) -> int | Array:
        """The steps of this training; `descent.steps` caps those of a whole sweep, in which one program serves all."""
        planned = self.passes * self.labels
        return (
            jnp.where(self.budget > 0, self.budget, planned)
            if isinstance(planned, Array)
            else self.budget or planned
        )

    @cached_property
    def dtype(self) -> jnp.dtype:
        return jnp.dtype(self.precision)

    # Start and step ----------------------------------------------------------------------------------------------------

    def start(self, key: Key) -> State:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """An `OwnGraph` with any number of edges, and weights."""
        drawn = jax.eval_shape(lambda: self.start(key))
        world, pairs = drawn.world, jax.ShapeDtypeStruct((1, 2), jnp.int32)
        form = OwnGraph(pairs, world.features, world.labels, world.order)  # pyright: ignore[reportArgumentType]  (shapes in place of arrays)
        return Taken(form, drawn.weights, any_number=OwnGraph(True, False, False, False))  # pyright: ignore[reportArgumentType]

    def check_own(self, data: OwnGraph | None, weights: Weights | None) -> None:
        if data is not None:
            check_own_graph(data, self.graph.widest)
            if self.descent.loss == "cross-entropy":
                require_between("data.labels", data.labels, 0, 1)
                sums = np.asarray(jnp.sum(data.labels, axis=1))
                require(
                    bool(np.allclose(sums, 1, atol=1e-5)),
                    "data.labels takes rows that sum to 1, the shares of the classes, for the cross-entropy.",
                )
        if weights is not None and self.parametrisation == "conventional":
            require(
                not (np.any(weights.bias1) or np.any(weights.bias2)),
                "weights.bias1 and weights.bias2 take zeros with parametrisation=conventional, which has no biases.",
            )

    def start_from(self, key: Key, data: OwnGraph | None = None, weights: Weights | None = None) -> State:
        of_world, of_weights, way = jax.random.split(key, 3)
        world = self.graph.draw(of_world, self.dtype) if data is None else data.world
        if weights is None:
            sizes = (self.graph.features, self.width, self.graph.outputs)
            weights = network.start(of_weights, *sizes, self.dtype, self.parametrisation == "conventional")
        zero = jnp.zeros((), self.dtype)
        memory = self.descent.optimiser.init(weights)
        return State(
            weights, weights, memory, world, jax.random.key_data(way), jnp.zeros((), jnp.int32), zero, zero
        )

    def step(self, state: State) -> State:
        way = key_of(state.key)
        of_batch, own = jax.random.split(jax.random.fold_in(way, state.step))
        batch = state.world.order[jax.random.randint(of_batch, (self.descent.batch,), 0, self.labels)]
        new, memory, loss, seen = moved(self, state, batch, jax.random.key_data(own))
        return state._replace(
            weights=new, memory=memory, step=state.step + 1, loss=loss, seen=state.seen + seen
        )

    def slope(
        self, state: State, batch: Int[Array, " top"], key: Key
    ) -> tuple[tuple[Float[Array, ""], Float[Array, ""]], Weights]:
        """Loss and gradient of a batch in its field. Runs that advance together take turns here, since each field has a size
        of its own."""

        @sequential_vmap
        def one(
            trial: Training,
            weights: Weights,
            begun: Weights,
            world: World,
            step: Array,
            batch: Array,
            data: Array,
        ):
            def inside(field: Field):
                def objective(given: Weights) -> tuple[Array, Array]:
                    return trial.objective(given, begun, world, step, batch, key_of(data), field)

                return jax.value_and_grad(objective, has_aux=True)(weights)

            widest = trial.graph.widest
            if trial.engine == "whole":
                return inside(whole_field(world.graph, batch, widest))
            rooms = rooms_for(trial.descent.batch, widest, trial.graph.nodes)
            return in_field(world.graph, batch, widest, rooms, inside)

        return one(self, state.weights, state.begun, state.world, state.step, batch, jax.random.key_data(key))

    def objective(
        self,
        weights: Weights,
        begun: Weights,
        world: World,
        step: Array,
        batch: Int[Array, " top"],
        key: Key,
        field: Field,
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """(5.11), or the plain loss of a batch in the practical setting; and how many nodes were looked at."""
        of_graph, of_noise, of_dropout = jax.random.split(key, 3)
        used, penalty = weights, jnp.zeros((), self.dtype)
        if self.mode == "full":
            used = self.disturbed(weights, begun, self.decay(step), of_noise)
            penalty = self.penalty(weights, begun, self.decay(step))
        sampled = factors(self.sampler, of_graph, field, world.graph, self.sampling())
        masks = of_dropout if self.mode == "practical" else None
        found = field_outputs(used, field, sampled, world.features, self.dropout, masks)
        errors = self.losses(found, world.labels[batch])
        there = self.present(of_graph, batch)
        loss = jnp.sum(jnp.where(there, errors, 0)) / jnp.maximum(jnp.sum(there), 1)
        return loss + penalty, jnp.sum(field.lower < self.graph.nodes).astype(self.dtype)

    def losses(
        self, found: Float[Array, "top output"], labels: Float[Array, "top output"]
    ) -> Float[Array, " top"]:
        """Half the squared error; or the cross-entropy of classes, over log K where that is above 1, so that L(0, y) is at
        most 1 as section 5.2 asks."""
        if self.descent.loss == "squared":
            return 0.5 * jnp.sum((found - labels) ** 2, axis=1)
        return -jnp.sum(labels * jax.nn.log_softmax(found), axis=1) / max(1.0, log(self.graph.outputs))

    def present(self, key: Key, batch: Int[Array, " top"]) -> Bool[Array, " top"]:
        """Where rows are sampled too, the output of a node that was not drawn is 0 whatever the weights; it does not count."""
        if self.sampler in ROWS:
            return kept(key, batch, self.sampling())
        return jnp.ones(batch.shape, bool)

    def sampling(self) -> Sampling:
        sizes = np.asarray(self.graph.sizes)
        begin = np.cumsum(sizes) - sizes
        return Sampling(
            jnp.asarray(begin, jnp.int32),
            jnp.asarray(sizes, jnp.int32),
            sample_counts(self.graph.sizes, jnp.asarray(self.rates)),
            jnp.asarray(self.scaling, self.dtype),
        )

    # Algorithm 2 ---------------------------------------------------------------------------------------------------------

    def decay(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """lambda_t = (1 - eta)^t in round t."""
        return (1 - jnp.asarray(self.descent.learning_rate, self.dtype)) ** (step // self.algorithm.inner)

    def disturbed(self, weights: Weights, begun: Weights, decay: Float[Array, ""], key: Key) -> Weights:
        """`sqrt(lambda)(W_0 + W^rho + W Sigma)`, `sqrt(lambda)(V_0 + V^rho + Sigma V)`, W and V the learnt parts."""
        of_first, of_second, of_signs = jax.random.split(key, 3)
        spread = self.algorithm.noise(self.width)
        signs = jax.random.rademacher(of_signs, (self.width,), self.dtype)
        root = jnp.sqrt(decay)
        first = spread[0] * jax.random.normal(of_first, weights.w1.shape, self.dtype)
        second = spread[1] * jax.random.normal(of_second, weights.w2.shape, self.dtype)
        return weights._replace(
            w1=root * (begun.w1 + first + (weights.w1 - begun.w1) * signs),
            w2=root * (begun.w2 + second + signs[:, None] * (weights.w2 - begun.w2)),
        )

    def penalty(self, weights: Weights, begun: Weights, decay: Float[Array, ""]) -> Float[Array, ""]:
        """`lambda_w |sqrt(lambda) W|_{2,4}^4 + lambda_v |sqrt(lambda) V|_F^2`, norms of the learnt parts by columns."""
        of_first, of_second = self.algorithm.regularisers(self.width)
        first, second = weights.w1 - begun.w1, weights.w2 - begun.w2
        fourth = jnp.sum(jnp.sum(first**2, axis=0) ** 2)
        total = of_first * decay**2 * fourth + of_second * decay * jnp.sum(second**2)
        return total.astype(self.dtype)

    def output(self, state: State) -> Weights:
        """What is predicted with: the weights; in Algorithm 2 the best of several draws, by the loss on the labelled nodes
        with A*."""
        if self.mode == "practical":
            return state.weights
        last = self.decay(jnp.maximum(state.step - 1, 0))
        keys = jax.random.split(key_of(state.key), self.algorithm.output_draws)
        drawn = [self.disturbed(state.weights, state.begun, last, key) for key in keys]
        losses = [self.errors(self.predict(one, state.world), state.world)[0] for one in drawn]
        best = jnp.argmin(jnp.stack(losses))
        return jax.tree.map(lambda *parts: jnp.stack(parts)[best], *drawn)

    # Looks ---------------------------------------------------------------------------------------------------------------

    def scales(self) -> tuple[Float[Array, " node"], Float[Array, " node"]]:
        """Column and row scaling of the matrix that the sampler stands for: A* where it is scaled by p*, else A."""
        column = jnp.asarray(self.scaling, self.dtype)[self.graph.group_of]
        ones = jnp.ones_like(column)
        if self.sampler not in SCALED:
            return ones, ones
        return (jnp.sqrt(column), jnp.sqrt(column)) if self.sampler in ROWS else (column, ones)

    def predict(self, weights: Weights, world: World) -> Float[Array, "node output"]:
        """F of every node with the sampler's own matrix."""
        return network.outputs(weights, world.graph, world.features, *self.scales())

    def loss(self, state: State) -> Float[Array, ""]:
        return state.loss

    def finished(self, state: State) -> Bool[Array, ""]:
        return state.step >= self.wanted

    def watch(self, state: State) -> Record:
        return {"error": self.errors(self.predict(state.weights, state.world), state.world)[1]}

    def record(self, state: State) -> Record:
        world, weights = state.world, self.output(state)
        column, row = self.scales()
        own = self.predict(weights, world)
        train, test = self.errors(own, world)
        plain = self.errors(network.outputs(weights, world.graph, world.features), world)[1]
        star = jnp.asarray(self.scaling, self.dtype)[self.graph.group_of]
        starred = self.errors(network.outputs(weights, world.graph, world.features, star), world)[1]
        moment = self.errors(jnp.zeros_like(world.labels), world)[1]
        ones = jnp.ones((self.graph.nodes, 1), self.dtype)
        return {
            "error": test,
            "normalised_error": test / moment,
            "train_error": train,
            "whole_error": plain / moment,
            "star_error": starred / moment,
            "label_moment": moment,
            "norm": jnp.max(aggregate(world.graph, ones, column, row)),
            "largest_degree": (jnp.max(world.graph.count) - 1).astype(self.dtype),
            "field": state.seen / jnp.maximum(state.step, 1),
            "learnt_w": jnp.sum(jnp.sum((state.weights.w1 - state.begun.w1) ** 2, axis=0) ** 2) ** 0.25,
            "learnt_v": jnp.linalg.norm(state.weights.w2 - state.begun.w2),
            "largest_output": jnp.max(jnp.abs(own)),
        }

    def errors(
        self, found: Float[Array, "node output"], world: World
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The mean squared error over labelled nodes and over the others, and over outputs."""
        squares = jnp.mean((found - world.labels) ** 2, axis=1)[world.order]
        known = jnp.arange(self.graph.nodes) < self.labels
        return jnp.mean(squares, where=known), jnp.mean(squares, where=~known)


def moved_in_jax(trial: Training, state: State, batch: Int[Array, " top"], data: UInt32[Array, "2"]) -> Moved:
    """One step of the optimiser on a batch, `data` being that of the step's own key."""
    (loss, seen), slopes = trial.slope(state, batch, key_of(data))
    updates, memory = trial.descent.optimiser.update(slopes, state.memory, state.weights)
    new = jax.tree.map(lambda w, u: (w + u).astype(w.dtype), state.weights, updates)
    frozen = ("bias1", "bias2") + (("readout",) if trial.parametrisation == "document" else ())
    new = new._replace(**{name: getattr(state.weights, name) for name in frozen})
    return new, memory, loss, seen


KNOWN: tuple[Sampler, ...] = ("groups", "effective", "none")
"""Samplers that the kernel has: those that know of a column no more than its group and whether it is drawn."""


@kernel("gcn_step.cc", plain=moved_in_jax)
def moved(trial: Training, state: State, batch: Array, data: Array) -> Moved:
    """`moved_in_jax`. The kernel has the document's practical setting with plain descent."""
    setting = trial.mode, trial.engine, trial.parametrisation, trial.descent.method, trial.descent.loss
    refuse_unless(
        setting == ("practical", "field", "document", "gd", "squared"), "the kernel has another setting"
    )
    refuse_unless(trial.sampler in KNOWN, f"the kernel has no sampler {trial.sampler}")
    weights, world, graph, groups = state.weights, state.world, state.world.graph, trial.sampling()
    of_graph, _, of_dropout = jax.random.split(key_of(data), 3)
    used, scale = drawn_and_scaled(trial.sampler, groups)
    threshold = jnp.round(jnp.asarray(trial.dropout) * 65536).astype(jnp.uint16)  # as in `fields.hidden`
    share = 1 - jnp.asarray(trial.dropout, weights.w1.dtype)
    w1, w2, loss, seen = moved.call(
        "gcn_step", *weights, graph.start, graph.count, graph.column, graph.weight, world.features, world.labels, batch,
        words_of(of_graph, groups), used.begin, used.size, used.samples, scale,
        jax.random.key_data(jax.random.split(of_dropout)), threshold.astype(jnp.uint32), share, trial.descent.learning_rate,
        in_place={0: 0, 1: 1}, widest=trial.graph.widest,
    )  # fmt: skip
    return weights._replace(w1=w1, w2=w2), state.memory, loss, seen


def drawn_and_scaled(name: Sampler, groups: Sampling) -> tuple[Sampling, Float[Array, " group"]]:
    """Groups with the numbers of nodes that the sampler draws, and what it multiplies their columns with."""
    if name == "groups":
        return groups, groups.scale()
    whole = groups._replace(samples=groups.size)
    return whole, groups.scaling if name == "effective" else jnp.ones_like(groups.scaling)
