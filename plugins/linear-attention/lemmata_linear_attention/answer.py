"""When each plateau ends, in plain English."""

from lemmata.answer import Answer

from .theory import merged_end, plateau_ends
from .trials import Training


def _ends(trial: Training) -> list[float]:
    return [merged_end(trial)] if trial.layer == "merged" else [float(end) for end in plateau_ends(trial)]


def _horizon(trial: Training) -> float:
    return trial.descent.steps * trial.descent.learning_rate


def success(trial: Training) -> bool:
    """Whether the training is long enough for every plateau to end."""
    return max(_ends(trial)) <= _horizon(trial)


def sentence(trial: Training) -> str:
    ends = ", ".join(f"{m} at {end:.3g}" for m, end in enumerate(_ends(trial)))
    seen = sum(end <= _horizon(trial) for end in _ends(trial))
    return (
        f"Plateaus end at these times t/tau: {ends}. A training of {_horizon(trial):.3g} tau sees {seen} of "
        f"{len(_ends(trial))} ends."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="every plateau ends",
    inputs=(
        "layer",
        "init",
        "heads",
        "rank",
        "data.dim",
        "data.power",
        "data.context",
        "descent.steps",
        "descent.learning_rate",
    ),
    main=("end of plateau",),
    claims=("plateau-ends", "escape-slope"),
)
