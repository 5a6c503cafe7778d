"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.benign_overfitting.figures import (
    agreement,
    arms,
    asymptotics,
    dynamics,
    leak,
    phase,
    real_mnist,
    rivals,
    stages,
    strong_token,
    theorems,
    times,
)
from lemmata.studies.benign_overfitting.figures.common import asymptotic as asymptotic
from lemmata.studies.benign_overfitting.figures.common import at_control as at_control
from lemmata.studies.benign_overfitting.figures.common import template as template

FIGURES = (
    phase.fig1, dynamics.fig3, dynamics.fig4, times.time_benign, times.time_harmful, asymptotics.asymptotic_boundary,
    stages.literal_constants, theorems.theorem_benign, theorems.theorem_harmful, asymptotics.feedback, leak.attention_leak,
    arms.arms, strong_token.noise_ratio, strong_token.no_strong_token, rivals.rival_transformer, rivals.rival_convolution,
    agreement.agreement, real_mnist.fig2, real_mnist.gain,
)  # fmt: skip
