"""One training of the small GPT-2 style model on the same prompts (figure 6.3)."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from lemmata.descent import Descent, Draw, Learner, Learning, cycled, loss_of
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.studies.in_context_learning.data import (
    Contexts,
    Frame,
    OwnPrompts,
    Prompt,
    Tasks,
    check_own,
    own_form,
    own_table,
    pattern_frame,
    tokens,
)
from lemmata.studies.in_context_learning.network import deep
from lemmata.studies.in_context_learning.trials import testing
from lemmata.studies.in_context_learning.trials.testing import DIMS, Look, Place, Testing, named
from lemmata.threefry import key_of
from lemmata.trial import Key, Precision, Record, fixed


class DeepWorld(NamedTuple):
    """Vectors, all tasks with the number of trained ones, the key of the tests."""

    frame: Frame
    tasks: Tasks
    trained: Int[Array, ""]
    test: Array


class Stack(Learner):
    """Adam on fresh prompts. The read-in of columns is trained, so that coordinates along patterns and label lose nothing."""

    name: ClassVar[str] = "in-context-learning/gpt2"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = DIMS
    paired: ClassVar[tuple[str, ...]] = ("test", "descent", "precision", "watched")
    lockstep: ClassVar[bool] = False

    data: Contexts = Contexts(task_shifts=4)
    test: Testing = Testing()
    descent: Descent = Descent(
        loss="hinge", method="adam", learning_rate=3e-4, batches="fresh", batch=96, stop="cap", steps=400, logs=9,
        spacing="even",
    )  # fmt: skip
    width: int = fixed(default=64)
    layers: int = fixed(default=3)
    heads: int = fixed(default=2)
    positions: bool = fixed(default=False)
    watched: int = fixed(default=240)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(
            self.descent.batches == "fresh", "every step sees fresh prompts; leave descent.batches at fresh."
        )
        require(
            self.width % self.heads == 0,
            f"the width {self.width} must be a multiple of the {self.heads} heads.",
        )
        require(
            not self.positions or max(self.test.lengths) <= self.data.room,
            "with positions a model reads no prompts longer than those it was trained on.",
        )
        self.test.fits(self.data)

    def draw(self, key: Key) -> Draw:
        task_key, weight_key, test = jax.random.split(key, 3)
        dtype = jnp.dtype(self.precision)
        frame = pattern_frame(self.data, dtype)
        table, trained = self.data.table(task_key)
        places = self.data.room + 1 if self.positions else 0
        params = deep.start(weight_key, frame.label.shape[0], self.width, self.layers, places, dtype)
        return Draw(params, None, DeepWorld(frame, table, trained, jax.random.key_data(test)))

    def takes(self, key: Key) -> Taken:
        """Prompts by the indices of their patterns, any number of them; parameters of the drawn shapes."""
        return own_form(self.data, key)._replace(weights=jax.eval_shape(lambda: self.draw(key)).params)

    def check_own(self, data: OwnPrompts | None, weights: deep.Deep | None) -> None:
        if data is not None:
            check_own(self.data, data)

    def draw_with(self, key: Key, data: OwnPrompts | None, weights: deep.Deep | None) -> Draw:
        drawn = super().draw_with(key, data, weights)
        if data is None:
            return drawn
        table, trained = own_table(self.data, data.task)
        return drawn._replace(world=drawn.world._replace(tasks=table, trained=trained))

    def batch(self, path_key: Key, step: Int[Array, ""], data: OwnPrompts | None, world: PyTree) -> Prompt:
        if data is None:
            return super().batch(path_key, step, data, world)
        return cycled(data.prompts, step, self.batch_size)

    def fresh(self, key: Key, world: DeepWorld, count: int) -> Prompt:
        return self.data.draw(key, world.tasks, world.trained, count)

    def objective(self, params: deep.Deep, batch: Prompt, world: DeepWorld, key: Key) -> Float[Array, ""]:
        context, query = tokens(world.frame, batch)
        found = deep.outputs(params, self.heads, context, batch.shown, query)
        return jnp.mean(loss_of(self.descent.loss, found, batch.target))

    def watch(self, state: Learning) -> Record:
        place, room = self._inside(state), max(self.test.lengths)
        fraction = jnp.asarray(self.test.fractions[0], place.bound.dtype)
        prompts = testing.draw(
            place, self._test_key(state, 0), self.watched, fraction, jnp.asarray(room), room
        )
        now = testing.measured(self.look(state.params), place, prompts)
        return {"train_loss": state.fit.loss, **named("now_", now)}

    def record(self, state: Learning) -> Record:
        look, frame, key = self.look(state.params), state.world.frame, self._test_key(state, 3)
        found = testing.over_lengths(self.test, look, self._inside(state), self._test_key(state, 2))
        if self.test.kinds:

            def tested(place: Place) -> dict[str, Array]:
                return testing.over_lengths(self.test, look, place, key)

            found |= named("ood_", testing.over_kinds(self.test, frame, tested))
        if self.test.sums:
            found |= named("sum_", testing.over_sums(self.test, look, frame, key))
        return found

    def look(self, params: deep.Deep) -> Look:
        def seen(frame: Frame, prompts: Prompt) -> dict[str, Array]:
            context, query = tokens(frame, prompts)
            return {"output": deep.outputs(params, self.heads, context, prompts.shown, query)}

        return seen

    def _inside(self, state: Learning) -> Place:
        world = state.world
        return testing.in_domain(self.test, self.data, world.frame, world.tasks, world.trained)

    def _test_key(self, state: Learning, which: int) -> Key:
        return jax.random.fold_in(key_of(state.world.test), which)
