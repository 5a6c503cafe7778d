"""Majority-vote tokens: every token is a noisy copy of a pattern, and the label is the discriminative pattern that occurs
more often. Ground truth (pattern, role, noise of every token) comes with every sample."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.errors import require
from lemmata.own import require_between, require_signs
from lemmata.parts.patterns import (
    Noise,
    Rounding,
    blocks,
    chance_counts,
    each,
    flat,
    noise,
    pattern_sets,
    ranks,
    share_count,
)
from lemmata.trial import Key, fixed

ZERO = -1
"""The pattern index of a background token that carries nothing but noise."""

SIGNS = {2: [[1], [-1]], 4: [[1, 1], [1, -1], [-1, 1], [-1, -1]]}
"""The label of a sample whose majority pattern is the first, the second, ..."""


class Sample(NamedTuple):
    """One sample, or many with a leading dimension.

    `label` is (y,) with y = ±1, or two signs for four classes. `pattern[l]` is j-1 for a noisy copy of mu_j, or ZERO.
    `relevant` and `confusion` mark S_* and S_#; `noise` is the distance of a token from its pattern; `noisy` marks the
    tokens drawn with the large noise scale. `kept` is how often a token counts: 1, 0 when sparsified away.
    """

    tokens: Float[Array, "*n tokens dim"]
    label: Float[Array, "*n outputs"]
    pattern: Int[Array, "*n tokens"]
    relevant: Bool[Array, "*n tokens"]
    confusion: Bool[Array, "*n tokens"]
    noise: Float[Array, "*n tokens"]
    noisy: Bool[Array, "*n tokens"]
    kept: Float[Array, "*n tokens"]


class TokenData(eqx.Module):
    """The data model. Fractions are of the whole pool of `tokens`, before sparsification.

    - `relevant_fraction`, `confusion_fraction`, `nondiscriminative_fraction`: alpha_*, alpha_#, alpha_nd (None: the rest).
    - `noise_std` is c_0 of the Gaussian laws; `noise_radius` is tau of the bounded ones.
    - `noisy_fraction` of the tokens has Gaussian noise of scale `noisy_std` instead.
    - `background`: "even" spreads the non-discriminative tokens over mu_3..mu_M. The spurious kinds fill them all with
      mu_3 with probability `background_rate` if y = +1 and 1 - `background_rate` if y = -1, and else leave them empty
      ("spurious_zero") or fill them with mu_4 ("spurious_fourth"); in test samples the probability is one half.
    - `removal` says which tokens sparsification takes away first, `removed_fraction` how many of the pool.
    - `set_size` members per pattern, at most `set_spread` apart, make the patterns set-valued.
    """

    relevant_fraction: float = 0.5
    confusion_fraction: float = 0.06
    nondiscriminative_fraction: float | None = None
    noise_std: float = 0.01
    noise_radius: float = 0.05
    noisy_fraction: float = 0.0
    noisy_std: float = 0.5
    background_rate: float = 0.9
    removed_fraction: float = 0.0
    set_spread: float = 0.5
    samples: int = fixed(default=200)
    tokens: int = fixed(default=50)
    dim: int = fixed(default=10)
    patterns: int = fixed(default=5)
    classes: Literal[2, 4] = fixed(default=2)
    set_size: int = fixed(default=1)
    noise: Noise = fixed(default="gaussian")
    normalize_tokens: bool = fixed(default=False)
    token_order: Literal["permuted", "fixed"] = fixed(default="permuted")
    fraction_mode: Literal["exact", "random"] = fixed(default="exact")
    rounding: Rounding = fixed(default="alternate")
    balance: Literal["exact", "fair"] = fixed(default="exact")
    background: Literal["even", "spurious_zero", "spurious_fourth"] = fixed(default="even")
    removal: Literal["none", "random", "irrelevant", "noisy", "background"] = fixed(default="none")

    def __check_init__(self):
        _check_sizes(self)
        _check_fractions(self)
        _check_noise(self)

    @property
    def outputs(self) -> int:
        return len(SIGNS[self.classes][0])

    @property
    def rest(self) -> float:
        """alpha_nd."""
        return 1 - self.relevant_fraction - self.confusion_fraction

    @property
    def noise_level(self) -> float | Array:
        """tau: c_0 sqrt(d), the typical length of Gaussian noise, or the radius of a bounded law."""
        return self.noise_std * self.dim**0.5 if self.noise == "gaussian" else self.noise_radius

    def draw_patterns(self, key: Key, dtype: Any) -> Float[Array, "pattern member dim"]:
        """Orthonormal patterns in random directions, or sets of patterns that are orthogonal to each other."""
        return pattern_sets(key, self.patterns, self.dim, dtype, self.set_size, self.set_spread)

    def draw(self, key: Key, patterns: Float[Array, "p s d"], count: int, test: bool = False) -> Sample:
        """`count` samples; the number does not change the first ones."""
        return each(lambda own, index: self.sample(own, patterns, index, test), key, count)

    def sample(
        self, key: Key, patterns: Float[Array, "p s d"], index: Int[Array, ""], test: bool = False
    ) -> Sample:
        """The sample number `index` of a sequence, with its own key."""
        dtype = patterns.dtype
        chance = flat(jax.random.uniform, jax.random.fold_in(key, 0), (6, self.tokens), dtype)
        normal = flat(jax.random.normal, jax.random.fold_in(key, 1), (self.tokens, self.dim), dtype)
        kind, turn = self._kind(chance[0, 0], index)
        role = self._roles(chance[1], turn)
        pattern = self._patterns(chance[0, 1], kind, turn, role, test)
        if self.token_order == "permuted":
            order = ranks(chance[2])
            role, pattern = role[order], pattern[order]
        member = jnp.floor(chance[3] * self.set_size).astype(int)
        clean = jnp.where((pattern == ZERO)[:, None], 0, patterns[pattern, member]).astype(dtype)
        noisy = ranks(chance[4]) < jnp.round(self.noisy_fraction * self.tokens)
        quiet = noise(self.noise, normal, self.noise_std, self.noise_radius)
        tokens = clean + jnp.where(noisy[:, None], self.noisy_std * normal, quiet)
        if self.normalize_tokens:
            tokens = tokens / jnp.linalg.norm(tokens, axis=-1, keepdims=True)
        distance = jnp.linalg.norm(tokens - clean, axis=-1)
        kept = self._kept(chance[5], role, distance).astype(dtype)
        label = jnp.asarray(SIGNS[self.classes])[kind].astype(dtype)
        return Sample(tokens, label, pattern, role == 0, role == 1, distance, noisy, kept)

    def _kind(self, chance: Array, index: Array) -> tuple[Array, Array]:
        """Which discriminative pattern has the majority, and the turn of the sample among those of its kind."""
        if self.balance == "exact":
            return index % self.classes, index // self.classes
        return jnp.floor(chance * self.classes).astype(index.dtype), index

    def _roles(self, chance: Array, turn: Array) -> Int[Array, " tokens"]:
        """0 for relevant tokens, 1 for confusion tokens, 2 for the rest, in blocks."""
        fractions = self.relevant_fraction, self.confusion_fraction
        if self.fraction_mode == "exact":
            return blocks([share_count(f * self.tokens, turn, self.rounding) for f in fractions], self.tokens)
        first, second = chance_counts(chance, fractions)
        tie = (first == second).astype(first.dtype)  # one token more decides the vote
        many, few = jnp.maximum(first, second) + tie, jnp.maximum(jnp.minimum(first, second) - tie, 0)
        return blocks([many, few], self.tokens)

    def _patterns(self, chance: Array, kind: Array, turn: Array, role: Array, test: bool) -> Array:
        ordinal = jnp.arange(self.tokens) + turn
        rival = (kind + 1 + ordinal % (self.classes - 1)) % self.classes
        if self.background == "even":
            back = self.classes + ordinal % (self.patterns - self.classes)
        else:
            rate = 0.5 if test else jnp.where(kind == 0, self.background_rate, 1 - self.background_rate)
            empty = ZERO if self.background == "spurious_zero" else self.classes + 1
            back = jnp.where(chance < rate, self.classes, empty)
        return jnp.where(role == 0, kind, jnp.where(role == 1, rival, back))

    def _kept(self, chance: Array, role: Array, distance: Array) -> Array:
        """All tokens but the first of the removal order."""
        if self.removal == "none":
            return jnp.ones(self.tokens, bool)
        first = {
            "random": chance,
            "irrelevant": (role == 0) + chance,
            "background": (role < 2) + chance,
            "noisy": -distance,
        }[self.removal]
        return ranks(first) >= jnp.round(self.removed_fraction * self.tokens)


class OwnTokens(NamedTuple):
    """Samples that a user hands in: `train(trial, data=OwnTokens(...))`.

    `train` and `test` hold as many samples as the trial says, all of its number of tokens (`own_samples` makes them of tokens
    and labels). `patterns` are the orthonormal directions that weights are looked at along.
    """

    train: Sample
    test: Sample
    patterns: Float[Array, "pattern member dim"]


def own_samples(tokens: Float[Array, "n tokens dim"], label: Float[Array, "n outputs"]) -> Sample:
    """Make samples of tokens and labels (±1), for `OwnTokens`. What only a generator knows is left empty: every token counts as
    non-discriminative, noiseless and kept."""
    shape, no = tokens.shape[:2], jnp.zeros(tokens.shape[:2], bool)
    nothing = jnp.zeros(shape, tokens.dtype)
    return Sample(tokens, label, jnp.full(shape, ZERO), no, no, nothing, no, nothing + 1)


def check_own(data: TokenData, own: OwnTokens) -> None:
    """Refuse samples whose numbers mean nothing, and patterns that are not orthonormal."""
    for name, part in (("train", own.train), ("test", own.test)):
        require_signs(f"data.{name}.label", part.label)
        require_between(f"data.{name}.pattern", part.pattern, ZERO, data.patterns - 1)
        kept = np.asarray(part.kept)
        require(
            bool(np.all(kept >= 0) and np.all(np.any(kept > 0, axis=1))),
            f"data.{name}.kept takes how often a token counts: 0 or more, and more than 0 for some token of every sample.",
        )
        require(
            bool(np.all(np.asarray(part.noise) >= 0)),
            f"data.{name}.noise takes lengths, which are not negative.",
        )
    base = np.asarray(own.patterns, float)
    lengths = np.abs(np.linalg.norm(base, axis=-1) - 1).max()
    products = np.einsum("pad,qbd->paqb", base, base)
    off = max(lengths, *(np.abs(np.delete(products[p], p, axis=1)).max() for p in range(len(base))))
    require(
        off < 1e-5,
        f"data.patterns takes unit vectors, those of different patterns orthogonal; these are off by {off:.3g}.",
    )


def collapse(sample: Sample, patterns: Float[Array, "p s d"]) -> Sample:
    """The sample as one token per pattern that counts as often as the pattern occurs.

    Without token noise and with shared output weights this is the same network output at a cost that does not grow with the
    number of tokens.
    """
    index = jnp.arange(patterns.shape[0])
    here = (sample.pattern[None, :] == index[:, None]).astype(sample.kept.dtype)

    def any_of(mask: Array) -> Array:
        return (here @ mask.astype(sample.kept.dtype)) > 0

    return Sample(
        tokens=patterns[:, 0],
        label=sample.label,
        pattern=index,
        relevant=any_of(sample.relevant),
        confusion=any_of(sample.confusion),
        noise=jnp.zeros_like(sample.noise, shape=index.shape),
        noisy=jnp.zeros(index.shape, bool),
        kept=here @ sample.kept,
    )


# Bad input -------------------------------------------------------------------------------------------------------------


def _check_sizes(data: TokenData) -> None:
    require(data.samples >= 1, f"a training set needs at least one sample, not {data.samples}.")
    require(data.tokens >= 1, f"a sample needs at least one token, not {data.tokens}.")
    require(
        data.patterns <= data.dim,
        f"{data.patterns} orthonormal patterns do not fit into {data.dim} dimensions; use at most that many.",
    )
    require(
        data.patterns > data.classes,
        f"{data.classes} classes need at least {data.classes + 1} patterns (one must be non-discriminative), "
        f"not {data.patterns}.",
    )
    require(data.set_size >= 1, f"a set of patterns needs at least one member, not {data.set_size}.")
    require(
        data.set_size == 1 or 2 * data.patterns <= data.dim,
        f"set-valued patterns need two dimensions per set: {data.patterns} sets do not fit into {data.dim}.",
    )
    require(
        data.background != "spurious_fourth" or data.patterns >= data.classes + 2,
        f"the background 'spurious_fourth' needs at least {data.classes + 2} patterns, not {data.patterns}.",
    )


def _check_fractions(data: TokenData) -> None:
    many, few, nd = data.relevant_fraction, data.confusion_fraction, data.nondiscriminative_fraction
    require(0 < many <= 1, f"relevant_fraction must lie in (0, 1], not {many}.")
    require(0 <= few < 1, f"confusion_fraction must lie in [0, 1), not {few}.")
    require(
        many + few <= 1 + 1e-9,
        f"relevant_fraction {many:g} and confusion_fraction {few:g} sum to {many + few:g}, more than one.",
    )
    require(
        nd is None or abs(many + few + nd - 1) < 1e-6,
        f"the fractions {many:g} (relevant), {few:g} (confusion) and {nd} (rest) do not sum to one.",
    )
    require(
        many > few,
        f"the majority vote needs relevant_fraction > confusion_fraction, not {many:g} and {few:g}.",
    )
    if data.fraction_mode == "exact":
        _check_rounding(data, many, few)
    require(
        0 <= data.removed_fraction < 1, f"removed_fraction must lie in [0, 1), not {data.removed_fraction}."
    )
    room = {"irrelevant": 1 - many, "background": 1 - many - few}.get(data.removal, 1)
    require(
        data.removed_fraction <= room + 1e-9,
        f"removed_fraction {data.removed_fraction:g} exceeds the {room:g} of tokens that are {data.removal}.",
    )


def _check_rounding(data: TokenData, many: float, few: float) -> None:
    """No role may round to nothing in some sample, and no vote to a tie."""
    turns = np.arange(64)
    relevant, confusion = (
        np.broadcast_to(share_count(f * data.tokens, turns, data.rounding), turns.shape) for f in (many, few)
    )
    counts = {"relevant": relevant, "confusion": confusion}
    counts["non-discriminative"] = data.tokens - relevant - confusion
    for (name, count), fraction in zip(counts.items(), (many, few, 1 - many - few), strict=True):
        require(
            fraction < 1e-9 or bool(count.min() >= 1),
            f"a {name} fraction of {fraction:g} of {data.tokens} tokens is {fraction * data.tokens:g}, "
            f"which rounds to none in some samples; use more tokens or another fraction.",
        )
    require(
        bool(np.all(relevant > confusion)),
        f"with {data.tokens} tokens the fractions {many:g} and {few:g} round to a tie in some samples.",
    )


def _check_noise(data: TokenData) -> None:
    require(data.noise_std >= 0, f"noise_std must not be negative, not {data.noise_std}.")
    require(data.noise_radius >= 0, f"noise_radius must not be negative, not {data.noise_radius}.")
    require(
        data.noise != "truncated_gaussian" or data.noise_std > 0,
        "a truncated Gaussian needs a positive noise_std.",
    )
    require(0 <= data.noisy_fraction <= 1, f"noisy_fraction must lie in [0, 1], not {data.noisy_fraction}.")
    require(
        0 <= data.background_rate <= 1, f"background_rate must lie in [0, 1], not {data.background_rate}."
    )
    require(0 < data.set_spread < 2, f"set_spread must lie in (0, 2), not {data.set_spread}.")
