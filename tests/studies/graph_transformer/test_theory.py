"""Formulas at their limits, and against exact counts."""

import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.studies.graph_transformer import theory
from lemmata.studies.graph_transformer.data import surveys
from lemmata.studies.graph_transformer.data.model import VoteGraph
from lemmata.studies.graph_transformer.data.votes import counted, sizes
from lemmata.studies.graph_transformer.figures import template
from lemmata.studies.graph_transformer.network import Parameters, Seen, attention
from lemmata.study import study
from lemmata.trial import put, put_all


def test_the_formula_is_flat_in_the_share_where_the_remark_is_not():
    """Values of (1 - 2 eps_S (1 - gamma_d) - sigma)^-2 at sigma = 0.1, eps_S = 0.05."""
    shape = [theory.clear_vote(share, 0.05, 0.1) ** -2 for share in (0.2, 0.4, 0.6)]
    np.testing.assert_allclose(shape, [1.49, 1.42, 1.35], atol=0.005)
    assert theory.remark_labels(0.2, 0.05, 0.1) / theory.remark_labels(0.6, 0.05, 0.1) == pytest.approx(9)


def test_at_confusion_one_half_the_formula_is_the_remark():
    first, second = (theory.vote_labels(share, 0.5, 0.0, 5, 1000) for share in (0.2, 0.4))
    assert first / second == pytest.approx(4)


def test_printed_and_mended_steps_differ_by_their_powers_alone():
    for steps, power in ((theory.transformer_steps, -0.5), (theory.transformer_steps_mended, -1.0)):
        assert steps(0.4, 0.1, 0.2) / steps(0.1, 0.1, 0.2) == pytest.approx(4**power)
    for steps, power in ((theory.convolution_steps, -2.0), (theory.convolution_steps_mended, -1.0)):
        assert steps(0.1, 0.0, 0.2, 0.6) / steps(0.1, 0.0, 0.2, 0.3) == pytest.approx(2**power)
    assert theory.transformer_steps(0.1, 0.5, 0.2) == np.inf


def test_the_footnote_says_which_term_of_3_9_is_the_larger():
    """delta_zm^2 log N against B T with B = log N / eps^2 and eta = 1, no initial errors."""
    for inconsistent in (0.0, 0.3, 0.45, 0.49, 0.4999):
        for largest, accuracy in ((5, 0.3), (20, 0.1), (200, 0.1)):
            steps = theory.transformer_steps(1.0, inconsistent, 0.0)
            larger = largest**2 > steps / accuracy**2
            assert theory.vote_term_dominates(inconsistent, largest, accuracy) == larger


def test_printed_growth_of_neurons_and_bias_goes_as_powers_of_time():
    first, second = theory.lucky_growth_printed(np.array([10.0, 20.0]), 0.01, 0.1, 0.0, 0.5) - 0.01
    assert second / first == pytest.approx(4)
    here = theory.setting(template())
    assert theory.bias_bound(here, 20, 0.5, 0.1, 1.0) / theory.bias_bound(
        here, 10, 0.5, 0.1, 1.0
    ) == pytest.approx(64)


def test_keys_that_grow_by_their_floor_have_the_size_of_b_45():
    """|q|^2 (1 + K) in every step with K = exp(-(|q|^2 - delta |q|)): |q| goes as sqrt(log(T (1 - delta)))."""
    size = 1.0
    for _ in range(20_000):
        size *= np.sqrt(1 + theory.key_growth_floor(size, 0.2))
    low, high = theory.key_size_range(20_000, 0.2)
    assert low < size < 1.25 * low < high


def test_keys_do_not_grow_where_all_sampled_nodes_are_class_relevant():
    """(B.42): K(t) has the factor |S| - |S_1|, and goes as (t + 1)^2 at first."""
    here = theory.setting(template())._replace(value_error=0.0)
    assert theory.key_growth(here, 10, 0.5, 5.0, 0.01, 0.0, 1.0) == 0
    early = [theory.key_growth(here, step, 0.5, 0.0, 0.01, 30.0, 1.0) for step in (9, 19)]
    assert early[1] / early[0] == pytest.approx(4)


def test_lucky_share_is_the_cap_formula():
    assert theory.lucky_share(20, 0.1) == pytest.approx(0.167, abs=5e-4)
    assert theory.lucky_share(20, 0.0) == pytest.approx(0.25)


def test_limits_of_the_characteristic_time():
    """Early terms alone: t = (eta a_1)^-1/2; and the sum is earlier than either."""
    first = 20 * 0.01 * (1 / 4 - 0.01)
    assert theory.time_to_margin(1e3, 0.01, 400, 0.0, 0.01, 1.0) < (1e3 * first) ** -0.5
    tiny = theory.time_to_margin(1e-9, 1e-7, 400, 0.0, 0.01, 1.0)
    assert tiny > 0


def test_mended_growth_is_linear_without_feedback():
    steps = np.array([0, 10, 20])
    found = theory.lucky_growth(steps, 0.01, 1e-4, 0.0, 1.0, 400, 0.1)
    np.testing.assert_allclose(np.diff(found), 10 * 1e-4 / 20 * 0.9, rtol=2e-3)


def test_attention_predicted_from_counts_is_the_share_when_nothing_has_grown():
    counts = np.array([[3.0, 5.0]]), np.array([[1.0, 1.0]]), np.array([[2.0, 8.0]])
    found = theory.relevant_attention(0.0, np.zeros(2), *counts, 0.1, False)
    assert found[0] == pytest.approx(8 / 20)
    lifted = theory.relevant_attention(0.0, np.array([0.0, 50.0]), *counts, 0.1, False)
    assert lifted[0] == pytest.approx(5 / 14)


def test_the_predicted_attention_is_a_lower_bound():
    """Definition B.2.3 with 2 delta, keys and queries with random errors of length delta: attention of discriminative nodes on
    class-relevant ones is above p_n. With the printed sigma it is not."""
    graph = VoteGraph(nodes=300, labelled=100, degree=36, inner_degree=20).graph(0)
    rng = np.random.default_rng(0)
    delta, size = 0.2, 1.3
    grown = np.eye(20)[:, :10] * np.where(np.arange(10) < 2, size, 1.0)

    def moved():
        aim = rng.normal(size=(20, 10))
        return grown + delta * aim / np.linalg.norm(aim, axis=0)

    logits = moved().T @ moved()
    np.fill_diagonal(logits[2:, 2:], 0.0)
    bias = np.array([0.0, 0.5, -0.5, 0.0, 0.0])
    which = np.flatnonzero(graph.discriminative)
    weight = np.exp(
        logits[graph.pattern[None, :], graph.pattern[which][:, None]] + bias[graph.distance[which]]
    )
    true = (weight * graph.relevant[which]).sum(1) / weight.sum(1)
    kinds = (graph.relevant, graph.confusing, ~graph.relevant & ~graph.confusing)
    counts = [counted(graph, mask)[which].astype(float) for mask in kinds]
    there = bias[: counts[0].shape[1]]
    assert (true >= theory.relevant_attention(size, there, *counts, 2 * delta, True)).all()
    assert (true < theory.relevant_attention(size, there, *counts, 0.0, True)).any()


def test_grown_queries_and_a_bias_at_the_core_bring_attention_to_its_limits():
    """p_n of Definition B.2.3 with large |q_1| and b_zm is the limit (3.11) of every node; their mean is (B.54)."""
    graph = VoteGraph(inner_degree=60).graph(0)
    kinds = (graph.relevant, graph.confusing, ~graph.relevant & ~graph.confusing)
    counts = [counted(graph, mask).astype(float) for mask in kinds]
    bias = np.where(np.arange(counts[0].shape[1]) == 1, 40.0, 0.0)
    found = np.zeros(graph.nodes)
    for own in (True, False):
        which = graph.discriminative == own
        found[which] = theory.relevant_attention(8.0, bias, *(c[which] for c in counts), 0.0, own)
        np.testing.assert_allclose(found[which], theory.attention_limit(0.05, own), atol=1e-9)
    assert found.mean() == pytest.approx(theory.mean_attention_limit(0.4, 0.05))


def test_attention_at_the_start_is_b_66():
    """The softmax with W_K = W_Q orthonormal on nodes without noise, one of a discriminative pattern and one of another."""
    own, relevant, rest = 7, 5, 12
    eye = jnp.eye(6, 8)
    weights = Parameters(eye, eye, eye, jnp.zeros((6, 2)), jnp.zeros(2))
    patterns = np.eye(4, 8)
    for asking, slots, share, others in (
        (0, [0] * relevant + [1] * own + [2] * rest, relevant, relevant),
        (2, [0] * relevant + [1] * rest + [2] * own, relevant, own),
    ):
        tokens = jnp.asarray(patterns[slots])[None]
        seen = Seen(tokens, jnp.ones((1, len(slots)), int), jnp.ones((1, len(slots))))
        alpha = np.asarray(attention(weights, jnp.asarray(patterns[asking])[None], seen))[0]
        expected = theory.start_attention(share / len(slots), others / len(slots), asking < 2)
        assert alpha[:relevant].sum() == pytest.approx(expected, rel=1e-5)
        assert abs(expected - relevant / len(slots)) > 0.02  # a uniform attention is something else


def test_a_convolution_attends_to_the_share_of_class_relevant_nodes():
    """On average c gamma_d with c = 1 - eps_S where discriminative nodes are spread evenly."""
    graph = VoteGraph(generator="blocks", degree=120, confusion=0.2).graph(0)
    share = (counted(graph, graph.relevant)[:, 1] / sizes(graph)[:, 1]).mean()
    assert share == pytest.approx(theory.uniform_attention(0.4, 0.2), abs=0.01)


def test_sampled_shares_are_seldom_farther_off_than_b_182():
    """Without replacement shares spread less than with it; Hoeffding allows 2 |S|^-2 of the sets to be off."""
    marked = np.arange(1000) < 300
    rng = np.random.default_rng(0)
    shares = np.array([rng.permutation(marked)[:60].mean() for _ in range(2000)])
    assert np.mean(np.abs(shares - 0.3) > theory.sampling_error(60)) <= 2 * 60.0**-2


def test_sums_over_labels_have_the_moments_of_b_49():
    """E exp(s (sum p_n - |L| E p_n)) over labelled sets, even with delta_z = 0: votes lie between 0 and 1."""
    graph = VoteGraph(generator="blocks", degree=60, confusion=0.2).graph(0)
    good, bad = (counted(graph, which)[:, 1] for which in (graph.relevant, graph.confusing))
    vote = good / np.maximum(good + bad, 1)
    rng, labels = np.random.default_rng(0), 40
    off = np.array([rng.permutation(vote)[:labels].sum() for _ in range(3000)]) - labels * vote.mean()
    for s in (0.1, 0.5, 1.0):
        moment = np.log(np.mean(np.exp(s * off)))
        assert 0 < moment <= theory.moment_bound(s, labels, np.zeros(5, int))
        assert moment <= theory.moment_bound(s, labels, sizes(graph).max(0))


def test_batches_are_seldom_less_balanced_than_b_83():
    """|mean label| >= sqrt(log B / B) in at most 2 B^-1/2 of fair batches (Hoeffding's constant)."""
    rng = np.random.default_rng(0)
    for batch in (16, 64, 256):
        off = np.abs(rng.choice([-1.0, 1.0], (4000, batch)).mean(1)) >= theory.batch_imbalance(batch)
        assert 0 < off.mean() <= 2 * batch**-0.5


def test_the_mean_vote_over_labels_concentrates():
    """E[1 - p'] = (1 - gamma_d) eps_S exactly, and the mean over |L| nodes spreads as |L|^-1/2."""
    graph = VoteGraph(inner_degree=60).graph(0)
    good, bad = (counted(graph, which)[:, 1] for which in (graph.relevant, graph.confusing))
    vote = np.where(graph.discriminative, 1.0, good / np.maximum(good + bad, 1))
    assert 1 - vote.mean() == pytest.approx(theory.vote_bias(0.4, 0.05))
    uneven = VoteGraph(generator="blocks", degree=60, confusion=0.2).graph(0)
    good, bad = (counted(uneven, which)[:, 1] for which in (uneven.relevant, uneven.confusing))
    vote = good / np.maximum(good + bad, 1)
    rng = np.random.default_rng(0)
    sizes = np.array([10, 40, 160])
    spread = [np.std([rng.choice(vote, n).mean() for _ in range(2000)]) for n in sizes]
    assert np.polyfit(np.log(sizes), np.log(spread), 1)[0] == pytest.approx(-0.5, abs=0.05)
    assert max(spread) < theory.label_deviation(10, 100, 1000)


def test_b_starts_along_the_margins():
    found = theory.first_bias_direction(np.array([0.4, 6.3, 40.5, -45.4, -1.9]))
    assert np.argmax(found) == 1
    assert found.sum() == pytest.approx(0)
    gap = theory.bias_gap(0.4, np.array([0.4, 6.3, 40.5, -45.4, -1.9]))
    assert gap[2] == 0
    assert gap[3] == pytest.approx(0.4 * 85.9)


def test_predictions_name_the_core_and_say_when_conditions_are_missed():
    conditions, predictions = study("graph-transformer").predict(template())
    said = {p.name: p.value for p in predictions}
    assert said["core distance z_m"] == 1
    met = {c.name: c.met for c in conditions}
    assert not met["m >= M^2 log N"]  # 400 neurons against 691
    assert met["delta < 1/2"]
    assert not met["delta_zm <= sqrt N"]


def test_predictions_of_a_graph_file(tmp_path):
    made = surveys.made(np.random.default_rng(0))
    edges = np.argwhere(np.triu(made.adjacency.toarray()))
    path = tmp_path / "made.npz"
    np.savez(path, edges=edges, features=made.features.toarray(), labels=made.labels)
    _, predictions = study("graph-transformer").predict(put(template(), "data.file", str(path)))
    said = {p.name: p.value for p in predictions}
    assert said["core distance z_m, margins per neighbour"] == 1
    assert 0 < said["gamma_d, discriminative nodes"] < 1


def test_the_condition_of_the_convolution_is_missed_at_the_default_share():
    """sqrt(log N / N) + sigma = 0.183 needs gamma_d above 0.43."""
    named = {c.name: c for c in theory.convolution_conditions(template())}
    here = named["sqrt(log N/N) + sigma <= gamma_d^2 (B.70)"]
    assert here.margin == pytest.approx(0.16 / 0.1831, rel=1e-3)
    wider = theory.convolution_conditions(put_all(template(), {"data.discriminative": 0.44}))
    assert next(c for c in wider if c.name == here.name).margin > 1
