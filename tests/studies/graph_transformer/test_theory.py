"""Formulas at their limits, and against exact counts."""

import numpy as np
import pytest

from lemmata.studies.graph_transformer import theory
from lemmata.studies.graph_transformer.data import surveys
from lemmata.studies.graph_transformer.data.model import VoteGraph
from lemmata.studies.graph_transformer.data.votes import counted
from lemmata.studies.graph_transformer.figures import template
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
