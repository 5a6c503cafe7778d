"""A layer that attends as Proposition 3 says votes; simulators agree; what the tests refuse."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.loop import train
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.figures import LIMIT, small, template
from lemmata.studies.chain_of_thought.trials import Reasoning, errors_of_weights, testing
from lemmata.studies.chain_of_thought.trials.testing import coordinates, scores_of
from lemmata.threefry import new_key
from lemmata.trial import put_all
from tests.kernels import forms, needs_compiler

SMALL = put_all(
    small(template()),
    {
        "test.lengths": (8,),
        "test.prompts": 60,
        "watched": 6,
        "descent.steps": 4,
        "descent.logs": 3,
        "precision": "float64",
    },
)
M, K, D = 11, 3, 24


@pytest.fixture(scope="module")
def ideal():
    """Weights in a random frame that attend only to columns of the same pattern and step."""
    frame = np.linalg.qr(np.random.default_rng(0).normal(size=(D, D)))[0]
    patterns, encodings = frame[:M], frame[M : M + K]
    upper = 40 * patterns.T @ patterns + 80 * encodings.T @ encodings
    return np.kron(np.array([[1, 0], [0, 0]]), upper), patterns, encodings


@pytest.fixture(scope="module")
def judged(ideal):
    with double():
        return errors_of_weights(put_all(SMALL, {"test.noise": 0.0}), *ideal)


def test_a_layer_that_attends_to_the_same_pattern_and_step_votes(judged):
    """It errs where the plain vote does, but for ties, which the layer breaks in its own way."""
    assert judged["step_masses"].min() > 0.99 or judged["cot_error"] > 0
    np.testing.assert_allclose(judged["cot_error"], judged["cot_vote_error"], atol=0.08)
    np.testing.assert_allclose(judged["icl_error"], judged["icl_vote_error"], atol=0.12)


def test_the_last_step_is_one_of_the_steps(judged):
    assert judged["last_step_error"] == judged["cot_step_errors"][..., -1]
    np.testing.assert_allclose(judged["cot_error"], judged["cot_step_errors"].mean(-1))


def test_patterns_that_are_not_orthonormal_are_refused_in_one_sentence(ideal):
    weights, patterns, encodings = ideal
    with pytest.raises(BadInput, match="patterns are orthonormal"):
        errors_of_weights(SMALL, weights, 1.1 * patterns, encodings)
    with pytest.raises(BadInput, match="W has shape"):
        errors_of_weights(SMALL, weights[:5], patterns, encodings)


@pytest.mark.parametrize("kind", ["subset", "rotations", "zero-sum", "mean"])
def test_a_test_pattern_gets_the_logit_of_its_coefficient_sum(kind):
    """A pattern block with zero row sums gives diag (M - S^2)/(M - 1) to a pattern with coefficient sum S on itself, and
    nothing to the mean of all patterns."""
    test = put_all(Reasoning(), {"test.kind": kind}).test
    wide = np.zeros((60, 30))
    wide[:20, :20] = 3.4 * (np.eye(20) - (1 - np.eye(20)) / 19)

    @jax.jit
    def said(key):
        rows = coordinates(test, key, 20, 3, 30)
        return rows, scores_of(test, jnp.asarray(wide), rows, 20, 3).into

    rows, into = map(np.asarray, said(new_key(1)))
    np.testing.assert_allclose(rows @ rows.T, np.eye(10), atol=1e-12)
    for i, total in enumerate(rows[:, :20].sum(1)):
        assert into[i, 0, i] == pytest.approx(theory.span_logit(3.4, 20, total), abs=1e-9)
    if kind == "mean":
        assert abs(into[0, 0, 0]) < 1e-9


def test_noise_off_all_that_was_trained_sees_only_the_initial_weights():
    test = put_all(Reasoning(), {"test.noise_space": "off-all"}).test
    trained = np.zeros((60, 30))
    trained[:23, :23] = trained[30:50, :23] = 1
    rows = jax.jit(lambda key: coordinates(test, key, 20, 3, 30))(new_key(1))
    found = jax.jit(lambda rows: scores_of(test, jnp.asarray(trained), rows, 20, 3))(rows)
    np.testing.assert_array_equal(found.into_noise, 0)
    np.testing.assert_array_equal(found.out_noise, 0)


def prompts_of(trial, scores):
    """The prompts of the test, and numbers that break ties."""
    test, steps, free = trial.test, trial.data.steps, scores.into_noise.shape[-1]

    def one(index):
        task, walked, tied = jax.random.split(jax.random.fold_in(new_key(4), index), 3)
        ties = jax.random.uniform(tied, (steps + 1, test.patterns), scores.into.dtype)
        return testing.drawn(test, walked, test.task(task, steps), free, max(test.lengths), index), ties

    return jax.vmap(one)(jnp.arange(test.prompts))


def outcomes_of(form, trial, scores, drawn):
    """What comes out for every prompt, by one form of the kernel."""
    return np.asarray(jax.jit(lambda *given: form(trial.test, *given))(scores, *drawn))


@needs_compiler
@pytest.mark.parametrize(
    ("precision", "weights", "changes"),
    [
        ("float32", "trained", {"test.kind": "rotations", "test.match_fraction": 0.3}),
        ("float64", "trained", {"test.errors": "pairs-fail", "test.noise": LIMIT, "test.others": "one"}),
        ("float32", "trained", {"test.noise_space": "off-all", "data.dim": 23}),  # no noise fits
        ("float64", "trained", {"data.steps": 1, "test.patterns": 2, "test.trajectory": 0.9}),
        ("float32", "trained", {"data.steps": 4, "test.patterns": 20, "test.lengths": (1,)}),
        ("float64", "alike", {"test.noise": 0.0, "test.errors": "single"}),
        ("float32", "none", {"test.noise": 0.0, "test.match_fraction": 1.0}),
    ],
)
def test_the_kernel_gives_the_outcomes_of_every_prompt(precision, weights, changes):
    """With weights that are none, or so large that only columns of the query's pattern are attended to, all alike, many outputs
    get the same attention: the first of them wins."""
    trial = put_all(template(), {"test.lengths": (1, 2, 5, 12, 23), "test.prompts": 50, **changes})
    d = trial.data
    table = np.zeros((2 * d.dim, d.dim))
    if weights != "none":
        table[: d.patterns, : d.patterns] = (3 if weights == "trained" else 200) * np.eye(d.patterns)
    if weights == "trained":
        table[d.patterns : d.patterns + d.steps, d.patterns : d.patterns + d.steps] = 2.0
        table += 0.3 * np.random.default_rng(5).normal(size=table.shape)

    @jax.jit
    def tested(table):
        rows = coordinates(trial.test, new_key(1), d.patterns, d.steps, d.dim)
        scores = trial.scores(table, rows.astype(precision))
        return scores, prompts_of(trial, scores)

    scores, drawn = tested(table.astype(precision))
    found, wanted = (outcomes_of(form, trial, scores, drawn) for form in forms(testing.outcomes))
    masses = slice(d.steps, 2 * d.steps)
    assert found.dtype == precision
    noisy = trial.test.noise > 0 and scores.into_noise.size > 0
    rounding = np.finfo("float32" if noisy else precision).eps  # noise has single precision
    np.testing.assert_allclose(found[..., masses], wanted[..., masses], atol=50 * float(rounding))
    np.testing.assert_array_equal(np.delete(found, masses, -1), np.delete(wanted, masses, -1))


@needs_compiler
def test_the_kernel_finds_no_attention_where_weights_are_no_numbers():
    trial = put_all(SMALL, {"test.prompts": 3})
    scores = jax.jit(trial.scores)(np.full((48, 24), np.nan), np.eye(24)[:10])
    drawn = jax.jit(lambda: prompts_of(trial, scores))()
    assert np.isnan(outcomes_of(testing.outcomes.native, trial, scores, drawn)[..., K : 2 * K]).all()


def test_the_first_prompts_do_not_depend_on_how_many_are_drawn_together(monkeypatch):
    test = put_all(SMALL, {"test.lengths": (2, 8)}).test
    wide = 0.3 * np.random.default_rng(2).normal(size=(48, 24))
    scores = jax.jit(SMALL.scores)(wide, np.eye(24)[:10])
    found = []
    for together in (1 << 17, 5000, 1):
        monkeypatch.setattr(testing, "TOGETHER", together)
        found.append(jax.jit(lambda: testing.errors(test, scores, K, new_key(3)))())
    for name, values in found[0].items():
        for other in found[1:]:
            np.testing.assert_allclose(other[name], values, rtol=1e-14)


@pytest.mark.slow
def test_weights_and_tables_train_alike_to_rounding():
    tables, weights = (train(put_all(SMALL, {"simulator": way}), seed=3) for way in ("patterns", "tokens"))
    np.testing.assert_allclose(tables["loss_curve"], weights["loss_curve"], rtol=1e-11)
    np.testing.assert_allclose(tables["pulls_curve"], weights["pulls_curve"], atol=1e-13)
    np.testing.assert_array_equal(tables["cot_error"], weights["cot_error"])


def test_predict_takes_transition_matrices_from_a_file(tmp_path, capsys):
    file = tmp_path / "example.json"
    file.write_text("[[[0.6,0.4],[0.4,0.6]],[[0.4,0.6],[0.8,0.2]]]")
    words = [
        "predict",
        "chain-of-thought",
        "--json",
        "--set",
        "test.errors=given",
        "--set",
        f"test.transitions=@{file}",
    ]
    assert main([*words, "--set", "data.steps=2", "--set", "test.patterns=2"]) == 0
    said = {one["name"]: one["value"] for one in json.loads(capsys.readouterr().out)["predictions"]}
    assert said["tau: probability of the right trajectory"] == pytest.approx(0.36)
    assert said["share of inputs whose likeliest label is right (Condition 7.3.2: all)"] == 0.5
    assert main(["predict", "chain-of-thought", "--set", f"test.transitions=@{file}x"]) != 0
    assert "cannot be read" in capsys.readouterr().err
