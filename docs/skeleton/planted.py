"""For every claim results that refute it."""

from lemmata.results import made

from .figures import FIGURES

PLANTED = {
    "steps-rate": lambda: made(
        FIGURES["steps"],
        {"steps": lambda trial, rng: rng.lognormal(3, 0.05) * trial.descent.learning_rate**-0.5},
    ),
}
