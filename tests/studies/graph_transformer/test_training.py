"""The gradient by hand is the gradient; two ways to the same training; what is conserved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import kernels, train
from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.loop import complete
from lemmata.studies.graph_transformer import theory
from lemmata.studies.graph_transformer.data.sampling import shuffled
from lemmata.studies.graph_transformer.figures import small, template
from lemmata.studies.graph_transformer.network import (
    Network,
    Parameters,
    Seen,
    Sets,
    attention,
    graph_output,
    hinge,
    outputs,
    pair_hinge,
    slope,
    slope_of_sets,
)
from lemmata.studies.graph_transformer.trials.nodes import looked, neurons
from lemmata.studies.graph_transformer.trials.variants import others
from lemmata.threefry import new_key
from lemmata.trial import put, put_all
from tests.kernels import forms, needs_compiler


def batch(seed=0, size=5, slots=7, dim=6, buckets=4, neurons=12):
    rng = np.random.default_rng(seed)
    weights = Parameters(
        rng.normal(size=(dim, dim)), rng.normal(size=(dim, dim)), rng.normal(size=(dim, dim)),
        rng.normal(size=(dim, neurons)), rng.normal(size=buckets),
    )  # fmt: skip
    tokens, near = rng.normal(size=(size, slots, dim)), rng.integers(0, buckets, (size, slots))
    many = rng.integers(0, 3, (size, slots)).astype(float)
    many[:, 0] = 1.0
    seen = Seen(*map(jnp.asarray, (tokens, near, many)))
    signs = jnp.asarray(rng.choice([-0.3, 0.3], neurons))
    return (
        jax.tree.map(jnp.asarray, weights),
        signs,
        jnp.asarray(rng.normal(size=(size, dim))),
        seen,
        jnp.asarray(rng.choice([-1, 1], size)),
    )


@pytest.mark.parametrize("margin", [1.0, 5.0])
def test_the_gradient_by_hand_is_that_of_automatic_differentiation(margin):
    with double():
        weights, signs, asking, seen, label = batch()

        def loss(one):
            return jnp.mean(hinge(outputs(one, signs, asking, seen), label, margin))

        value, gradient = jax.jit(jax.value_and_grad(loss))(weights)
        mine, by_hand = jax.jit(lambda one: slope(one, signs, asking, seen, label, margin))(weights)
        assert float(mine) == pytest.approx(float(value), abs=1e-12)
        for ours, theirs in zip(by_hand, gradient, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
        assert np.abs(by_hand.query).max() > 1e-3


SIZES = (
    {"size": 5, "slots": 7, "dim": 6, "buckets": 4, "neurons": 12},
    {"size": 37, "slots": 61, "dim": 20, "buckets": 5, "neurons": 100},
    {"size": 33, "slots": 16, "dim": 16, "buckets": 3, "neurons": 37},
    {"size": 70, "slots": 9, "dim": 25, "buckets": 3, "neurons": 20},
)


@needs_compiler
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_kernel_computes_the_gradient(precision, sizes):
    """In two lanes that differ; some nodes have lost nothing, some slots are empty. Queries and keys are small: where attention
    is nearly all on one token its gradient is a rounding."""
    with double():
        rng, (lanes, rows) = np.random.default_rng(1), (2, 23)
        weights, signs, features, seen, theirs = jax.tree.map(
            lambda *parts: np.stack(parts), *(batch(seed, **sizes) for seed in range(lanes))
        )
        table = np.concatenate([rng.normal(size=(lanes, rows, sizes["dim"])), features], axis=1)
        members = rng.integers(0, rows, seen.distance.shape)
        asking = np.tile(rows + np.arange(sizes["size"]), (lanes, 1))
        label = np.concatenate([rng.choice([-1, 1], (lanes, rows)), theirs], axis=1)
        sets = Sets(table, members, seen.distance, seen.many > 0)
        weights = weights._replace(hidden=weights.hidden / 20, query=weights.query / 5, key=weights.key / 5)
        given = jax.tree.map(
            lambda part: part.astype(precision) if part.dtype == np.float64 else part,
            (weights, signs, asking, sets, label, np.ones(lanes)),
        )
        kernel, in_jax = (jax.jit(jax.vmap(form)) for form in forms(slope_of_sets))
        wanted, found = in_jax(*given), kernel(*given)
        assert (np.asarray(wanted[0]) > 0).all()
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert ours.dtype == precision
            off = {"float32": 2e-5, "float64": 1e-13}[precision]
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=off * np.abs(theirs).max())
        nobody = kernel(*given[:-1], np.full(lanes, -1e6, precision))  # has lost anything
        assert not any(np.any(part) for part in jax.tree.leaves(nobody))


@pytest.mark.parametrize("widths", [(64, 2), (5, 8)])
def test_queries_and_values_of_two_widths_are_left_to_jax(widths):
    """The kernel has one width: with two it wrote beyond its arrays, or gave wrong numbers."""
    with double():
        weights, signs, asking, seen, label = batch()
        rng, (keyed, valued) = np.random.default_rng(3), widths
        dim, neurons = weights.query.shape[1], weights.hidden.shape[1]
        query, key, value = (rng.normal(size=(width, dim)) / 5 for width in (keyed, keyed, valued))
        weights = weights._replace(
            query=query, key=key, value=value, hidden=rng.normal(size=(valued, neurons))
        )
        table = jnp.concatenate([asking, rng.normal(size=(9, dim))])
        sets = Sets(table, rng.integers(0, len(table), seen.distance.shape), seen.distance, seen.many > 0)
        own, every = jnp.arange(len(asking)), jnp.concatenate([label, np.ones(9)]).astype(int)
        found = jax.jit(slope_of_sets)(weights, signs, own, sets, every)
        refusal = f"graph_slope: width is {keyed} in query and {valued} in value"
        assert kernels.choices["graph_slope.slope_of_sets"] in (
            f"JAX: {refusal}",
            "JAX: there is no C++ compiler",
        )

        def loss(one):
            return jnp.mean(hinge(outputs(one, signs, table[own], sets.seen), every[own]))

        value, gradient = jax.value_and_grad(loss)(weights)
        assert float(found[0]) == pytest.approx(float(value), abs=1e-12)
        for ours, theirs in zip(found[1], gradient, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_attention_sums_to_one_and_a_constant_in_b_changes_nothing():
    with double():
        weights, _, asking, seen, _ = batch()
        paid = jax.jit(attention)
        alpha = np.asarray(paid(weights, asking, seen))
        np.testing.assert_allclose(alpha.sum(1), 1.0)
        np.testing.assert_array_equal(alpha[np.asarray(seen.many) == 0], 0.0)
        higher = weights._replace(bias=weights.bias + 3)
        np.testing.assert_allclose(paid(higher, asking, seen), alpha, atol=1e-12)


def test_a_token_that_is_there_twice_counts_twice():
    with double():
        weights, signs, asking, seen, _ = batch(size=2, slots=3)
        doubled = Seen(
            *(jnp.asarray(np.concatenate([part, part[:, :1]], axis=1)) for part in map(np.asarray, seen))
        )
        twice = seen._replace(many=jnp.asarray(np.asarray(seen.many) * [2, 1, 1]))
        found = jax.jit(outputs)
        np.testing.assert_allclose(
            found(weights, signs, asking, doubled), found(weights, signs, asking, twice)
        )


def test_initial_images_have_the_errors_asked_for():
    with double():
        base = np.eye(6)[:4]
        network = Network(neurons=8, width=6, queries="distinct")
        drawn = jax.jit(lambda key: network.draw(key, jnp.asarray(base), 5, 0.01))(new_key(0))
        weights, signs = jax.tree.map(np.asarray, drawn)
        key, query = weights.key @ base.T, weights.query @ base.T
        np.testing.assert_allclose(np.linalg.norm(key - np.eye(6)[:, :4], axis=0), 0.2, rtol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(query[:, :2] - np.eye(6)[:, :2], axis=0), 0.2, rtol=1e-6)
        assert np.linalg.norm(query[:, 2:] - key[:, 2:], axis=0).min() > 0.45
        assert sorted({round(float(s) ** 2, 9) for s in signs}) == [0.125]


@pytest.fixture(scope="module")
def both(little):
    quiet = put_all(
        little, {"precision": "float64", "data.feature_noise": 0.0, "descent.steps": 30, "hinge_margin": 5.0}
    )
    return {way: train(put(quiet, "simulator", way), seed=1) for way in ("nodes", "patterns")}


def test_counts_of_patterns_follow_the_nodes_themselves(both):
    assert abs(both["nodes"]["bias"]).max() > 1e-3
    for name in ("bias_curve", "test_hinge_curve", "attention_curve"):
        np.testing.assert_allclose(both["nodes"][name], both["patterns"][name], atol=1e-10)


def test_the_sum_of_b_is_conserved(both):
    assert both["nodes"]["bias_drift"] < 1e-12


def test_what_is_frozen_stays(little):
    gradient = Parameters(*(jnp.ones(2) for _ in range(5)))
    moved = {
        kind: [bool(jnp.any(part)) for part in Network(kind=kind).trained(gradient)]
        for kind in ("transformer", "no-position", "frozen", "gcn")
    }
    assert moved["transformer"] == [True] * 5
    assert moved["no-position"] == [True] * 4 + [False]
    assert moved["frozen"] == moved["gcn"] == [False, False, True, True, False]
    assert Network(train_self_bias=False).trained(gradient).bias.tolist() == [0, 1]


def test_a_shuffle_is_fair_and_leaves_the_rest_behind():
    many = jax.jit(jax.vmap(lambda key: shuffled(key, 10, 4)))
    orders = np.asarray(many(jax.random.split(new_key(0), 2000)))
    assert (np.sort(orders[:, :4], axis=1) == np.arange(4)).all()
    assert (orders[:, 4:] == np.arange(4, 10)).all()
    share = np.stack([(orders[:, :4] == k).mean(0) for k in range(4)])
    assert np.abs(share - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 2000)  # five standard errors


def test_batches_hold_labelled_nodes_only_and_an_epoch_holds_all(little):
    trial = put_all(little, {"data.labelled": 16, "descent.batch": 8})
    order = jnp.arange(60)[::-1]
    for kind, steps in (("epochs", 2), ("single-pass", 2)):
        one = put(trial, "descent.batches", kind)
        batch_of = jax.jit(lambda step, one=one: one.batch(new_key(0), step, order, None))
        seen = np.concatenate([batch_of(jnp.asarray(s)) for s in range(steps)])
        assert sorted(seen.tolist()) == list(range(44, 60)), kind
    little = put(trial, "data.labelled", 3)
    few = jax.jit(lambda step: little.batch(new_key(0), step, order, None))(jnp.asarray(0))
    assert set(few.tolist()) == {57, 58, 59}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"simulator": "patterns"}, "exact only without feature noise"),
        ({"at": 7}, "cannot draw from distance 7"),
        ({"descent.loss": "logistic"}, "trains on the hinge loss"),
        ({"tested": 50}, "50 nodes are to be tested, and 44 are not labelled"),
        ({"hinge_margin": -1.0}, "must be positive"),
    ],
)
def test_trials_that_cannot_be_are_refused_in_a_sentence(little, changes, sentence):
    with pytest.raises(BadInput, match=sentence):
        put_all(little, changes)


def test_a_graph_file_is_not_trained_on(little):
    with pytest.raises(BadInput, match="ask `lemmata predict graph-transformer` about it"):
        train(put(little, "data.file", "graph.npz"), seed=0)


# Extensions ------------------------------------------------------------------------------------------------------------


def test_a_graphs_output_is_the_mean_of_its_nodes_and_does_not_depend_on_their_order():
    with double():
        weights, signs, _, _, _ = batch()
        rng = np.random.default_rng(1)
        features = jnp.asarray(rng.normal(size=(8, 6)))
        distance = rng.integers(1, 4, (8, 8))
        distance = jnp.asarray(np.triu(distance, 1) + np.triu(distance, 1).T)
        found = jax.jit(graph_output, static_argnums=4)
        mean = float(found(weights, signs, features, distance))
        assert float(found(weights, signs, features, distance, "sum")) == pytest.approx(8 * mean)
        order = rng.permutation(8)
        again = found(weights, signs, features[order], distance[order][:, order])
        assert float(again) == pytest.approx(mean)
        one = Seen(features[None], distance[:1], jnp.ones((1, 8)))
        alone = jax.jit(outputs)(weights, signs, features[:1], one)
        assert float(alone[0]) != pytest.approx(mean)


def test_four_classes_as_pairs_of_signs():
    label = jnp.array([[1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_allclose(pair_hinge(jnp.array([[0.5, 0.2], [0.5, 0.2]]), label), [0.3, 0.7], atol=1e-6)


def test_sets_of_others_hold_the_node_itself_and_nobody_twice():
    asking = jnp.array([0, 7, 9])
    draw = jax.jit(lambda key: others(key, asking, 10, 6))
    for seed in range(20):
        found = np.asarray(draw(new_key(seed)))
        assert found[:, 0].tolist() == [0, 7, 9]
        assert all(len(set(row)) == 7 for row in found.tolist())
        assert found.min() >= 0
        assert found.max() < 10


def test_the_noise_of_a_batchs_gradient_falls_as_the_root_of_its_size(little):
    """(B.63): the relative error of the gradient of W_O over batches of B independent nodes goes as B^-1/2."""
    with double():
        trial = put(little, "precision", "float64")
        state = jax.jit(trial.start)(new_key(0))
        world, known = state.world, state.data[: trial.data.labelled]

        def gradient(key, some):
            return trial.slope(state.params, some, world, key)[1].hidden

        def spread(size):
            keys = jax.random.split(new_key(size), 300)
            drawn = jax.jit(jax.vmap(lambda key: gradient(key, jax.random.choice(key, known, (size,)))))
            found = np.asarray(drawn(keys)).reshape(300, -1)
            return np.sqrt(np.mean(np.sum((found - found.mean(0)) ** 2, axis=1)))

        sizes = np.array([4, 16, 64])
        power = np.polyfit(np.log(sizes), np.log([spread(int(size)) for size in sizes]), 1)[0]
        assert power == pytest.approx(-0.5, abs=0.05)


def test_values_of_a_pattern_take_at_least_b_31_of_every_lucky_row():
    """V_i at the start: what lucky rows enter W_V mu_1 with, over all nodes of the graph, half of which have the label."""
    with double():
        trial = put_all(
            small(template()), {"precision": "float64", "probes": "neurons", "data.confusion": 0.0}
        )

        @jax.jit
        def begun(key):
            world = trial.start(key).world
            return world, looked(trial, world.initial, world, jnp.arange(trial.data.nodes))

        world, (mixed, paid, _) = begun(new_key(0))
        initial, nodes, mixed = jax.tree.map(np.asarray, (world.initial, world.nodes, mixed))
        open_gates = mixed @ initial.value.T @ initial.hidden > 0
        weight = (nodes.label * (mixed @ nodes.patterns[0]))[:, None] * open_gates
        moved = np.mean(weight, axis=0)[np.asarray(world.lucky[0])] * trial.network.neurons**-0.5
        assert len(moved)
        least = theory.value_coefficient(float(np.mean(paid)), 0.0, trial.network.neurons)
        assert np.mean(moved) >= least


def test_a_run_in_which_every_neuron_is_lucky_has_not_diverged():
    """The mean over the other neurons is over none, and is left out."""
    with double():
        trial = put(small(template()), "probes", "neurons")
        state = trial.start(new_key(0))
        signs = state.world.signs
        state = state._replace(world=state.world._replace(lucky=jnp.stack([signs > 0, signs < 0])))
        found = {name: np.asarray(value) for name, value in neurons(trial, state).items()}
    assert [name for name, value in found.items() if not np.isfinite(value).all()] == ["neuron_size"]
    assert np.isfinite(found["neuron_size"][0])
    assert complete(trial, found.items())
