"""Graphs have the votes they were asked for, and sampled sets are fair."""

from functools import partial

import jax
import numpy as np
import pytest
import scipy.sparse as sparse

from lemmata.errors import BadInput
from lemmata.parts.graphs import adjacency, block_graph, degrees
from lemmata.studies.graph_transformer.data import surveys
from lemmata.studies.graph_transformer.data.generate import Wanted, drawn, regular
from lemmata.studies.graph_transformer.data.model import VoteGraph
from lemmata.studies.graph_transformer.data.sampling import (
    Lists,
    lists,
    masks,
    places_of_batch,
    sampled,
    sampled_confusion,
    sampled_with_distances,
    shuffled,
    subset,
)
from lemmata.studies.graph_transformer.data.variants import (
    CLASSES,
    ClusterGraph,
    FourClassGraph,
    GraphSet,
    graph_label,
    positions,
)
from lemmata.studies.graph_transformer.data.votes import (
    Votes,
    average_margin,
    confusion_ratio,
    core_distance,
    discriminative_share,
    inconsistent_share,
    margin_identity,
    unevenness,
    winning_margin,
)
from lemmata.threefry import new_key
from tests.kernels import forms, needs_compiler

DOCUMENT = VoteGraph(inner_degree=60)
KEY = new_key(0)
GRAPH = DOCUMENT.graph(0)


def test_the_example_of_figure_3_2():
    """A node of pattern mu_3 and label +1 with margins -2 at distance 1 and 3 at distance 2."""
    pattern = np.array([2, 0, 1, 1, 1, 0, 0, 0, 0, 1])
    distance = np.full((10, 10), 2, np.uint8)
    np.fill_diagonal(distance, 0)
    distance[0] = [0, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    label = np.where(pattern == 1, -1, 1)
    assert winning_margin(Votes(distance, pattern, label))[0, 1:].tolist() == [-2, 3]


def test_the_documents_graph_is_what_it_says():
    graph, joined = drawn(np.random.default_rng(1), DOCUMENT.wanted)
    others = ~graph.discriminative
    assert (degrees(joined)[others] == 120).all()
    assert degrees(joined).min() == 120
    counts = joined.toarray()
    first, second = graph.pattern == 0, graph.pattern == 1
    assert first.sum() == second.sum() == 200
    assert counts[np.ix_(first, second)].sum() == 0
    assert counts[np.ix_(others, others)].sum() == 0
    assert (counts[np.ix_(first, first)].sum(1) == 60).all()
    good = np.where(
        graph.label[others] > 0, counts[others][:, first].sum(1), counts[others][:, second].sum(1)
    )
    assert (good == 114).all()
    assert confusion_ratio(graph) == pytest.approx(0.05)
    assert core_distance(average_margin(graph)) == 1
    assert inconsistent_share(graph) == 0


def test_without_inner_edges_discriminative_nodes_do_not_vote_for_themselves():
    """The document's graph as printed: D nodes have no neighbour of their own pattern up to gamma_d = 1/2."""
    graph = VoteGraph().graph(0)
    assert (winning_margin(graph)[graph.discriminative, 1] == 0).all()
    assert inconsistent_share(graph) == pytest.approx(0.4)


def test_block_graphs_spread_discriminative_nodes_evenly_and_the_documents_graph_does_not():
    even = VoteGraph(generator="blocks", degree=60, confusion=0.2).graph(0)
    assert abs(discriminative_share(even)[1] - 0.4) < 0.02
    assert unevenness(even) < 0.25 < unevenness(GRAPH)
    assert abs(confusion_ratio(even) - 0.2) < 0.02


def test_heterophilous_graphs_have_their_core_farther_out():
    far = VoteGraph(generator="blocks", degree=12, confusion=0.9).graph(0)
    margin = average_margin(far)
    assert margin[1] < 0 < margin[2]
    assert core_distance(margin) != 1


@pytest.mark.parametrize("core", [1, 2, 3])
def test_drawn_distances_have_the_core_asked_for(core):
    graph = VoteGraph(generator="distances", nodes=200, labelled=50, confusion=0.1, core=core).graph(0)
    assert core_distance(average_margin(graph)) == core
    assert abs(confusion_ratio(graph) - 0.1) < 0.03
    assert inconsistent_share(graph) == 0


def test_flipped_labels_are_the_inconsistent_ones():
    assert inconsistent_share(VoteGraph(flipped=0.1, inner_degree=60).graph(0)) == pytest.approx(0.1)


def test_identity_b_199_is_exact():
    for pattern in (1, 2, 5):
        assert not margin_identity(GRAPH, pattern).any()


def test_regular_graphs_are_regular():
    edges = regular(np.random.default_rng(0), 41, 6)
    ends, count = np.unique(edges, return_counts=True)
    assert len(ends) == 41
    assert (count == 6).all()
    assert len({tuple(sorted(edge)) for edge in edges.tolist()}) == 41 * 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"discriminative": 0.2, "confusion": 0.0}, "joined to 120 nodes of a pattern that has 100"),
        ({"inner_degree": 200}, "cannot have 200 neighbours among themselves"),
        ({"generator": "blocks", "confusion": 0.9, "buckets": 3}, "pools the core distance 2"),
        ({"generator": "distances", "core": 4}, "pools the core distance 4"),
        ({"generator": "blocks", "degree": 3}, "leaves about 50 of 1000 nodes without a neighbour"),
        ({"flipped": 0.6}, "fewer than half"),
        ({"labelled": 1000}, "some must be left to be tested"),
        ({"patterns": 30}, "do not fit into 20 dimensions"),
    ],
)
def test_graphs_that_cannot_be_are_refused_in_a_sentence(settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        VoteGraph(**settings)


# Sampled sets ----------------------------------------------------------------------------------------------------------


def test_sets_are_without_repetition_from_the_list_and_all_members_alike():
    allowed = np.zeros((30, 30), bool)
    allowed[0, 5:25] = True
    allowed[1, [3, 4]] = True
    held = Lists(*map(jax.numpy.asarray, lists([allowed])))
    seen = np.zeros(30)
    draw = jax.jit(lambda key: sampled(key, held, jax.numpy.array([0, 1, 2]), 8, itself=True))
    for i in range(400):
        members, filled = map(np.asarray, draw(new_key(i)))
        assert filled[0].all()
        assert members[:, 0].tolist() == [0, 1, 2]
        drawn_set = members[0, 1:]
        assert len(set(drawn_set.tolist())) == 8
        assert set(members[1, 1:][filled[1, 1:]].tolist()) == {3, 4}
        assert members[2, 1:][filled[2, 1:]].tolist() == [2]  # nobody to look at: itself
        seen[drawn_set] += 1
    share = seen[5:25] / 400  # each is drawn with chance 8/20; five standard errors
    assert seen[:5].sum() + seen[25:].sum() == 0
    assert np.abs(share - 0.4).max() < 5 * np.sqrt(0.4 * 0.6 / 400)


def test_subsets_are_those_of_floyds_rounds_one_after_the_other():
    """Also where chains are long (59 of 60) and where there are fewer than asked for."""
    count = np.array([60, 59, 61, 70, 500, 3, 1])
    draw = jax.jit(lambda key: subset(key, jax.numpy.asarray(count), 60))
    for i in range(20):
        key = new_key(i)
        chance = np.asarray(jax.random.uniform(key, (60, len(count)), np.float32))
        for row, many in enumerate(count):
            chosen: list[int] = []
            for step in range(60):
                last = int(many) - 60 + step
                pick = step if last < step else min(int(chance[step, row] * np.float32(last + 1)), last)
                chosen.append(max(last, step) if pick in chosen else pick)
            assert np.asarray(draw(key))[:, row].tolist() == chosen


@needs_compiler
@pytest.mark.parametrize(("parts", "size", "itself"), [(1, 8, True), (2, 9, False)])
def test_the_kernel_draws_the_same_sets(parts, size, itself):
    """In two lanes of graphs that differ; lists hold fewer nodes than a set, just as many, or more."""
    rng, nodes = np.random.default_rng(0), 30
    allowed = rng.random((2, parts, nodes, nodes)) < np.linspace(0, 1, nodes)[:, None]
    held = Lists(*map(np.stack, zip(*(lists(list(one)) for one in allowed), strict=True)))
    distance = rng.integers(0, 5, (2, nodes, nodes)).astype(np.uint8)
    batch = rng.integers(0, nodes, (2, 19)).astype(np.int32)
    keys = jax.random.key_data(jax.random.split(KEY))
    ways = [partial(way, size=size, itself=itself) for way in forms(sampled_with_distances)]
    found, wanted = (jax.jit(jax.vmap(way))(keys, held, distance, batch) for way in ways)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("first", "begin"), [(30, 0), (30, 11), (30, 23), (5, 0), (5, 3), (40, 33), (1, 0)])
def test_places_of_a_batch_are_those_of_the_whole_order(first, begin):
    order = np.asarray(shuffled(KEY, 40, first))
    data = jax.random.key_data(KEY)
    found = jax.jit(lambda begin: places_of_batch(data, first, begin, 40, 7))(begin)
    assert found.tolist() == order[(begin + np.arange(7)) % first].tolist()


def test_an_oracle_lowers_the_confusion_of_sampled_sets():
    graph = VoteGraph(confusion=0.3, inner_degree=60).graph(0)
    core, found = core_distance(average_margin(graph)), {}
    for sampler in ("near", "core", "relevant"):
        members, count = lists(masks(graph, sampler))
        found[sampler] = sampled_confusion(np.random.default_rng(0), graph, core, members, count, 60)
    assert abs(found["near"] - 0.3) < 0.03
    assert abs(found["core"] - 0.3) < 0.02
    assert found["relevant"] < 0.15


# Surveys ---------------------------------------------------------------------------------------------------------------


def test_a_survey_finds_the_classes_of_a_homophilous_graph():
    graph = surveys.made(np.random.default_rng(0))
    found = surveys.surveyed(graph, 4)
    assert found.core == 1
    assert found.classes == 3
    assert found.gap == 0
    assert (found.shares > 0.6).all()
    assert found.normalised[0] > 0.3
    assert found.inconsistent < 0.2
    assert surveys.surveyed(graph, 4, itself=True).inconsistent <= found.inconsistent


def test_centring_hides_the_mean_that_angles_are_measured_from():
    graph = surveys.made(np.random.default_rng(0))
    moment, covariance = (
        surveys.discriminative_nodes(graph.features, graph.labels, s) for s in ("moment", "covariance")
    )
    assert moment.mean() > covariance.mean() + 0.1


def test_margins_with_two_classes_are_those_of_the_definition():
    found = np.array([[[3.0, 1.0], [2.0, 5.0]]])
    assert surveys.margins(found, np.array([0, 0])).tolist() == [[2.0, -3.0]]


def test_isolated_labelled_nodes_are_refused(tmp_path):
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1]]), features=np.eye(3), labels=np.array([0, 1, 1]))
    with pytest.raises(BadInput, match="1 labelled nodes have no neighbour"):
        surveys.survey(str(tmp_path / "g.npz"), 3)


def test_a_cap_below_the_core_of_a_graph_is_refused():
    """Two classes, each joined to the whole of the other: a node meets its own class at distance 2 only."""
    labels = np.repeat(np.arange(2), 20)
    joined = adjacency(np.array([[i, 20 + j] for i in range(20) for j in range(20)]), 40)
    graph = surveys.GraphFile(joined, sparse.csr_array(np.eye(2)[labels]), labels)
    assert surveys.surveyed(graph, 2).core == 2
    with pytest.raises(BadInput, match="at distance 2, and distances are capped at 1"):
        surveys.surveyed(graph, 1)


def test_a_wanted_graph_is_drawn_again_by_the_same_seed():
    wanted = Wanted("blocks", 80, 4, 0.4, 0.2, 10, 0, 5)
    first, again = (drawn(np.random.default_rng(3), wanted)[0] for _ in range(2))
    np.testing.assert_array_equal(first.distance, again.distance)


# Variants --------------------------------------------------------------------------------------------------------------


def test_absolute_positions_find_the_structure_they_are_for():
    """Two clusters joined by one edge: the Laplacian tells them apart, so that nodes of one attend to each other."""
    graph = block_graph(
        np.random.default_rng(0), np.repeat([0, 1], 15), np.array([[0.8, 0.005], [0.005, 0.8]])
    )
    place = positions(graph, "laplacian", 1)
    assert len(set(place[:15, 0])) == len(set(place[15:, 0])) == 1
    assert place[0, 0] * place[20, 0] == pytest.approx(-1)
    for kind in ("degree", "random-walk", "centroid"):
        np.testing.assert_allclose(np.linalg.norm(positions(graph, kind), axis=1), 1.0)


def test_walks_on_a_ring_of_three_come_back_after_three_steps_and_on_a_ring_of_four_do_not():
    three = positions(adjacency(np.array([[0, 1], [1, 2], [2, 0]]), 3), "random-walk", 2)
    four = positions(adjacency(np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), 4), "random-walk", 2)
    assert (three[:, 1] > 0).all()
    assert (four[:, 1] == 0).all()


def test_a_graphs_label_is_not_decided_by_the_counts_of_all_patterns():
    pattern = np.array([2, 0, 1, 1, 1])
    distance = np.array([[0, 1, 2, 2, 2]] * 5)
    graph = Votes(distance, pattern, np.ones(5, int))
    assert graph_label(graph, np.array([0]), 1) == 1
    assert graph_label(graph, np.array([0]), 2) == -1


def test_every_graph_of_a_set_holds_both_patterns_alike_and_its_voters_tell_its_label():
    rng, wanted = np.random.default_rng(0), GraphSet()
    for _ in range(20):
        graph = wanted.one(rng)
        assert np.sum(graph.pattern == 0) == np.sum(graph.pattern == 1) == 9
        voters = graph.pattern[graph.distance[0] == 2]
        assert sorted(np.bincount(voters, minlength=2)) == [1, 8]
        assert graph_label(graph, np.array([0]), 2) == (1 if np.sum(voters == 0) == 8 else -1)


def test_each_sign_of_four_classes_has_its_margin_at_its_own_distance():
    found = {
        k: np.asarray(v)
        for k, v in FourClassGraph(nodes=100, labelled=50).draw(KEY, np.dtype("float32")).items()
    }
    assert found["margin"][:, 1:].argmax(1).tolist() == [0, 2]
    inside = 0.4 * 100 / 4  # discriminative nodes at a distance
    np.testing.assert_allclose([found["margin"][0, 1], found["margin"][1, 3]], 0.8 * inside, rtol=0.1)
    np.testing.assert_allclose([found["margin"][0, 3], found["margin"][1, 1]], 0, atol=0.4)
    assert {tuple(pair) for pair in found["label"].tolist()} == {tuple(pair) for pair in CLASSES.tolist()}


def test_clusters_vote_for_their_labels_and_positions_stand_beside_the_features():
    """The same graph whatever position is asked for; every cluster has the majority that its label says."""
    found = {
        kind: ClusterGraph(position=kind).draw(KEY, np.dtype("float32")) for kind in ("none", "laplacian")
    }
    plain, placed = (np.asarray(found[kind]["features"]) for kind in ("none", "laplacian"))
    np.testing.assert_array_equal(plain[:, :12], placed[:, :12])
    assert not plain[:, 12:].any()
    np.testing.assert_allclose(np.linalg.norm(placed[:, 12:], axis=1), 1.0, rtol=1e-5)
    base, cluster, label = (np.asarray(found["none"][name]) for name in ("patterns", "cluster", "label"))
    pattern = (plain @ base.T).argmax(1)
    for one in range(4):
        own = 0 if label[cluster == one][0] > 0 else 1
        counts = np.bincount(pattern[cluster == one], minlength=2)
        assert (counts[own], counts[1 - own]) == (16, 4)
