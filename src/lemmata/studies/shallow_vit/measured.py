"""Constants that the theorem leaves open, as measured by the lab, with the commands that measured them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """`samples_at_040`: N_50 at alpha_* = 0.4, and its exponent; the same for frozen attention.
    `samples_constant` and `c_noise` belong to the form constant/(alpha_* - c''(sigma+tau))^2. Step constants
    multiply 1/(eta alpha_*) and 1/(eta (alpha_* - alpha_#))."""

    samples_at_040: float
    samples_exponent: float
    frozen_samples_at_040: float
    frozen_exponent: float
    samples_constant: float
    c_noise: float
    steps_constant: float
    steps_margin_constant: float
    source: str


MEASURED = Measured(
    samples_at_040=10.0,
    samples_exponent=-3.0,
    frozen_samples_at_040=50.0,
    frozen_exponent=-5.0,
    samples_constant=1.0,
    c_noise=1.0,
    steps_constant=50.0,
    steps_margin_constant=40.0,
    source="lemmata check shallow-vit at the quick scale",
)
