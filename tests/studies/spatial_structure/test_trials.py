"""The processes agree as the lemmas say: three numbers, the full matrix under population risk, and large samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.descent import Descent
from lemmata.errors import BadInput
from lemmata.loop import train
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import (
    Constants,
    PositionalNetwork,
    Weights,
    in_blocks,
    output_of_projections,
    risk_gradient,
    tied_logits,
)
from lemmata.studies.spatial_structure.trials import (
    CoupledDescent,
    IdealisedDescent,
    ImageDescent,
    Transfer,
    recursion,
    transfer,
)
from lemmata.studies.spatial_structure.trials.images import draw_unseen
from lemmata.studies.spatial_structure.trials.recursion import Tied
from lemmata.threefry import new_key
from lemmata.trial import put_all, random_key, with_precision

KEY = new_key(100)
TIED = Tied(*(np.asarray(x) for x in (0.03, 0.8, -0.1)))


def plain(rate, attention_rate, steps, logs=3, **options):
    given = {"stop": "cap", "spacing": "even"} | options
    return Descent(learning_rate=rate, attention_rate=attention_rate, steps=steps, logs=logs, **given)


def numbers(*values):
    return Tied(*(jnp.asarray(v) for v in values))


# compiled once for all tests
draw_moments = jax.jit(recursion.draw_moments, static_argnums=(0, 1, 3))
pulled = jax.jit(recursion.pulled, static_argnums=(2, 3, 4, 5))
drives = jax.jit(recursion.drives, static_argnums=(2, 3, 4, 5))
start = jax.jit(lambda trial, key: trial.start(key))
step = jax.jit(lambda trial, state: trial.step(state))


# Three numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constants", [Constants(3, 1e-3, 1.0), Constants(5, 1e-2, 1.7)])
def test_moments_give_the_gradient_of_the_full_network_on_any_sample(constants):
    """On tied logits and v along w*, class means of the full gradient are the updates of the three numbers."""
    D, C, n, beta = 12, 3, 25, 1.5
    tied = numbers(*TIED)
    spin = np.random.default_rng(100).random((n, D // C, C))
    coefficients = np.where(spin < 0.2, 1.0, np.where(spin < 0.5, -1.0, 0.0))
    coefficients[:, 0] = 1.0
    coefficients = jnp.asarray(coefficients)

    @jax.jit
    def three_numbers(coefficients):
        moments = recursion.moments_of(coefficients, constants.degree).whole
        scores = recursion.tied_scores(tied.same, tied.cross, beta, D, C, constants.temperature)
        margin = recursion.tied_output(tied, scores, moments, D, constants)
        return recursion.pulled(tied, moments, beta, D, C, constants), margin

    @jax.jit
    def full_network(coefficients):
        logits = tied_logits(jnp.arange(D) // C, beta, tied.same, tied.cross)
        feature = jnp.array([1.0, 0.0])
        patches = coefficients.reshape(n, D)[..., None] * feature
        blocks = in_blocks(patches, jnp.ones(n), 10)
        weights = Weights(logits, tied.alignment * feature)
        direct = output_of_projections(tied.alignment * coefficients.reshape(n, D), logits, constants)
        return *risk_gradient(weights, *blocks, constants), direct, jnp.mean(jax.nn.sigmoid(-direct))

    seen, margin = three_numbers(coefficients)
    loss, full, direct, slack = jax.tree.map(np.asarray, full_network(coefficients))
    assert np.allclose(margin, direct, rtol=1e-10)
    assert np.isclose(seen.loss, loss, rtol=1e-12)
    assert np.isclose(seen.slack, slack, rtol=1e-12)
    assert np.isclose(seen.pull.alignment, -full.value[0], rtol=1e-10)
    group_of = np.arange(D) // C
    own = group_of[:, None] == group_of[None]
    same, cross = own & ~np.eye(D, dtype=bool), ~own
    assert np.isclose(seen.pull.same, -np.mean(full.logits[same]), rtol=1e-9)
    assert np.isclose(seen.pull.cross, -np.mean(full.logits[cross]), rtol=1e-9)


def test_scores_of_the_recursion_and_of_the_theory_are_the_same():
    ours = recursion.tied_scores(jnp.asarray(0.8), jnp.asarray(-0.1), 2.0, 64, 4, 1.3)
    theirs = theory.tied_scores(64, 4, 2.0, 0.8, -0.1, 1.3)
    assert np.allclose(ours, (theirs.self_score, theirs.same, theirs.cross))
    assert np.isclose(recursion.signal_gain(ours, 64, 4), theirs.gain)


def test_drives_split_the_pull_and_have_the_exact_means_at_the_start():
    """S + N is the whole pull; at small alpha they are `p/2 alpha^(p-1)` times the exact moments (5 standard errors
    of 20000 draws are about 5%)."""
    data, constants = Structured(), Constants(3, 1e-9, 1.0)
    moments = draw_moments(data, 3, KEY, 20_000)
    tied = numbers(1e-4, 0.0, 0.0)
    signal, other = drives(tied, moments, 2.0, 64, 4, constants)
    whole = pulled(tied, moments.whole, 2.0, 64, 4, constants).pull
    assert np.allclose(np.stack(signal) + np.stack(other), np.stack(whole))
    exact = theory.drive_moments(64, 4, 0.25, 3, theory.tied_scores(64, 4, 2.0))
    assert np.allclose([signal.alignment, other.alignment], 1.5 * 1e-8 * np.array(exact), rtol=0.05)


def test_sigmoid_starts_to_move_near_its_scale_and_the_signal_group_pulls_the_logits_up():
    """Lemmas D.1 and D.12: at the alpha of the known value (0.027 at beta = 2) the mean sigmoid is 0.4."""
    moments, constants = draw_moments(Structured(), 3, KEY, 4000), Constants(3, 1e-4, 1.0)
    seen = pulled(numbers(0.027, 0.0, 0.0), moments.whole, 2.0, 64, 4, constants)
    assert seen.slack == pytest.approx(0.4, abs=0.02)
    scale = theory.event1_alignment_scale(4, 3, theory.tied_scores(64, 4, 2.0).gain)
    assert 0.3 < 0.027 / scale < 1
    signal, other = drives(numbers(0.02, 1.0, 0.0), moments, 4.0, 64, 4, constants)
    assert signal.same > abs(other.same)


def test_events_of_a_pair_add_up_to_its_pull_and_the_signal_event_leads():
    """Proofs of Lemmas G.1 and G.2: parts by event against the recursion, to five standard errors of the draws."""
    data, n = Structured(spurious_rate=0.25, partition="contiguous"), 40_000
    images = jax.jit(data.draw_coefficients, static_argnums=2)(KEY, jnp.arange(64) // 4, n)
    labels, coefficients = (np.asarray(x) for x in images)
    sums = (labels[:, None] * coefficients).reshape(n, 16, 4).sum(axis=2)
    signal = sums.argmax(axis=1)  # a second full group (1 image in 250) is as good a signal group
    same, cross = theory.pull_by_event(
        labels, coefficients, signal, 0.015, theory.tied_scores(64, 4, 4.0, 1.0), 3
    )
    moments = draw_moments(data, 3, KEY, n)
    pull = pulled(numbers(0.015, 1.0, 0.0), moments.whole, 4.0, 64, 4, Constants(3, 0.0, 1.0)).pull
    assert sum(same.values()) == pytest.approx(float(pull.same), rel=0.1)
    assert abs(sum(cross.values()) - float(pull.cross)) < 0.1 * float(pull.same)
    assert same["a"] == max(same.values(), key=abs)
    assert same["a"] / sum(same.values()) > 0.5


def test_growth_of_the_same_group_logit_has_its_exponent_and_scale():
    """Lemma G.1: slope p in alpha at fixed logits, and within [0.2, 2] of the leading event's form."""
    moments = draw_moments(Structured(), 3, KEY, 20_000)

    def growth(alpha, gamma):
        seen = pulled(numbers(alpha, gamma, 0.0), moments.whole, 2.0, 64, 4, Constants(3, 1e-12, 1.0))
        leading = theory.same_growth(
            64, 4, 3, alpha, theory.tied_scores(64, 4, 2.0, gamma), float(seen.slack)
        )
        return float(seen.pull.same), leading

    assert np.log10(growth(1e-3, 1.0)[0] / growth(1e-4, 1.0)[0]) == pytest.approx(3, abs=0.1)
    for gamma in (0.0, 1.0, 2.0):
        gain = theory.tied_scores(64, 4, 2.0, gamma).gain
        for product in (0.1, 0.5):
            measured, predicted = growth(product / gain, gamma)
            assert 0.2 < measured / predicted < 2


def test_idealised_descent_learns_association_at_every_time_in_three_events():
    run = train(IdealisedDescent(descent=plain(3e-4, 1e3, 20_000, 60), test_draws=4000), seed=100)
    same, cross = run["same_curve"], run["cross_curve"]
    assert np.all(same[1:] > cross[1:])
    assert run["cross_lead"] < 0
    assert run["largest_cross"] == pytest.approx(np.abs(cross).max(), rel=0.02)
    assert run["largest_cross"] < 0.3
    assert same[-1] > 2
    assert run["test_error"] <= max(0.03, 3 * theory.label_noise(64, 4, 0.25))
    low, high = theory.plateau(64, 4, 0.25)
    assert low - 0.02 < run["test_error_curve"][6] < high + 0.02
    product = run["alignment_curve"] * run["gain_curve"]
    assert np.all(np.diff(product[5:]) > 0)
    # events are found at every step, not only at the logged ones
    assert 0 < run["event1"] < run["same_unit"]
    steps = np.asarray(IdealisedDescent(descent=plain(3e-4, 1e3, 20_000, 60)).log_steps)
    logged = steps[np.argmax(same >= 1)]
    assert logged - 20_000 // 59 - 1 <= run["same_unit"] <= logged


def test_first_and_second_event_come_when_their_corrected_times_say():
    """T0 within 12% and its exponent p - 2 in the starting alpha; and gamma = 1 within 10% of the quadrature, where logits
    are slow (Lemma D.8, derived): half of either time would not pass."""
    times = []
    for alpha0 in (3e-4, 3e-3):
        descent = Descent(
            learning_rate=1e-8 / alpha0, attention_rate=0.0, target_loss=0.45, steps=6000, logs=3
        )
        network = PositionalNetwork(linear=1e-12, diagonal=2.0)
        run = train(
            IdealisedDescent(network=network, descent=descent, alignment=alpha0, draws=3000, test_draws=10),
            seed=100,
        )
        predicted = theory.event1_time(64, 4, 0.25, 3, 2.0, 1e-8 / alpha0, alpha0)
        assert run["event1"] == pytest.approx(predicted, rel=0.12)
        times.append(run["event1"] * 1e-8 / alpha0)
    assert np.log10(times[1] / times[0]) == pytest.approx(-1, abs=0.05)
    data, network = Structured(patches=128, spurious_rate=1 / 8), PositionalNetwork(linear=1e-8, diagonal=5.0)
    descent = transfer.suited(data, network, 3e-4, steps=3000)
    run = train(IdealisedDescent(data, network, descent, draws=2000, test_draws=10), seed=100)
    predicted = theory.event2_duration(128, 4, 1 / 8, 3, 5.0, descent.learning_rate * descent.attention_rate)
    assert run["same_unit"] - run["event1"] == pytest.approx(predicted, rel=0.1)


def test_idealised_descent_takes_data_and_weights_of_ones_own():
    trial = IdealisedDescent(descent=plain(1e-4, 0.0, 2), draws=10, test_draws=5)
    moments = draw_moments(trial.data, 3, new_key(7), 10)
    run = train(trial, seed=0, data=moments, weights=numbers(0.01, 1.0, 0.0))
    again = train(trial, seed=1, data=moments, weights=numbers(0.01, 1.0, 0.0))
    assert run["same_curve"][0] == 1
    assert np.array_equal(run["loss_curve"], again["loss_curve"])


# Images ----------------------------------------------------------------------------------------------------------------

POPULATION = ImageDescent(
    Structured(patches=16, spurious_rate=0.3, dimension=6),
    PositionalNetwork(linear=1e-3, diagonal=2.0),
    plain(1e-3, 3e3, 120, batches="fresh", batch=400),
    begin="idealised",
    test_samples=10,
    precision="float64",
)


@pytest.mark.slow
def test_full_population_descent_keeps_the_symmetry_up_to_the_noise_of_its_draws():
    """Lemmas 4.1 and 4.2: spread within classes and the part of v off the feature shrink like draws^(-1/2)."""
    few, many = (train(put_all(POPULATION, {"descent.batch": n}), seed=100) for n in (400, 3600))
    for name in ("same_std", "cross_std", "orthogonal"):
        assert 1.5 < few[name] / many[name] < 6  # 3 expected, with few degrees of freedom in a length of v
    descent = plain(1e-3, 3e3, 120)
    # as many draws as the population run sees: fewer would be the larger noise
    ideal = train(
        IdealisedDescent(POPULATION.data, POPULATION.network, descent, draws=400_000, test_draws=10), seed=100
    )
    # class means of 48 and 192 entries, each with the spread above: three standard errors and rows move together
    for name, spread in (("same", 3 * many["same_std"] / 4), ("cross", 3 * many["cross_std"] / 4)):
        assert abs(many[f"{name}_mean"] - ideal[name]) < spread + 0.02 * abs(ideal[name])
    assert many["alignment"] == pytest.approx(ideal["alignment"], rel=0.03)


@pytest.mark.slow
def test_large_samples_follow_the_population():
    """Realistic and idealised curves, the latter started where the linear phase ended (Lemmas E.20 to E.23)."""
    images = ImageDescent(
        Structured(patches=16, spurious_rate=0.3, dimension=8),
        PositionalNetwork(diagonal=3.0, init=1e-5),
        plain(1e-3, 3e3, 500, 26),
        samples=12_000,
        test_samples=100,
    )
    trial = CoupledDescent(images, draws=12_000)
    run = train(trial, seed=100)
    after = np.asarray(trial.log_steps) > run["linear_phase_end"] + 20
    assert run["linear_phase_end"] > 0
    ours = (run["alignment_curve"] * run["gain_curve"])[after]
    theirs = (run["ideal_alignment_curve"] * run["ideal_gain_curve"])[after]
    assert np.sqrt(np.mean((ours / theirs - 1) ** 2)) < 0.15
    assert run["same_mean_curve"][-1] == pytest.approx(run["ideal_same_curve"][-1], rel=0.15)
    assert run["semi_same_curve"][-1] == pytest.approx(run["ideal_same_curve"][-1], rel=0.15)
    assert run["worst_logit_gap"] >= run["logit_gap_curve"][after].max()


CI = ImageDescent(
    Structured(patches=36, spurious_rate=0.3, dimension=16),
    PositionalNetwork(linear=1e-3, init=1e-3),
    plain(2e-4, 1e4, 2000, 5),
    samples=2000,
)


@pytest.mark.slow
def test_realistic_descent_learns_the_groups_and_then_generalises():
    """Theorem 4.2 at a size for tests: association 1, error at most 0.03, cosine at least 0.9."""
    run = train(CI, seed=100)
    assert run["exact"] == 1
    assert run["test_error"] <= 0.03
    assert run["cosine"] >= 0.9
    assert run["auc_curve"][1] > 0.95
    assert run["test_error_curve"][1] > 0.5 * theory.glm_error(36, 4, 0.3)


@pytest.mark.parametrize("kind", ["logits", "encodings", "self"])
def test_every_kind_of_attention_is_trained_on_its_own_risk(kind):
    """A step of the lab lowers the risk by the squared length of the scaled gradient, to first order in the step size; the
    diagonal of free logits stays, and the one-pass gradient is that of the objective."""
    trial = with_precision(
        ImageDescent(
            Structured(patches=12, group_size=3, dimension=6),
            PositionalNetwork(init=0.1),
            plain(1e-5, 10.0, 1, 2),
            attention=kind,
            width=8,
            samples=50,
            test_samples=10,
            precision="float64",
        )
    )
    before = start(trial, KEY)
    after = step(trial, before)
    ours, theirs = np.asarray(after.params[0]), np.asarray(before.params[0])
    slope = jax.jit(jax.grad(lambda params: trial.objective(params, before.data, before.world, KEY)))
    pull, value = (np.asarray(part) for part in slope(before.params))
    if kind == "logits":
        assert np.array_equal(np.diag(ours), np.diag(theirs))
        pull = np.where(np.eye(12, dtype=bool), 0, pull)
    assert np.allclose(ours - theirs, -1e-4 * pull, rtol=1e-6, atol=1e-15)
    expected = -(1e-4 * np.sum(pull**2) + 1e-5 * np.sum(value**2))
    assert np.isclose(float(after.fit.loss) - float(before.fit.loss), expected, rtol=1e-2)


@pytest.mark.slow
def test_linear_phase_drifts_at_half_nu_D_C_whatever_the_diagonal():
    for beta in (1.0, 3.0):
        trial = ImageDescent(
            Structured(patches=36, spurious_rate=0.3, dimension=8),
            PositionalNetwork(linear=1e-2, diagonal=beta, init=1e-7),
            plain(1e-5, 1.0, 20, 21),
            samples=4000,
            test_samples=100,
        )
        run = train(trial, seed=100)
        alpha = run["alignment_curve"]
        assert (alpha[-1] - alpha[0]) / 20 == pytest.approx(theory.linear_drift(36, 4, 1e-2, 1e-5), rel=0.1)
    # Lemma E.7: the sum over the phase, steps 1 to t - 1 and half of the last
    summed = alpha.sum() - (alpha[0] + alpha[-1]) / 2
    assert summed == pytest.approx(theory.linear_phase_sum(20, alpha[0], 36, 4, 1e-2, 1e-5), rel=0.1)
    assert run["linear_phase_end"] == -1
    off = run["logits"][~np.eye(36, dtype=bool)]
    assert np.abs(off).max() <= run["phase_logit"] < 1e-2


def test_test_images_are_not_the_training_ones_but_have_their_law():
    """Errors on coefficients with noise along one direction and on real patches agree to three standard errors."""
    data = Structured(patches=16, spurious_rate=0.4, dimension=4, noise=2.0)
    trial = ImageDescent(data, samples=64, test_samples=20_000, precision="float64")

    @jax.jit
    def looked(key):
        drawn = trial.draw(key)
        world, unseen = drawn.world
        seen = (jnp.moveaxis(drawn.data[0], 1, -1) @ world.feature).reshape(-1, 16)[:64]
        value = 0.1 * (world.feature + 0.8 * jax.random.normal(key, (4,)))
        weights = Weights(tied_logits(world.group_of, 2.0, 1.0, 0.0), value)
        images = data.draw(jax.random.fold_in(key, 9), world, 20_000)
        direct = jnp.mean(images.labels * trial.output(weights, images.patches) <= 0)
        other = draw_unseen(data, key, world, 64).labels
        return seen, unseen, trial.tested(weights, drawn.world)["test_error"], direct, other

    seen, unseen, found, direct, other = jax.tree.map(np.asarray, looked(KEY))
    assert not np.any(np.all(np.abs(seen - unseen.coefficients[:64]) < 1e-6, axis=1))
    assert abs(found - direct) < 3 * np.sqrt(2 * 0.25 / 20_000)
    assert not np.array_equal(unseen.labels[:64], other)


def test_an_even_degree_is_refused():
    with pytest.raises(BadInput, match="odd"):
        PositionalNetwork(degree=4)


# Transfer --------------------------------------------------------------------------------------------------------------


def task(attention=3.5, **changes):
    trial = Transfer(Structured(dimension=4096), **changes)
    logits = tied_logits(jnp.arange(64) // 4, 2.0, attention, 0.0)
    return transfer.Task(trial, np.asarray(logits))


def test_association_transfers_with_sixteen_samples_and_its_absence_does_not():
    """Theorems 5.1 and 5.2 at D = 64: constructed attention against untrained (means over 20 repeats)."""
    keys = [jax.random.fold_in(KEY, i) for i in range(20)]
    error = [
        np.mean([transfer.one_step(task(a, sizes=(16,), test_samples=500), k)[0][0] for k in keys])
        for a in (3.5, 0.0)
    ]
    assert error[0] <= 0.05
    assert error[1] >= 0.8 * theory.glm_error(64, 4, 0.25)


def test_with_the_groups_known_the_error_is_that_of_one_sign():
    """400 steps on one and on three samples: the error is that the step points away, to three standard errors."""
    runs = np.array(
        [
            transfer.one_step(task(sizes=(1, 3, 64), test_samples=100), jax.random.fold_in(KEY, i))
            for i in range(400)
        ]
    )
    error, cosine = runs[:, :, 0].mean(axis=0), runs[:, :, 1]
    for column, samples in ((0, 1), (1, 3)):
        wrong = theory.sign_error(64, 4, 0.25, samples)
        assert abs(error[column] - (wrong + (1 - 2 * wrong) * error[2])) < 3 * np.sqrt(wrong / 400)
        assert (
            abs(np.mean(cosine[:, column] < 0) - wrong) < 3 * np.sqrt(wrong / 400) + 0.03
        )  # half of the ties
    law = theory.one_step_cosine(64, 4, 64)
    assert abs(cosine[:, 2].mean() - law) < 3 * cosine[:, 2].std() / 20 + 0.03


@pytest.mark.parametrize("learner", ["pair-counting", "label-counting"])
def test_counting_finds_the_groups_when_it_has_seen_enough(learner):
    (few, _), (many, _) = transfer.counting(task(learner=learner, sizes=(32, 2048), test_samples=1000), KEY)
    assert few > 0.1
    assert many < 0.02


def test_counting_needs_to_see_every_group_about_twice():
    """Coupon collecting at D = 1024 with q D = 16: the error at three and at six samples a group, within a quarter."""
    data = Structured(patches=1024, spurious_rate=16 / 1024)
    trial = Transfer(data, learner="label-counting", sizes=(3 * 256, 5 * 256), test_samples=4000)
    found = transfer.counting(transfer.Task(trial, np.zeros((4, 4))), KEY)
    for (error, _), samples in zip(found, trial.sizes, strict=True):
        assert error == pytest.approx(theory.coupon_error(1024, 4, 16 / 1024, samples), rel=0.35)


def test_samples_needed_says_when_the_grid_does_not_reach():
    sizes = np.array([1, 4, 16])
    assert transfer.samples_needed(sizes, np.array([0.4, 0.3, 0.2]), 0.1) == np.inf
    assert transfer.samples_needed(sizes, np.array([0.04, 0.03, 0.02]), 0.1) == -np.inf
    assert transfer.samples_needed(sizes, np.array([0.05, 0.3, 0.02]), 0.1) > 4


@pytest.mark.parametrize(
    "learner",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("descent", "scratch", "untold")),
        "mlp",
        "linear",
    ],
)
def test_every_downstream_learner_gives_an_error_and_a_cosine_at_every_size(learner):
    data = Structured(patches=16, spurious_rate=0.3, dimension=8)
    trial = Transfer(data, learner=learner, sizes=(2, 30), repeats=1, test_samples=50, target_loss=0.3)
    found = trial.compute(random_key(trial, 100))
    assert found["error"].shape == found["cosine"].shape == (2,)
    assert np.all((found["error"] >= 0) & (found["error"] <= 1) & (np.abs(found["cosine"]) <= 1 + 1e-6))
