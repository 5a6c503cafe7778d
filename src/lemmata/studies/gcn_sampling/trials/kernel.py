"""One step of plain descent in the field of a batch from a kernel (`step.cc`): what `Training.moved_plainly` does at the
setting of the experiments."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from lemmata import native
from lemmata.studies.gcn_sampling.data import Graph
from lemmata.studies.gcn_sampling.network import Weights
from lemmata.studies.gcn_sampling.trials.samplers import Sampler, Sampling

KERNEL = Path(__file__).with_name("step.cc")
IN_KERNEL: tuple[Sampler, ...] = ("groups", "effective", "none")
"""Samplers that the kernel has: those that know of a column no more than its group and whether it is drawn."""


def by_kernel() -> bool:
    return native.loaded(KERNEL, "field_step_float32", "field_step_float64")


class FieldStep(NamedTuple):
    """What a step is made from: `words` of the sampler's rounds, the groups as `drawn_and_scaled` gives them, the keys of
    dropout in both hidden layers, the share that it drops, and the step size."""

    weights: Weights
    graph: Graph
    features: Float[Array, "node feature"]
    labels: Float[Array, "node output"]
    batch: Int[Array, " top"]
    words: UInt32[Array, "round 2 group"]
    groups: Sampling
    scale: Float[Array, " group"]
    keys: UInt32[Array, "2 2"]
    dropout: float | Array
    rate: float | Array


def drawn_and_scaled(name: Sampler, groups: Sampling) -> tuple[Sampling, Float[Array, " group"]]:
    """Groups with the numbers of nodes that the sampler draws, and what it multiplies their columns with."""
    if name == "groups":
        return groups, groups.scale()
    whole = groups._replace(samples=groups.size)
    return whole, groups.scaling if name == "effective" else jnp.ones_like(groups.scaling)


def field_step(given: FieldStep, widest: int) -> tuple[Weights, Float[Array, ""], Float[Array, ""]]:
    """Weights after the step, the loss of the batch before it, and how many nodes its field has; rows have at most `widest`
    slots."""
    weights, graph, groups = given.weights, given.graph, given.groups
    kind = weights.w1.dtype
    threshold = jnp.round(jnp.asarray(given.dropout) * 65536).astype(jnp.uint16)  # as in `fields.hidden`
    share, rate = 1 - jnp.asarray(given.dropout, kind), jnp.asarray(given.rate, kind)
    found = [jax.ShapeDtypeStruct(like.shape, kind) for like in (weights.w1, weights.w2, rate, rate)]
    call = jax.ffi.ffi_call(
        f"field_step_{kind}", found, vmap_method="broadcast_all", input_output_aliases={0: 0, 1: 1}
    )
    w1, w2, loss, seen = call(
        *weights, graph.start, graph.count, graph.column, graph.weight, given.features, given.labels,
        given.batch.astype(jnp.int32), given.words, groups.begin, groups.size, groups.samples, given.scale, given.keys,
        threshold.astype(jnp.uint32), share, rate, widest=widest,
    )  # fmt: skip
    return weights._replace(w1=w1, w2=w2), loss, seen
