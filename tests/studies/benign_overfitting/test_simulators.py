"""Four simulators of the same training: three exact ones that agree to rounding, one approximation that is one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, softmax

from lemmata.descent import Descent
from lemmata.errors import BadInput
from lemmata.loop import train
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.data import Data, draw, feature_index, gather, scatter
from lemmata.studies.benign_overfitting.network import Filters, Network, draw_weights, look, output
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.studies.benign_overfitting.trials.convolution import Convolution
from lemmata.studies.benign_overfitting.trials.instances import (
    draw_explicit,
    explicit_instance,
    wishart_instance,
)
from lemmata.studies.benign_overfitting.trials.simulators import Grams, Rows, coefficients, drive
from lemmata.threefry import new_key
from lemmata.trial import put, put_all, random_key

INSTANCES = [
    pytest.param(2, True, True, marks=pytest.mark.slow),
    (5, True, False),
    pytest.param(12, False, True, marks=pytest.mark.slow),
]


def trial(samples=5, orthogonal=True, balanced=True, simulator="row", **more):
    return BenignOverfitting(
        data=Data(
            signal_norm=6.0,
            weak_noise=0.2,
            noise_ratio=5.0,
            samples=samples,
            tokens=3,
            dim=70,
            orthogonal_noise=orthogonal,
            balanced_labels=balanced,
        ),
        network=Network(key_dim=30, value_dim=6, init_divisor=2.0, readout_divisor=1.0),
        descent=Descent(steps=300, target_loss=1e-5, logs=8),
        simulator=simulator,
        precision="float64",
        test_points=10,
        **more,
    )


SHARED = (5, True, False)
"""The instance that most tests train, so that they share its compiled programs: they change leaves only."""


@pytest.mark.parametrize(("samples", "orthogonal", "balanced"), INSTANCES)
def test_row_and_gram_forms_follow_direct_descent_to_rounding(samples, orthogonal, balanced):
    direct = train(trial(samples, orthogonal, balanced, "direct"), 1)
    assert direct["steps"] == 300
    for simulator in ("row", "gram"):
        reduced = train(trial(samples, orthogonal, balanced, simulator), 1)
        for name in direct:
            np.testing.assert_allclose(
                reduced[name], direct[name], rtol=1e-9, atol=1e-12, err_msg=f"{simulator} {name}"
            )


def test_leading_order_is_close_early_and_not_exact():
    exact, leading = (train(trial(*SHARED, s), 1)["train_loss_curve"] for s in ("row", "leading-order"))
    off = np.abs(leading / exact - 1)
    assert off[2] < 0.01
    assert off[-1] > 1e-6


@pytest.mark.slow
def test_a_basis_of_the_rows_changes_nothing():
    """With a key dimension above 2P the rows are kept in a basis of their span, with one below they are kept as they are."""
    for key_dim in (20, 60):
        small = put(put(trial(5), "network.key_dim", key_dim), "descent.steps", 50)
        direct = put(small, "simulator", "direct")
        np.testing.assert_allclose(train(small, 2)["test_loss"], train(direct, 2)["test_loss"], rtol=1e-10)


def test_gather_and_scatter_are_transposes():
    data = Data(samples=4, tokens=3, dim=10, balanced_labels=False)
    tokens = np.random.default_rng(4).normal(size=(4, 3, 10))

    @jax.jit
    def both(key):
        rows, labels = draw(data, key, 4, "float64")
        index = feature_index(labels, 3)
        return rows, gather(rows, labels), scatter(jnp.asarray(tokens), labels), index

    rows, gathered, scattered, index = map(np.asarray, both(new_key(3)))
    assert np.vdot(gathered, tokens) == pytest.approx(np.vdot(rows, scattered))
    np.testing.assert_array_equal(gathered, rows[index])


def test_a_larger_training_set_begins_with_the_smaller_one():
    data = Data(samples=4, tokens=3, dim=10)
    few, many = jax.jit(lambda key: [draw(data, key, n, "float64").rows for n in (4, 9)])(new_key(0))
    np.testing.assert_array_equal(few, many[: few.shape[0]])


def test_orthogonal_noise_is_orthogonal_to_the_signals():
    rows, _ = draw(Data(samples=4, tokens=3, dim=10, orthogonal_noise=True), new_key(0), 4, "float64")
    gram = np.asarray(rows @ rows.T)
    assert np.abs(gram[:2, 2:]).max() == 0


def test_gradients_are_those_of_lemma_b1():
    """(1/NM) sum_n y l' sum_i x_i (V^T J_i) X W_K and its companions, against automatic differentiation."""
    t = trial(4, False, simulator="direct")

    @jax.jit
    def both(key):
        drawn = draw_explicit(t.data, t.network, 3, key, "float64")
        tokens, labels, w = gather(*drawn.train), drawn.train.labels, drawn.weights

        def loss(query, key, value):
            changed = w._replace(query=query, key=key, value=value)
            return jnp.mean(jax.nn.softplus(-labels * output(*look(changed, tokens))))

        push = drive(Rows.begin(explicit_instance(drawn)).view(), labels)
        by_hand = (
            -jnp.einsum("nid,nij,nje,eh->dh", tokens, push.centred, tokens, w.key),
            -jnp.einsum("njd,nij,nie,eh->dh", tokens, push.centred, tokens, w.query),
            -jnp.einsum("njd,nj,v->dv", tokens, push.attended, w.readout),
        )
        return by_hand, jax.grad(loss, (0, 1, 2))(w.query, w.key, w.value)

    for hand, auto in zip(*both(new_key(5)), strict=True):
        np.testing.assert_allclose(hand, auto, rtol=1e-10, atol=1e-14)


@jax.jit
def at_the_start(given, key):
    """An instance, what its rows see, alpha and beta of the first step, the outputs."""
    start = explicit_instance(draw_explicit(given.data, given.network, 3, key, "float64"))
    view = Rows.begin(start).view()
    alpha, beta, _ = coefficients(start, jnp.asarray(0.1), drive(view, start.labels))
    return start, view, alpha, beta, output(view.logits, view.values)


def test_printed_coefficients_are_entries_of_alpha_and_beta():
    """Eqs 181, 182, 185, 190 and the lost beta_++ = alpha_++, entry by entry on a small instance."""
    start, view, alpha, beta, out = jax.tree.map(np.asarray, at_the_start(trial(5), new_key(1)))
    slope, values, gram = expit(-start.labels * out), view.values, start.gram
    phi = softmax(view.logits, axis=-1)
    centred = phi * (values[:, None, :] - np.einsum("nij,nj->ni", phi, values)[:, :, None])
    n, m, mu2 = 5, 3, 6.0**2
    plus = np.nonzero(start.labels > 0)[0]
    front = 0.1 / (n * m)
    assert alpha[0, 0] == pytest.approx(float(front * mu2 * sum(slope[i] * centred[i, 0, 0] for i in plus)))
    assert beta[0, 0] == pytest.approx(float(alpha[0, 0]))
    row = np.asarray(feature_index(jnp.asarray(start.labels), m))
    for i in plus:
        assert alpha[0, row[i, 1]] == pytest.approx(float(front * mu2 * slope[i] * centred[i, 0, 1]))
        assert beta[0, row[i, 1]] == pytest.approx(float(front * mu2 * slope[i] * centred[i, 1, 0]))
    noise = row[1, 2]
    expected = front * sum(
        slope[i] * sum(gram[noise, row[i, token]] * centred[i, token, 0] for token in (1, 2)) for i in plus
    )
    assert alpha[noise, 0] == pytest.approx(float(expected))


def test_rows_of_alpha_sum_to_zero():
    """F.12: the rows of the softmax Jacobian do, so those of alpha do."""
    _, _, alpha, beta, _ = at_the_start(trial(5, False), new_key(2))
    assert np.abs(np.asarray(alpha).sum(1)).max() < 1e-14 * np.abs(alpha).max() * 100
    assert np.abs(np.asarray(beta).sum(1)).max() > 1e-6 * np.abs(beta).max()


def gaussian(key_dim, dim, simulator="row", sampling="explicit"):
    base = trial(3, False, True, simulator, sampling=sampling)
    changes = {"network.init": "gaussian", "network.key_dim": key_dim, "data.dim": dim, "network.std_qk": 0.1}
    return put_all(base, changes)


def test_wishart_start_has_the_law_of_the_explicit_start():
    """Means and spreads of what the reduced forms start from, over many draws; 5 standard errors."""
    t = gaussian(40, 60)
    draws = 400

    def summary(instance):
        logits = jnp.einsum(
            "nih,njh->nij", gather(instance.query, instance.labels), gather(instance.key, instance.labels)
        )
        return jnp.stack(
            [
                instance.gram[2, 2],
                instance.gram[2, 5] ** 2,
                instance.gram[0, 3] ** 2,
                logits[0, 0, 1] ** 2,
                logits[1, 1, 2] ** 2,
                jnp.sum(instance.query[3] ** 2),
                jnp.sum(instance.query[3] * instance.query[0]) ** 2,
                instance.value[2] ** 2,
                instance.fresh.cross[1, 4] ** 2,
                instance.fresh.logits[0, 1, 2] ** 2,
                instance.fresh.logits[1, 0, 1] ** 2,
                instance.fresh.value[0] ** 2,
                jnp.sum(instance.fresh.query[0] * instance.query[3]) ** 2,
            ]
        )

    keys = jax.random.split(new_key(0), draws)
    args = (t.data, t.network, 4)
    explicit, in_law = (
        np.asarray(jax.lax.map(lambda k, one=one: summary(one(k)), keys))
        for one in (
            lambda k: explicit_instance(draw_explicit(*args, k, "float64")),
            lambda k: wishart_instance(*args, k, "float64"),
        )
    )
    gap = explicit.mean(0) - in_law.mean(0)
    error = np.sqrt((explicit.var(0) + in_law.var(0)) / draws)
    assert np.abs(gap / error).max() < 5


@pytest.mark.slow
def test_a_key_dimension_of_1e12_is_simulated_alike_by_rows_and_grams():
    base = put(gaussian(10**12, 10**16, sampling="wishart"), "data.weak_noise", 1e-8)
    base = put(put(base, "data.signal_norm", 3.0), "network.std_qk", 1e-4)
    by_rows, by_grams = (train(put(base, "simulator", s), 0) for s in ("row", "gram"))
    np.testing.assert_allclose(by_grams["train_loss_curve"], by_rows["train_loss_curve"], rtol=1e-9)
    np.testing.assert_allclose(by_grams["test_loss"], by_rows["test_loss"], rtol=1e-9)


def test_a_float32_trial_holds_no_float64():
    t = put(put(trial(3), "precision", "float32"), "descent.steps", 5)
    for simulator in ("row", "gram", "leading-order", "direct"):
        state = jax.eval_shape(put(t, "simulator", simulator).start, random_key(t, 0))
        assert all(leaf.dtype != jnp.float64 for leaf in jax.tree.leaves(state)), simulator


def test_the_step_size_is_constant_unless_it_ramps_up():
    assert all(trial().rate(jnp.asarray(t)) == 0.1 for t in (0, 1, 100))
    ramping = put_all(trial(), {"ramp_steps": 10.0, "ramp_start": 1e-2})
    np.testing.assert_allclose([ramping.rate(jnp.asarray(t)) for t in (0, 5, 10, 20)], [1e-3, 1e-2, 0.1, 0.1])


def test_the_clock_adds_up_the_steps_that_are_taken():
    ramping = put_all(trial(*SHARED), {"ramp_steps": 10.0, "ramp_start": 1e-2})
    done = train(ramping, 0)
    np.testing.assert_allclose(done["time_curve"], theory.clock(ramping)[list(ramping.log_steps)], rtol=1e-12)


@pytest.mark.parametrize(("attention", "value"), [(0.0, 1.0), (1.0, 0.0)])
def test_frozen_parts_stay_as_they_were_and_all_forms_agree(attention, value):
    arm = put_all(trial(*SHARED), {"descent.attention_rate": attention, "value_rate": value})
    direct, row, gram = (train(put(arm, "simulator", s), 1) for s in ("direct", "row", "gram"))
    for form in (row, gram):
        np.testing.assert_allclose(form["train_loss_curve"], direct["train_loss_curve"], rtol=1e-9)
        np.testing.assert_allclose(form["test_loss"], direct["test_loss"], rtol=1e-9)
    logits, values = np.ptp(row["logits_curve"], axis=0).max(), np.ptp(row["signal_value_curve"])
    assert (logits == 0) == (attention == 0)
    assert (values == 0) == (value == 0)


def test_ones_own_data_and_weights_come_in_by_the_door():
    """Weights of one's own: doubled read-outs quadruple the speed of the values. Data of one's own: labels turned round."""
    base = trial(*SHARED)
    key = new_key(3)
    drawn = jax.jit(lambda key: draw_explicit(base.data, base.network, base.test_points, key, "float64"))(key)
    same = train(base, key=key, data=drawn.train, weights=drawn.weights)
    assert same["test_loss"] == train(base, key=key)["test_loss"]
    louder = drawn.weights._replace(readout=2 * drawn.weights.readout)
    assert train(base, key=key, weights=louder)["readout_square"] == pytest.approx(4 * same["readout_square"])
    turned = train(base, key=key, data=drawn.train._replace(labels=-drawn.train.labels))
    assert turned["train_loss"] != same["train_loss"]
    with pytest.raises(BadInput, match="wishart takes no data"):
        train(gaussian(40, 60, sampling="wishart"), weights=drawn.weights)


def test_divisors_divide_the_initial_weights_and_the_read_out_apart():
    """Uniform laws in (-b, b) with b = 1/sqrt(fan in) over the divisor; the largest of many draws comes within 1 % of b."""
    network = Network(key_dim=40, value_dim=60, init_divisor=4.0, readout_divisor=2.0)
    weights = jax.jit(lambda key: draw_weights(network, key, 100, "float64"))(new_key(0))
    for matrix in weights[:3]:
        assert np.abs(matrix).max() == pytest.approx(0.1 / 4, rel=0.01)
    assert np.abs(weights.readout).max() == pytest.approx(60**-0.5 / 2, rel=0.1)
    assert np.abs(weights.readout).max() <= 60**-0.5 / 2


@pytest.mark.parametrize("sampling", ["explicit", "wishart"])
def test_test_points_are_not_training_points(sampling):
    """A fresh noise token has no more to do with a training token than two training tokens of different samples have."""
    t = gaussian(40, 60, sampling=sampling)
    start = jax.jit(lambda k: t.instance(k))(new_key(2))
    own = np.asarray(start.gram)[2:, 2:]
    assert np.abs(start.fresh.cross[:, 2:]).max() < 0.8 * np.diag(own)[::2].min()
    assert not np.array_equal(np.asarray(start.fresh.value[: len(own)]), np.asarray(start.value[2:]))


def test_leads_and_losses_are_counted_from_the_step_at_which_they_come():
    done = train(put(trial(*SHARED), "data.signal_norm", 30.0), 1)
    curve, steps = done["train_loss_curve"], np.asarray(trial().log_steps)
    for level, at in zip((0.1, 0.05, 0.02), done["loss_steps"], strict=False):
        assert at > 0
        assert (curve[(steps < at) & np.isfinite(curve)] > level).all()
        assert (curve[(steps >= at) & np.isfinite(curve)] <= level).all()
    if done["signal_leads"] >= 0:
        assert 0 < done["signal_lead_steps"] <= done["steps"] - done["signal_leads"] + 1
    assert done["query_norm_change"] >= np.nanmax(done["query_growth_curve"])


def test_the_convolutional_rival_is_its_formula_and_learns():
    data = Data(signal_norm=2.0, weak_noise=0.1, noise_ratio=1.0, samples=4, tokens=2, dim=30)
    descent = Descent(learning_rate=1.0, steps=400)
    filters = Filters(std=0.1, filters=3)
    rival = Convolution(data=data, network=filters, descent=descent, test_points=5, precision="float64")
    weights = rival.network.draw(new_key(0), 30, "float64")
    tokens = jax.random.normal(new_key(1), (2, 2, 30))
    plus, minus = (sum(max(float(w @ x), 0) ** 3 for w in part for x in tokens[1]) / 3 for part in weights)
    assert rival.network.output(weights, tokens)[1] == pytest.approx(plus - minus)
    done = train(rival, 0)
    assert done["train_loss_curve"][0] == pytest.approx(np.log(2), abs=0.05)
    assert done["steps"] < 400
    assert done["test_error"] == 0


@pytest.mark.slow
def test_passive_rows_move_nothing():
    t = put(trial(4, simulator="gram"), "descent.steps", 20)
    few, many = (train(put(t, "test_points", n), key=new_key(1))["train_loss"] for n in (2, 10))
    assert few == many


def test_gram_identities_hold_after_many_steps():
    t = trial(3)
    key = new_key(7)
    start = jax.jit(lambda k: t.instance(k))(key)

    @jax.jit
    def step(rows, grams):
        push = drive(rows.view(), start.labels)
        return rows.step(jnp.asarray(0.1), push), grams.step(jnp.asarray(0.1), push)

    rows, grams = Rows.begin(start), Grams.begin(start)
    for _ in range(30):
        rows, grams = step(rows, grams)
    p = start.gram.shape[0]
    rows, grams = jax.tree.map(np.asarray, (rows, grams))
    np.testing.assert_allclose(grams.qq[:p], rows.query @ rows.query.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grams.kk[:p], rows.key @ rows.key.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grams.kq[:p], grams.qk[:p].T, rtol=1e-9, atol=1e-12)
