"""The shallow vision transformer: softmax self-attention, a ReLU perceptron on every attended token, a frozen vote.

$$F(X) = \\frac{1}{|S|} \\sum_{l \\in S} a_{(l)}^\\top \\mathrm{ReLU}(W_O W_V X\\,
\\mathrm{softmax}(X^\\top W_K^\\top W_Q x_l))$$

The layer itself, with its one-pass derivatives, is `lemmata.parts.votes`; here are the paper's variants of it.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.parts import votes as layer
from lemmata.parts.starts import Initial, carrier, signs, turned, unit_spectral
from lemmata.parts.votes import Folded, Weights, perceptron
from lemmata.studies.shallow_vit.data import Sample, TokenData
from lemmata.trial import Key, fixed

Votes = Float[Array, "place neuron outputs"]
"""The frozen output weights a_(l), ±1/sqrt(m): one row per token position, or a single row when they are shared."""


class Network(eqx.Module):
    """The network and its initial model.

    - `value_error`, `key_query_error`, `hidden_std`: sigma, delta, xi.
    - `hidden_scale`: the entries of W_O have standard deviation xi ("entry", Algorithm 1), or its rows covariance
      xi^2 I/m_a ("row", the proof's (96)).
    - `initial`: how the error is made (see `lemmata.parts.starts.carrier`). "shrink" scales orthonormal matrices by one minus
      the error: the paper's initial model is a scaled identity, and this is the scale that meets Assumption 1 exactly.
    - `attention`: "trained"; "frozen" at its initial weights (the paper's convolutional baseline); "uniform" (logits 0).
    - `sparsify`: removed tokens are left out of the softmax and the mean ("drop") or set to the zero vector ("zero").
    """

    value_error: float = 0.1
    key_query_error: float = 0.2
    hidden_std: float = 0.01
    neurons: int = fixed(default=1000)
    value_dim: int | None = fixed(default=None)
    key_dim: int | None = fixed(default=None)
    heads: int = fixed(default=1)
    hidden_scale: Literal["entry", "row"] = fixed(default="entry")
    output_weights: Literal["per_token", "shared"] = fixed(default="per_token")
    initial: Initial = fixed(default="shrink")
    unit_spectral: bool = fixed(default=False)
    attention: Literal["trained", "frozen", "uniform"] = fixed(default="trained")
    sparsify: Literal["drop", "zero"] = fixed(default="drop")
    skip: bool = fixed(default=False)

    def __check_init__(self):
        require(self.neurons >= 1, f"the perceptron needs at least one neuron, not {self.neurons}.")
        require(self.heads >= 1, f"the network needs at least one head, not {self.heads}.")
        require(self.value_error >= 0, f"value_error must not be negative, not {self.value_error}.")
        require(
            self.key_query_error >= 0, f"key_query_error must not be negative, not {self.key_query_error}."
        )

    # The forward pass --------------------------------------------------------------------------------------------------

    def fold(self, weights: Weights) -> Folded:
        """The products of weights that the output is made of. Attention that is not trained has no derivative here."""
        folded = layer.fold(weights, self.skip)
        if self.attention == "frozen":
            return folded._replace(product=jax.lax.stop_gradient(folded.product))
        if self.attention == "uniform":
            return folded._replace(product=jnp.zeros_like(folded.product))
        return folded

    def attend(self, folded: Folded, sample: Sample) -> Float[Array, "head tokens tokens"]:
        """The attention maps: entry [h, l, s] is how much token l attends to token s in head h; rows sum to one."""
        tokens, kept = self.seen(sample)
        return layer.attention(folded, tokens, tokens, jnp.log(kept))

    def features(self, folded: Folded, sample: Sample) -> Float[Array, "tokens features"]:
        """What `folded.hidden` is applied to: attended tokens of all heads, and the token itself with a skip."""
        tokens, kept = self.seen(sample)
        return layer.features(folded, tokens, tokens, jnp.log(kept), self.skip)

    def margin(self, folded: Folded, votes: Votes, sample: Sample) -> Float[Array, ""]:
        """y F(X), or y . F(X) with two outputs."""
        if votes.shape[-1] == 1:
            return sample.label[0] * self.output(folded, votes[..., 0], sample)
        return self.output(folded, votes @ sample.label, sample)

    def outputs(self, folded: Folded, votes: Votes, sample: Sample) -> Float[Array, " outputs"]:
        """F(X), one number per output."""
        return jnp.stack([self.output(folded, votes[..., k], sample) for k in range(votes.shape[-1])])

    def output(self, folded: Folded, vote: Float[Array, "place neuron"], sample: Sample) -> Float[Array, ""]:
        """The mean over kept tokens of a_(l) . ReLU(W_O c_l)."""
        kept = self.seen(sample)[1]
        per_token = perceptron(self.features(folded, sample), folded.hidden, vote)
        return jnp.sum(kept * per_token) / jnp.sum(kept)

    def seen(self, sample: Sample) -> tuple[Array, Array]:
        """The tokens, and how often each counts."""
        if self.sparsify == "zero":
            return sample.tokens * sample.kept[:, None], jnp.ones_like(sample.kept)
        return sample.tokens, sample.kept

    # The initial model -------------------------------------------------------------------------------------------------

    def start(self, key: Key, data: TokenData, base: Float[Array, "p d"]) -> tuple[Weights, Votes]:
        """The initial weights and the frozen votes. `base` holds one vector per pattern."""
        dtype, dim, count = base.dtype, data.dim, data.patterns
        rows, columns = self.value_dim or dim, self.key_dim or dim
        shapes = [(rows * self.heads, self.neurons)]
        shapes += self.heads * [(rows, rows), (count, columns), (count, columns), (count, rows)]
        # One draw for all: every call of the generator costs a fraction of a second of compilation.
        normal = jax.random.normal(key, (sum(a * b for a, b in shapes),), dtype)
        hidden, *rest = _cut(normal, shapes)
        heads = [self._head(rest[4 * h : 4 * h + 4], data, base) for h in range(self.heads)]
        query, key_weights, value = (jnp.stack(part) for part in zip(*heads, strict=True))
        places = data.tokens if self.output_weights == "per_token" else 1
        size = 1 / jnp.sqrt(jnp.asarray(self.neurons, dtype))
        votes = signs(jax.random.fold_in(key, 1), (places, self.neurons, data.outputs), size, dtype)
        xi = self.hidden_std if self.hidden_scale == "entry" else self.hidden_std / rows**0.5
        return Weights(query, key_weights, value, xi * hidden), votes

    def _head(
        self, normal: list[Array], data: TokenData, base: Float[Array, "p d"]
    ) -> tuple[Array, Array, Array]:
        """W_Q, W_K, W_V of one head, from normal numbers. Keys and queries start in the frame of the tokens (q_j = r_j =
        mu_j), which is no loss: a common rotation of both changes nothing. Values start in a random frame U (p_j = U mu_j).
        """
        turn, *aims = normal
        eye = jnp.eye(self.key_dim or data.dim, data.dim, dtype=base.dtype)
        frames = eye, eye, turned(turn, data.dim)
        errors = self.key_query_error, self.key_query_error, self.value_error
        made = [
            carrier(self.initial, frame, error, base, aim, data.noise_std)
            for frame, error, aim in zip(frames, errors, aims, strict=True)
        ]
        query, key, value = (unit_spectral(w) for w in made) if self.unit_spectral else made
        return query, key, value - jnp.eye(data.dim, dtype=base.dtype) if self.skip else value


def _cut(row: Float[Array, " n"], shapes: list[tuple[int, int]]) -> list[Array]:
    ends = np.cumsum([a * b for a, b in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(jnp.split(row, ends), shapes, strict=True)]


def check_shapes(network: Network, data: TokenData) -> None:
    """One sentence for a network that does not fit its data."""
    for name in ("value_dim", "key_dim"):
        size = getattr(network, name)
        require(
            size is None or size >= data.dim,
            f"{name} {size} is below the token dimension {data.dim}; the initial weights keep lengths.",
        )
    require(
        not network.skip or (network.heads == 1 and network.value_dim in (None, data.dim)),
        "a skip connection needs one head and values of the same dimension as the tokens.",
    )
    require(
        network.initial != "amplified_complement" or data.patterns < data.dim,
        "the initial model 'amplified_complement' needs more dimensions than patterns.",
    )
    require(
        network.initial in ("perturbed", "shrink") or data.noise_std > 0,
        f"the initial model '{network.initial}' divides by the token noise: noise_std must be positive.",
    )
