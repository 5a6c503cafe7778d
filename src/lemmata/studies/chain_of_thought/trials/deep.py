"""Several layers with several heads on the same prompts (Figures 7.7 and F.1): every column passes through all layers, and the
query's column carries the answer in its lower half."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lemmata.descent import Descent, Draw, Learner, Learning, cycled
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.parts.patterns import orthonormal
from lemmata.studies.chain_of_thought import network
from lemmata.studies.chain_of_thought.data import Chains, OwnPrompts, Prompt, check_own, own_form
from lemmata.studies.chain_of_thought.network import Layers
from lemmata.studies.chain_of_thought.trials.testing import split_masses
from lemmata.threefry import new_key
from lemmata.trial import Key, Precision, Record, fixed


class DeepWorld(NamedTuple):
    """Patterns and encodings (of steps, or of positions), and the prompts that attention is looked at on."""

    patterns: Float[Array, "m dim"]
    encodings: Float[Array, "positions wide"]
    watched: Prompt


class Deep(Learner):
    """Layers of attention with residual connections, trained by Adam on the squared loss of the query's lower half.

    `positions`: `steps` adds the orthonormal c_k of a column's step, `sinusoids` the standard encoding of its place in the
    prompt. Every column sees the columns before it (the first one itself).
    """

    name: ClassVar[str] = "chain-of-thought/deep"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"masses": ("layer", "head", "mass")}
    paired: ClassVar[tuple[str, ...]] = ("descent", "precision")
    lockstep: ClassVar[bool] = False

    data: Chains = Chains(steps=2, examples=10, shuffled=True)
    descent: Descent = Descent(
        loss="squared",
        method="adam",
        learning_rate=1e-3,
        batches="fresh",
        batch=40,
        stop="cap",
        steps=2000,
        logs=25,
    )
    init_std: float = 0.02
    layers: int = fixed(default=3)
    heads: int = fixed(default=2)
    positions: Literal["steps", "sinusoids"] = fixed(default="steps")
    watched: int = fixed(default=80)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.layers >= 1, f"a network has at least one layer, not {self.layers}.")
        require(self.heads >= 1, f"a layer has at least one head, not {self.heads}.")
        require(
            self.descent.batches == "fresh", "every step sees fresh prompts; leave descent.batches at fresh."
        )
        require(self.data.noise == 0, "layers are trained without noise; leave data.noise at 0.")

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """Prompts by the indices of their patterns, any number of them, with the vectors; weights of the drawn shapes."""
        weights = jax.eval_shape(lambda: self.draw(key)).params
        return own_form(self.data, key, jnp.dtype(self.precision))._replace(weights=weights)

    def check_own(self, data: OwnPrompts | None, weights: Layers | None) -> None:
        if data is not None:
            check_own(self.data, data)
            require(
                bool(np.all(np.isin(data.prompts.count, (0, 1)))),
                "layers see a column or do not: data.prompts.count takes 0 or 1.",
            )

    def draw_with(self, key: Key, data: OwnPrompts | None, weights: Layers | None) -> Draw:
        frame_key, w_key, v_key, test = jax.random.split(key, 4)
        d, dtype = self.data, jnp.dtype(self.precision)
        frame = None if data is None else data.vectors
        if frame is None:
            frame = orthonormal(frame_key, d.patterns + d.steps, d.dim, dtype)
        shape = (self.layers, self.heads, 2 * d.dim, 2 * d.dim)
        drawn = Layers(
            *(
                self.init_std * jax.random.normal(k, (jnp.zeros(shape).size,), dtype).reshape(shape)
                for k in (w_key, v_key)
            )
        )
        if self.positions == "steps":
            encodings = jnp.concatenate([frame[d.patterns :], jnp.zeros((d.steps, d.dim), dtype)], axis=1)
        else:
            places = jnp.arange((d.examples + 1) * d.steps, dtype=dtype)
            encodings = network.sinusoids(places, 2 * d.dim).astype(dtype)
        if data is None:
            watched = self.fresh(test, None, self.watched)
        else:
            watched = cycled(data.prompts, jnp.zeros((), int), self.watched)
        world = DeepWorld(frame[: d.patterns], encodings, watched)
        return Draw(drawn if weights is None else weights, data, world)

    def batch(self, path_key: Key, step: Int[Array, ""], data: OwnPrompts | None, world: DeepWorld) -> Prompt:
        if data is None:
            return super().batch(path_key, step, data, world)
        return cycled(data.prompts, step, self.batch_size)

    def fresh(self, key: Key, world: DeepWorld | None, count: int) -> Prompt:
        return self.data.draw(key, count)

    def run(self, params: Layers, prompt: Prompt, world: DeepWorld) -> tuple[Array, Array]:
        """F and the query's attention for one prompt."""
        d, m = self.data, world.patterns
        place = jnp.append(jnp.arange(prompt.step.shape[0]), d.examples * d.steps + prompt.query_step)
        step = jnp.append(prompt.step, prompt.query_step)
        upper = jnp.concatenate([m[prompt.top], m[prompt.query][None]])
        lower = jnp.concatenate([m[prompt.bottom], jnp.zeros_like(m[:1])])
        coded = world.encodings[step if self.positions == "steps" else place]
        there = jnp.append(prompt.count, 1.0)
        order = jnp.arange(place.shape[0])
        seen = (order[:, None] > order[None]) & (there[None] > 0)
        last, attention = network.climb(
            params, jnp.concatenate([upper, lower], axis=1) + coded, seen.at[0, 0].set(True)
        )
        return last[d.dim :], attention[..., :-1]

    def objective(self, params: Layers, batch: Prompt, world: DeepWorld, key: Key) -> Float[Array, ""]:
        def one(prompt: Prompt) -> Array:
            return 0.5 * jnp.sum((world.patterns[prompt.label] - self.run(params, prompt, world)[0]) ** 2)

        return jnp.mean(jax.vmap(one)(batch))

    def watch(self, state: Learning) -> Record:
        world = state.world

        def one(prompt: Prompt) -> tuple[Array, Array]:
            out, attention = self.run(state.params, prompt, world)
            same, now = prompt.top == prompt.query, prompt.step == prompt.query_step
            split = jax.vmap(jax.vmap(lambda row: split_masses(row, same, now)))(attention)
            return split, jnp.argmax(world.patterns @ out) != prompt.label

        masses, wrong = jax.vmap(one)(world.watched)
        return {
            "loss": self.objective(state.params, world.watched, world, new_key(0)),
            "masses": jnp.mean(masses, axis=0),
            "error": jnp.mean(wrong.astype(world.patterns.dtype)),
        }

    def record(self, state: Learning) -> Record:
        seen = self.watch(state)
        return {"loss": seen["loss"], "masses": seen["masses"]}
