"""Majority-vote tokens: every token is a noisy copy of a pattern, and the label is the discriminative pattern
that occurs more often. Ground truth (pattern, role, noise of every token) comes with every sample."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.errors import require
from lemmata.trial import Key, fixed

ZERO = -1
"""The pattern index of a background token that carries nothing but noise."""


class Sample(NamedTuple):
    """One sample, or many with a leading dimension.

    `label` is (y,) with y = ±1, or two signs for four classes. `pattern[l]` is j-1 for a noisy copy of mu_j,
    or ZERO. `relevant` and `confusion` mark S_* and S_#; `noise` is the distance of a token from its pattern;
    `noisy` marks the tokens drawn with the large noise scale. `kept` is how often a token counts: 1, 0 when
    sparsified away.
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

    - `relevant_fraction`, `confusion_fraction`, `nondiscriminative_fraction`: alpha_*, alpha_#, alpha_nd
      (None: the rest).
    - `noise_std` is c_0 of the Gaussian laws; `noise_radius` is tau of the bounded ones.
    - `noisy_fraction` of the tokens has Gaussian noise of scale `noisy_std` instead.
    - `background`: "even" spreads the non-discriminative tokens over mu_3..mu_M. The spurious kinds fill them
      all with mu_3 with probability `background_rate` if y = +1 and 1 - `background_rate` if y = -1, and else
      leave them empty ("spurious_zero") or fill them with mu_4 ("spurious_fourth").
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
    noise: Literal["gaussian", "truncated_gaussian", "uniform_ball", "sphere"] = fixed(default="gaussian")
    normalize_tokens: bool = fixed(default=False)
    token_order: Literal["permuted", "fixed"] = fixed(default="permuted")
    fraction_mode: Literal["exact", "random"] = fixed(default="exact")
    rounding: Literal["alternate", "floor", "ceil"] = fixed(default="alternate")
    balance: Literal["exact", "fair"] = fixed(default="exact")
    background: Literal["even", "spurious_zero", "spurious_fourth"] = fixed(default="even")
    removal: Literal["none", "random", "irrelevant", "noisy", "background"] = fixed(default="none")

    def __check_init__(self):
        _check_sizes(self)
        _check_fractions(self)
        _check_noise(self)

    @property
    def outputs(self) -> int:
        return 2 if self.classes == 4 else 1

    @property
    def rest(self) -> float:
        """alpha_nd."""
        return 1 - self.relevant_fraction - self.confusion_fraction

    def draw_patterns(self, key: Key, dtype: jnp.dtype) -> Float[Array, "pattern member dim"]:
        """Orthonormal patterns in random directions; the members of a set lie on an arc orthogonal to all
        other sets."""
        frame = jnp.linalg.qr(flat(jax.random.normal, key, (self.dim, self.dim), dtype))[0].T
        centre = frame[: self.patterns, None]
        if self.set_size == 1:
            return centre
        side = frame[self.patterns : 2 * self.patterns, None]
        half = jnp.arcsin(jnp.asarray(self.set_spread, dtype) / 2)
        angle = jnp.linspace(-half, half, self.set_size).astype(dtype)[None, :, None]
        return jnp.cos(angle) * centre + jnp.sin(angle) * side

    def draw(self, key: Key, patterns: Float[Array, "p s d"], count: int, test: bool = False) -> Sample:
        """`count` samples. Sample n has its own key, so that the number of samples does not change the first
        ones."""
        return jax.vmap(lambda index: self.sample(key, patterns, index, test))(jnp.arange(count))

    def sample(
        self, key: Key, patterns: Float[Array, "p s d"], index: Int[Array, ""], test: bool = False
    ) -> Sample:
        """Sample number `index` of the sequence that belongs to `key`."""
        own = jax.random.fold_in(key, index)
        dtype = patterns.dtype
        chance = flat(jax.random.uniform, jax.random.fold_in(own, 0), (6, self.tokens), dtype)
        normal = flat(jax.random.normal, jax.random.fold_in(own, 1), (self.tokens, self.dim), dtype)
        kind, turn = self._kind(chance[0, 0], index)
        relevant, confusion = self._roles(chance[1], turn)
        pattern = self._patterns(chance[0, 1], kind, turn, relevant, confusion, test)
        if self.token_order == "permuted":
            order = _ranks(chance[2])
            relevant, confusion, pattern = relevant[order], confusion[order], pattern[order]
        member = jnp.floor(chance[3] * self.set_size).astype(int)
        clean = jnp.where((pattern == ZERO)[:, None], 0, patterns[pattern, member]).astype(dtype)
        noisy = _ranks(chance[4]) < jnp.round(self.noisy_fraction * self.tokens)
        tokens = clean + self._noise(normal, noisy)
        if self.normalize_tokens:
            tokens = tokens / jnp.linalg.norm(tokens, axis=-1, keepdims=True)
        noise = jnp.linalg.norm(tokens - clean, axis=-1)
        kept = self._kept(chance[5], relevant, confusion, noise).astype(dtype)
        return Sample(
            tokens, self._label(kind).astype(dtype), pattern, relevant, confusion, noise, noisy, kept
        )

    def _kind(self, chance: Array, index: Array) -> tuple[Array, Array]:
        """Which discriminative pattern has the majority, and the turn of the sample among those of its
        kind."""
        if self.balance == "exact":
            return index % self.classes, index // self.classes
        return jnp.floor(chance * self.classes).astype(index.dtype), index

    def _label(self, kind: Array) -> Array:
        if self.classes == 2:
            return jnp.asarray([[1], [-1]])[kind]
        return jnp.asarray([[1, 1], [1, -1], [-1, 1], [-1, -1]])[kind]

    def _roles(self, chance: Array, turn: Array) -> tuple[Array, Array]:
        place = jnp.arange(self.tokens)
        if self.fraction_mode == "exact":
            many = token_count(self.relevant_fraction * self.tokens, turn, self.rounding)
            few = token_count(self.confusion_fraction * self.tokens, turn, self.rounding)
        else:
            first = jnp.sum(chance < self.relevant_fraction)
            second = jnp.sum(chance < self.relevant_fraction + self.confusion_fraction) - first
            tie = (first == second).astype(first.dtype)  # one token more decides the vote
            many, few = jnp.maximum(first, second) + tie, jnp.maximum(jnp.minimum(first, second) - tie, 0)
        return place < many, (place >= many) & (place < many + few)

    def _patterns(
        self, chance: Array, kind: Array, turn: Array, relevant: Array, confusion: Array, test: bool
    ) -> Array:
        ordinal = jnp.arange(self.tokens)
        others = self.classes - 1
        rival = (kind + 1 + (ordinal + turn) % others) % self.classes
        even = self.classes + (ordinal + turn) % (self.patterns - self.classes)
        if self.background == "even":
            back = even
        else:
            rate = 0.5 if test else jnp.where(kind == 0, self.background_rate, 1 - self.background_rate)
            filled = chance < rate
            empty = ZERO if self.background == "spurious_zero" else self.classes + 1
            back = jnp.where(filled, self.classes, empty)
        return jnp.where(relevant, kind, jnp.where(confusion, rival, back))

    def _noise(self, normal: Array, noisy: Array) -> Array:
        along = normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)
        if self.noise == "gaussian":
            quiet = self.noise_std * normal
        elif self.noise == "truncated_gaussian":
            # Each coordinate is cut where the corner of the cube touches the ball, so that the norm is at
            # most tau.
            edge = self.noise_radius / math.sqrt(self.dim) / self.noise_std
            quiet = self.noise_std * _truncated(normal, edge)
        elif self.noise == "uniform_ball":
            quiet = self.noise_radius * along * _ball_radius(normal, self.dim)
        else:
            quiet = self.noise_radius * along
        return jnp.where(noisy[:, None], self.noisy_std * normal, quiet)

    def _kept(self, chance: Array, relevant: Array, confusion: Array, noise: Array) -> Array:
        """All tokens but the first of the removal order."""
        if self.removal == "none":
            return jnp.ones(self.tokens, bool)
        first = {
            "random": chance,
            "irrelevant": relevant + chance,
            "background": (relevant | confusion) + chance,
            "noisy": -noise,
        }[self.removal]
        return _ranks(first) >= jnp.round(self.removed_fraction * self.tokens)


def token_count(mean: float | Array, turn: Array | int, rounding: str) -> Array:
    """How many tokens of a class the sample of this turn has, when a fraction makes `mean` tokens.

    "alternate" spreads the remainder over the samples, so that the average over samples is exactly `mean`
    (2.5 tokens: 3, 2, 3, 2, ...); half a token of offset keeps whole numbers whole under rounding errors.
    """
    slack = 1e-4
    if rounding == "floor":
        return jnp.floor(mean + slack).astype(int)
    if rounding == "ceil":
        return jnp.ceil(mean - slack).astype(int)
    cycle = turn % 1000  # keeps the products small enough for single precision
    return (jnp.floor((cycle + 1) * mean + 0.5) - jnp.floor(cycle * mean + 0.5)).astype(int)


def collapse(sample: Sample, patterns: Float[Array, "p s d"]) -> Sample:
    """The sample as one token per pattern that counts as often as the pattern occurs.

    Without token noise and with shared output weights this is the same network output at a cost that does not
    grow with the number of tokens.
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


class Separation(NamedTuple):
    """How well the tokens of some samples keep their patterns apart (Assumption 3 of the paper, as a
    diagnostic)."""

    cross_inner_max: Array
    same_inner_min: Array
    token_noise_max: Array
    token_noise_typical: float | Array


def separation(data: TokenData, sample: Sample) -> Separation:
    """lambda (the largest inner product of tokens of different patterns), the smallest of equal patterns, and
    tau."""
    tokens, pattern = sample.tokens.reshape(-1, data.dim), sample.pattern.reshape(-1)
    inner = tokens @ tokens.T
    same = pattern[:, None] == pattern[None, :]
    real = (pattern != ZERO)[:, None] & (pattern != ZERO)[None, :]
    typical = data.noise_std * math.sqrt(data.dim) if data.noise == "gaussian" else jnp.median(sample.noise)
    return Separation(
        jnp.max(jnp.where(real & ~same, inner, -jnp.inf)),
        jnp.min(jnp.where(real & same, inner, jnp.inf)),
        jnp.max(sample.noise),
        typical,
    )


def flat(draw: Callable[..., Array], key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Random numbers drawn in one row and then shaped: XLA takes ten times longer to compile the shaped
    draw."""
    return draw(key, (math.prod(shape),), dtype).reshape(shape)


def _ranks(values: Float[Array, " n"]) -> Int[Array, " n"]:
    """The place of every value in increasing order, ties in the order of their index."""
    place = jnp.arange(values.shape[0])
    before = (values[None, :] < values[:, None]) | (
        (values[None, :] == values[:, None]) & (place[None] < place[:, None])
    )
    return jnp.sum(before, axis=1)


def _truncated(normal: Array, edge: Array | float) -> Array:
    """A standard normal number carried monotonically to one that is cut off at ± edge."""
    inside = jnp.abs(jax.scipy.special.ndtr(normal) - 0.5) * 2 * (jax.scipy.special.ndtr(edge) - 0.5)
    return jnp.sign(normal) * jnp.minimum(jax.scipy.special.ndtri(0.5 + inside), edge)


def _ball_radius(normal: Array, dim: int) -> Array:
    """The radius of a uniform point of the unit ball, from the length of a normal vector: P(r <= R) =
    R^dim."""
    return jax.scipy.special.gammainc(dim / 2, jnp.sum(normal**2, axis=-1, keepdims=True) / 2) ** (1 / dim)


# Bad input --------------------------------------------------------------------------------------------------


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
        turns = np.arange(64)
        mean = many * data.tokens, few * data.tokens
        counts = [np.broadcast_to(_counts(m, turns, data.rounding), turns.shape) for m in mean]
        names = ("relevant", "confusion", "non-discriminative")
        wanted = (many, few, 1 - many - few)
        for name, fraction, count in zip(
            names, wanted, (*counts, data.tokens - counts[0] - counts[1]), strict=True
        ):
            require(
                fraction < 1e-9 or count.min() >= 1,
                f"a {name} fraction of {fraction:g} of {data.tokens} tokens is {fraction * data.tokens:g}, "
                f"which rounds to none in some samples; use more tokens or another fraction.",
            )
        require(
            bool(np.all(counts[0] > counts[1])),
            f"with {data.tokens} tokens the fractions {many:g} and {few:g} round to a tie in some samples.",
        )
    require(
        0 <= data.removed_fraction < 1, f"removed_fraction must lie in [0, 1), not {data.removed_fraction}."
    )
    room = {"irrelevant": 1 - many, "background": 1 - many - few}.get(data.removal, 1)
    require(
        data.removed_fraction <= room + 1e-9,
        f"removed_fraction {data.removed_fraction:g} exceeds the {room:g} of tokens that are {data.removal}.",
    )


def _counts(mean: float, turn: np.ndarray, rounding: str) -> np.ndarray:
    return np.asarray(token_count(mean, jnp.asarray(turn), rounding))


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
