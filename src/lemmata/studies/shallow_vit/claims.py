"""What the paper claims, what would refute it, and what it predicts for a given setting."""

from dataclasses import replace
from math import inf

import numpy as np
import xarray as xr

from lemmata.draw.style import settings
from lemmata.measure.compare import Condition
from lemmata.studies.shallow_vit import measures, theory
from lemmata.studies.shallow_vit.measured import MEASURED
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.study import Claim, Prediction
from lemmata.trial import fields

# Conditions and predictions ---------------------------------------------------------------------------------


def conditions(results: xr.Dataset) -> list[Condition]:
    return theory.conditions(measures.setting(settings(results)))


def predict(trial: ViTTraining) -> tuple[list[Condition], list[Prediction]]:
    """How many samples and steps a setting needs, and what removing tokens saves.

    The theorem leaves its constants open; the numbers use those measured by the lab (see `measured.py` for
    the commands). Savings are ratios, in which the constants cancel.
    """
    s = measures.setting(fields(trial))
    m = MEASURED
    kept = {"constant": m.samples_constant, "c_noise": m.c_noise}
    found = [
        Prediction(
            "samples needed, trained attention (theorem's form, measured constants)",
            theory.samples_needed(s, **kept),
        ),
        Prediction(
            "samples needed, trained attention (measured power law)",
            m.samples_at_040 * (s.relevant_fraction / 0.4) ** m.samples_exponent,
        ),
        Prediction(
            "samples needed, frozen attention (measured power law)",
            m.frozen_samples_at_040 * (s.relevant_fraction / 0.4) ** m.frozen_exponent,
        ),
        Prediction(
            "steps needed (paper's form, measured constant)",
            m.steps_constant / (s.learning_rate * s.relevant_fraction),
        ),
        Prediction(
            "steps needed (measured law in the majority of the vote)",
            m.steps_margin_constant / (s.learning_rate * (s.relevant_fraction - s.confusion_fraction)),
        ),
        Prediction(
            "steps needed (thesis: eta^-3/5; constant 1, does not match)", theory.steps_needed_thesis(s)
        ),
    ]
    asked = trial.data.removed_fraction / (1 - s.relevant_fraction) if s.relevant_fraction < 1 else 0.0
    for share in sorted({0.25, 0.5, 1.0} | ({min(asked, 1.0)} if asked else set())):
        found += _savings(
            f"removing {share:.0%} of the irrelevant tokens", theory.remove_irrelevant(s, share, m.c_noise)
        )
    if trial.data.noisy_fraction > 0:
        loud = theory.typical_noise(trial.data.noisy_std, trial.data.dim)
        saving = theory.remove_noisy(replace(s, token_noise=loud), s.token_noise, m.c_noise)
        found += _savings(f"removing the {trial.data.noisy_fraction:.0%} noisy tokens", saving)
    halved = theory.remove_noisy(s, s.token_noise / 2, c_noise=m.c_noise)
    found += [
        Prediction("halving the token noise: samples times", halved.samples_ratio),
        Prediction("halving the token noise: steps times", halved.steps_ratio),
        Prediction("removing tokens at random: samples times", theory.remove_random(s, 0.5).samples_ratio),
        Prediction(
            "smallest relevant fraction by condition (8), slack 1/2", theory.relevant_fraction_needed(s)
        ),
        Prediction("where the constants come from", m.source),
    ]
    return theory.conditions(s), found


def _savings(name: str, saving: theory.Saving) -> list[Prediction]:
    return [
        Prediction(f"{name}: relevant fraction becomes", saving.relevant_fraction),
        Prediction(f"{name}: samples times", saving.samples_ratio),
        Prediction(f"{name}: steps times", saving.steps_ratio),
    ]


# The claims -------------------------------------------------------------------------------------------------

CLAIMS: dict[str, Claim] = {
    claim.id: claim
    for claim in (
        Claim(
            "zero-loss",
            "fig1a",
            "Theorem 1, (12)",
            "at least 0.99",
            (0.9, inf),
            "The theorem says 0.99; the interval of a few dozen runs that all succeed reaches down to 0.9.",
            measures.zero_loss,
            conditions,
        ),
        Claim(
            "sample-exponent",
            "fig1a",
            "Theorem 1, (10); Figure 1(a)",
            "-2",
            (-2.5, -1.5),
            "A half either way keeps -2 apart from -1 and from -3.",
            measures.sample_exponent,
            conditions,
        ),
        Claim(
            "sample-linear",
            "fig1a",
            "Figure 1(a)",
            "close to 1",
            (0.8, inf),
            "The figure is described as almost linear; below 0.8 nobody would.",
            measures.sample_linear,
            conditions,
        ),
        Claim(
            "frozen-exponent",
            "fig3",
            "Proposition 1; Figure 3",
            "-4",
            (-4.75, -3.25),
            "Three quarters either way keeps -4 apart from -3 and -5.",
            measures.frozen_exponent,
            conditions,
        ),
        Claim(
            "attention-exponent-gain",
            "fig3",
            "Remark 1",
            "2",
            (1.0, 3.0),
            "Half of the predicted gain either way.",
            measures.exponent_gain,
            conditions,
        ),
        Claim(
            "attention-saves-samples",
            "fig3",
            "Remark 1",
            "above 1 at every relevant fraction",
            (1.0, inf),
            "Fewer samples with frozen attention anywhere would refute it.",
            measures.frozen_ratio,
            conditions,
        ),
        Claim(
            "initial-error-samples",
            "fig1b",
            "(10); Figure 1(b)",
            "negative",
            (-inf, -0.1),
            "A slope above -0.1 (10 % per unit of sigma) could not be seen in a picture.",
            lambda r: measures.root_slope(r, "value_error"),
            conditions,
        ),
        Claim(
            "noise-samples",
            "fig1b-noise",
            "(10)",
            "negative",
            (-inf, -0.1),
            "The same as for sigma, per unit of tau.",
            lambda r: measures.root_slope(r, "noise_std", float(np.sqrt(settings(r)["data.dim"]))),
            conditions,
        ),
        Claim(
            "steps-fraction",
            "fig2",
            "(11); Figure 2",
            "-1",
            (-1.25, -0.75),
            "A quarter either way; alpha_# is held fixed, so only alpha_* moves.",
            measures.steps_fraction,
            conditions,
        ),
        Claim(
            "steps-margin",
            "fig2",
            "not in the paper",
            "-1",
            (-1.25, -0.75),
            "A quarter either way; alpha_nd is held fixed as in Figure 1.",
            measures.steps_margin,
            conditions,
        ),
        Claim(
            "steps-rate-paper",
            "fig2-rate",
            "(11)",
            "-1",
            (-1.1, -0.9),
            "A tenth either way keeps the rival exponents apart.",
            measures.steps_rate,
            conditions,
        ),
        Claim(
            "steps-rate-thesis",
            "fig2-rate",
            "thesis, Theorem 2.3.1",
            "-0.6",
            (-0.7, -0.5),
            "A tenth either way keeps the rival exponents apart.",
            measures.steps_rate,
            conditions,
        ),
        Claim(
            "attention-rises",
            "fig4",
            "Proposition 2; Figure 4",
            "above 0.15",
            (0.15, inf),
            "A rise below 0.15 at alpha_* = 0.5 would not be called concentration.",
            measures.rise,
            conditions,
        ),
        Claim(
            "attention-steady",
            "fig4",
            "Proposition 2",
            "0",
            (-inf, 0.01),
            "Drops up to 0.01 are noise of mini-batches.",
            measures.largest_drop,
            conditions,
        ),
        Claim(
            "attention-near-one",
            "fig4",
            "Proposition 2; Figure 4",
            "close to 1",
            (0.9, inf),
            "The figure is described as close to one; below 0.9 a reader would not say so.",
            measures.end,
            conditions,
        ),
        Claim(
            "attention-rate",
            "fig4",
            "Proposition 2",
            "at most -1",
            (-inf, -0.8),
            "The slope of log(1 - attention) late in the training on the linear loss; 0.2 for its curvature.",
            measures.attention_rate,
            conditions,
        ),
        Claim(
            "attention-bound",
            "fig4",
            "Definition 1, corrected",
            "never below the bound",
            (0.0, inf),
            "It is a theorem: any negative distance is an error of ours.",
            measures.above_bound,
            conditions,
        ),
        Claim(
            "logits-grow",
            "fig4",
            "Lemma 2, Claim 2",
            "positive",
            (0.0, inf),
            "The discriminative logits must outgrow any change of the others.",
            measures.logit_growth,
            conditions,
        ),
        Claim(
            "random-removal",
            "fig5",
            "Figure 5",
            "0",
            (-0.5, inf),
            "A fall of the loss by more than half would be called help.",
            measures.random_change,
            conditions,
        ),
        Claim(
            "irrelevant-removal",
            "fig5",
            "Remark 2; Figure 5",
            "below 1",
            (-inf, 0.7),
            "Losses as a ratio to random removal; 0.7 is a difference that a picture shows.",
            lambda r: measures.relative_loss(r, "irrelevant"),
            conditions,
        ),
        Claim(
            "noisy-removal",
            "fig5",
            "Remark 2; Figure 5",
            "below 1",
            (-inf, 0.3),
            "The noise is large, so that more is asked of its removal.",
            lambda r: measures.relative_loss(r, "noisy"),
            conditions,
        ),
        Claim(
            "attention-many-patterns",
            "fig7",
            "Figure 7",
            "above 0.1",
            (0.1, inf),
            "The smallest rise over the numbers of patterns.",
            measures.rise_patterns,
            conditions,
        ),
        Claim(
            "removal-many-patterns",
            "fig8",
            "Figure 8",
            "below 1",
            (-inf, 0.7),
            "The worst of all arms and numbers of patterns.",
            measures.relative_loss_patterns,
            conditions,
        ),
        Claim(
            "initial-attention-steps",
            "initial-attention",
            "Remark 3",
            "1 (rises)",
            (0.2, inf),
            "Kendall's tau over the grid; below 0.2 there is no trend to speak of.",
            measures.delta_steps,
            conditions,
        ),
        Claim(
            "single-pass-learns",
            "single-pass",
            "Algorithm 1",
            "0",
            (-inf, 0.01),
            "Test error after one pass over the largest training set.",
            measures.single_pass,
            conditions,
        ),
        Claim(
            "lucky-grow",
            "neurons",
            "Lemma 2, Claim 1",
            "at least 5 times",
            (5.0, inf),
            "Growth by less could be drift.",
            measures.lucky_growth,
            conditions,
        ),
        Claim(
            "lucky-only",
            "neurons",
            "Lemma 2, Claim 1",
            "small",
            (-inf, 0.2),
            "A fifth of the growth along the own pattern.",
            measures.lucky_elsewhere,
            conditions,
        ),
        Claim(
            "lucky-gates",
            "neurons",
            "Lemma 4; thesis Lemma A.5.2",
            "1",
            (0.99, inf),
            "One gate in a hundred may close by mini-batch noise; more than at the start may be open.",
            measures.gates,
            conditions,
        ),
        Claim(
            "values-grow",
            "neurons",
            "Lemma 2, Claim 3",
            "positive",
            (0.2, inf),
            "The discriminative values must outgrow the others by a fifth.",
            measures.value_growth,
            conditions,
        ),
        Claim(
            "unlucky-paper",
            "neurons",
            "Lemma 2, Claim 1",
            "at most 1",
            (-inf, 1.0),
            "The paper's bound is xi itself; it leaves nothing open.",
            measures.unlucky_by_spread,
            conditions,
        ),
        Claim(
            "unlucky-thesis",
            "neurons",
            "thesis, Lemma A.3.1",
            "at most 1",
            (-inf, 1.0),
            "The thesis's bound is 1/sqrt(B) of the lucky ones, up to a constant taken as 1.",
            measures.unlucky_by_lucky,
            conditions,
        ),
        Claim(
            "keys-aligned",
            "neurons",
            "Lemma 2, Claim 2",
            "close to 1",
            (0.9, inf),
            "Keys grow along their start; a cosine of 0.9 is an angle of 26 degrees.",
            measures.key_cosine,
            conditions,
        ),
        Claim(
            "keys-elsewhere",
            "neurons",
            "Lemma 2, Claim 2",
            "small",
            (-inf, 0.2),
            "A fifth of the norm, where discriminative keys grow by more than half.",
            lambda r: measures.change_elsewhere(r, "key_norm"),
            conditions,
        ),
        Claim(
            "values-elsewhere",
            "neurons",
            "Lemma 2, Claim 3",
            "small",
            (-inf, 0.2),
            "A fifth of the norm, where discriminative values grow several times.",
            lambda r: measures.change_elsewhere(r, "value_norm"),
            conditions,
        ),
        Claim(
            "values-aligned",
            "neurons",
            "Lemma 2, Claim 3",
            "close to 1",
            (0.9, inf),
            "Values grow along the sum of their lucky neurons; 0.9 is an angle of 26 degrees.",
            measures.value_cosine,
            conditions,
        ),
        Claim(
            "output-growth",
            "neurons",
            "(63)",
            "between 1 and 5",
            (1.0, 5.0),
            "The bound is a sum of a second and a fifth power; the text also says linear.",
            measures.output_growth,
            conditions,
        ),
        Claim(
            "background-removal",
            "spurious",
            "section 3 (P3)",
            "positive",
            (0.01, inf),
            "A fall of the test error by less than one in a hundred is not seen.",
            measures.background,
            conditions,
        ),
        Claim(
            "pruning-precision",
            "pruning",
            "Proposition 2",
            "close to 1",
            (0.9, inf),
            "Nine of ten kept tokens relevant.",
            measures.precision,
            conditions,
        ),
        Claim(
            "pruning-error",
            "pruning",
            "Proposition 2",
            "0",
            (-inf, 0.01),
            "One more error in a hundred.",
            measures.pruned_error,
            conditions,
        ),
        Claim(
            "confusion-paper",
            "confusion",
            "(8)",
            "0.5",
            (0.35, 0.65),
            "The edge relative to the factor with slack 1; halfway to the rival.",
            measures.confusion_edge,
            conditions,
        ),
        Claim(
            "confusion-thesis",
            "confusion",
            "thesis, (8)",
            "1",
            (0.85, 1.15),
            "The same, around the rival value.",
            measures.confusion_edge,
            conditions,
        ),
        Claim(
            "heads-steady",
            "variants",
            "section G.3",
            "at most 1",
            (-inf, 1.2),
            "The spread of the logarithm of steps; 1.2 allows for its own uncertainty.",
            measures.heads,
            conditions,
        ),
        Claim(
            "extensions-learn",
            "variants",
            "section G",
            "1",
            (0.9, inf),
            "The same results are said to hold; nine of ten runs in every extension.",
            measures.extensions,
            conditions,
        ),
        Claim(
            "sets-attention",
            "variants",
            "section G.2",
            "above 0.1",
            (0.1, inf),
            "The same as for many patterns.",
            measures.set_attention,
            conditions,
        ),
        Claim(
            "shared-weights-easier",
            "ablation",
            "not in the paper",
            "positive",
            (0.2, inf),
            "Share of runs that learn from 4 samples, shared minus per-token output weights; a fifth is seen at a glance.",
            lambda r: measures.success_gap(r, "reading", "shared weights", "standard", 4),
            conditions,
        ),
        Claim(
            "uniform-attention-worse",
            "uniform-attention",
            "Proposition 1",
            "positive",
            (0.2, inf),
            "Share of runs that learn from 32 samples, trained minus uniform attention.",
            lambda r: measures.success_gap(r, "kind", "trained", "uniform", 32),
            conditions,
        ),
    )
}
