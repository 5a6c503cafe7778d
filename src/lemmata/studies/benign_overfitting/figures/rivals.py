"""Against a convolutional network with ReLU^3 filters: N SNR^2 against N SNR^3 (Section 4, comparison)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.draw.palette import BLACK, RED
from lemmata.draw.phase import Line, phase_diagram
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, about, made, ours, theorem
from lemmata.scale import Scale, by_scale
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.data import Data
from lemmata.studies.benign_overfitting.figures.common import (
    CONTROL,
    conditioned,
    cut_exponent,
    derived,
    labels,
    loss_beyond,
    seeds,
)
from lemmata.studies.benign_overfitting.network import Filters, Network
from lemmata.studies.benign_overfitting.theory import conditions
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.studies.benign_overfitting.trials.convolution import Convolution
from lemmata.sweep import Axis, Sweep, axis, geometric
from lemmata.trial import put, put_all

# What is run -----------------------------------------------------------------------------------------------------------

DATA = Data(1.0, 2000**-0.5, noise_ratio=1.0, samples=16, tokens=2, dim=2000, orthogonal_noise=True)
"""One signal and one noise token, sigma_p^2 d = 1: the data of the convolutional theory, where SNR is the signal norm."""

RIVALS = {
    "transformer": BenignOverfitting(
        data=DATA, network=Network(init="gaussian", value_dim=1), descent=Descent(logs=30)
    ),
    "convolution": Convolution(
        data=DATA, network=Filters(std=0.05), descent=Descent(learning_rate=2.0, logs=30)
    ),
}


def learned(trial: BenignOverfitting | Convolution) -> Callable[[Scale], Sweep]:
    def at_snr(trial: Any, snr: float) -> Any:
        trial = put(trial, "data.signal_norm", snr)
        return conditioned(trial) if isinstance(trial, BenignOverfitting) else trial

    def sweep(scale: Scale) -> Sweep:
        few = put_all(trial, {"data.dim": 200, "data.weak_noise": 200**-0.5, "test_points": 20})
        samples = by_scale(scale, (4, 8), (8, 16, 32, 64, 128), (8, 16, 32, 64, 128, 256))
        grid = by_scale(scale, (0.1, 1.2), geometric(0.06, 1.2, 14), geometric(0.03, 2, 30))
        snrs = Axis("snr", grid, at_snr)
        return Sweep(
            few if scale == "smoke" else trial, (axis("data.samples", samples), snrs), seeds(scale, 2, 4, 10)
        )

    return sweep


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Test loss over SNR and N on logarithmic axes, with the slopes of both theories."""
    figure, axes = canvas(width=5.6, height=4.0)
    boundaries = [
        Line(f"{CONTROL} = 2", theory.boundary(2.0), BLACK, ":"),
        Line(r"$N\,\mathrm{SNR}^3$ = 2", lambda n: (2.0 / np.asarray(n, float)) ** (1 / 3), RED, "--"),
    ]
    mesh = phase_diagram(axes, results.test_loss.mean("seed"), "snr", "samples", boundaries, True, True)
    figure.colorbar(mesh, ax=axes, label="test loss")
    panel(axes, "SNR", "samples N")
    return figure, "One signal and one noise token; mean over seeds."


def losing(power: float):
    """A test loss that passes log(2)/2 at an SNR that goes as a power of N."""
    return made(test_loss=loss_beyond(lambda t: (t.data.samples / 2) ** power))


rival_transformer = Figure(
    "rival-transformer", "Samples needed against SNR, below SNR 1",
    "One signal and one noise token, d = 2000, start as in Condition (8).", learned(RIVALS["transformer"]), draw,
    labels=labels, derived=derived,
    claims=[
        Claim(
            "rival-exponent", "When SNR is below 1 the transformer needs fewer samples than a ReLU^q network: N SNR^2 decides, "
            "not N SNR^q (q = 3). The SNR at which the test loss passes 0.2 falls as N^-1/2",
            theorem("Theorems 4.1 and 4.2; Section 4, comparison"), headline=True,
            number=cut_exponent,
            holds=about(-0.5, -0.6, -0.4, because="half way to the rival's -1/3 is -0.417",
                        rivals={"ReLU^3 convolutional network (Cao et al. 2022)": -1 / 3}),
            conditions=conditions, refuted_by=losing(-1 / 3), upheld_by=losing(-0.5),
        ),
    ],
)  # fmt: skip

rival_convolution = Figure(
    "rival-convolution", "The same for a convolutional network with ReLU^3 filters",
    "The same data; ten filters a class, q = 3, initial scale 0.05, step 2.", learned(RIVALS["convolution"]), draw,
    labels=labels, derived=derived,
    claims=[
        Claim(
            "rival-network", "A ReLU^q convolutional network on the same data generalises from N SNR^q = const on (q = 3). The "
            "SNR at which the test loss passes 0.2 falls as N^-1/3", ours("Section 4, comparison; Cao et al. 2022"),
            number=cut_exponent,
            holds=about(-1 / 3, -0.4, -0.26, because="half way to the transformer's -1/2 is -0.417",
                        rivals={"transformer": -0.5}),
            refuted_by=losing(-0.5), upheld_by=losing(-1 / 3),
        ),
    ],
)  # fmt: skip
