"""Four simulators of the same training: three exact ones and the leading order."""

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.draw.curves import law, line, reference
from lemmata.draw.palette import BLACK, BLUE, GREY, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, identity, made, nothing_asked, proof
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, needs
from lemmata.scale import Scale
from lemmata.studies.benign_overfitting.data import Data
from lemmata.studies.benign_overfitting.figures.common import derived, labels, seeds
from lemmata.studies.benign_overfitting.network import Network
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    trial = BenignOverfitting(
        data=Data(signal_norm=12.0, weak_noise=0.2, noise_ratio=10.0, samples=6, tokens=4, dim=128),
        network=Network(key_dim=64, value_dim=16, init_divisor=4.0, readout_divisor=4.0),
        descent=Descent(steps=400, target_loss=1e-3, logs=40),
        precision="float64",
        test_points=20,
    )
    simulators = axis("simulator", ("direct", "row", "gram", "leading-order"))
    noises = axis("data.orthogonal_noise", (True,) if scale == "smoke" else (True, False))
    return Sweep(trial, (simulators, noises), seeds(scale, 1, 3, 10))


def exact_reductions(r: xr.Dataset) -> Estimate:
    """The largest relative distance from the direct simulator, over all recorded losses of the exact reduced forms."""
    direct, worst = chosen(r, simulator="direct"), []
    for name in ("row", "gram"):
        other = chosen(r, simulator=name)
        pairs = [(other.train_loss_curve, direct.train_loss_curve), (other.test_loss, direct.test_loss)]
        worst += [float(np.abs(a / b - 1).max()) for a, b in pairs]
    needs(np.isfinite(worst).all(), "some run of the exact simulators is missing.")
    largest = max(worst)
    return Estimate(largest, largest, largest, r.sizes["seed"], note="The largest over all draws and steps.")


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The four simulators' losses on the same draw, and how far each is from the weights' own."""
    figure, (left, right) = canvas(2)
    loss = results.train_loss_curve
    direct = loss.sel(simulator="direct", drop=True)
    looks = {
        "direct": (GREY, "-", 4.0),
        "row": (BLUE, "-", 2.2),
        "gram": (ORANGE, "--", 1.4),
        "leading-order": (RED, ":", 1.6),
    }
    for name, (colour, style, width) in looks.items():
        one = loss.sel(simulator=name)
        line(left, one.isel(seed=0, orthogonal_noise=0), "step", colour, name, style, linewidth=width)
        if name != "direct":
            worst = np.maximum(abs(one / direct - 1).max(("seed", "orthogonal_noise")), 1e-17)
            law(right, worst.step, worst, name, colour, style)
    reference(right, y=1e-9, label="1e-9", colour=BLACK, style="-")
    panel(left, "iteration", "training loss", "one draw, four simulators", "xy")
    panel(right, "iteration", "relative distance from direct", "worst over all draws", "xy")
    return figure, "The exact forms agree to rounding; the leading order does not."


def drifting(error: float):
    """The Gram form drifts from the weights by this share."""

    def off(t: BenignOverfitting) -> float:
        return 1 + error * (t.simulator == "gram")

    return made(
        train_loss_curve=lambda t, step: off(t) * np.linspace(0.7, 0.1, len(step)),
        test_loss=lambda t: 0.2 * off(t),
        noise=0.0,
    )


agreement = Figure(
    "agreement", "Four simulators of the same training", "A small instance in float64, with and without projection.", sweep,
    draw, labels=labels, derived=derived,
    claims=[
        Claim(
            "exact-reductions", "Vectorised Q and K with scalarised V (row form), and their inner products (Gram form), give "
            "the weights' own trajectory", proof("Lemmas 5.1, B.2, B.3"),
            number=exact_reductions,
            holds=identity(1e-9, because="rounding in float64, grown over hundreds of steps"), conditions=nothing_asked,
            uses=("capped",), refuted_by=drifting(3e-9), upheld_by=drifting(4e-10),
        ),
    ],
)  # fmt: skip
