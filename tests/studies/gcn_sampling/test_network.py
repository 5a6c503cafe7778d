"""Graphs, fields, samplers and the network: fixed shapes agree with SciPy, the field with the whole graph, cA with A."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.parts.graphs import normalised, read_graph
from lemmata.studies.gcn_sampling import network, theory
from lemmata.studies.gcn_sampling.data import (
    ChungLu,
    DegreeGroups,
    FileGroups,
    as_sparse,
    no_such_graph,
    normalised_rows,
    simple_graph,
)
from lemmata.studies.gcn_sampling.network.fields import (
    Room,
    field_outputs,
    in_field,
    matrix,
    rooms_for,
    whole_field,
)
from lemmata.studies.gcn_sampling.trials import Training
from lemmata.studies.gcn_sampling.trials.samplers import factors, kept
from lemmata.threefry import new_key
from lemmata.trial import put_all

GRAPH = DegreeGroups(degrees=(6, 2), sizes=(8, 32), features=4, target_width=3)
SMALL = Training(graph=GRAPH, width=7, labels=20, dropout=0.0, precision="float64", rates=(0.5, 0.75))
BATCH = jnp.array([0, 3, 9, 20, 39], jnp.int32)


@pytest.fixture(scope="module")
def world():
    from lemmata.guard import double

    with double():
        return jax.jit(lambda key: GRAPH.draw(key, jnp.dtype(float)))(new_key(3))


@pytest.fixture(scope="module")
def weights():
    from lemmata.guard import double

    with double():
        return jax.jit(lambda key: network.start(key, 4, 7, 2, jnp.dtype(float)))(new_key(5))


def test_drawn_pairs_make_the_normalised_adjacency_of_the_bench():
    drawn = jax.jit(
        lambda key: (pairs := GRAPH.draw_pairs(key), normalised_rows(pairs, 40, jnp.dtype(float)))
    )
    pairs, graph = drawn(new_key(0))
    ours, pairs = as_sparse(graph), np.asarray(pairs)
    theirs = normalised(simple_graph(pairs, 40))
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), atol=1e-15)
    assert abs(np.diff(theirs.indptr)[:8].mean() - 7) < 1.5  # degrees about 6, and the loop


def test_chung_lu_joins_each_pair_by_itself_with_a_chance_by_their_degrees():
    """Over 400 graphs: the share of each kind of pair that is joined, within five deviations; no row is too long."""
    one = ChungLu(degrees=(6, 2), sizes=(8, 32))
    pairs = jax.jit(jax.vmap(one.draw_pairs))(jax.random.split(new_key(0), 400))
    met = np.mean([simple_graph(p, 40).toarray() for p in np.asarray(pairs)], axis=0)
    kinds = {
        (0, 0): (slice(0, 8), slice(0, 8), 28),
        (0, 1): (slice(0, 8), slice(8, 40), 256),
        (1, 1): (slice(8, 40), slice(8, 40), 496),
    }
    for (g, h), (own, other, count) in kinds.items():
        chance = 1 - np.exp(-one.degrees[g] * one.degrees[h] / (6 * 8 + 2 * 32))
        found = met[own, other].sum() / (2 if g == h else 1) / count
        assert abs(found - chance) < 5 * np.sqrt(chance * (1 - chance) / (400 * count))
    longest = max(np.diff(simple_graph(p, 40).indptr).max() for p in np.asarray(pairs))
    assert longest < one.widest


@pytest.fixture
def graph_file(tmp_path):
    """A star of six nodes and a pair, with three features and two classes."""
    path = tmp_path / "graph.npz"
    edges = np.array([[3, n] for n in (0, 1, 2, 4, 5)] + [[6, 7]])
    features = np.arange(24.0).reshape(8, 3) + 1
    np.savez(path, edges=edges, features=features, labels=np.array([0, 0, 1, 1, 0, 1, 1, 0]))
    return path


def test_a_graph_from_a_file_is_numbered_by_degree_and_keeps_its_edges_and_classes(graph_file):
    one = FileGroups(path=str(graph_file), components=3)
    world = jax.jit(lambda key: one.draw(key, jnp.dtype(float)))(new_key(0))
    theirs = normalised(read_graph(graph_file).adjacency).toarray()
    order = [3, 0, 1, 2, 4, 5, 6, 7]
    np.testing.assert_allclose(as_sparse(world.graph).toarray(), theirs[np.ix_(order, order)], atol=1e-15)
    assert np.argmax(world.labels, axis=1).tolist() == [1, 0, 0, 1, 0, 1, 1, 0]
    assert (one.sizes, one.degrees, one.outputs, one.widest) == ((4, 4), (5, 1), 2, 6)
    np.testing.assert_allclose(np.linalg.norm(world.features, axis=1), 1)


def test_files_that_do_not_do_are_refused_in_one_sentence(graph_file, tmp_path):
    with pytest.raises(BadInput, match="8 nodes cannot be cut into 9 groups"):
        FileGroups(path=str(graph_file), groups=9)
    held = dict(np.load(graph_file)) | {"labels": np.array([0, 0, -1, 1, 0, -1, 1, 0])}
    np.savez(tmp_path / "unknown.npz", **held)
    with pytest.raises(BadInput, match=r"2 nodes of '.*' have no class"):
        FileGroups(path=str(tmp_path / "unknown.npz"))
    with pytest.raises(BadInput, match="is not a graph file"):
        FileGroups(path=str(tmp_path / "nowhere.npz"))


def test_labels_are_those_of_dense_matrices(world):
    dense = as_sparse(world.graph).toarray() * np.array([0.7, 0.3])[GRAPH.group_of]
    key = jax.random.split(new_key(3), 4)[2]
    first, second = jax.random.split(key)
    u = dense @ np.asarray(world.features) @ np.asarray(jax.random.normal(first, (4, 3)))
    wanted = (np.sin(u) * np.tanh(u)) @ np.asarray(jax.random.normal(second, (3, 2)))
    np.testing.assert_allclose(world.labels, wanted, atol=1e-12)


def test_the_network_is_the_displayed_equation(world, weights):
    a = as_sparse(world.graph).toarray() * np.array([0.7, 0.3])[GRAPH.group_of]
    first = np.maximum(a @ np.asarray(world.features) @ weights.w1 + weights.bias1, 0)
    wanted = a @ np.maximum(a @ first @ weights.w2 + weights.bias2, 0) @ weights.readout
    column = jnp.array([0.7, 0.3])[GRAPH.group_of]

    @jax.jit
    def both():
        on = network.masks(weights, world.graph, world.features, column)
        plain = network.outputs(weights, world.graph, world.features, column)
        return plain, network.pseudo_outputs(weights, on, world.graph, world.features, column)

    for found in both():
        np.testing.assert_allclose(found, wanted, atol=1e-13)


def test_scaling_the_matrix_is_scaling_the_weights(world, weights):
    run = jax.jit(lambda w, c: network.outputs(w, world.graph, world.features, c))
    plain = run(weights, 1.0)
    for c in (0.3, 2.5):
        np.testing.assert_allclose(run(network.rescaled(weights, c), c), plain, rtol=1e-11)
    halves = weights._replace(w1=weights.w1 / 2, w2=weights.w2 / 2)  # the print's 1/c for both is not enough
    assert not np.allclose(run(halves, 2.0), plain, rtol=0.01)


def test_cross_terms_of_random_signs_vanish_on_average(world):
    """All 2^4 signs: g(W + W'S, V + SV') is g(W, V) + g_bb(W', V') on average (Lemma D.2.10)."""
    signs = jnp.array(np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T)

    @jax.jit
    def means():
        four, step = (network.start(new_key(n), 4, 4, 2, jnp.dtype(float)) for n in (1, 2))
        on = network.masks(four, world.graph, world.features)

        def turned(s):
            moved = four._replace(w1=four.w1 + step.w1 * s, w2=four.w2 + s[:, None] * step.w2)
            return network.pseudo_outputs(moved, on, world.graph, world.features)

        both = step._replace(readout=four.readout)
        plain = network.pseudo_outputs(four, on, world.graph, world.features)
        bilinear = network.pseudo_outputs(both, on, world.graph, world.features, biases="none")
        return jnp.mean(jax.vmap(turned)(signs), axis=0), plain + bilinear

    found, wanted = means()
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize(
    "sampler",
    [
        "groups",
        "independent",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("effective", "symmetric", "unbiased")),
    ],
)
def test_a_batch_in_its_field_sees_what_it_sees_in_the_whole_graph(world, weights, sampler):
    trial = put_all(SMALL, {"sampler": sampler})
    key = new_key(8)

    def seen(field):
        return field_outputs(
            weights, field, factors(sampler, key, field, world.graph, trial.sampling()), world.features
        )

    rooms = ((Room(35, 40),), (Room(2, 4), Room(30, 40), Room(35, 40)))

    @jax.jit
    def ways():
        return seen(whole_field(world.graph, BATCH, 7)), *(
            in_field(world.graph, BATCH, 7, one, seen) for one in rooms
        )

    whole, *found = ways()
    for one in found:
        np.testing.assert_allclose(one, whole, atol=1e-13)
    if sampler == "effective":
        wanted = network.outputs(weights, world.graph, world.features, jnp.array([0.7, 0.3])[GRAPH.group_of])
        np.testing.assert_allclose(whole, wanted[BATCH], atol=1e-13)


def test_the_smallest_room_is_taken_and_the_largest_holds_everything():
    assert rooms_for(5, 11, 2000) == (Room(12, 64), Room(20, 128), Room(55, 605))
    assert rooms_for(5, 4, 10) == (Room(10, 10),)
    assert rooms_for(5, 11, 10**6) == rooms_for(5, 11, 2000)  # the graph does not matter


def test_exactly_as_many_nodes_are_drawn_as_asked_for_and_all_alike():
    """Chances within five standard errors of 4000 draws, for single nodes and for pairs."""
    sampling = SMALL.sampling()
    assert sampling.samples.tolist() == [4, 24]
    drawn = np.asarray(
        jax.jit(jax.vmap(lambda k: kept(k, jnp.arange(40), sampling)))(jax.random.split(new_key(0), 4000))
    )
    assert set(drawn[:, :8].sum(1)) == {4}
    assert set(drawn[:, 8:].sum(1)) == {24}
    rate = np.repeat([0.5, 0.75], [8, 32])
    assert np.all(np.abs(drawn.mean(0) - rate) < 5 * np.sqrt(rate * (1 - rate) / 4000))
    both = drawn.T.astype(float) @ drawn / 4000
    chance = np.where(np.equal.outer(GRAPH.group_of, GRAPH.group_of), 0.0, np.outer(rate, rate))
    chance[:8, :8], chance[8:, 8:] = 4 * 3 / (8 * 7), 24 * 23 / (32 * 31)
    off = ~np.eye(40, dtype=bool)
    assert np.all(np.abs(both - chance)[off] < 5.5 * np.sqrt(chance * (1 - chance) / 4000)[off])


@pytest.mark.parametrize("sampler", ["groups", "unbiased", "symmetric", "fastgcn", "ladies", "graphsage"])
def test_the_mean_of_a_sampled_matrix_is_what_the_sampler_stands_for(world, sampler):
    """Monte Carlo with 3000 draws beside exact means: A*, the biased mean of the printed symmetric sampler, or A."""
    trial = put_all(SMALL, {"sampler": sampler})
    field = jax.jit(lambda graph: whole_field(graph, BATCH, 7))(world.graph)

    def one(key):
        found = factors(sampler, key, field, world.graph, trial.sampling())
        top = matrix(field.third, found.third, 40)
        return matrix(field.second, found.second, 40), top

    drawn, top = jax.jit(jax.vmap(one))(jax.random.split(new_key(2), 3000))
    a, group = as_sparse(world.graph), GRAPH.group_of
    if sampler == "symmetric":
        wanted = theory.symmetric_mean(a, group, (0.7, 0.3), [4, 24], [8, 32]).toarray()
    elif sampler in ("groups", "unbiased"):
        wanted = theory.effective(a, group, (0.7, 0.3), symmetric=sampler == "unbiased").toarray()
    else:
        wanted = a.toarray()
    if sampler == "ladies":  # lower layers hang on the draw of the upper one
        drawn, wanted = top, wanted[np.asarray(BATCH)]
    spread = np.asarray(drawn).std(0) / 3000**0.5
    assert np.all(np.abs(np.asarray(drawn).mean(0) - wanted) <= 6 * spread + 1e-12)


def test_degrees_that_no_graph_has_are_refused():
    with pytest.raises(BadInput, match="no graph has 3 nodes of degree 3: a node joins at most 2 others"):
        DegreeGroups(degrees=(3,), sizes=(3,), target_scaling=(1.0,))
    with pytest.raises(
        BadInput, match="no graph has these degrees: the 4 nodes of degree 5 and more want 20 ends"
    ):
        DegreeGroups(degrees=(5, 1), sizes=(4, 4))
    assert not no_such_graph((1,), (3,))  # one stub is left over
    with pytest.raises(BadInput, match="a degree of 0 does not do"):
        DegreeGroups(degrees=(3, 0), sizes=(10, 10))
    with pytest.raises(BadInput, match="name the same groups"):
        DegreeGroups(degrees=(3,), sizes=(10, 10))


def test_rates_and_labels_that_cannot_be_are_refused():
    for rate in (0.0, 1.2, -0.5):
        with pytest.raises(BadInput, match=r"a sampling rate S_l/N_l lies in \(0, 1\], not"):
            put_all(SMALL, {"rates": (0.5, rate)})
    with pytest.raises(BadInput, match="fewer than all 40, not 40"):
        put_all(SMALL, {"labels": 40})
    with pytest.raises(BadInput, match="one number for each of 2 groups"):
        put_all(SMALL, {"scaling": (0.5,)})
    with pytest.raises(BadInput, match=r"descent\.steps stops at 8000; raise it"):
        put_all(Training(), {"passes": 20})
