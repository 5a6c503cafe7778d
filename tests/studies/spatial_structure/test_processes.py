"""The processes agree as the lemmas say: three numbers, the full matrix under population risk, and large samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.descent import train
from lemmata.errors import BadInput
from lemmata.studies.spatial_structure import lemmas, recursion, theory
from lemmata.studies.spatial_structure.coupling import CoupledDescent
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import (
    Shape,
    Weights,
    in_blocks,
    output_of_projections,
    risk_gradient,
    tied_logits,
)
from lemmata.studies.spatial_structure.recursion import Tied
from lemmata.studies.spatial_structure.trials import (
    IdealisedDescent,
    PopulationDescent,
    PositionalNetwork,
    RealisticDescent,
    SlowAttention,
)
from lemmata.studies.spatial_structure.variants import VariantDescent
from lemmata.trial import with_precision

KEY = jax.random.key(100)
TIED = Tied(jnp.asarray(0.03), jnp.asarray(0.8), jnp.asarray(-0.1))


@pytest.mark.parametrize("shape", [Shape(3, 1e-3, 1.0), Shape(5, 1e-2, 1.7)])
def test_moments_give_the_gradient_of_the_full_network_on_any_sample(shape):
    """On tied logits and v along w*, class means of the full gradient are the updates of the three numbers."""
    D, C, n, beta = 12, 3, 25, 1.5
    spin = jax.random.uniform(KEY, (n, D // C, C))
    coefficients = jnp.where(spin < 0.2, 1.0, jnp.where(spin < 0.5, -1.0, 0.0)).at[:, 0].set(1.0)

    @jax.jit
    def three_numbers(coefficients):
        moments = recursion.moments_of(coefficients, shape.degree).whole
        scores = recursion.tied_scores(TIED.same, TIED.cross, beta, D, C, shape.temperature)
        margin = recursion.tied_output(TIED, scores, moments, D, shape)
        return recursion.look(TIED, moments, beta, D, C, shape), margin

    seen, margin = three_numbers(coefficients)

    group_of = jnp.arange(D) // C
    logits = tied_logits(group_of, beta, TIED.same, TIED.cross)
    feature = jnp.array([1.0, 0.0])
    patches = coefficients.reshape(n, D)[..., None] * feature
    blocks = in_blocks(patches, jnp.ones(n), 10)
    full = jax.jit(risk_gradient, static_argnums=3)(Weights(logits, TIED.alignment * feature), *blocks, shape)
    direct = output_of_projections(TIED.alignment * coefficients.reshape(n, D), logits, shape)
    assert jnp.allclose(margin, direct, rtol=1e-10)
    assert jnp.isclose(seen.pull.alignment, -full.value[0], rtol=1e-10)
    own = group_of[:, None] == group_of[None]
    same, cross = own & ~jnp.eye(D, dtype=bool), ~own
    assert jnp.isclose(seen.pull.same, -jnp.mean(full.logits[same]), rtol=1e-9)
    assert jnp.isclose(seen.pull.cross, -jnp.mean(full.logits[cross]), rtol=1e-9)


def test_scores_of_the_recursion_and_of_the_theory_are_the_same():
    ours = recursion.tied_scores(TIED.same, TIED.cross, 2.0, 64, 4, 1.3)
    theirs = theory.tied_scores(64, 4, 2.0, 0.8, -0.1, 1.3)
    assert np.allclose(ours, (theirs.self_score, theirs.same, theirs.cross))
    assert np.isclose(recursion.signal_gain(ours, 64, 4), theirs.gain)


def test_drives_split_the_pull_and_have_the_exact_means_at_the_start():
    """S + N is the whole pull; at small alpha they are `p/2 alpha^(p-1)` times the exact moments (5 standard errors
    of 20000 draws are about 5%)."""
    data, shape = Structured(), Shape(3, 1e-9, 1.0)
    moments = recursion.draw_moments(data, 3, KEY, 20_000)
    tied = Tied(jnp.asarray(1e-4), jnp.asarray(0.0), jnp.asarray(0.0))
    signal, other = recursion.drives(tied, moments, 2.0, 64, 4, shape)
    whole = recursion.look(tied, moments.whole, 2.0, 64, 4, shape).pull.alignment
    assert jnp.isclose(signal + other, whole)
    exact = theory.drive_moments(64, 4, 0.25, 3, theory.tied_scores(64, 4, 2.0))
    assert np.allclose([signal, other], 1.5 * 1e-8 * np.array(exact), rtol=0.05)


def test_sigmoid_starts_to_move_at_the_known_alignment_and_the_signal_group_pulls_the_logits_up():
    data, shape = Structured(), Shape(3, 1e-4, 1.0)
    moments = recursion.draw_moments(data, 3, KEY, 4000)
    alpha = recursion.sigmoid_threshold(moments, 2.0, 64, 4, shape)
    assert alpha == pytest.approx(0.027, rel=0.1)
    assert 0.3 < alpha / theory.event1_alignment_scale(4, 3, theory.tied_scores(64, 4, 2.0).gain) < 1
    tied = Tied(jnp.asarray(0.02), jnp.asarray(1.0), jnp.asarray(0.0))
    assert recursion.signal_share(tied, moments, 4.0, 64, 4, shape) > 0.5


def test_events_of_a_pair_add_up_to_its_pull_and_the_signal_event_leads():
    """Proofs of Lemmas G.1 and G.2: parts by event against the recursion, to five standard errors of the draws."""
    data, n = Structured(spurious_rate=0.25, partition="contiguous"), 40_000
    group_of = np.arange(64) // 4
    images = data.draw_coefficients(KEY, jnp.asarray(group_of), n)
    labels, coefficients = (np.asarray(x) for x in images)
    sums = (labels[:, None] * coefficients).reshape(n, 16, 4).sum(axis=2)
    signal = sums.argmax(axis=1)  # a second full group (1 image in 250) is as good a signal group
    scores = theory.tied_scores(64, 4, 4.0, 1.0)
    same, cross = lemmas.pull_by_event(labels, coefficients, signal, 0.015, scores, 3)
    shape = Shape(3, 0.0, 1.0)
    moments = recursion.draw_moments(data, 3, KEY, n)
    tied = Tied(jnp.asarray(0.015), jnp.asarray(1.0), jnp.asarray(0.0))
    pull = recursion.look(tied, moments.whole, 4.0, 64, 4, shape).pull
    assert sum(same.values()) == pytest.approx(float(pull.same), rel=0.1)
    assert abs(sum(cross.values()) - float(pull.cross)) < 0.1 * float(pull.same)
    assert same["a"] == max(same.values(), key=abs)
    assert same["a"] / sum(same.values()) > 0.5


POPULATION = PopulationDescent(
    data=Structured(patches=16, spurious_rate=0.3, dimension=6),
    network=PositionalNetwork(linear=1e-3, diagonal=2.0),
    descent=SlowAttention(learning_rate=1e-3, attention_rate=3e3, steps=120, logs=4),
    draws=400,
)


@pytest.mark.slow
def test_full_population_descent_keeps_the_symmetry_up_to_the_noise_of_its_draws():
    """Lemmas 4.1 and 4.2: spread within classes and the part of v off the feature shrink like draws^(-1/2)."""
    few, many = train(POPULATION, seed=100), train(_with_draws(3600), seed=100)
    for name in ("same_std", "cross_std", "orthogonal"):
        assert 1.5 < few[name] / many[name] < 6  # 3 expected, with few degrees of freedom in a length of v
    ideal = train(
        IdealisedDescent(
            data=POPULATION.data,
            network=POPULATION.network,
            descent=POPULATION.descent,
            draws=400_000,  # as many as the population run sees: fewer would be the larger noise
            test_draws=10,
        ),
        seed=100,
    )
    # class means of 48 and 192 entries, each with the spread above: three standard errors and rows move together
    for name, spread in (("same", 3 * many["same_std"] / 4), ("cross", 3 * many["cross_std"] / 4)):
        assert abs(many[f"{name}_mean"] - ideal[name]) < spread + 0.02 * abs(ideal[name])
    assert many["alignment"] == pytest.approx(ideal["alignment"], rel=0.03)


def _with_draws(draws: int) -> PopulationDescent:
    return PopulationDescent(
        data=POPULATION.data, network=POPULATION.network, descent=POPULATION.descent, draws=draws
    )


def test_large_samples_follow_the_population():
    """Realistic and idealised curves, the latter started where the linear phase ended (Lemmas E.20 to E.23)."""
    trial = CoupledDescent(
        data=Structured(patches=16, spurious_rate=0.3, dimension=8),
        network=PositionalNetwork(linear=1e-4, diagonal=3.0, init=1e-5),
        descent=SlowAttention(learning_rate=1e-3, attention_rate=3e3, steps=500, logs=26),
        samples=12_000,
        test_samples=100,
        draws=12_000,
    )
    run = train(trial, seed=100)
    after = np.asarray(trial.log_steps) > run["linear_phase_end"] + 20
    assert run["linear_phase_end"] > 0
    ours = (run["alignment_curve"] * run["gain_curve"])[after]
    theirs = (run["ideal_alignment_curve"] * run["ideal_gain_curve"])[after]
    assert np.sqrt(np.mean((ours / theirs - 1) ** 2)) < 0.15
    assert run["same_mean_curve"][-1] == pytest.approx(run["ideal_same_curve"][-1], rel=0.15)
    assert run["semi_same_curve"][-1] == pytest.approx(run["ideal_same_curve"][-1], rel=0.15)


def test_idealised_descent_learns_association_at_every_time_and_rho_barely_moves():
    run = train(IdealisedDescent(descent=SlowAttention(3e-4, 1e3, steps=20_000, logs=60)), seed=100)
    same, cross = run["same_curve"], run["cross_curve"]
    assert np.all(same[1:] > cross[1:])
    assert np.abs(cross).max() < 0.3
    assert same[-1] > 2
    assert run["test_error"] <= max(0.03, 3 * theory.label_noise(64, 4, 0.25))
    low, high = theory.plateau(64, 4, 0.25)
    third = run["test_error_curve"][6]
    assert low - 0.01 < third < high + 0.01
    product = run["alignment_curve"] * run["gain_curve"]
    assert np.all(np.diff(product[5:]) > 0)


def test_growth_of_the_same_group_logit_has_its_exponent_and_scale():
    """Lemma G.1: slope p in alpha at fixed logits, and within [0.2, 2] of the leading event's form."""
    data, shape = Structured(), Shape(3, 1e-12, 1.0)
    moments = recursion.draw_moments(data, 3, KEY, 20_000)

    def growth(alpha, gamma):
        tied = Tied(*(jnp.asarray(x) for x in (alpha, gamma, 0.0)))
        seen = recursion.look(tied, moments.whole, 2.0, 64, 4, shape)
        scores = theory.tied_scores(64, 4, 2.0, gamma)
        return (
            float(seen.pull.same),
            theory.same_growth(64, 4, 3, alpha, scores, float(seen.slack)),
            scores.gain,
        )

    small, large = growth(1e-4, 1.0)[0], growth(1e-3, 1.0)[0]
    assert np.log10(large / small) == pytest.approx(3, abs=0.1)
    for gamma in (0.0, 1.0, 2.0):
        gain = theory.tied_scores(64, 4, 2.0, gamma).gain
        for product in (0.1, 0.5):
            measured, predicted, _ = growth(product / gain, gamma)
            assert 0.2 < measured / predicted < 2


def test_first_event_comes_when_the_corrected_time_says():
    """T0 within 10% and its exponent, p - 2, in the starting alpha."""
    times = []
    for alpha0 in (3e-4, 3e-3):
        trial = IdealisedDescent(
            network=PositionalNetwork(linear=1e-12, diagonal=2.0),
            descent=SlowAttention(1e-8 / alpha0, 0.0, steps=6000, logs=3),
            alignment=alpha0,
            target_slack=0.4,
            draws=3000,
            test_draws=10,
        )
        run = train(trial, seed=100)
        predicted = theory.event1_time(64, 4, 0.25, 3, 2.0, 1e-8 / alpha0, alpha0)
        assert run["event1"] == pytest.approx(predicted, rel=0.12)
        times.append(run["event1"] * 1e-8 / alpha0)
    assert np.log10(times[1] / times[0]) == pytest.approx(-1, abs=0.05)


CI = RealisticDescent(
    data=Structured(patches=36, spurious_rate=0.3, dimension=16),
    descent=SlowAttention(2e-4, 1e4, steps=2000, logs=5),
    samples=2000,
    test_samples=4000,
)


def test_realistic_descent_learns_the_groups_and_then_generalises():
    """Theorem 4.2 at a size for tests: association 1, error at most 0.03, cosine at least 0.9."""
    run = train(CI, seed=100)
    assert run["exact"] == 1
    assert run["test_error"] <= 0.03
    assert run["cosine"] >= 0.9
    assert run["auc_curve"][1] > 0.95
    assert run["test_error_curve"][1] > 0.5 * theory.glm_error(36, 4, 0.3)


@pytest.mark.parametrize("kind", ["logits", "encodings"])
def test_variants_are_trained_on_their_own_risk(kind):
    """A step of the lab lowers the risk by the squared length of the scaled gradient, to first order in the step size;
    with free logits it is the step of realistic descent, whose diagonal stays."""
    trial = with_precision(
        VariantDescent(
            data=Structured(patches=12, group_size=3, dimension=6),
            descent=SlowAttention(1e-5, 10.0, steps=1, logs=3),
            network=PositionalNetwork(init=0.1),
            attention=kind,
            width=8,
            samples=50,
            test_samples=10,
            precision="float64",
        )
    )
    before = trial.start(KEY)
    after = trial.step(before)
    moved, pull = after.weights[0] - before.weights[0], before.gradient[0]
    if kind == "logits":
        off = ~np.eye(12, dtype=bool)
        assert jnp.array_equal(jnp.diag(after.weights[0]), jnp.diag(before.weights[0]))
        blocks = in_blocks(before.patches, before.labels, 20)
        fast = risk_gradient(before.weights, *blocks, trial.shape)
        assert jnp.allclose(moved, -1e-4 * fast.logits, rtol=1e-8, atol=1e-18)
        pull = jnp.where(off, pull, 0)
    expected = -(1e-4 * jnp.sum(pull**2) + 1e-5 * jnp.sum(before.gradient[1] ** 2))
    assert jnp.isclose(after.loss - before.loss, expected, rtol=1e-2)


def test_linear_phase_drifts_at_half_nu_D_C():
    trial = RealisticDescent(
        data=Structured(patches=36, spurious_rate=0.3, dimension=8),
        network=PositionalNetwork(linear=1e-2, diagonal=3.0, init=1e-7),
        descent=SlowAttention(1e-5, 1.0, steps=20, logs=21),
        samples=4000,
        test_samples=100,
    )
    run = train(trial, seed=100)
    alpha = run["alignment_curve"]
    assert (alpha[-1] - alpha[0]) / 20 == pytest.approx(theory.linear_drift(36, 4, 1e-2, 1e-5), rel=0.1)
    # Lemma E.7: the sum over the phase, steps 1 to t - 1 and half of the last
    summed = alpha.sum() - (alpha[0] + alpha[-1]) / 2
    assert summed == pytest.approx(theory.linear_phase_sum(20, alpha[0], 36, 4, 1e-2, 1e-5), rel=0.1)
    off = run["logits"][~np.eye(36, dtype=bool)]
    assert np.abs(off).max() < 1e-2


def test_unseen_images_are_the_patches_in_law():
    """Errors on coefficients with noise along one direction and on real patches agree to three standard errors."""
    from lemmata.studies.spatial_structure.trials import draw_unseen, evaluate

    data, shape = Structured(patches=16, spurious_rate=0.4, dimension=4, noise=2.0), Shape(3, 1e-3, 1.0)
    world = data.world(KEY)
    value = world.feature + 0.8 * jax.random.normal(KEY, (4,))
    weights = Weights(tied_logits(world.group_of, 2.0, 1.0, 0.0), 0.1 * value)
    unseen = draw_unseen(data, KEY, world, 20_000)
    images = data.draw(jax.random.fold_in(KEY, 9), world, 20_000)
    direct = jnp.mean(
        images.labels * output_of_projections(images.patches @ weights.value, weights.logits, shape) <= 0
    )
    found = evaluate(data, weights, world, unseen, shape)["test_error"]
    assert abs(found - direct) < 3 * np.sqrt(2 * 0.25 / 20_000)


def test_an_even_degree_is_refused():
    with pytest.raises(BadInput, match="odd"):
        PositionalNetwork(degree=4)
