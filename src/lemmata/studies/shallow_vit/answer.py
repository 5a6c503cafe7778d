"""What a training of the study needs to generalise, in plain English."""

import json
from math import inf
from typing import Any

from lemmata.answer import Answer, needed
from lemmata.studies.shallow_vit.theory import predictions, theorem


def _fitted(trial: Any, what: str) -> tuple[float, float | None]:
    """A need by the fitted law, and the factor by which the law missed settings that it was not fitted on."""
    law = json.loads(predictions.CONSTANTS.read_text(encoding="utf-8"))[what]
    s, shared = theorem.setting(trial), trial.network.output_weights == "shared"
    scale = s.learning_rate if what == "steps" else 1.0
    return predictions.evaluate(law, s, shared) / scale, law["error"]


def success(trial: Any) -> bool:
    """Whether the training set has the samples that the fitted law asks for, and the votes can be right."""
    s = theorem.setting(trial)
    return s.relevant_fraction > s.confusion_fraction and trial.data.samples >= _fitted(trial, "samples")[0]


def sentence(trial: Any) -> str:
    s = theorem.setting(trial)
    (samples, error), (steps, _) = (_fitted(trial, what) for what in ("samples", "steps"))
    printed = theorem.samples_needed(s)
    theirs = f"asks for {needed(printed, 'samples')}" if 0 < printed < inf else "gives no number here"
    missed = f", which missed settings held out by a factor of {error:.3g}" if error else ""
    if s.relevant_fraction <= s.confusion_fraction:
        return "No number of samples is enough: confusion tokens outvote the relevant ones."
    return (
        f"You need {needed(samples, 'samples')} and {needed(steps, 'steps')}, by a law fitted to runs{missed}; "
        f"the theorem with constants 1 {theirs}. Here there are {trial.data.samples} samples."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="generalises",
    inputs=(
        *("data.samples", "data.relevant_fraction", "data.confusion_fraction", "data.tokens"),
        *("data.noise_std", "network.value_error", "network.key_query_error", "descent.learning_rate"),
    ),
    main=("samples needed (fitted)", "steps needed (fitted)", "samples by (10)", "steps by (11)"),
    counts=("samples needed (fitted)", "steps needed (fitted)", "samples by", "steps by", "steps at which"),
    useless_from={"the mean fraction of N samples": 1.0},
    claims=("theorem-sample-exponent", "steps-margin"),
)
