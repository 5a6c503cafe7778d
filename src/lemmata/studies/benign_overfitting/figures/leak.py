"""Attention left on the losing tokens at the end, against the key dimension."""

import xarray as xr

from lemmata.draw.curves import DOTS, lines, slope
from lemmata.draw.palette import GREY
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_most, made, proof
from lemmata.measure.columns import chosen
from lemmata.measure.exponent import exponent
from lemmata.scale import Scale, by_scale
from lemmata.studies.benign_overfitting.figures.asymptotics import CRITICAL
from lemmata.studies.benign_overfitting.figures.common import (
    IN_LAW,
    asymptotic,
    at_control,
    conditioned,
    derived,
    labels,
    paying,
    seeds,
)
from lemmata.studies.benign_overfitting.theory import benign_conditions
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put


def sweep(scale: Scale) -> Sweep:
    trial = at_control(asymptotic(), 2 * CRITICAL)
    dims = by_scale(
        scale,
        (10**8, 10**10),
        tuple(10**k for k in (6, 8, 10, 12)),
        tuple(int(10 ** (k / 2)) for k in range(12, 27)),
    )
    at = Axis("key_dim", dims, lambda t, key_dim: conditioned(put(t, "network.key_dim", key_dim)))
    return Sweep(trial, (at,), seeds(scale, 2, 5, 20))


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Attention off the signal at the end, against the key dimension."""
    figure, axes = canvas(width=5.2)
    off = 1 - results.attention.sel(key="signal")
    drawn = lines(axes, off, "key_dim", "query", "{} query", style="o-")
    slope(axes, drawn[0], -0.5, r"slope $-1/2$ (Eqs 64, 65)", colour=GREY)
    panel(axes, r"key dimension $d_h$", "attention off the signal at the end", log="xy")
    return figure, f"Benign regime, reduced variables drawn in law. {DOTS}"


def falls(id: str, statement: str, where: str, query: str) -> Claim:
    """Attention off the signal falls at least as d_h^-1/2."""
    return Claim(
        id, statement, proof(where),
        number=lambda r: exponent(1 - chosen(r.attention, query=query, key="signal"), "key_dim"),
        holds=at_most(-0.4, because="logarithms are hidden in the order"), conditions=benign_conditions,
        refuted_by=leaking(-0.2),
    )  # fmt: skip


def leaking(power: float):
    """Attention off the signal that goes as a power of d_h."""
    return made(attention=paying(lambda t: 1 - 0.1 * (t.network.key_dim / 1e6) ** power, "signal"), noise=0.0)


attention_leak = Figure(
    "attention-leak", "Attention left on the losing tokens against the key dimension", f"{IN_LAW} and below, N SNR^2 = 4 C_p^2.",
    sweep, draw, labels=labels, derived=derived, upheld_by=leaking(-0.5),
    claims=[
        falls(
            "leak-signal", "Attention of the signal query on noise is O(N LOG^3 / d_h^1/2): it falls as d_h^-1/2", "(64)",
            "signal",
        ),
        falls(
            "leak-noise", "Attention of the strong-noise query on noise is O(N SNR^2 LOG^3 / d_h^1/2): it falls as d_h^-1/2",
            "(65)", "strong",
        ),
    ],
)  # fmt: skip
