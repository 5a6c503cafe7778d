"""Four ways to follow the same training: weights, rows, Gram matrices, leading order.

`direct` differentiates the loss in the weights. The others are the proof's own variables. With F the features (signals
and noise tokens of the training set, P rows), G = F F^T, Q = F W_Q, K = F W_K, u = F W_V w_O, gradient descent reads

    S[a(n,i), a(n,j)] += y_n g_n s_nij / (NM),      s_nij = phi_nij (V_nj - sum_k phi_nik V_nk)
    r[a(n,j)]         += y_n g_n sum_i phi_nij / (NM)
    alpha = eta G S,   beta = eta G S^T
    Q += alpha K,      K += beta Q,      u += eta |w_O|^2 G r                       (Lemma B.2, Eqs 181-195)

`row` carries Q and K, in a basis of their own span, which never grows (at most 2P dimensions). `gram` carries A = Q Q^T,
B = K K^T, C = Q K^T, closed under the same step (Lemma B.3, Eqs 196-214). Both are exact. `leading-order` keeps the
logits alone, with squared norms frozen at their start (Eq. 298).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import Descent, Fit, advance, begin, logistic_loss
from lemmata.errors import require
from lemmata.reduce.span import span_basis
from lemmata.studies.benign_overfitting.data import (
    Data,
    Features,
    draw,
    draw_labels,
    feature_index,
    gather,
    scatter,
)
from lemmata.studies.benign_overfitting.network import Network, Weights, draw_weights, look, output
from lemmata.trial import Key


class View(NamedTuple):
    """What every simulator can show of its training samples."""

    logits: Float[Array, "samples query key"]
    values: Float[Array, "samples token"]
    query_norms: Float[Array, " features"]
    key_norms: Float[Array, " features"]


class Drive(NamedTuple):
    """What one gradient step needs of the forward pass."""

    centred: Float[Array, "samples query key"]
    attended: Float[Array, "samples key"]


def drive(view: View, labels: Float[Array, " samples"]) -> Drive:
    """`y_n g_n s_nij / (NM)` and `y_n g_n sum_i phi_nij / (NM)`: the entries of S and r."""
    samples, tokens = view.values.shape
    attention = jax.nn.softmax(view.logits, axis=-1)
    mean_value = jnp.einsum("nij,nj->ni", attention, view.values)
    slope = jax.nn.sigmoid(-labels * jnp.mean(mean_value, axis=-1))
    weight = (labels * slope / (samples * tokens))[:, None, None]
    centred = weight * attention * (view.values[:, None, :] - mean_value[:, :, None])
    return Drive(centred, jnp.sum(weight * attention, axis=1))


def score_driver(
    drive: Drive, labels: Float[Array, " samples"], features: int
) -> Float[Array, "features features"]:
    """The matrix S, dense."""
    index = feature_index(labels, drive.attended.shape[1])
    empty = jnp.zeros((features, features), drive.centred.dtype)
    return empty.at[index[:, :, None], index[:, None, :]].add(drive.centred)


# Instances: where the reduced forms begin ------------------------------------------------------------------------------


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


class Explicit(NamedTuple):
    """A draw of data and weights as they are."""

    train: Features
    test: Features
    weights: Weights


def draw_explicit(data: Data, network: Network, test_points: int, key: Key, dtype: str) -> Explicit:
    train_key, test_key, weight_key = jax.random.split(key, 3)
    weights = draw_weights(network, weight_key, data.dim, dtype)
    return Explicit(
        draw(data, train_key, data.samples, dtype), draw(data, test_key, test_points, dtype), weights
    )


def explicit_instance(drawn: Explicit) -> Instance:
    """The reduced variables of explicit data and weights."""
    (rows, labels), (fresh, fresh_labels), weights = drawn
    query, key = rows @ weights.query, rows @ weights.key
    fresh_query, fresh_key = fresh @ weights.query, fresh @ weights.key
    value_of = weights.value @ weights.readout
    logits = jnp.einsum("nih,njh->nij", gather(fresh_query, fresh_labels), gather(fresh_key, fresh_labels))
    if 2 * rows.shape[0] < weights.query.shape[1]:
        basis = span_basis(jnp.concatenate([query, key]))
        query, key, fresh_query, fresh_key = (m @ basis for m in (query, key, fresh_query, fresh_key))
    noise = fresh[2:]
    return Instance(
        labels=labels,
        gram=rows @ rows.T,
        query=query,
        key=key,
        value=rows @ value_of,
        readout_square=jnp.sum(weights.readout**2),
        fresh=Fresh(fresh_labels, noise @ rows.T, fresh_query[2:], fresh_key[2:], noise @ value_of, logits),
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
    degrees = (freedom - jnp.arange(rows, dtype="float64")).astype(dtype)
    return below + jnp.diag(jnp.sqrt(jax.random.chisquare(chi_key, degrees, dtype=dtype)))


# Row form --------------------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Q, K, u; and sums of what was fed in, which is all that moves the fresh rows."""

    start: Instance
    query: Array
    key: Array
    value: Array
    fed_query: Array
    fed_key: Array
    fed_value: Array

    @staticmethod
    def begin(start: Instance) -> "Rows":
        rows = (start.query, start.key, start.value)
        return Rows(start, *rows, *map(jnp.zeros_like, rows))

    @property
    def labels(self) -> Array:
        return self.start.labels

    def view(self) -> View:
        q, k = gather(self.query, self.labels), gather(self.key, self.labels)
        logits = jnp.einsum("nih,njh->nij", q, k)
        norms = (jnp.sum(m**2, axis=1) for m in (self.query, self.key))
        return View(logits, gather(self.value, self.labels), *norms)

    def step(self, rate: Array, push: Drive) -> "Rows":
        """S is applied sample by sample (it has no other entries); then one product with G moves all rows."""
        q, k = gather(self.query, self.labels), gather(self.key, self.labels)
        feed_query = rate * scatter(jnp.einsum("nij,njh->nih", push.centred, k), self.labels)
        feed_key = rate * scatter(jnp.einsum("nij,nih->njh", push.centred, q), self.labels)
        feed_value = rate * self.start.readout_square * scatter(push.attended, self.labels)
        moved = self.start.gram @ jnp.concatenate([feed_query, feed_key, feed_value[:, None]], axis=1)
        basis = self.query.shape[1]
        return self._replace(
            query=self.query + moved[:, :basis],
            key=self.key + moved[:, basis:-1],
            value=self.value + moved[:, -1],
            fed_query=self.fed_query + feed_query,
            fed_key=self.fed_key + feed_key,
            fed_value=self.fed_value + feed_value,
        )

    def test(self) -> tuple[Array, Array]:
        """Logits and values of the fresh samples now."""
        start, fresh = self.start, self.start.fresh
        q, k = fresh.tokens(start.query[:2], fresh.query), fresh.tokens(start.key[:2], fresh.key)
        dq = fresh.tokens((self.query - start.query)[:2], fresh.cross @ self.fed_query)
        dk = fresh.tokens((self.key - start.key)[:2], fresh.cross @ self.fed_key)
        moved = jnp.einsum("nih,njh->nij", q + dq, dk) + jnp.einsum("nih,njh->nij", dq, k)
        return fresh.logits + moved, fresh.tokens(self.value[:2], fresh.value + fresh.cross @ self.fed_value)


# Gram form -------------------------------------------------------------------------------------------------------------


class Grams(NamedTuple):
    """Inner products of all rows (training features, then fresh ones) with the training rows:
    `qq` = Q_all Q^T, `kk` = K_all K^T, `qk` = Q_all K^T, `kq` = K_all Q^T; and the logits within each fresh sample."""

    start: Instance
    qq: Array
    kk: Array
    qk: Array
    kq: Array
    value: Array
    fresh_logits: Array

    @staticmethod
    def begin(start: Instance) -> "Grams":
        q_all = jnp.concatenate([start.query, start.fresh.query])
        k_all = jnp.concatenate([start.key, start.fresh.key])
        q, k = start.query.T, start.key.T
        value = jnp.concatenate([start.value, start.fresh.value])
        return Grams(start, q_all @ q, k_all @ k, q_all @ k, k_all @ q, value, start.fresh.logits)

    @property
    def labels(self) -> Array:
        return self.start.labels

    def view(self) -> View:
        p = self.qq.shape[1]
        norms = (jnp.diagonal(m[:p]) for m in (self.qq, self.kk))
        return View(within_samples(self.qk, self.labels), gather(self.value[:p], self.labels), *norms)

    def step(self, rate: Array, push: Drive) -> "Grams":
        p = self.qq.shape[1]
        alpha, beta, fed_value = coefficients(self.start, rate, push)
        a, b = alpha[:p], beta[:p]
        qq, kk, qk = self.qq[:p], self.kk[:p], self.qk[:p]
        fresh_alpha, fresh_beta = self._fresh(alpha), self._fresh(beta)
        fresh_moved = (
            jnp.einsum("nip,njp->nij", fresh_alpha, self._fresh(self.kk))
            + jnp.einsum("nip,njp->nij", self._fresh(self.qq), fresh_beta)
            + jnp.einsum("nip,njp->nij", fresh_alpha @ qk.T, fresh_beta)
        )
        return self._replace(
            qq=self.qq + alpha @ qk.T + self.qk @ a.T + alpha @ kk @ a.T,
            kk=self.kk + beta @ qk + self.kq @ b.T + beta @ qq @ b.T,
            qk=self.qk + alpha @ kk + self.qq @ b.T + alpha @ qk.T @ b.T,
            kq=self.kq + beta @ qq + self.kk @ a.T + beta @ qk @ a.T,
            value=self.value + fed_value,
            fresh_logits=self.fresh_logits + fresh_moved,
        )

    def test(self) -> tuple[Array, Array]:
        return self.fresh_logits, self._fresh(self.value)

    def _fresh(self, rows: Array) -> Array:
        return self.start.fresh.tokens(rows[:2], rows[self.qq.shape[1] :])


def coefficients(start: Instance, rate: Array, push: Drive) -> tuple[Array, Array, Array]:
    """alpha = eta G S, beta = eta G S^T and eta |w_O|^2 G r for all rows, fresh ones included (Eqs 181-195)."""
    gram = jnp.concatenate([start.gram, start.fresh.cross])
    driver = score_driver(push, start.labels, start.gram.shape[0])
    value = rate * start.readout_square * gram @ scatter(push.attended, start.labels)
    return rate * gram @ driver, rate * gram @ driver.T, value


def within_samples(
    between: Float[Array, "rows features"], labels: Array
) -> Float[Array, "samples query key"]:
    """Out of a matrix between all features, the entries between tokens of the same sample."""
    index = feature_index(labels, (between.shape[1] - 2) // labels.shape[0] + 1)
    return between[index[:, :, None], index[:, None, :]]


# Leading order ---------------------------------------------------------------------------------------------------------


class Leading(NamedTuple):
    """Logits between all training rows, moved by their two leading terms with squared norms as they were at the start:
    `C_ab += alpha_ab |k_b|^2 + beta_ba |q_a|^2`. Fresh rows are moved by the signals alone."""

    start: Instance
    logits: Array
    query_norms: Array
    key_norms: Array
    value: Array
    fresh_logits: Array

    @staticmethod
    def begin(start: Instance) -> "Leading":
        query_norms, key_norms = jnp.sum(start.query**2, axis=1), jnp.sum(start.key**2, axis=1)
        value = jnp.concatenate([start.value, start.fresh.value])
        return Leading(start, start.query @ start.key.T, query_norms, key_norms, value, start.fresh.logits)

    @property
    def labels(self) -> Array:
        return self.start.labels

    def view(self) -> View:
        values = gather(self.value[: self.logits.shape[0]], self.labels)
        return View(within_samples(self.logits, self.labels), values, self.query_norms, self.key_norms)

    def step(self, rate: Array, push: Drive) -> "Leading":
        p = self.logits.shape[0]
        alpha, beta, fed_value = coefficients(self.start, rate, push)
        signal = jnp.where(self.start.fresh.labels > 0, 0, 1)

        def on_signal(rows: Array, norms: Array) -> Array:
            tokens = self.start.fresh.tokens(rows[:2], rows[p:])
            return (
                jnp.take_along_axis(tokens, signal[:, None, None], axis=2)[:, :, 0] * norms[signal][:, None]
            )

        fresh = self.fresh_logits.at[:, :, 0].add(on_signal(alpha, self.key_norms))
        return self._replace(
            logits=self.logits + alpha[:p] * self.key_norms + (beta[:p] * self.query_norms).T,
            value=self.value + fed_value,
            fresh_logits=fresh.at[:, 0, :].add(on_signal(beta, self.query_norms)),
        )

    def test(self) -> tuple[Array, Array]:
        rows = self.value[self.logits.shape[0] :]
        return self.fresh_logits, self.start.fresh.tokens(self.value[:2], rows)


# Weights ---------------------------------------------------------------------------------------------------------------


class Direct(NamedTuple):
    """Gradient descent on W_Q, W_K, W_V by automatic differentiation: the honest slow way."""

    drawn: Explicit
    tokens: Array
    fit: Fit

    @staticmethod
    def begin(drawn: Explicit, descent: Descent) -> "Direct":
        tokens = gather(drawn.train.rows, drawn.train.labels)
        fit = begin(descent, _loss, drawn.weights[:3], drawn.weights.readout, tokens, drawn.train.labels)
        return Direct(drawn, tokens, fit)

    @property
    def labels(self) -> Array:
        return self.drawn.train.labels

    @property
    def weights(self) -> Weights:
        query, key, value = self.fit.params
        return Weights(query, key, value, self.drawn.weights.readout)

    def view(self) -> View:
        logits, values = look(self.weights, self.tokens)
        norms = (jnp.sum((self.drawn.train.rows @ w) ** 2, axis=1) for w in self.weights[:2])
        return View(logits, values, *norms)

    def step(self, descent: Descent) -> "Direct":
        readout = self.drawn.weights.readout
        return self._replace(fit=advance(descent, _loss, self.fit, readout, self.tokens, self.labels))

    def test(self) -> tuple[Array, Array]:
        return look(self.weights, gather(self.drawn.test.rows, self.drawn.test.labels))


def _loss(trained: tuple[Array, Array, Array], readout: Array, tokens: Array, labels: Array) -> Array:
    return jnp.mean(logistic_loss(labels * output(*look(Weights(*trained, readout), tokens))))


def with_rate(descent: Descent, rate: Array) -> Descent:
    """The descent at another step size."""
    return eqx.tree_at(lambda d: d.learning_rate, descent, rate)
