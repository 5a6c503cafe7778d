"""Every lemma with explicit constants against a simulation, limits, and the shape of conditions.

The runs are in the theorem's own regime (key dimension 1e12, drawn in law), one benign and one harmful, followed step
by step; they share one compiled program.
"""

from dataclasses import replace
from functools import cache
from math import exp, inf, isinf, log, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.data import feature_index
from lemmata.studies.benign_overfitting.figures import asymptotic, at_control, template
from lemmata.studies.benign_overfitting.network import output
from lemmata.studies.benign_overfitting.theory import setting
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.studies.benign_overfitting.trials.instances import Fresh, Instance
from lemmata.studies.benign_overfitting.trials.simulators import Leading, Rows, coefficients, drive
from lemmata.threefry import new_key
from lemmata.trial import put, with_precision

STEPS, N, M = 3000, 6, 3


@jax.jit
def _follow(trial: BenignOverfitting, key):
    start = trial.instance(key)

    def step(carry, t):
        rows = carry
        view = rows.view()
        moved = rows.step(trial.rate(t), drive(view, start.labels))
        return moved, (view.logits, view.values, view.query_norms, trial.rate(t))

    rows, history = jax.lax.scan(step, Rows.begin(start), jnp.arange(STEPS))
    return start, rows, history


def trial_at(control: float) -> BenignOverfitting:
    return put(put(at_control(asymptotic(N), control), "test_points", 2), "ramp_steps", 1500.0)


@cache
def run(control: float):
    """Start, end and history of a run at N SNR^2 = control, with the theory's setting."""
    trial = trial_at(control)
    start, rows, history = _follow(with_precision(trial), new_key(11))
    names = ("logits", "values", "norms", "rates")
    past = {name: np.asarray(value) for name, value in zip(names, history, strict=True)}
    past["margins"] = np.asarray(start.labels * output(*history[:2]))
    return setting(trial), start, rows, past


LITERAL_BENIGN = 1.5 * 60 * M**2 * 75.0
BENIGN, HARMFUL = 300.0, 2.0


def at_unit_rate(s: theory.Setting) -> theory.Setting:
    return replace(s, learning_rate=1.0)


@pytest.mark.parametrize("control", [BENIGN, HARMFUL, LITERAL_BENIGN])
def test_output_never_exceeds_the_largest_value_and_the_slope_follows(control):
    _, _, _, past = run(control)
    largest = np.abs(past["values"]).max(axis=(1, 2))
    assert (np.abs(past["margins"]) <= largest[:, None] * (1 + 1e-12)).all()
    slopes = 1 / (1 + np.exp(past["margins"]))
    low, high = np.transpose([theory.slope_range(m) for m in largest])
    assert (slopes >= low[:, None] - 1e-12).all()
    assert (slopes <= high[:, None] + 1e-12).all()


@pytest.mark.parametrize("control", [BENIGN, HARMFUL])
def test_small_logits_give_uniform_attention(control):
    _, _, _, past = run(control)
    attention = np.asarray(jax.nn.softmax(past["logits"], axis=-1))
    for t in range(0, STEPS, 200):
        low, high = theory.attention_range(np.abs(past["logits"][t]).max(), M)
        assert low - 1e-12 <= attention[t].min()
        assert attention[t].max() <= high + 1e-12


@pytest.mark.parametrize("control", [BENIGN, HARMFUL, LITERAL_BENIGN])
def test_values_move_no_faster_than_lemma_d3(control):
    s, _, _, past = run(control)
    unit = at_unit_rate(s)
    moved = np.abs(np.diff(past["values"], axis=0)) / past["rates"][:-1, None, None]
    assert (moved[:, :, 0] <= theory.signal_value_step_bound(unit)).all()
    assert (moved[:, :, 1:] <= theory.noise_value_step_bound(unit)).all()


@pytest.mark.parametrize("control", [BENIGN, HARMFUL])
def test_signal_values_are_monotone_with_orthogonal_noise(control):
    _, start, _, past = run(control)
    signed = np.asarray(start.labels)[:, None] * past["values"]
    assert (np.diff(signed[:, :, 0], axis=0) >= 0).all()


def first_lead(past, labels, token):
    signed = labels[:, None] * past["values"]
    others = np.abs(np.delete(past["values"], token, axis=2)).max(axis=2)
    leads = (signed[:, :, token] >= 3 * M * others).all(axis=1)
    assert leads.any()
    return int(np.argmax(leads)), leads


@pytest.mark.parametrize(
    ("setting", "token", "end", "values"),
    [
        (LITERAL_BENIGN, 0, theory.benign_stage1_end, theory.benign_values_at_stage1_end),
        (HARMFUL, 1, theory.harmful_stage1_end, theory.harmful_values_at_stage1_end),
    ],
    ids=["benign", "harmful"],
)
def test_stage_one_ends_before_the_explicit_t1_and_the_lead_lasts(setting, token, end, values):
    """Lemmas D.5, E.3: the signal (the strong noise) leads 3M times by T1, and keeps the lead; its value and those of the other
    tokens at T1 are as in the proofs."""
    s, start, _, past = run(setting)
    time = np.cumsum(past["rates"])
    bound = end(s) * s.learning_rate
    first, leads = first_lead(past, np.asarray(start.labels), token)
    assert time[first] <= bound
    assert leads[first:].all()
    at = int(np.searchsorted(time, bound))
    least, most = values(s)
    signed = np.asarray(start.labels)[:, None] * past["values"][at]
    assert signed[:, token].min() >= least
    assert np.abs(np.delete(past["values"][at], token, axis=1)).max() <= most


def test_early_growth_is_at_least_what_the_proofs_use():
    s, start, _, past = run(LITERAL_BENIGN)
    signed = np.asarray(start.labels)[:, None] * past["values"]
    early = slice(0, 300)
    speed = (np.diff(signed, axis=0) / past["rates"][:-1, None, None])[early]
    assert (speed[:, :, 0] >= theory.early_signal_value_step(at_unit_rate(s)) * s.readout_norm**2).all()
    s, start, _, past = run(HARMFUL)
    signed = np.asarray(start.labels)[:, None] * past["values"]
    speed = (np.diff(signed, axis=0) / past["rates"][:-1, None, None])[early]
    assert (speed[:, :, 1] >= theory.early_strong_value_step(at_unit_rate(s)) * s.readout_norm**2).all()


def test_data_and_initial_rows_are_as_lemmas_c2_c3_c4_say():
    s, start, _, _ = run(BENIGN)
    gram = np.asarray(start.gram)
    strong, weak = np.diag(gram)[2::2], np.diag(gram)[3::2]
    for powers, power in ((strong, s.strong_power), (weak, s.noise_power)):
        low, high = theory.noise_norm_range(power)
        assert ((powers >= low) & (powers <= high)).all()
    assert np.abs(gram - np.diag(np.diag(gram))).max() <= theory.noise_product_bound(s)
    norms = np.sqrt(np.diag(gram))
    for rows in (np.asarray(start.query), np.asarray(start.key)):
        between = rows @ rows.T
        for a in range(len(gram)):
            low, high = theory.row_norm_range(s, gram[a, a])
            assert low <= between[a, a] <= high
            for b in range(a):
                assert abs(between[a, b]) <= theory.row_product_bound(s, norms[a], norms[b])
    for a, value in enumerate(np.asarray(start.value)):
        assert abs(value) <= theory.initial_value_bound(s, norms[a], signal=a < 2)
    assert np.abs(start.value).max() <= s.key_dim**-0.25


def coefficients_at(control: float):
    """alpha and beta at the end of the run, per unit step size."""
    s, start, rows, _ = run(control)
    view, alpha, beta = seen_from(start, rows)
    p = start.gram.shape[0]
    return at_unit_rate(s), start, view, np.asarray(alpha)[:p], np.asarray(beta)[:p]


@jax.jit
def seen_from(start, rows):
    view = rows.view()
    alpha, beta, _ = coefficients(start, jnp.asarray(1.0), drive(view, start.labels))
    return view, alpha, beta


def test_sign_patterns_of_both_regimes():
    _, start, _, alpha, beta = coefficients_at(BENIGN)
    index = np.asarray(feature_index(start.labels, M))
    assert theory.signs_as_predicted(alpha, beta, index, winner=0) == 1
    assert theory.signs_as_predicted(alpha, beta, index, winner=1) < 1
    _, start, _, alpha, beta = coefficients_at(HARMFUL)
    assert theory.signs_as_predicted(alpha, beta, index, winner=1) == 1
    assert theory.signs_as_predicted(alpha, beta, index, winner=0) < 1


def test_explicit_coefficient_bounds_of_section_f4():
    s, start, view, alpha, beta = coefficients_at(BENIGN)
    phi = np.asarray(jax.nn.softmax(view.logits, axis=-1))
    labels, index = np.asarray(start.labels), np.asarray(feature_index(start.labels, M))
    slopes = 1 / (1 + np.exp(labels * np.asarray(output(view.logits, view.values))))
    share = 0.0
    for n in np.nonzero(labels > 0)[0]:
        bounds = theory.coefficient_bounds(s, phi[n], slopes[n], float(view.values[n, 0]))
        noise = index[n, 1:]
        share += bounds.alpha_signal
        assert (alpha[0, noise] <= bounds.alpha_signal_to_noise).all()
        assert (beta[0, noise] >= bounds.beta_noise_to_signal).all()
        assert (alpha[noise, 0] >= bounds.noise_alpha_signal).all()
        assert (beta[noise, 0] <= bounds.noise_beta_signal).all()
        block = np.ix_(noise, noise)
        assert (alpha[block] <= bounds.noise_alpha_noise).all()
        assert (bounds.noise_beta_noise >= beta[block].T).all()
    assert alpha[0, 0] >= share


def test_logits_and_norms_stay_inside_the_stage_bounds():
    """E(t), I(t): logits below log(d_h^1/2 / eps); C(t), G(t): squared norms keep their order (here: within 1 %)."""
    for control in (BENIGN, HARMFUL):
        s, _, _, past = run(control)
        assert np.abs(past["logits"]).max() <= theory.stage3_logit_bound(s)
        assert theory.stage2_logit_bound(s) < theory.stage3_logit_bound(s)
        assert np.abs(past["norms"] / past["norms"][0] - 1).max() < 0.01


def test_benign_logits_rise_on_the_signal_and_fall_on_noise_once_the_signal_leads():
    """D(t), H(t)."""
    _, start, _, past = run(BENIGN)
    first, _ = first_lead(past, np.asarray(start.labels), 0)
    change = np.diff(past["logits"][first:], axis=0)
    rounding = 1e-9
    assert (change[..., 0] >= -rounding).all()
    assert (change[..., 1:] <= rounding).all()


@pytest.mark.parametrize("benign", [True, False])
def test_logit_gaps_grow_at_least_as_the_logarithm_of_time_squared(benign):
    """Lemma 5.3 and L(t): `e^gap - e^gap(T1)` is at least a constant times the printed law, one for the whole of stage II."""
    s, start, _, past = run(LITERAL_BENIGN if benign else HARMFUL)
    winner, law = (0, theory.benign_gap_bound) if benign else (1, theory.harmful_gap_bound)
    first, _ = first_lead(past, np.asarray(start.labels), winner)
    leaves = int(np.argmax((np.abs(1 / (1 + np.exp(past["margins"])) - 0.5) > 0.05).any(axis=1)))
    others = np.delete(past["logits"][:, 0, 0], winner, axis=1)
    gap = (past["logits"][:, 0, 0, winner] - others.max(axis=1))[first:leaves]
    step = past["rates"][first]
    time = (np.cumsum(past["rates"])[first:leaves] - np.cumsum(past["rates"])[first]) / step
    bound = law(replace(s, learning_rate=float(step)), float(gap[0]), signal_query=True)
    late = time > 2
    constant = (np.exp(gap) - exp(gap[0]))[late] / (np.exp(bound(time)) - exp(gap[0]))[late]
    assert late.sum() > 100
    assert constant.min() > 0.01  # the paper leaves it open; it must not vanish as the stage goes on


def test_lemma_53_promises_nothing_for_the_first_step():
    """The print has (t - T1)(t - T1 - 1): as at T1 after one step, 2 c after two, 6 c after three."""
    s = setting(template())
    for law in (theory.benign_gap_bound, theory.harmful_gap_bound):
        for signal_query in (True, False):
            grown = np.exp(law(s, 0.5, signal_query)(np.array([0.0, 1.0, 2.0, 3.0]))) - exp(0.5)
            np.testing.assert_allclose(grown[:2], 0, atol=1e-12)
            assert grown[3] / grown[2] == pytest.approx(3)
    c = (0.1 * 50 * s.readout_norm) ** 2 * 50**2 * sqrt(512) / (10 * s.log_union**2)
    assert np.expm1(theory.benign_gap_bound(s, 0.0, True)(2.0)) == pytest.approx(2 * c)


def test_stage_three_values_stay_under_their_upper_bound_and_slopes_between_theirs():
    s, start, _, past = run(BENIGN)
    signed = (np.asarray(start.labels)[:, None] * past["values"])[:, :, 0]
    slopes = 1 / (1 + np.exp(past["margins"]))
    leaves = int(np.argmax((np.abs(slopes - 0.5) > 0.05).any(axis=1)))
    time = np.cumsum(past["rates"]) / s.learning_rate
    bound = theory.stage3_value_upper(s, float(signed[leaves].max()))
    assert (signed[leaves:].max(axis=1) <= bound(time[leaves:] - time[leaves]) + 1e-9).all()
    settled = slice(leaves + 500, None)
    for value, slope in zip(signed[settled].ravel()[::50], slopes[settled].ravel()[::50], strict=True):
        low, high = theory.stage3_slope_range(value)
        assert low <= slope <= high


def test_mean_field_value_growth_solves_its_equation():
    rate, start = 0.3, 0.2
    value = theory.value_growth(rate, start)
    t = np.array([0.0, 1.0, 10.0, 1e3, 1e6])
    v = value(t)
    assert v[0] == pytest.approx(start)
    np.testing.assert_allclose(v + np.exp(v), start + exp(start) + rate * t, rtol=1e-9)
    speed = (value(t + 1e-4) - v) / 1e-4
    np.testing.assert_allclose(speed[:4], rate / (1 + np.exp(v[:4])), rtol=1e-4)


def test_convergence_time_is_one_over_rate_and_target_in_the_limit():
    assert theory.convergence_time(0.1, 1e-6) * 0.1 * 1e-6 == pytest.approx(1, rel=1e-4)


def test_mean_field_constants_of_the_paper_figures():
    s = setting(template())
    assert theory.critical_control(s.noise_ratio) == 800
    assert theory.boundary(1000.0)(np.array([10.0]))[0] == pytest.approx(10.0)
    assert s.snr == pytest.approx(50 / 6.4)
    assert theory.samples_needed(s) == pytest.approx(800 / s.snr**2)
    assert pytest.approx(0.237, abs=1e-3) == theory.HARMFUL_LOSS_FLOOR_PROOF


def test_explicit_times_do_not_apply_outside_their_conditions():
    s = setting(template())
    assert isinf(theory.benign_stage1_end(s))
    narrow = replace(s, noise_ratio=sqrt(24 * s.tokens))
    assert theory.harmful_stage1_end(narrow) == inf


def test_conditions_say_which_are_missed_and_by_how_much():
    trial = template()
    s = setting(trial)
    found = {c.name[:3]: c for c in theory.conditions(trial)}
    assert found["(2)"].holds is False
    assert found["(2)"].margin == pytest.approx(1024 * 0.01**2 / (100 * 512))
    assert found["(6)"].margin == pytest.approx(min(1 / 2500, 1 / s.noise_power) / sqrt(512) / 0.1)
    assert found["(10"].holds is True
    low, high = theory.init_window(s)
    assert high / low == pytest.approx(sqrt(s.log_union))
    literal = theory.benign_conditions(trial)[-1]
    assert literal.margin == pytest.approx(s.control / (60 * 16**2 * 400))
    assert theory.harmful_conditions(trial)[-2].margin == pytest.approx(4 / s.control)


def test_a_schedule_is_held_to_a_hundredth_of_the_time_gone_by():
    """The geometric ramp has every step the same share of the time so far, once it is under way."""
    trial = asymptotic()
    [six] = [c for c in theory.conditions(trial) if c.name.startswith("(6)")]
    clock = theory.clock(trial)[:2001]
    share = (np.diff(clock) / clock[1:])[1000:]
    assert share.max() == pytest.approx(0.01 / six.margin, rel=0.01)
    assert six.met


def test_label_counts_and_augmentation():
    assert theory.label_counts_hold(np.array([1.0, -1.0]), 0.01) is None
    assert theory.label_counts_hold(np.tile([1.0, -1.0], 40), 0.01) is True
    assert theory.label_counts_hold(np.r_[np.ones(75), -np.ones(5)], 0.01) is False
    s = setting(template())
    assert theory.control_after_augmentation(s, copies=4, noise_inflation=2) == pytest.approx(s.control)


def test_explicit_ends_of_stage_one_by_hand():
    """D.5 and E.3 at N = 10, M = 3, d_h = 1e12 (d_h^1/4 = 1000), sigma_p^2 d = 1, C_p^2 = 75, eta = |w_O| = 1."""
    s = replace(setting(asymptotic(10)), signal_norm=sqrt(8100.0), learning_rate=1.0)
    assert theory.benign_stage1_end(s) == pytest.approx(10 * 3 * 10 * 10 / (1000 * (81000 - 60 * 9 * 75)))
    assert theory.harmful_stage1_end(s) == pytest.approx(4 * 3 * 10 * 10 / (1000 * (75 - 72)))
    assert theory.literal_control(s) == pytest.approx(60 * 9 * 75)


def test_signals_get_the_single_bound_of_lemma_c2_whose_tail_is_too_small():
    """The print has sigma_V |w_O| |mu| sqrt(log(2NM/delta)): its normal tail is not delta/NM, that of sqrt(2) times it is."""
    s = setting(template())
    bound = theory.initial_value_bound(s, s.signal_norm, signal=True)
    assert theory.initial_value_bound(s, s.signal_norm, signal=False) == 2 * bound
    z = bound / (s.std_value * s.readout_norm * s.signal_norm)
    assert z == pytest.approx(sqrt(log(2 * 10 * 16 / 0.01)))
    allowed = s.failure_prob / (s.samples * s.tokens)
    assert 2 * norm.sf(z) > allowed > 2 * norm.sf(sqrt(2) * z)


@pytest.mark.parametrize("control", [BENIGN, HARMFUL])
def test_weights_move_no_further_than_the_proofs_allow(control):
    """(119)-(130) and (134), (176), constants 1, from what was fed in: W_K moves by F^T fed, whose norm is that of G."""
    s, start, rows, _ = run(control)

    def moved(fed):
        return float(np.sqrt(np.einsum("ph,pq,qh->", fed, start.gram, fed)))

    key, value = np.asarray(rows.fed_key), np.asarray(rows.fed_value)[:, None]
    assert 0 < moved(key) <= sum(theory.weight_movement(s)) <= s.std_qk * sqrt(s.key_dim) * 1e3
    assert 0 < moved(value) <= theory.value_movement(s, benign=control == BENIGN)


def test_lower_orders_are_small_where_the_dimensions_are_large():
    """F.12, (17): products of different tokens and of different keys are negligible at d = 1e16, d_h = 1e12."""
    s, start, _, _ = run(BENIGN)
    key = np.asarray(start.key)
    of_tokens, of_keys = theory.lower_order_ratios(np.asarray(start.gram), key @ key.T)
    assert of_tokens < 1e-5
    assert of_keys < 1e-3
    assert theory.dimension_for_small_cross_terms(s) < s.dim
    assert theory.dimension_for_small_cross_terms(setting(template())) > 1024


def test_generalisation_bounds_are_weaker_than_what_happens():
    """Lemmas 5.5 and D.10, constants 1, against fresh points of the benign run: true, and far from tight."""
    s, start, rows, past = run(BENIGN)
    reached = replace(s, target_loss=float(np.log1p(np.exp(-past["margins"][-1])).mean()))
    logits, values = rows.test()
    fresh = np.asarray(start.fresh.labels * output(logits, values))
    assert fresh.min() >= theory.benign_margin(reached)
    assert np.log1p(np.exp(-fresh)).mean() <= theory.benign_test_loss_bound(reached)
    assert theory.benign_margin(replace(s, target_loss=exp(-40.0))) == pytest.approx(40 / 18 - 1)
    tight = replace(s, target_loss=exp(-90.0), failure_prob=1e-12)
    assert theory.benign_test_loss_bound(tight) == pytest.approx(3 * exp(-5) + 1e-6 / 6)


def test_orders_of_leaks_and_later_stages_by_hand():
    s = replace(setting(template()), readout_norm=2.0)
    unit = s.log_union**3 / sqrt(512)
    assert theory.benign_leak(s) == pytest.approx((10 * unit, s.control * unit))
    assert theory.harmful_leak(s) == pytest.approx((unit / 4 / s.snr**2, unit / 4))
    assert theory.benign_stage2_end(s) == pytest.approx(1 / (0.1 * 2500 * 4 * s.log_union))
    assert theory.benign_stage3_end(s) == pytest.approx(1 / (0.1 * 2500 * 4 * 0.01))
    assert theory.harmful_stage2_end(s) == pytest.approx(10 / (0.1 * s.noise_power * 4 * s.log_union))
    assert theory.harmful_stage3_end(s) == pytest.approx(10 / (0.1 * s.noise_power * 4 * 0.01))
    assert theory.least_signal_attention(4) == 1 / 8
    assert theory.fresh_loss_exponent(2) == 0.75


# Attention feedback --------------------------------------------------------------------------------------------------


def orthogonal(ratio: float, feedback: float, samples: int, tokens: int, noise_ratio: float) -> Instance:
    """Exactly orthogonal features with the norms of the mean field, |xi_2| = 1, zero values and logits at the start."""
    powers = np.concatenate(
        [[2 * ratio / samples] * 2, np.tile([1.0] + [noise_ratio**-2] * (tokens - 2), samples)]
    )
    rows = np.diag(np.sqrt(feedback * powers))
    labels = jnp.where(jnp.arange(samples) % 2 == 0, 1.0, -1.0)
    nothing = jnp.zeros((tokens - 1, 2 * len(powers)))
    logits, values = jnp.zeros((1, tokens, tokens)), jnp.zeros(tokens - 1)
    fresh = Fresh(labels[:1], nothing[:, : len(powers)], nothing, nothing, values, logits)
    apart = (
        jnp.asarray(np.concatenate([rows, 0 * rows], axis=1)),
        jnp.asarray(np.concatenate([0 * rows, rows], axis=1)),
    )
    return Instance(labels, jnp.asarray(np.diag(powers)), *apart, jnp.zeros(len(powers)), jnp.ones(()), fresh)


def test_the_mean_field_with_attention_flips_where_the_leading_order_does():
    """c* is found by a flow of twelve numbers; the simulator has every sample, feature and logit."""
    samples, tokens, noise_ratio, feedback = 6, 3, 75**0.5, 100.0
    critical = theory.critical_ratio(samples, tokens, noise_ratio, feedback)
    assert critical == pytest.approx(1.133, abs=0.003)

    @jax.jit
    def lead(start: Instance):
        def step(_, form):
            return form.step(jnp.asarray(0.1), drive(form.view(), start.labels))

        values = jax.lax.fori_loop(0, 4000, step, Leading.begin(start)).view().values
        return jnp.min(start.labels * (values[:, 0] - values[:, 1]))

    for off, wins in ((0.98, False), (1.02, True)):
        assert (lead(orthogonal(off * critical, feedback, samples, tokens, noise_ratio)) > 0) == wins


def test_the_flip_needs_no_correction_without_feedback_or_with_two_tokens():
    assert theory.critical_ratio(10, 3, 75**0.5, 1e-6) == pytest.approx(1, abs=0.002)
    assert theory.critical_ratio(10, 2, 50**0.5) == pytest.approx(1, abs=0.002)
    s = setting(asymptotic(10))
    few, many = (theory.critical_ratio_of(replace(s, samples=n)) for n in (6, 16))
    assert 1.1 < few < many


def test_predictions_name_the_regime_and_its_times():
    for trial, regime in ((template(), "harmful"), (put(template(), "data.signal_norm", 100.0), "benign")):
        found = {p.name: p.value for p in theory.predict(trial)[1]}
        assert found["regime"] == regime
        assert (
            found["end of stage I, explicit bound (steps)"] == "the lemma does not apply"
            or regime == "harmful"
        )
