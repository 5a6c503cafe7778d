"""The shallow vision transformer: softmax self-attention, a ReLU perceptron on every attended token, a frozen
vote.

$$F(X) = \\frac{1}{|S|} \\sum_{l \\in S} a_{(l)}^\\top \\mathrm{ReLU}(W_O W_V X\\, \\mathrm{softmax}(X^\\top
W_K^\\top W_Q x_l))$$

With tokens as rows, `tokens[l]` is x_l; `hidden` is W_O transposed, so that neurons are contiguous in memory.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.studies.shallow_vit.data import Sample, TokenData, flat
from lemmata.trial import Key, fixed


class Weights(NamedTuple):
    """What training moves: W_Q, W_K, W_V of every head, and W_O (transposed, heads stacked along
    `features`)."""

    query: Float[Array, "head key dim"]
    key: Float[Array, "head key dim"]
    value: Float[Array, "head value dim"]
    hidden: Float[Array, "features neuron"]


class Folded(NamedTuple):
    """The weights as the output sees them, and as the descent accumulates gradients.

    Keys and queries only enter through W_Q^T W_K, values and neurons only through W_O W_V. With x'_l the
    attended tokens, W_O c_l = (W_O W_V) x'_l, so that a sample costs four products with its attention map and
    three with its token-by-neuron array; what belongs to W_Q, W_K, W_V, W_O apart is done once a batch.
    """

    product: Float[Array, "head dim dim"]
    hidden: Float[Array, "features neuron"]


Votes = Float[Array, "place neuron outputs"]
"""The frozen output weights a_(l), ±1/sqrt(m): one row per token position, or a single row when they are
shared."""


class Network(eqx.Module):
    """The network and its initial model.

    - `value_error`, `key_query_error`, `hidden_std`: sigma, delta, xi.
    - `initial`: how the error is made. "perturbed" turns every pattern's image by a random vector of that
      length; "shrink" scales by one minus the error; "amplified_complement" blows up token noise outside the
      span of the patterns to that length; "literal" and "literal_sqrt" are the printed scalings delta^2/c_0^2
      and delta/c_0.
    - `attention`: "trained"; "frozen" at its initial weights (the paper's convolutional baseline); "uniform"
      (logits 0).
    - `sparsify`: removed tokens are left out of the softmax and the mean ("drop") or set to the zero vector
      ("zero").
    """

    value_error: float = 0.1
    key_query_error: float = 0.2
    hidden_std: float = 0.01
    neurons: int = fixed(default=1000)
    value_dim: int | None = fixed(default=None)
    key_dim: int | None = fixed(default=None)
    heads: int = fixed(default=1)
    output_weights: Literal["per_token", "shared"] = fixed(default="per_token")
    initial: Literal["perturbed", "shrink", "amplified_complement", "literal", "literal_sqrt"] = fixed(
        default="perturbed"
    )
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

    # The forward pass ---------------------------------------------------------------------------------------

    def fold(self, weights: Weights) -> Folded:
        """The products of weights that the output is made of. Frozen attention has no derivative here."""
        product = jnp.einsum("hkd,hke->hde", weights.query, weights.key)
        if self.attention == "frozen":
            product = jax.lax.stop_gradient(product)
        per_head = weights.hidden.reshape(self.heads, -1, self.neurons)
        hidden = jnp.einsum("hvd,hvm->hdm", weights.value, per_head).reshape(-1, self.neurons)
        return Folded(product, jnp.concatenate([hidden, weights.hidden]) if self.skip else hidden)

    def attend(self, folded: Folded, sample: Sample) -> Float[Array, "head tokens tokens"]:
        """The attention maps: entry [h, l, s] is how much token l attends to token s in head h; rows sum to
        one."""
        tokens, kept = self._seen(sample)
        logits = [self._logits(folded.product[head], tokens, kept) for head in range(self.heads)]
        return jax.nn.softmax(jnp.stack(logits), axis=-1)

    def features(self, folded: Folded, sample: Sample) -> Float[Array, "tokens features"]:
        """What `folded.hidden` is applied to: the attended tokens of all heads, and the token itself with a
        skip."""
        tokens, kept = self._seen(sample)
        logits = [self._logits(folded.product[head], tokens, kept) for head in range(self.heads)]
        seen = [attended(one, tokens) for one in logits]
        seen += [tokens] if self.skip else []
        return seen[0] if len(seen) == 1 else jnp.concatenate(seen, axis=-1)

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
        kept = self._seen(sample)[1]
        per_token = perceptron(self.features(folded, sample), folded.hidden, vote)
        return jnp.sum(kept * per_token) / jnp.sum(kept)

    def _seen(self, sample: Sample) -> tuple[Array, Array]:
        if self.sparsify == "zero":
            return sample.tokens * sample.kept[:, None], jnp.ones_like(sample.kept)
        return sample.tokens, sample.kept

    def _logits(self, product: Array, tokens: Array, kept: Array) -> Array:
        logits = (tokens @ product) @ tokens.T
        if self.attention == "uniform":
            logits = jnp.zeros_like(logits)
        return logits + jnp.log(kept)

    # The initial model --------------------------------------------------------------------------------------

    def start(self, key: Key, data: TokenData, patterns: Float[Array, "p s d"]) -> tuple[Weights, Votes]:
        """The initial weights and the frozen votes."""
        dtype, dim, count = patterns.dtype, data.dim, data.patterns
        rows, columns = self.value_dim or dim, self.key_dim or dim
        shapes = [(rows * self.heads, self.neurons)]
        shapes += self.heads * [(rows, rows), (count, columns), (count, columns), (count, rows)]
        # One draw for all: every call of the generator costs a fraction of a second of compilation.
        normal = jax.random.normal(key, (sum(a * b for a, b in shapes),), dtype)
        hidden, *rest = _cut(normal, shapes)
        heads = [self._head(rest[4 * h : 4 * h + 4], data, patterns[:, 0]) for h in range(self.heads)]
        query, key_weights, value = (jnp.stack(part) for part in zip(*heads, strict=True))
        places = data.tokens if self.output_weights == "per_token" else 1
        signs = flat(
            jax.random.rademacher, jax.random.fold_in(key, 1), (places, self.neurons, data.outputs), dtype
        )
        votes = signs / jnp.sqrt(jnp.asarray(self.neurons, dtype))
        return Weights(query, key_weights, value, self.hidden_std * hidden), votes

    def _head(
        self, normal: list[Array], data: TokenData, base: Float[Array, "p d"]
    ) -> tuple[Array, Array, Array]:
        """W_Q, W_K, W_V of one head, from normal numbers. Keys and queries start in the frame of the tokens
        (q_j = r_j = mu_j), which is no loss: a common rotation of both changes nothing. Values start in a
        random frame U (p_j = U mu_j)."""
        turn, query, key, value = normal
        dtype, dim = base.dtype, data.dim
        eye = jnp.eye(self.key_dim or dim, dim, dtype=dtype)
        frame = jnp.linalg.qr(turn)[0][:, :dim]
        sigma, delta = self.value_error, self.key_query_error
        if self.initial == "perturbed":
            made = eye + delta * _push(query, base), eye + delta * _push(key, base)
            made = (*made, frame + sigma * _push(value, base))
        elif self.initial == "shrink":
            made = (1 - delta) * eye, (1 - delta) * eye, (1 - sigma) * frame
        elif self.initial == "amplified_complement":
            inside = base.T @ base
            per_noise = data.noise_std * jnp.sqrt(jnp.asarray(dim - base.shape[0], dtype))
            stretch = [
                inside + error / per_noise * (jnp.eye(dim, dtype=dtype) - inside) for error in (delta, sigma)
            ]
            made = eye @ stretch[0], eye @ stretch[0], frame @ stretch[1]
        else:
            power = 2 if self.initial == "literal" else 1
            size = (delta / data.noise_std) ** power
            made = size * eye, size * eye, (sigma / data.noise_std) ** power * frame
        if self.unit_spectral:
            made = tuple(w / jnp.maximum(1, jnp.linalg.norm(w, 2)) for w in made)
        query_weights, key_weights, value_weights = made
        return (
            query_weights,
            key_weights,
            value_weights - jnp.eye(dim, dtype=dtype) if self.skip else value_weights,
        )


def _push(aim: Float[Array, "p out"], base: Float[Array, "p d"]) -> Array:
    """A matrix that sends pattern j to the unit vector along `aim[j]`, and what is orthogonal to all patterns
    to zero."""
    return (aim / jnp.linalg.norm(aim, axis=-1, keepdims=True)).T @ base


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


# The two layers, each with a derivative that passes its largest array once -----------------------------------


@jax.custom_vjp
def attended(
    logits: Float[Array, "tokens tokens"], tokens: Float[Array, "tokens dim"]
) -> Float[Array, "tokens dim"]:
    """x'_l = sum_s A_ls x_s with A = softmax(logits) along each row.

    The derivative of the softmax needs sum_s A_ls dA_ls, which is x'_l . dx'_l: a sum over the dimension instead of one
    over all tokens.
    """
    return _attended_forward(logits, tokens)[0]


def _attended_forward(logits: Array, tokens: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    attention = jax.nn.softmax(logits, axis=-1)
    mixed = attention @ tokens
    return mixed, (attention, mixed, tokens)


def _attended_backward(saved: tuple[Array, Array, Array], cotangent: Array) -> tuple[Array, Array]:
    attention, mixed, tokens = saved
    common = jnp.sum(mixed * cotangent, axis=-1, keepdims=True)
    return attention * (cotangent @ tokens.T - common), attention.T @ cotangent


attended.defvjp(_attended_forward, _attended_backward)


@jax.custom_vjp
def perceptron(
    features: Float[Array, "tokens features"],
    hidden: Float[Array, "features neuron"],
    vote: Float[Array, "place neuron"],
) -> Float[Array, " tokens"]:
    """a_(l) . ReLU(W f_l) for every token l with features f_l.

    With the open gates g_l = a_(l) * 1[W f_l > 0] and u_l = W^T g_l, the output is u_l . f_l, its gradient in
    f_l is u_l, and in W is g_l f_l^T. So one token-by-neuron array, made once, serves the value and both
    gradients; automatic differentiation of the ReLU makes three, and they leave the cache.
    """
    return _perceptron_forward(features, hidden, vote)[0]


VECTOR = 16
"""Single-precision numbers in a vector register: products with fewer columns than that leave lanes idle."""


def _perceptron_forward(
    features: Array, hidden: Array, vote: Array
) -> tuple[Array, tuple[Array, Array, Array]]:
    count = hidden.shape[0]
    gates = jnp.where(_preactivation(features, hidden) > 0, vote, 0)
    pull = (gates @ jnp.pad(hidden, ((0, -count % VECTOR), (0, 0))).T)[:, :count]
    return jnp.sum(pull * features, axis=-1), (gates, pull, features)


def _preactivation(features: Array, hidden: Array) -> Array:
    """W f_l. A short sum is written out: XLA then makes the gates in the same loop and never stores it."""
    if hidden.shape[0] > VECTOR:
        return features @ hidden
    return sum(
        (features[:, j, None] * hidden[j] for j in range(1, hidden.shape[0])),
        features[:, 0, None] * hidden[0],
    )


def _perceptron_backward(saved: tuple[Array, Array, Array], cotangent: Array) -> tuple[Array, Array, None]:
    gates, pull, features = saved
    weight = cotangent[:, None]
    return weight * pull, (weight * features).T @ gates, None


perceptron.defvjp(_perceptron_forward, _perceptron_backward)


# Assumption 1 -----------------------------------------------------------------------------------------------


class InitialErrors(NamedTuple):
    """The smallest errors found for which the weights satisfy Assumption 1, and the largest spectral norm."""

    value: Float[Array, ""]
    key_query: Float[Array, ""]
    spectral: Float[Array, ""]


def initial_errors(
    weights: Weights, patterns: Float[Array, "p s d"], discriminative: int = 2, skip: bool = False
) -> InitialErrors:
    """sigma and delta of Assumption 1 for given weights, as the worst over patterns and heads.

    The orthonormal systems are polar factors (the closest orthonormal systems in the Frobenius norm); the key
    and query systems share their discriminative vectors (q_1 = r_1, q_2 = r_2) exactly, so the errors are
    certificates: with these systems the assumption holds at the reported size.
    """
    base = patterns[:, 0]

    def head(query: Array, key: Array, value: Array) -> tuple[Array, Array, Array]:
        carried = value + jnp.eye(*value.shape, dtype=value.dtype) if skip else value
        sigma = _off(carried @ base.T, _polar(carried @ base.T))
        keys, queries = key @ base.T, query @ base.T
        shared = _polar((keys[:, :discriminative] + queries[:, :discriminative]) / 2)
        delta = jnp.maximum(_off(keys, _complete(shared, keys)), _off(queries, _complete(shared, queries)))
        return sigma, delta, jnp.stack([jnp.linalg.norm(w, 2) for w in (query, key, value)]).max()

    sigma, delta, spectral = jax.vmap(head)(weights.query, weights.key, weights.value)
    return InitialErrors(sigma.max(), delta.max(), spectral.max())


def _polar(columns: Array) -> Array:
    left, _, right = jnp.linalg.svd(columns, full_matrices=False)
    return left @ right


def _complete(shared: Array, columns: Array) -> Array:
    """The shared orthonormal columns, then the orthonormal columns closest to the rest in their
    complement."""
    rest = columns[:, shared.shape[1] :]
    return jnp.concatenate([shared, _polar(rest - shared @ (shared.T @ rest))], axis=1)


def _off(columns: Array, target: Array) -> Array:
    return jnp.linalg.norm(columns - target, axis=0).max()
