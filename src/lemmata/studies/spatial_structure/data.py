"""Where images come from: patches on a grid, in groups that the learner is never shown.

A *partition* is one whole number per position, the group it belongs to. `Structured` is the paper's main distribution
(Assumption 1) and, with another feature, its downstream one; `Gaussian` is the counter-example whose labels, but not
whose patches, know the groups (Section 2).
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lemmata.errors import require, require_memory
from lemmata.trial import Key, fixed

# Partitions ------------------------------------------------------------------------------------------------------------


def from_labels(labels: Sequence[int] | np.ndarray) -> Int[np.ndarray, " patches"]:
    """A partition given position by position; groups must be 0, 1, ..., all of one size, and more than one."""
    found = np.asarray(labels)
    require(found.ndim == 1 and found.size > 0, "a partition is one group number per position, in one list.")
    require(bool(np.all(found == found.astype(int))), "a partition must hold whole group numbers.")
    groups, sizes = np.unique(found.astype(int), return_counts=True)
    require(
        bool(np.array_equal(groups, np.arange(len(groups)))),
        f"the groups of a partition must be numbered 0 to {len(groups) - 1} without gaps, not {groups.tolist()}.",
    )
    require(
        len(set(sizes.tolist())) == 1, f"the groups of a partition must be of one size, not {sizes.tolist()}."
    )
    require(
        len(groups) > 1, "a partition needs at least two groups: a group is a proper part of the positions."
    )
    return found.astype(int)


def contiguous_blocks(grid_h: int, grid_w: int, block_h: int, block_w: int) -> Int[np.ndarray, " patches"]:
    """Rectangular blocks of a grid, positions row by row.

    >>> contiguous_blocks(4, 4, 2, 2).tolist()
    [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    """
    fits = grid_h % block_h == 0 and grid_w % block_w == 0
    require(fits, f"blocks of {block_h} by {block_w} do not tile a grid of {grid_h} by {grid_w}.")
    rows, columns = np.divmod(np.arange(grid_h * grid_w), grid_w)
    return from_labels(rows // block_h * (grid_w // block_w) + columns // block_w)


def random_partition(patches: int, group_size: int, seed: int) -> Int[np.ndarray, " patches"]:
    """Groups of one size, thrown over the positions at random."""
    _divides(patches, group_size)
    return from_labels(np.random.default_rng(seed).permutation(np.arange(patches) // group_size))


def grid_of(patches: int) -> tuple[int, int]:
    """Height and width of the most square grid that holds this many positions.

    >>> grid_of(64), grid_of(128)
    ((8, 8), (8, 16))
    """
    height = next(h for h in range(math.isqrt(patches), 0, -1) if patches % h == 0)
    return height, patches // height


def square_blocks(patches: int, group_size: int) -> Int[np.ndarray, " patches"]:
    """The most square blocks of this size on the most square grid."""
    _divides(patches, group_size)
    height, width = grid_of(patches)
    shapes = [(h, group_size // h) for h in range(1, group_size + 1) if group_size % h == 0]
    fitting = [(h, w) for h, w in shapes if height % h == 0 and width % w == 0]
    require(
        len(fitting) > 0,
        f"no block of {group_size} patches tiles the {height} by {width} grid; use a random or a given partition.",
    )
    return contiguous_blocks(height, width, *min(fitting, key=lambda shape: abs(shape[0] - shape[1])))


def _divides(patches: int, group_size: int) -> None:
    require(
        1 < group_size < patches and patches % group_size == 0,
        f"the group size must be at least 2 and divide the number of patches; {group_size} and {patches} do not fit.",
    )
    require_memory(8 * patches, f"a partition of {patches:.3g} patches")


# The main distribution -------------------------------------------------------------------------------------------------


class World(NamedTuple):
    """What the learner has to find out: who belongs together (`group_of`) and the feature `w*`."""

    group_of: Int[Array, " patches"]
    feature: Float[Array, " dimension"]


class Images(NamedTuple):
    """A sample. `coefficients[n, j] = <w*, X_j>` is exactly `y` on the signal set and `delta_j` elsewhere."""

    patches: Float[Array, "samples patches dimension"]
    labels: Float[Array, " samples"]
    coefficients: Float[Array, "samples patches"]
    signal_group: Int[Array, " samples"]


class Structured(eqx.Module):
    """Patches `X_j = y w* + xi_j` on one random group, `delta_j w* + xi_j` elsewhere (Assumption 1).

    `spurious_rate` is `q = P[delta_j != 0]`; `noise` is `sigma sqrt(d)`, so 1 is the paper's `sigma^2 = 1/d`. The noise
    is orthogonal to the feature. A random partition is drawn anew with every seed; `groups` gives one by hand.
    """

    spurious_rate: float = 0.25
    noise: float = 1.0
    patches: int = fixed(default=64)
    group_size: int = fixed(default=4)
    dimension: int = fixed(default=32)
    partition: Literal["random", "contiguous", "given"] = fixed(default="random")
    groups: tuple[int, ...] = fixed(default=())

    def __check_init__(self):
        require(
            0 <= self.spurious_rate <= 1, f"the spurious rate q must lie in [0, 1], not {self.spurious_rate}."
        )
        require(self.noise >= 0, f"the noise scale must not be negative, not {self.noise}.")
        require(self.dimension >= 2, f"a patch needs at least 2 dimensions, not {self.dimension}.")
        _divides(self.patches, self.group_size)
        if self.partition == "contiguous":
            square_blocks(self.patches, self.group_size)
        if self.partition == "given":
            labels = from_labels(self.groups)
            same = labels.size == self.patches and np.sum(labels == 0) == self.group_size
            require(
                bool(same), f"the given partition is not one of {self.patches} patches by {self.group_size}."
            )

    @property
    def group_count(self) -> int:
        return self.patches // self.group_size

    @property
    def facts(self) -> tuple[int, int, float]:
        """`D, C, q`: what most formulas of the theory ask for."""
        return self.patches, self.group_size, float(self.spurious_rate)

    def world(self, key: Key, dtype=jnp.float64) -> World:
        """A partition and a feature."""
        feature = jax.random.normal(jax.random.fold_in(key, 1), (self.dimension,), dtype)
        return World(self.group_of(jax.random.fold_in(key, 0)), feature / jnp.linalg.norm(feature))

    def group_of(self, key: Key) -> Int[Array, " patches"]:
        if self.partition == "contiguous":
            return jnp.asarray(square_blocks(self.patches, self.group_size))
        if self.partition == "given":
            return jnp.asarray(from_labels(self.groups))
        return jax.random.permutation(key, jnp.arange(self.patches) // self.group_size)

    def draw(self, key: Key, world: World, count: int) -> Images:
        """`count` images, each from its own key: a larger sample begins with the smaller one."""
        dtype = world.feature.dtype

        def one(image_key: Key) -> Images:
            facts_key, noise_key = jax.random.split(image_key)
            label, signal_group, coefficients = self._image(facts_key, world.group_of, dtype)
            raw = jax.random.normal(noise_key, (self.patches, self.dimension), dtype)
            orthogonal = raw - jnp.outer(raw @ world.feature, world.feature)
            sigma = jnp.asarray(self.noise, dtype) / math.sqrt(self.dimension)
            patches = jnp.outer(coefficients, world.feature) + sigma * orthogonal
            return Images(patches, label, coefficients, signal_group)

        return jax.vmap(one)(_each(key, count))

    def draw_coefficients(self, key: Key, group_of: Int[Array, " patches"], count: int, dtype=jnp.float64):
        """Labels and coefficients alone, the same as in `draw` with this key: all that population descent sees."""

        def one(image_key: Key) -> tuple[Array, Array]:
            label, _, coefficients = self._image(jax.random.split(image_key)[0], group_of, dtype)
            return label, coefficients

        return jax.vmap(one)(_each(key, count))

    def _image(self, key: Key, group_of: Array, dtype) -> tuple[Array, Array, Array]:
        spin = jax.random.uniform(key, (self.patches + 2,), dtype)
        label = jnp.where(spin[-1] < 0.5, 1.0, -1.0).astype(dtype)
        signal_group = jnp.floor(spin[-2] * self.group_count).astype(group_of.dtype)
        spurious = three_valued(spin[:-2], jnp.asarray(self.spurious_rate, dtype))
        return label, signal_group, jnp.where(group_of == signal_group, label, spurious)


def three_valued(spin: Array, rate: Array | float) -> Array:
    """+1 and -1 with probability `rate / 2` each, else 0, from uniform numbers."""
    return jnp.where(spin < rate / 2, 1.0, jnp.where(spin < rate, -1.0, 0.0)).astype(spin.dtype)


def _each(key: Key, count: int) -> Key:
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))


def labeling_function(
    coefficients: Float[Array, "samples patches"],
    group_of: Int[Array, " patches"],
    groups: int,
    fraction: float = 0.9,
) -> Float[Array, " samples"]:
    """`f*(X)`: the sum over groups of `Threshold_{0.9 C}` of the group's summed coefficients."""
    sums = jax.vmap(lambda row: jax.ops.segment_sum(row, group_of, groups))(coefficients)
    size = coefficients.shape[1] / groups
    return jnp.sum(jnp.where(jnp.abs(sums) > fraction * size, sums, 0), axis=1)


def planted(
    key: Key, count: int, size: int, planted_size: int, spurious_rate: float
) -> Float[Array, "samples size"]:
    """Draws over {-1, 0, 1}^m: spurious coefficients with a random subset of this size set to +1 (none for size 0).

    These are D2 (and D1) in the proof of Theorem 5.2.
    """

    def one(row_key: Key) -> Array:
        spurious = three_valued(jax.random.uniform(jax.random.fold_in(row_key, 0), (size,)), spurious_rate)
        rank = jax.random.permutation(jax.random.fold_in(row_key, 1), size)
        return jnp.where(rank < planted_size, 1.0, spurious)

    return jax.vmap(one)(_each(key, count))


# The counter-example ---------------------------------------------------------------------------------------------------


class Gaussian(eqx.Module):
    """Patches i.i.d. N(0, I); the label is the sign of a cubic convolution over contiguous groups (Section 2).

    `f*(X) = sum_h sum_l (sum_k <w_hk, X_{S_l[k]}>)^3`, one set of filters for all groups. With `one_filter` the
    filter is also the same for every slot `k` of a group.
    """

    patches: int = fixed(default=16)
    group_size: int = fixed(default=4)
    dimension: int = fixed(default=16)
    filters: int = fixed(default=1)
    one_filter: bool = fixed(default=False)

    def __check_init__(self):
        square_blocks(self.patches, self.group_size)
        require(self.filters > 0, f"the labelling network needs at least one filter, not {self.filters}.")

    @property
    def group_of(self) -> Int[np.ndarray, " patches"]:
        return square_blocks(self.patches, self.group_size)

    @property
    def slot_of(self) -> Int[np.ndarray, " patches"]:
        """The slot of every position in its group: positions of one slot share a filter."""
        slots = np.empty(self.patches, int)
        slots[self._slots.ravel()] = np.tile(np.arange(self.group_size), len(self._slots))
        return slots

    @property
    def _slots(self) -> Int[np.ndarray, "groups slots"]:
        return np.argsort(self.group_of, kind="stable").reshape(-1, self.group_size)

    def world(self, key: Key, dtype) -> Float[Array, "filters slots dimension"]:
        """Unit-norm filters."""
        slots = 1 if self.one_filter else self.group_size
        raw = jax.random.normal(key, (self.filters, slots, self.dimension), dtype)
        unit = raw / jnp.linalg.norm(raw, axis=-1, keepdims=True)
        return jnp.broadcast_to(unit, (self.filters, self.group_size, self.dimension))

    def draw(self, key: Key, filters: Array, count: int) -> tuple[Array, Array, Array]:
        """Patches, labels, and the vote of the filters: the sign of the same sum without the cube."""
        shape = (self.patches, self.dimension)
        patches = jax.vmap(lambda k: jax.random.normal(k, shape, filters.dtype))(_each(key, count))
        response = jnp.einsum("nlkd,hkd->nhl", patches[:, self._slots], filters)
        label, vote = (jnp.sign(jnp.sum(response**power, axis=(1, 2))) for power in (3, 1))
        return patches, label, vote
