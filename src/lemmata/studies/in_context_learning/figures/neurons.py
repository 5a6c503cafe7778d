"""Figure 6.2 (C, D): the neurons of a training, their directions, their activity, and the growth of the output."""

import numpy as np
import xarray as xr

from lemmata.figure import Claim, at_least, at_most, every_run, experiment, made, ours, proof, theorem
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.times import last_value, time_exponent
from lemmata.studies.in_context_learning import theory
from lemmata.studies.in_context_learning.figures.common import ONE_WHY, UNSAID
from lemmata.studies.in_context_learning.theory import in_domain


def one_shift(r: xr.Dataset) -> xr.DataArray:
    """The smallest cyclic set of tasks, U = 1."""
    return r["task_shifts"] == 1


# What is measured ------------------------------------------------------------------------------------------------------


def large(r: xr.Dataset) -> xr.DataArray:
    """The neurons above the largest relative gap of the lengths of their rows of W_O W_V, at the end."""
    feature, label = (last_value(r[f"{part}_size_curve"]) for part in ("feature", "label"))
    length = ((feature**2 + label**2) ** 0.5).transpose(..., "neuron")

    def above(row: np.ndarray) -> np.ndarray:
        if not np.isfinite(row).all():
            return np.zeros(len(row), bool)
        order = np.argsort(row)
        kept = np.ones(len(row), bool)
        kept[order[: theory.largest_gap(row)]] = False
        return kept

    return length.copy(data=np.apply_along_axis(above, -1, length.values))


def feature_cosine(r: xr.Dataset) -> xr.DataArray:
    """The cosine of every large neuron's feature part with the mean pattern."""
    return last_value(r["feature_cosine_curve"]).where(large(r))


def label_cosine(r: xr.Dataset) -> xr.DataArray:
    """The cosine of every large neuron's label part with sign(a_i) q."""
    return (last_value(r["label_cosine_curve"]) * r["sign"]).where(large(r))


def margin_exponent(r: xr.Dataset) -> Estimate:
    """The log-log slope in time of the margin 1 - hinge, from 2 % to 80 %."""
    margin = 1 - r["now_hinge_curve"]
    needs(bool((margin > 0.8).any()), "the margin never grows.")
    return time_exponent(margin.where(margin > 0), (margin > 0.02) & (margin < 0.8))


# What it can refute ----------------------------------------------------------------------------------------------------


def neurons(feature: float, label: float):
    """Records of neurons of which a fifth are small, with these cosines; every other one votes for -1."""

    def size(t, step, neuron):
        return np.where(neuron <= t.neurons // 5, 0.1, 2.0)

    def sign(t, neuron):
        return np.where(neuron % 2, 1.0, -1.0)

    return {
        "feature_size_curve": size, "label_size_curve": size, "feature_cosine_curve": lambda t: feature, "sign": sign,
        "label_cosine_curve": lambda t, step, neuron: label * sign(t, neuron),
    }  # fmt: skip


def margin(power: float):
    """A hinge loss whose distance from 1 grows as a power of the steps."""
    return lambda t, step: 1 - (step / t.descent.steps) ** power


GROWS = at_least(1.0, because="the linear term alone would refute it")
NONE_IDLE = every_run(at_most(0.02, because="two per cent allow for prompts without a match"))

CLAIMS = [
    Claim(
        "feature-alignment", "The feature part of every large neuron has a cosine of at least 1 - 1/M_2 with the mean pattern",
        theorem("Proposition 6.4.5, (6.21)"),
        number=lambda r: feature_cosine(r).min("neuron"), holds=every_run(at_least(1 - 1 / 24, because=ONE_WHY)),
        cells=one_shift, conditions=in_domain,
        refuted_by=made(neurons(0.7, 0.99), noise=0.001),
    ),
    Claim(
        "label-alignment", "The label part of every large neuron has a cosine of at least 1 - 1/M_1 with q or -q, as the neuron "
        "votes", theorem("Proposition 6.4.5, (6.22)"), headline=True,
        number=lambda r: label_cosine(r).min("neuron"), holds=every_run(at_least(1 - 1 / 6, because=ONE_WHY)),
        cells=one_shift, conditions=in_domain,
        refuted_by=made(neurons(0.99, 0.5), noise=0.001),
    ),
    Claim(
        "feature-angle", "Except for some neurons, the feature part is close to the mean pattern: the median angle of large neurons "
        "is below 15 degrees", experiment("Figure 6.2 (C)", proxy=UNSAID),
        number=lambda r: feature_cosine(r).median("neuron"), holds=every_run(at_least(0.966, because="close: 15 degrees")),
        cells=one_shift, conditions=in_domain,
        refuted_by=made(neurons(0.7, 0.99), noise=0.001),
    ),
    Claim(
        "label-angle", "The label part is close to q or -q, as the neuron votes: the median cosine of large neurons is above 0.95",
        experiment("Figure 6.2 (D)", proxy=UNSAID),
        number=lambda r: label_cosine(r).median("neuron"), holds=every_run(at_least(0.95, because="close: 18 degrees")),
        cells=one_shift, conditions=in_domain,
        refuted_by=made(neurons(0.99, 0.7), noise=0.001),
    ),
    Claim(
        "lucky-active", "Neurons that are lucky for some prompt become active on every prompt of their label",
        proof("Lemma E.4.10"),
        number=lambda r: r["lucky_idle"], holds=NONE_IDLE, cells=one_shift, conditions=in_domain,
        refuted_by=made(lucky_idle=lambda t: 0.05),
    ),
    Claim(
        "lucky-own-active", "Neurons that are lucky for a prompt are active on it after training",
        proof("Lemma E.4.10, (E.38) and (E.39)"),
        number=lambda r: r["lucky_own_idle"], holds=NONE_IDLE, cells=one_shift, conditions=in_domain,
        refuted_by=made(lucky_own_idle=lambda t: 0.05),
    ),
    Claim(
        "output-superlinear", "The output grows faster than linearly in the number of steps", proof("(E.61)"),
        number=margin_exponent, holds=GROWS, cells=one_shift, conditions=in_domain,
        refuted_by=made(noise=0.001, now_hinge_curve=margin(0.5)),
    ),
    Claim(
        "output-cubic", "The output grows no faster than the third power of the number of steps", ours("(E.61), its largest power"),
        number=margin_exponent, holds=at_most(3.0, because="the largest printed power"), cells=one_shift, conditions=in_domain,
        refuted_by=made(noise=0.001, now_hinge_curve=margin(6.0)),
    ),
]  # fmt: skip
UPHELD = neurons(0.99, 0.99) | {
    "lucky_idle": lambda t: 0.01, "lucky_own_idle": lambda t: 0.01, "now_hinge_curve": margin(2.5),
}  # fmt: skip
