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

In all of them the step of queries and keys can be taken `attention` times, that of the values `value` times as large:
0 freezes them.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import Descent, Fit, advance, begin, logistic_loss
from lemmata.kernels import kernel
from lemmata.studies.benign_overfitting.data import feature_index, gather, scatter
from lemmata.studies.benign_overfitting.network import Weights, look, output
from lemmata.studies.benign_overfitting.trials.instances import Explicit, Instance


class View(NamedTuple):
    """What every simulator can show of its training samples."""

    logits: Float[Array, "samples query key"]
    values: Float[Array, "samples token"]
    query_norms: Float[Array, " features"]
    key_norms: Float[Array, " features"]
    outputs: Float[Array, " samples"]

    @staticmethod
    def of(logits: Array, values: Array, query_norms: Array, key_norms: Array) -> "View":
        return View(logits, values, query_norms, key_norms, output(logits, values))


class Drive(NamedTuple):
    """What one gradient step needs of the forward pass: `centred` moves queries and keys, `attended` the values."""

    centred: Float[Array, "samples query key"]
    attended: Float[Array, "samples key"]

    def scaled(self, attention: Array | float, value: Array | float) -> "Drive":
        return Drive(attention * self.centred, value * self.attended)


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

    def view(self) -> View:
        q, k = gather(self.query, self.start.labels), gather(self.key, self.start.labels)
        logits = jnp.einsum("nih,njh->nij", q, k)
        norms = (jnp.sum(m**2, axis=1) for m in (self.query, self.key))
        return View.of(logits, gather(self.value, self.start.labels), *norms)

    def step(self, rate: Array, push: Drive) -> "Rows":
        """S is applied sample by sample (it has no other entries); then one product with G moves all rows."""
        q, k = gather(self.query, self.start.labels), gather(self.key, self.start.labels)
        feed_query = rate * scatter(jnp.einsum("nij,njh->nih", push.centred, k), self.start.labels)
        feed_key = rate * scatter(jnp.einsum("nij,nih->njh", push.centred, q), self.start.labels)
        feed_value = rate * self.start.readout_square * scatter(push.attended, self.start.labels)
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


def seen_in_jax(rows: Rows) -> View:
    """What the row form shows."""
    return rows.view()


@kernel("row_form.cc", plain=seen_in_jax)
def seen(rows: Rows) -> View:
    """`seen_in_jax`."""
    return View(*seen.call("rows_seen", rows.start.labels, rows.query, rows.key, rows.value))


def moved_in_jax(rows: Rows, view: View, rate: Array, attention: Array | float, value: Array | float) -> Rows:
    """The row form one step later."""
    return rows.step(rate, drive(view, rows.start.labels).scaled(attention, value))


@kernel("row_form.cc", plain=moved_in_jax)
def moved(rows: Rows, view: View, rate: Array, attention: Array | float, value: Array | float) -> Rows:
    """`moved_in_jax`. The kernel moves rows where they lie."""
    start, here = rows.start, rows[1:]
    rates = jnp.stack([rate * attention, rate * value * start.readout_square]).astype(rows.query.dtype)
    given = start.gram, start.labels, rates, view.logits, *here
    return Rows(start, *moved.call("rows_moved", *given, in_place={4 + n: n for n in range(len(here))}))


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

    def view(self) -> View:
        p = self.qq.shape[1]
        norms = (jnp.diagonal(m[:p]) for m in (self.qq, self.kk))
        return View.of(
            within_samples(self.qk, self.start.labels), gather(self.value[:p], self.start.labels), *norms
        )

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

    def view(self) -> View:
        values = gather(self.value[: self.logits.shape[0]], self.start.labels)
        logits = within_samples(self.logits, self.start.labels)
        return View.of(logits, values, self.query_norms, self.key_norms)

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

    start: Explicit
    tokens: Array
    fit: Fit

    @staticmethod
    def begin(drawn: Explicit, descent: Descent) -> "Direct":
        tokens = gather(drawn.train.rows, drawn.train.labels)
        fit = begin(descent, _slope, drawn.weights[:3], drawn.weights.readout, tokens, drawn.train.labels)
        return Direct(drawn, tokens, fit)

    @property
    def weights(self) -> Weights:
        query, key, value = self.fit.params
        return Weights(query, key, value, self.start.weights.readout)

    def view(self) -> View:
        logits, values = look(self.weights, self.tokens)
        norms = (jnp.sum((self.start.train.rows @ w) ** 2, axis=1) for w in self.weights[:2])
        return View.of(logits, values, *norms)

    def step(self, descent: Descent, rate: Array, value: Array | float) -> "Direct":
        here = eqx.tree_at(lambda d: d.learning_rate, descent, rate)
        rates = (descent.attention_rate, descent.attention_rate, value)
        batch = (self.start.weights.readout, self.tokens, self.start.labels)
        return self._replace(fit=advance(here, _slope, self.fit, *batch, rates=rates))

    def test(self) -> tuple[Array, Array]:
        return look(self.weights, gather(self.start.test.rows, self.start.test.labels))


def _loss(trained: tuple[Array, Array, Array], readout: Array, tokens: Array, labels: Array) -> Array:
    return jnp.mean(logistic_loss(labels * output(*look(Weights(*trained, readout), tokens))))


_slope = jax.value_and_grad(_loss)
