"""Where a training begins: a draw of data and weights as they are, or as the reduced forms need them.

`explicit_instance` projects explicit data and weights; `wishart_instance` draws the reduced variables in law, without ever
forming a token or a weight, for dimensions that no matrix could have.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.reduce.span import span_basis
from lemmata.studies.benign_overfitting.data import Data, Features, draw, draw_labels, gather
from lemmata.studies.benign_overfitting.network import Network, Weights, draw_weights
from lemmata.trial import Key


class Fresh(NamedTuple):
    """Test points as the reduced forms see them: noise rows that are moved along but move nothing themselves.

    `cross`: inner products of the noise rows with the training features. `query`, `key`: their rows in the basis of the
    training rows. `logits`: within each fresh sample, at the start.
    """

    labels: Float[Array, " fresh"]
    cross: Float[Array, "rows features"]
    query: Float[Array, "rows basis"]
    key: Float[Array, "rows basis"]
    value: Float[Array, " rows"]
    logits: Float[Array, "fresh query key"]

    def tokens(
        self, signals: Float[Array, "2 *rest"], rows: Float[Array, "rows *rest"]
    ) -> Float[Array, "fresh token *rest"]:
        """From rows to the tokens of each fresh sample; its signal is one of the training features."""
        return gather(jnp.concatenate([signals, rows]), self.labels)


class Instance(NamedTuple):
    """A draw of data and weights as the reduced forms need it: G, and Q, K (in an orthonormal basis of their joint
    span), u at the start."""

    labels: Float[Array, " samples"]
    gram: Float[Array, "features features"]
    query: Float[Array, "features basis"]
    key: Float[Array, "features basis"]
    value: Float[Array, " features"]
    readout_square: Float[Array, ""]
    fresh: Fresh

    @property
    def fresh_labels(self) -> Array:
        return self.fresh.labels


class Explicit(NamedTuple):
    """A draw of data and weights as they are."""

    train: Features
    test: Features
    weights: Weights

    @property
    def labels(self) -> Array:
        return self.train.labels

    @property
    def fresh_labels(self) -> Array:
        return self.test.labels

    @property
    def readout_square(self) -> Array:
        return jnp.sum(self.weights.readout**2)


def draw_explicit(data: Data, network: Network, test_points: int, key: Key, dtype: str) -> Explicit:
    train_key, test_key, weight_key = jax.random.split(key, 3)
    weights = draw_weights(network, weight_key, data.dim, dtype)
    return Explicit(
        draw(data, train_key, data.samples, dtype), draw(data, test_key, test_points, dtype), weights
    )


def explicit_instance(drawn: Explicit) -> Instance:
    """The reduced variables of explicit data and weights."""
    (rows, labels), (fresh, fresh_labels), weights = drawn
    noise = fresh[2:]  # signals are those of the training set
    query, key = rows @ weights.query, rows @ weights.key
    fresh_query, fresh_key = noise @ weights.query, noise @ weights.key
    value_of = weights.value @ weights.readout
    all_of = [(query, fresh_query), (key, fresh_key)]
    tokens = [gather(jnp.concatenate([own[:2], new]), fresh_labels) for own, new in all_of]
    logits = jnp.einsum("nih,njh->nij", *tokens)
    if 2 * rows.shape[0] < weights.query.shape[1]:
        basis = span_basis(jnp.concatenate([query, key]))
        query, key, fresh_query, fresh_key = (m @ basis for m in (query, key, fresh_query, fresh_key))
    return Instance(
        labels=labels,
        gram=rows @ rows.T,
        query=query,
        key=key,
        value=rows @ value_of,
        readout_square=jnp.sum(weights.readout**2),
        fresh=Fresh(fresh_labels, noise @ rows.T, fresh_query, fresh_key, noise @ value_of, logits),
    )


def wishart_instance(data: Data, network: Network, test_points: int, key: Key, dtype: str) -> Instance:
    """The reduced variables drawn in law, without ever forming a token or a weight: any `dim` and `key_dim`.

    Noise tokens in an orthonormal frame that follows them one by one are a lower triangular matrix with independent
    entries (Bartlett): normals below the diagonal, chi with falling degrees of freedom on it. The frame's images under
    Gaussian W_Q and W_K are independent Gaussian rows, to which the same applies in dimension d_h. Each fresh point is
    drawn given the training set, in its own exact law.
    """
    extra = data.tokens - 1
    features = data.features
    require(
        network.init == "gaussian",
        "sampling=wishart needs network.init=gaussian: only a Gaussian is rotation invariant.",
    )
    require(
        data.dim >= features + extra,
        f"sampling=wishart needs data.dim of at least {features + extra}, not {data.dim}.",
    )
    require(
        network.key_dim >= 2 * (features + extra),
        f"sampling=wishart needs network.key_dim of at least {2 * (features + extra)}, not {network.key_dim}.",
    )
    keys = iter(jax.random.split(key, 9))
    std = data.noise_std(dtype)
    labels = draw_labels(data, next(keys), data.samples, dtype)
    fresh_labels = draw_labels(data, next(keys), test_points, dtype)

    on_signal = 0.0 if data.orthogonal_noise else 1.0
    frame = bartlett(next(keys), features - 2, data.dim - 2, dtype)
    beside = on_signal * jax.random.normal(next(keys), (features - 2, 2), dtype)
    noise = jnp.tile(std, data.samples)[:, None] * jnp.concatenate([beside, frame], axis=1)
    rows = jnp.concatenate([data.signal_norm * jnp.eye(2, features, dtype=dtype), noise])

    images = network.std_qk * bartlett(next(keys), 2 * features, network.key_dim, dtype)
    query, key_rows = rows @ images[:features], rows @ images[features:]
    value_std = network.std_value * network.readout_norm
    value_images = value_std * jax.random.normal(next(keys), (features,), dtype)

    def fresh(one: Key, label: Array) -> tuple[Array, ...]:
        ks = jax.random.split(one, 5)
        seen = jax.random.normal(ks[0], (extra, features), dtype).at[:, :2].multiply(on_signal)
        own = bartlett(ks[1], extra, data.dim - features, dtype)
        own_seen = network.std_qk * jax.random.normal(ks[2], (2 * extra, 2 * features), dtype)
        own_images = network.std_qk * bartlett(ks[3], 2 * extra, network.key_dim - 2 * features, dtype)
        own_values = value_std * jax.random.normal(ks[4], (extra,), dtype)
        q_seen = std[:, None] * (seen @ images[:features] + own @ own_seen[:extra])
        k_seen = std[:, None] * (seen @ images[features:] + own @ own_seen[extra:])
        q_own, k_own = (std[:, None] * (own @ part) for part in (own_images[:extra], own_images[extra:]))
        signal = jnp.where(label > 0, 0, 1)
        q_all, k_all = jnp.vstack([query[signal], q_seen]), jnp.vstack([key_rows[signal], k_seen])
        logits = (q_all @ k_all.T).at[1:, 1:].add(q_own @ k_own.T)
        values = std * (seen @ value_images + own @ own_values)
        return std[:, None] * seen @ rows.T, q_seen, k_seen, values, logits

    cross, q_seen, k_seen, values, logits = jax.vmap(fresh)(
        jax.random.split(next(keys), test_points), fresh_labels
    )
    return Instance(
        labels=labels,
        gram=rows @ rows.T,
        query=query,
        key=key_rows,
        value=rows @ value_images,
        readout_square=jnp.asarray(network.readout_norm**2, dtype),
        fresh=Fresh(
            labels=fresh_labels,
            cross=cross.reshape(-1, features),
            query=q_seen.reshape(-1, 2 * features),
            key=k_seen.reshape(-1, 2 * features),
            value=values.reshape(-1),
            logits=logits,
        ),
    )


def bartlett(key: Key, rows: int, freedom: int, dtype: str) -> Float[Array, "rows rows"]:
    """Lower triangular R with R R^T ~ Wishart(I, freedom)."""
    normal_key, chi_key = jax.random.split(key)
    below = jnp.tril(jax.random.normal(normal_key, (rows, rows), dtype), -1)
    degrees = (float(freedom) - jnp.arange(rows, dtype="float64")).astype(dtype)
    return below + jnp.diag(jnp.sqrt(jax.random.chisquare(chi_key, degrees, dtype=dtype)))
