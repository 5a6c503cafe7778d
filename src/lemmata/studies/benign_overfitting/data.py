"""The data model (Definition 3.1): one signal token, one strong noise token, weak noise tokens.

    x_1 = mu_y,   x_2 ~ N(0, (C_p sigma_p)^2 Pi),   x_i ~ N(0, sigma_p^2 Pi)  for i = 3..M

with orthogonal signals mu_+ = |mu| e_1, mu_- = |mu| e_2. In the theory Pi projects the noise off both signals; in the
paper's experiments the noise is isotropic (Pi = I).
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.threefry import key_of
from lemmata.trial import Key, fixed


class Data(eqx.Module):
    """The distribution and the size of the training set."""

    signal_norm: float = 50.0
    weak_noise: float = 0.2
    noise_ratio: float = 20.0
    samples: int = fixed(default=10)
    tokens: int = fixed(default=16)
    dim: int = fixed(default=1024)
    orthogonal_noise: bool = fixed(default=False)
    balanced_labels: bool = fixed(default=True)

    def __check_init__(self):
        require(self.samples > 0, f"the training set needs at least one sample, not {self.samples}.")
        require(
            self.tokens >= 2,
            f"a sample needs a signal and a noise token: tokens must be 2 or more, not {self.tokens}.",
        )
        require(
            self.dim >= 3, f"the input dimension must be 3 or more (two signals and noise), not {self.dim}."
        )
        for name in ("signal_norm", "weak_noise", "noise_ratio"):
            value = getattr(self, name)
            require(math.isfinite(value) and value > 0, f"{name} must be a positive number, not {value}.")

    @property
    def features(self) -> int:
        """P = 2 + N(M-1): the two signals and every noise token of the training set."""
        return 2 + self.samples * (self.tokens - 1)

    @property
    def snr(self) -> float:
        """SNR = |mu| / (sigma_p sqrt(d)); note that it uses the weak noise."""
        return self.signal_norm / (self.weak_noise * self.dim**0.5)

    @property
    def control(self) -> float:
        """N SNR^2, the number that decides."""
        return self.samples * self.snr**2

    def noise_std(self, dtype: str) -> Float[Array, " noise_tokens"]:
        """The standard deviation of each noise token of a sample: one strong, the others weak."""
        ratios = jnp.ones(self.tokens - 1, dtype).at[0].set(self.noise_ratio)
        return ratios * jnp.asarray(self.weak_noise, dtype)


class Features(NamedTuple):
    """Samples as the features they are made of: the two signals (rows 0 and 1), then all noise tokens, by sample."""

    rows: Float[Array, "features dim"]
    labels: Float[Array, " samples"]


def draw_labels(data: Data, key: Key, samples: int, dtype: str) -> Float[Array, " samples"]:
    """Labels in {-1, +1}: alternating when balanced, else independent fair coins, one key a sample."""
    if data.balanced_labels:
        return jnp.where(jnp.arange(samples) % 2 == 0, 1, -1).astype(dtype)
    return jax.vmap(lambda k: jax.random.rademacher(k, (), dtype=dtype))(sample_keys(key, samples))


def draw(data: Data, key: Key, samples: int, dtype: str) -> Features:
    """Draw samples as features; a larger sample begins with the same points as a smaller one."""
    label_key, noise_key = jax.random.split(key)
    keys = jax.random.key_data(sample_keys(noise_key, samples))
    # one after another: drawn at once, they become part of the concatenation, which then takes three times as long
    noise = jax.lax.map(lambda k: jax.random.normal(key_of(k), (data.tokens - 1, data.dim), dtype), keys)
    noise = noise * data.noise_std(dtype)[:, None]
    if data.orthogonal_noise:
        noise = noise.at[:, :, :2].set(0)
    signals = data.signal_norm * jnp.eye(2, data.dim, dtype=dtype)
    rows = jnp.concatenate([signals, noise.reshape(-1, data.dim)])
    return Features(rows, draw_labels(data, label_key, samples, dtype))


def sample_keys(key: Key, samples: int) -> Key:
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(samples))


def gather(
    rows: Float[Array, "features *rest"], labels: Float[Array, " samples"]
) -> Float[Array, "samples tokens *rest"]:
    """From features to tokens: sample n has the signal of its label first, then its own noise."""
    signal = jnp.where(labels.reshape(-1, 1, *(1,) * (rows.ndim - 1)) > 0, rows[None, :1], rows[None, 1:2])
    noise = rows[2:].reshape(labels.shape[0], -1, *rows.shape[1:])
    return jnp.concatenate([signal, noise], axis=1)


def scatter(
    tokens: Float[Array, "samples tokens *rest"], labels: Float[Array, " samples"]
) -> Float[Array, "features *rest"]:
    """The transpose of `gather`: adds up what belongs to the same feature."""
    positive = (labels > 0).astype(tokens.dtype)
    signals = jnp.tensordot(jnp.stack([positive, 1 - positive]), tokens[:, 0], axes=1)
    return jnp.concatenate([signals, tokens[:, 1:].reshape(-1, *tokens.shape[2:])])


def feature_index(labels: Float[Array, " samples"], tokens: int) -> Array:
    """a(n, i): the feature row of token i of sample n."""
    samples = labels.shape[0]
    noise = 2 + jnp.arange(samples * (tokens - 1)).reshape(samples, tokens - 1)
    return jnp.concatenate([jnp.where(labels > 0, 0, 1)[:, None], noise], axis=1)
