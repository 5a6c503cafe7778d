"""Tests of a trained model: unseen tasks over the training patterns, tasks over mixtures of them, several lengths."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lemmata.errors import require
from lemmata.parts.patterns import each
from lemmata.studies.in_context_learning.data import (
    LARGEST,
    Contexts,
    Domain,
    Frame,
    Prompt,
    Selection,
    Tasks,
    all_tasks,
    disturbed,
    mixing,
    prompt,
)
from lemmata.trial import Key, fixed

OUT = 3  # out-of-domain patterns, M'_1


class Testing(eqx.Module):
    """What is tested. `fractions` alpha' and `lengths` l_ts make a grid; in domain on `tasks` that were not trained on (or
    all), out of domain on three mixed patterns of each of the `kinds` with S_1 = `coefficient_sum` (see `data.mixing`),
    their irrelevant part as strong as `noise_bound` K'. `sums` are further values of S_1, at the first fraction and the
    longest prompt; `row_sums` the coefficient sums of the kind "sums". `selection` chooses contexts (see `data.prompt`)."""

    noise_bound: float = 5.0
    coefficient_sum: float = 1.28
    fractions: tuple[float, ...] = fixed(default=(0.8,))
    lengths: tuple[int, ...] = fixed(default=(20,))
    sums: tuple[float, ...] = fixed(default=())
    row_sums: tuple[float, ...] = fixed(default=(2.0, 1.0, 1.0))
    kinds: tuple[Domain, ...] = fixed(default=("partners",))
    tasks: Literal["unseen", "all"] = fixed(default="unseen")
    selection: Selection = fixed(default="random")
    prompts: int = fixed(default=2000)
    irrelevant: int = fixed(default=24)

    def __check_init__(self):
        for fraction in self.fractions:
            require(
                0 < fraction <= 1, f"the fraction alpha' of decisive contexts lies in (0, 1], not {fraction}."
            )
        require(bool(self.lengths) and min(self.lengths) >= 1, "test prompts hold at least one context.")
        for one in (self.coefficient_sum, *self.sums):
            require(
                abs(one) <= LARGEST, f"S_1 = a + b lies between -{LARGEST:.4g} and {LARGEST:.4g}, not {one}."
            )
        require(self.noise_bound >= 0, f"the noise bound K' must not be negative, not {self.noise_bound}.")
        require(self.prompts >= 1, f"a test needs at least one prompt, not {self.prompts}.")

    def fits(self, data: Contexts) -> None:
        """One sentence for a test that does not fit the training data."""
        require(
            self.irrelevant <= data.irrelevant,
            f"the test has {self.irrelevant} irrelevant patterns, and the training only M_2 = {data.irrelevant}.",
        )
        require(
            not self.kinds or data.relevant >= 6,
            f"the out-of-domain patterns mix six training patterns, and M_1 is {data.relevant}; leave test.kinds empty.",
        )

    def rows(self, kind: Domain, patterns: int, first: float | Array) -> Float[Array, "three m"]:
        """The coefficients of the out-of-domain patterns of a kind."""
        return mixing(kind, patterns, first, self.row_sums)


class Place(NamedTuple):
    """Where prompts are drawn: the vectors, the tasks (`count` of them from `first` on), the noise."""

    frame: Frame
    tasks: Tasks
    first: Int[Array, ""]
    count: Int[Array, ""]
    bound: Float[Array, ""]


def in_domain(test: Testing, data: Contexts, frame: Frame, tasks: Tasks, trained: Int[Array, ""]) -> Place:
    """The training patterns; tasks that were not trained on, or all (also where none is left)."""
    total = tasks.shape[0]
    unseen = (test.tasks == "unseen") & (trained < total)
    first = jnp.where(unseen, trained, 0)
    return Place(frame, tasks, first, total - first, jnp.asarray(data.noise_bound, frame.label.dtype))


def out_of_domain(test: Testing, frame: Frame, rows: Float[Array, "three m"]) -> Place:
    """Mixtures of the training patterns; all tasks over them."""
    mixed = frame._replace(
        relevant=rows.astype(frame.label.dtype) @ frame.relevant,
        irrelevant=frame.irrelevant[: test.irrelevant],
    )
    tasks = jnp.asarray(np.stack(all_tasks(OUT)))
    zero = jnp.zeros((), int)
    return Place(mixed, tasks, zero, zero + len(tasks), jnp.asarray(test.noise_bound, frame.label.dtype))


def over_kinds(
    test: Testing, frame: Frame, look: Callable[[Place], dict[str, Array]]
) -> dict[str, Float[Array, "kind *n"]]:
    """What a look gives out of domain, kind by kind."""
    m = frame.relevant.shape[0]
    rows = jnp.stack([test.rows(kind, m, test.coefficient_sum) for kind in test.kinds])
    return jax.lax.map(lambda one: look(out_of_domain(test, frame, one)), rows)


Look = Callable[[Frame, Prompt], dict[str, Float[Array, " prompts"]]]
"""What a model says to prompts: `output` F, and whatever else is to be averaged."""


def draw(
    place: Place,
    key: Key,
    count: int,
    fraction: Array,
    length: Array,
    room: int,
    selection: Selection = "random",
) -> Prompt:
    """Test prompts that walk through tasks and labels in turn."""
    relevant, irrelevant = place.frame.relevant.shape[0], place.frame.irrelevant.shape[0]

    def one(own: Key, index: Int[Array, ""]) -> Prompt:
        task = place.tasks[place.first + (index // 2) % place.count]
        found = prompt(
            own, task, index % 2, fraction, place.bound, length, relevant, irrelevant, room, selection
        )
        noise = place.frame.noise
        return found if noise is None else disturbed(found, own, noise.shape[0])

    return each(one, key, count)


def measured(look: Look, place: Place, prompts: Prompt) -> dict[str, Float[Array, ""]]:
    """Means over prompts: hinge loss, error Pr(z F <= 0), and what else the look gives."""
    seen = look(place.frame, prompts)
    margin = prompts.target * seen.pop("output")
    dtype = margin.dtype
    found = {"hinge": jnp.mean(jax.nn.relu(1 - margin)), "error": jnp.mean((margin <= 0).astype(dtype))}
    return found | {name: jnp.mean(one) for name, one in seen.items()}


def over_lengths(
    test: Testing, look: Look, place: Place, key: Key
) -> dict[str, Float[Array, "fraction length"]]:
    """The test on the grid of fractions and lengths."""
    dtype = place.bound.dtype
    fractions, lengths = np.meshgrid(test.fractions, test.lengths, indexing="ij")
    room = max(test.lengths)

    def at(given: tuple[Array, Array]) -> dict[str, Array]:
        return measured(look, place, draw(place, key, test.prompts, *given, room, test.selection))

    found = jax.lax.map(at, (jnp.asarray(fractions.ravel(), dtype), jnp.asarray(lengths.ravel())))
    return {name: values.reshape(fractions.shape) for name, values in found.items()}


def over_sums(test: Testing, look: Look, frame: Frame, key: Key) -> dict[str, Float[Array, "kind sum"]]:
    """The test out of domain at several S_1: first fraction, longest prompt. Rows of the kind "sums" stay as they are."""
    dtype, room, m = frame.label.dtype, max(test.lengths), frame.relevant.shape[0]

    def at(rows: Array) -> dict[str, Array]:
        place = out_of_domain(test, frame, rows)
        fraction, length = jnp.asarray(test.fractions[0], dtype), jnp.asarray(room)
        return measured(look, place, draw(place, key, test.prompts, fraction, length, room, test.selection))

    rows = jnp.stack([test.rows(kind, m, first) for kind in test.kinds for first in test.sums])
    found = jax.lax.map(at, rows)
    return {name: values.reshape(len(test.kinds), len(test.sums)) for name, values in found.items()}


def named(prefix: str, found: dict[str, Array]) -> dict[str, Array]:
    return {f"{prefix}{name}": value for name, value in found.items()}


DIMS = {
    **dict.fromkeys(("hinge", "error", "mass"), ("fraction", "length")),
    **{f"ood_{name}": ("kind", "fraction", "length") for name in ("hinge", "error", "mass")},
    **{f"sum_{name}": ("kind", "sum") for name in ("hinge", "error", "mass")},
}
