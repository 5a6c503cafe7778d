"""What the theorems and the lab's own fits say about a setting: samples, steps, and what removing tokens saves.

The theorems leave their constants open. `constants.json` holds laws fitted to the runs of the figure `settings`
(random settings in alpha_*, alpha_#, noise, initial errors, tokens and votes), with their error on settings that were
held out of the fit. It is made again by

    lemmata run shallow-vit/settings
    python -m benchmarks.shallow_vit_constants FOLDER > constants.json

where FOLDER is the store that the first command names.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lemmata.measure.compare import Condition
from lemmata.studies.shallow_vit.theory import lemmas, theorem
from lemmata.studies.shallow_vit.theory.theorem import Setting
from lemmata.study import Prediction

CONSTANTS = Path(__file__).with_name("constants.json")
MAKE = "lemmata run shallow-vit/settings, then python -m benchmarks.shallow_vit_constants FOLDER"


def predict(trial: Any) -> tuple[list[Condition], list[Prediction]]:
    """Predict how many samples and steps a setting needs, and what removing tokens saves.

    Where a formula gives no finite number, a sentence says why.
    """
    loud, shared = theorem.setting(trial), trial.network.output_weights == "shared"
    s = replace(loud, token_noise=float(trial.data.noise_level))  # of the quiet tokens
    laws = json.loads(CONSTANTS.read_text(encoding="utf-8")) if CONSTANTS.exists() else {}
    found = [*_fits(laws, s, shared), *_theorem(s), *_attention(s)]
    asked = trial.data.removed_fraction / (1 - s.relevant_fraction) if s.relevant_fraction < 1 else 0.0
    for share in sorted({0.25, 0.5, 1.0} | ({min(float(asked), 1.0)} if asked else set())):
        name = f"removing {share:.0%} of the irrelevant tokens"
        after = theorem.remove_irrelevant(s, share)
        found.append(Prediction(f"{name}: relevant fraction becomes", after.relevant_fraction))
        found += _savings(name, s, after)
    if loud.token_noise > s.token_noise:
        found += _savings(f"removing the {trial.data.noisy_fraction:.0%} noisy tokens", loud, s)
    found += _savings("halving the token noise", s, replace(s, token_noise=s.token_noise / 2))
    found += _savings("removing tokens at random", s, s)
    return theorem.conditions(trial), found


def _fits(laws: Mapping[str, Any], s: Setting, shared: bool) -> list[Prediction]:
    if not laws:
        return [Prediction("samples and steps needed", f"not fitted; run {MAKE}.")]
    found = []
    for what, scale in (("samples", 1.0), ("steps", s.learning_rate)):
        law = laws[what]
        name = f"{what} needed (fitted)"
        found.append(Prediction(name, evaluate(law, s, shared) / scale))
        unknown = "unknown: no setting that was held out shows the need inside its grid."
        found.append(
            Prediction(f"{name}: off by a factor of", unknown if law["error"] is None else law["error"])
        )
        beyond = [
            f"{feature} {value:.3g} outside {low:.3g} to {high:.3g}"
            for feature, value in features(s, shared).items()
            for low, high in [law["range"][feature]]
            if not low - 1e-9 <= value <= high + 1e-9
        ]
        if beyond:
            found.append(Prediction(f"{name}: beyond what was fitted", ", ".join(beyond) + "."))
    return [*found, Prediction("where the fits come from", f"{laws['source']} ({MAKE})")]


def features(s: Setting, shared: bool) -> dict[str, float]:
    """What a fitted law is linear in, in its logarithm."""
    return {
        "log alpha_*": math.log(s.relevant_fraction),
        "log(1 - alpha_#/alpha_*)": math.log(max(1 - s.confusion_fraction / s.relevant_fraction, 1e-9)),
        "tau": s.token_noise,
        "sigma": s.value_error,
        "delta": s.key_query_error,
        "log tokens": math.log(s.tokens),
        "shared votes": float(shared),
    }


def evaluate(law: Mapping[str, Any], s: Setting, shared: bool) -> float:
    """A fitted law at a setting."""
    terms = (law["slope"][name] * value for name, value in features(s, shared).items())
    return math.exp(law["intercept"] + sum(terms))


def _theorem(s: Setting) -> list[Prediction]:
    lost = f"none: alpha_* = {s.relevant_fraction:.3g} is not above sigma + tau = {s.disorder:.3g} (c'' = 1)."
    narrow = (
        f"none: epsilon + (sigma+tau) M/pi = {1 - s.luck:.3g} is not below one (wider networks, less error)."
    )
    attention = float(lemmas.relevant_attention_printed(1.0, s.spread, s.relevant_fraction, 1.0))
    many = "any: there are no confusion tokens."
    drowned = f"none: sigma + tau = {s.disorder:.3g} is not below one."
    return [
        number("samples by (10), constants 1", theorem.samples_needed(s), lost),
        number("samples by (13), attention frozen, constants 1", theorem.samples_needed_frozen(s), lost),
        number("frozen over trained attention (Remark 1)", theorem.attention_advantage(s.relevant_fraction), ""),
        number("steps by (11), constant 1", theorem.steps_needed(s), narrow),
        number("steps at which the bound (63) on the output reaches one, p = p_n(0)",
               theorem.steps_from_growth(s, attention),
               f"none: {narrow[6:-1]} or alpha_* p is not above sigma + tau."),
        number("steps by the thesis, eta^-3/5, constant 1 (see claim steps-rate)", theorem.steps_needed_thesis(s), ""),
        number("smallest relevant fraction by condition (8), slack 1/2", theorem.relevant_fraction_needed(s),
               many if s.disorder < 1 else drowned),
        number("the mean fraction of N samples is off by at most (66)",
               theorem.concentration_error(s.samples), "nothing can be said of one sample."),
        number("share of weights saved by freezing the attention", theorem.parameters_saved_by_freezing(
            s.key_dim, s.value_dim, s.key_dim, s.neurons), ""),
    ]  # fmt: skip


def _attention(s: Setting) -> list[Prediction]:
    bound = float(lemmas.relevant_attention_bound(1.0, s.spread, s.relevant_fraction, 1.0))
    return [
        Prediction("attention of relevant tokens on each other at the start, without errors",
                   lemmas.initial_attention(s.relevant_fraction)),
        Prediction("the same, at least, with errors delta + tau", bound),
    ]  # fmt: skip


def _savings(name: str, before: Setting, after: Setting) -> list[Prediction]:
    laws = {
        "samples": (theorem.samples_needed, theorem.samples_ratio),
        "steps": (theorem.steps_needed, theorem.steps_ratio),
    }
    return [
        number(
            f"{name}: {what} times",
            ratio(before, after),
            f"no ratio: the theorem gives {_plain(needed(before))} before and {_plain(needed(after))} after.",
        )
        for what, (needed, ratio) in laws.items()
    ]


def number(name: str, value: float, why: str) -> Prediction:
    """A finite number that is not zero, or the reason why there is none."""
    return Prediction(name, value if math.isfinite(value) and value else why)


def _plain(value: float) -> str:
    return f"{value:.3g} (constant 1)" if math.isfinite(value) else "no finite number"
