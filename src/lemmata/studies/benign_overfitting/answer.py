"""What a training of the study needs to generalise, in plain English."""

from math import ceil, log
from typing import Any

from lemmata.answer import Answer, needed, smallest
from lemmata.studies.benign_overfitting import theory


def success(trial: Any) -> bool:
    """Whether the signal wins over the strong noise, by the mean field with attention feedback."""
    s = theory.setting(trial)
    return theory.drive_ratio(s) > theory.critical_ratio_of(s)


def sentence(trial: Any) -> str:
    s = theory.setting(trial)
    least = smallest(success, trial, "data.samples")
    plain, bound = ceil(theory.samples_needed(s)), theory.benign_test_loss_bound(s)
    word = "overfits harmlessly" if success(trial) else "overfits harmfully"
    change = (
        "attention feedback raises it" if least and least > plain else "attention feedback leaves it there"
    )
    end = "is vacuous here" if bound >= log(2) else f"promises a test loss of at most {bound:.2g}"
    return (
        f"You need {needed(least, 'samples')}; the mean field says {plain:,}, {change}; the theorem's own bound {end}. "
        f"With {s.samples} samples this training {word}."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="overfits harmlessly",
    inputs=(
        *(
            "data.samples",
            "data.signal_norm",
            "data.weak_noise",
            "data.noise_ratio",
            "data.tokens",
            "data.dim",
        ),
        "network.key_dim",
    ),
    main=("N SNR^2", "drive ratio R0", "critical drive ratio", "steps to the target loss"),
    counts=("samples needed", "steps to the target loss", "end of stage"),
    useless_from={"test loss bound": log(2), "attention leak": 1.0},
    claims=("feedback-curve", "mean-field-curve"),
)
