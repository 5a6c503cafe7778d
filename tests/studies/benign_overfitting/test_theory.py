"""Every lemma with explicit constants against a simulation, limits, and the shape of conditions.

The runs are in the theorem's own regime (key dimension 1e12, drawn in law), one benign and one harmful, followed step
by step; they share one compiled program.
"""

from functools import cache
from math import exp, inf, isinf, log, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.data import feature_index
from lemmata.studies.benign_overfitting.figures import asymptotic, at_control, setting, template
from lemmata.studies.benign_overfitting.network import output
from lemmata.studies.benign_overfitting.simulators import Rows, coefficients, drive
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.trial import fields, put, with_precision

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
    start, rows, history = _follow(with_precision(trial), jax.random.key(11))
    names = ("logits", "values", "norms", "rates")
    past = {name: np.asarray(value) for name, value in zip(names, history, strict=True)}
    labels = np.asarray(start.labels)
    past["margins"] = labels * np.asarray(output(past["logits"], past["values"]))
    return setting(fields(trial)), start, rows, past


LITERAL_BENIGN = 1.5 * 60 * M**2 * 75.0
BENIGN, HARMFUL = 300.0, 2.0


def at_unit_rate(s: theory.Setting) -> theory.Setting:
    return theory.Setting(**{**s.__dict__, "learning_rate": 1.0})


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


def test_stage_one_ends_before_the_explicit_t1_and_the_lead_lasts():
    """Lemma D.5: the signal leads 3M times by T1, and keeps the lead; V_+ and |V_n,i| at T1 are as in its proof."""
    s, start, _, past = run(LITERAL_BENIGN)
    time = np.cumsum(past["rates"])
    bound = theory.benign_stage1_end(s) * s.learning_rate
    first, leads = first_lead(past, np.asarray(start.labels), 0)
    assert time[first] <= bound
    assert leads[first:].all()
    at = int(np.searchsorted(time, bound))
    signal, noise = theory.benign_values_at_stage1_end(s)
    signed = np.asarray(start.labels)[:, None] * past["values"][at]
    assert signed[:, 0].min() >= signal
    assert np.abs(past["values"][at, :, 1:]).max() <= noise


def test_harmful_stage_one_ends_before_its_explicit_t1():
    """Lemma E.3: the strong noise leads 3M times by T1."""
    s, start, _, past = run(HARMFUL)
    time = np.cumsum(past["rates"])
    bound = theory.harmful_stage1_end(s) * s.learning_rate
    first, leads = first_lead(past, np.asarray(start.labels), 1)
    assert time[first] <= bound
    assert leads[first:].all()
    at = int(np.searchsorted(time, bound))
    strong, others = theory.harmful_values_at_stage1_end(s)
    signed = np.asarray(start.labels)[:, None] * past["values"][at]
    assert signed[:, 1].min() >= strong
    assert np.abs(np.delete(past["values"][at], 1, axis=1)).max() <= others


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
    for value, norm in zip(np.asarray(start.value), norms, strict=True):
        assert abs(value) <= theory.initial_value_bound(s, norm)
    assert np.abs(start.value).max() <= s.key_dim**-0.25


def coefficients_at(control: float):
    """alpha and beta at the end of the run, per unit step size."""
    s, start, rows, _ = run(control)
    push = drive(rows.view(), start.labels)
    alpha, beta, _ = coefficients(start, jnp.asarray(1.0), push)
    p = start.gram.shape[0]
    return at_unit_rate(s), start, rows.view(), np.asarray(alpha[:p]), np.asarray(beta[:p])


def test_sign_patterns_of_both_regimes():
    _, start, _, alpha, beta = coefficients_at(BENIGN)
    index = np.asarray(feature_index(start.labels, M))
    sign = np.where(np.asarray(start.labels) > 0, 1, -1)
    assert theory.benign_signs(alpha, beta, index) == 1
    assert theory.harmful_signs(alpha, beta, index) < 1
    _, start, _, alpha, beta = coefficients_at(HARMFUL)
    assert theory.harmful_signs(alpha, beta, index) == 1
    assert theory.benign_signs(alpha, beta, index) < 1
    assert set(sign) == {-1, 1}


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


def test_logit_gaps_grow_at_least_as_the_logarithm_of_time_squared():
    """Lemma 5.3: `e^gap - e^gap(T1)` is at least C_8 times the printed law, with one C_8 for the whole of stage II."""
    s, start, _, past = run(LITERAL_BENIGN)
    first, _ = first_lead(past, np.asarray(start.labels), 0)
    leaves = int(np.argmax((np.abs(1 / (1 + np.exp(past["margins"])) - 0.5) > 0.05).any(axis=1)))
    gap = (past["logits"][:, 0, 0, 0] - past["logits"][:, 0, 0, 1:].max(axis=1))[first:leaves]
    step = past["rates"][first]
    time = (np.cumsum(past["rates"])[first:leaves] - np.cumsum(past["rates"])[first]) / step
    fine = theory.Setting(**{**s.__dict__, "learning_rate": float(step)})
    bound = theory.benign_gap_bound(fine, float(gap[0]), signal_query=True)
    assert bound(0.0) == pytest.approx(gap[0])
    constant = (np.exp(gap) - exp(gap[0]))[1:] / (np.exp(bound(time)) - exp(gap[0]))[1:]
    assert len(gap) > 100
    assert constant.min() > 0.01  # the paper leaves C_8 open; it must not vanish as the stage goes on


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
    s = setting(fields(template()))
    assert theory.critical_control(s.noise_ratio) == 800
    assert theory.boundary(1000.0)(np.array([10.0]))[0] == pytest.approx(10.0)
    assert s.snr == pytest.approx(50 / 6.4)
    assert theory.samples_needed(s) == pytest.approx(800 / s.snr**2)
    assert pytest.approx(0.237, abs=1e-3) == theory.HARMFUL_LOSS_FLOOR_PROOF


def test_explicit_times_do_not_apply_outside_their_conditions():
    s = setting(fields(template()))
    assert isinf(theory.benign_stage1_end(s))
    narrow = theory.Setting(**{**s.__dict__, "noise_ratio": sqrt(24 * s.tokens)})
    assert theory.harmful_stage1_end(narrow) == inf


def test_conditions_say_which_are_missed_and_by_how_much():
    s = setting(fields(template()))
    found = {c.name[:3]: c for c in theory.conditions(s)}
    assert found["(2)"].holds is False
    assert found["(2)"].margin == pytest.approx(1024 * 0.01**2 / (100 * 512))
    assert found["(10"].holds is True
    low, high = theory.init_window(s)
    assert high / low == pytest.approx(sqrt(s.log_union))
    assert len(theory.benign_conditions(s)) == len(theory.harmful_conditions(s)) - 1


def test_label_counts_and_augmentation():
    assert theory.label_counts_hold(np.array([1.0, -1.0]), 0.01) is None
    assert theory.label_counts_hold(np.tile([1.0, -1.0], 40), 0.01) is True
    assert theory.label_counts_hold(np.r_[np.ones(75), -np.ones(5)], 0.01) is False
    s = setting(fields(template()))
    assert theory.control_after_augmentation(s, copies=4, noise_inflation=2) == pytest.approx(s.control)


def test_generalisation_bounds_at_their_limits():
    s = setting(fields(template()))
    tiny = theory.Setting(**{**s.__dict__, "target_loss": 1e-300, "tokens": 2, "failure_prob": 1e-12})
    assert theory.benign_test_loss_bound(tiny) < log(2)
    assert theory.benign_test_loss_bound(s) > log(2)
    assert theory.benign_margin(tiny) > 0 > theory.benign_margin(s)
    assert theory.least_signal_attention(4) == 0.125
    assert all(np.diff(theory.weight_movement(tiny)) > 0)
    ratios = theory.lower_order_ratios(np.eye(3) + 0.1, np.eye(3))
    assert ratios == pytest.approx((0.1 / 1.1, 0.0))
    assert theory.dimension_for_small_cross_terms(s) > s.dim
    assert theory.benign_leak(s)[1] / theory.benign_leak(s)[0] == pytest.approx(s.snr**2)
    assert theory.harmful_leak(s)[1] / theory.harmful_leak(s)[0] == pytest.approx(s.snr**2)
    assert theory.harmful_gap_bound(s, 0.5, True)(0.0) == pytest.approx(0.5)
    low, high = theory.linear_value_bounds(s)
    assert 0 < low < high
    for end in (theory.benign_stage2_end, theory.harmful_stage2_end):
        assert end(s) > 0
    assert theory.benign_stage3_end(s) / theory.benign_stage2_end(s) == pytest.approx(
        s.log_union / s.target_loss
    )
    assert theory.harmful_stage3_end(s) / theory.harmful_stage2_end(s) == pytest.approx(
        s.log_union / s.target_loss
    )
