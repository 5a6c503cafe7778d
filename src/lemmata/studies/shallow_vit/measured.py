"""Constants that the theorem leaves open, as measured by the lab.

    python -m lemmata.studies.shallow_vit.measured

runs figures 1(a), 2 and 3 at the quick scale (or takes what `runs/` already holds) and prints the block below.
"""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from lemmata.draw.style import settings
from lemmata.measure.boundary import boundary
from lemmata.measure.threshold import critical_size
from lemmata.studies.shallow_vit.measures import setting
from lemmata.study import study


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


# 50 tokens, 300 neurons, batches of 10. Part of c'' is due to the confusion tokens, which grow as alpha_* falls in
# figure 1(a).
MEASURED = Measured(
    samples_at_040=9.51,
    samples_exponent=-3.81,
    frozen_samples_at_040=43.1,
    frozen_exponent=-5.73,
    samples_constant=0.296,
    c_noise=1.57,
    steps_constant=43.5,
    steps_margin_constant=38.0,
    source="figures 1(a), 2 and 3 at the quick scale: python -m lemmata.studies.shallow_vit.measured",
)


def measure(fig1a: xr.Dataset, fig2: xr.Dataset, fig3: xr.Dataset) -> Measured:
    """The constants from results of the three figures.

    Power laws of N_50 by one binomial model over all cells; the theorem's form by a straight line through
    1/sqrt(N_50), alpha_* up to 0.42, above which N_50 no longer falls; steps by their means.
    """
    trained = boundary(fig1a["success"], "samples", "relevant_fraction", at=0.4)
    frozen = boundary(fig3["success"].sel(kind="frozen"), "samples", "relevant_fraction", at=0.4)
    alpha = [a for a in fig1a["relevant_fraction"].values if a <= 0.42]
    sizes = [critical_size(fig1a["success"].sel(relevant_fraction=a), "samples").value for a in alpha]
    slope, offset = np.polyfit(alpha, np.array(sizes) ** -0.5, 1)
    rate = settings(fig2)["descent.learning_rate"]
    steps = rate * fig2["steps"]
    fixed_confusion = steps.sel(design="confusion fixed") * fig2["relevant_fraction"]
    fixed_background = steps.sel(design="background fixed") * (2 * fig2["relevant_fraction"] - 0.5)
    return replace(
        MEASURED,
        samples_at_040=trained.constant.value,
        samples_exponent=trained.exponent.value,
        frozen_samples_at_040=frozen.constant.value,
        frozen_exponent=frozen.exponent.value,
        samples_constant=float(slope**-2),
        c_noise=float(-offset / slope / setting(settings(fig1a)).disorder),
        steps_constant=float(fixed_confusion.mean()),
        steps_margin_constant=float(fixed_background.mean()),
    )


def main() -> None:
    figures = [study("shallow-vit").figure(id).run("quick", workers=2) for id in ("fig1a", "fig2", "fig3")]
    for name, value in vars(measure(*figures)).items():
        print(f"    {name}={value!r}," if isinstance(value, str) else f"    {name}={value:.3g},")


if __name__ == "__main__":
    main()
