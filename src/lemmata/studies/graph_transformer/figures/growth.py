"""Lemmas B.3.1 to B.3.3: how fast lucky neurons, the bias and the keys grow."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, law, line
from lemmata.draw.palette import BLUE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, at_least, every_run, made, proof
from lemmata.measure.estimate import Estimate
from lemmata.measure.times import at_step, first_value, last_value, time_exponent
from lemmata.results import over_cells, settings
from lemmata.studies.graph_transformer import theory
from lemmata.studies.graph_transformer.figures.common import LIKE, SMALL, labels, swept
from lemmata.studies.graph_transformer.figures.neurons import discriminative, own
from lemmata.studies.graph_transformer.figures.positions import beyond
from lemmata.studies.graph_transformer.theory import transformer_conditions

# What is measured ------------------------------------------------------------------------------------------------------

EARLY = 40.0
"""A step at which attention has hardly moved yet, and b is clear of the noise of single batches."""


def bias_start(r: xr.Dataset) -> xr.DataArray:
    """The cosine between b at step 40 and the average margin over the distances, both less their means, run by run."""
    return xr.corr(beyond(r, at_step(r.bias_curve, EARLY)), beyond(r, r.margin), "bucket")


def growing(r: xr.Dataset) -> xr.DataArray:
    """Steps at which there is still something to learn, the first ten left out, where single batches decide."""
    return (r.test_hinge_curve > SMALL) & (r.step >= 10)


def lucky_exponent(r: xr.Dataset) -> Estimate:
    """The exponent in time of what lucky neurons have gained along their own feature, up to a test loss of 0.05."""
    height = own(r.along_curve).mean("label")
    return time_exponent((height - first_value(height)).where(growing(r)))


def at_core(r: xr.Dataset) -> xr.DataArray:
    """b at the core distance along training."""
    return r.bias_curve.where(r.bucket == r.core).max("bucket")


def key_size(r: xr.Dataset) -> xr.DataArray:
    """The length of the discriminative keys at the end, the smaller of both, over the least that (B.45) gives (constant 1)."""
    least = over_cells(r, lambda t: theory.key_size_range(t.steps, t.network.query_key_error)[0])
    return discriminative(last_value(r.key_norm_curve)) / least


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw_growth(results: xr.Dataset) -> Drawn:
    """What lucky neurons gain, b at the core distance and the discriminative keys, in log-log over the steps."""
    figure, panels = canvas(3, width=4.3)
    there, later = settings(results), {"step": slice(1, None)}
    height = results.along_curve.isel(sign=0, pattern=0)
    gained, core = (height - height.isel(step=0)).isel(later), at_core(results).isel(later)
    seen = line(panels[0], gained.where(gained > 0), "step", BLUE, "measured")
    paid = float(results.attention_curve.isel(step=0).mean())
    xi, rate, flipped = (
        there[name] for name in ("network.hidden_std", "descent.learning_rate", "data.flipped")
    )
    printed = theory.lucky_growth_printed(seen.x, xi, rate, flipped, paid) - xi
    law(panels[0], seen.x, printed, "(B.9): $t^2$, fitted", RED, through=seen.middle)
    seen = line(panels[1], core.where(core > 0), "step", BLUE, "measured")
    law(panels[1], seen.x, seen.x**6.0, "(B.25): $t^6$, fitted", RED, through=seen.middle)
    line(panels[2], discriminative(results.key_norm_curve), "step", BLUE, "measured")
    steps = results.step.values[2:]
    least = [theory.key_size_range(step, there["network.query_key_error"])[0] for step in steps]
    panels[2].plot(steps, least, "--", color=RED, label="(B.45), constant 1")
    panel(panels[0], "step", "gained along $p_1$", "lucky neurons", "xy")
    panel(panels[1], "step", "$b$ at the core distance", "positions", "xy", ylim=(1e-5, 10))
    panel(panels[2], "step", "length", "discriminative keys", "x")
    return figure, BAND


# What it can refute ----------------------------------------------------------------------------------------------------


def powers(lucky: float, bias: float) -> Made:
    """Powers of time: what lucky neurons gain, and b at the core distance 1; there is something to learn all the time."""
    return made(
        test_hinge_curve=lambda t, step: 1.0, core=lambda t: 1, noise=0.0,
        along_curve=lambda t, step, rng: 0.01 + 1e-6 * rng.lognormal(0, 0.01) * step**lucky,
        bias_curve=lambda t, step, bucket, rng: (bucket == 1) * rng.lognormal(0, 0.01) * (step / 600.0) ** bias,
    )  # fmt: skip


def begun(follow: float, fall: float) -> Made:
    """b grows in proportion to the margin, whose core is at distance 2, or falls with the distance."""
    return made(
        largest=lambda t: 10, margin=lambda t, bucket: 3 - abs(bucket - 2),
        bias_curve=lambda t, step, bucket: step * (follow * (3 - abs(bucket - 2)) - fall * bucket),
    )  # fmt: skip


def long_keys(share: float) -> Made:
    """Keys as long as this share of sqrt(log(T (1 - delta)))."""
    return made(
        key_norm_curve=lambda t, step: share * np.sqrt(np.log(t.steps * (1 - t.network.query_key_error)))
    )


growth = Figure(
    "growth", "Lucky neurons, b and keys over time, against the powers of the "
    "lemmas", f"{LIKE} Sets of 60 from the whole graph.",
    swept(
        {"probes": "neurons", "sampler": "graph", "descent.steps": 600, "descent.logs": 61, "descent.spacing": "log"}
    ),
    draw_growth, labels=labels,
    claims=[
        Claim(
            "bias-start", "While attention is uniform b moves along the average winning margin, less its mean over the "
            "distances", proof("Lemma B.3.3, (B.184), (B.193)"),
            number=bias_start,
            holds=every_run(at_least(
                0.9, because="noise of some hundred sampled sets; another order of clear margins stays below it"
            )),
            conditions=transformer_conditions,
            refuted_by=begun(follow=0.0, fall=1.0), upheld_by=begun(follow=1.0, fall=0.0),
        ),
        Claim(
            "lucky-growth", "Along the feature of their label lucky neurons grow at least as t^2 while there is something to "
            "learn", proof("Lemma B.3.1, (B.9)"),
            number=lucky_exponent,
            holds=at_least(1.8, because="a tenth for the linear start, which (B.91) has and (B.9) has not"),
            conditions=transformer_conditions,
            refuted_by=powers(lucky=1.2, bias=5.0), upheld_by=powers(lucky=2.0, bias=6.0),
        ),
        Claim(
            "bias-growth", "b at the core distance grows at least as t^6 while there is something to learn",
            proof("Lemma B.3.3, (B.25)"),
            number=lambda r: time_exponent(at_core(r).where(growing(r))),
            holds=at_least(5.4, because="a tenth, as for the neurons"), conditions=transformer_conditions,
            refuted_by=powers(lucky=1.2, bias=5.0), upheld_by=powers(lucky=2.0, bias=6.0),
        ),
        Claim(
            "key-size", "Discriminative keys grow to at least sqrt(log(T (1 - delta))), up to a factor of three",
            proof("Lemma B.3.2, (B.45)"),
            number=key_size, holds=every_run(at_least(1 / 3, because="a factor of three for the hidden constant")),
            conditions=transformer_conditions,
            refuted_by=long_keys(0.2), upheld_by=long_keys(0.6),
        ),
    ],
)  # fmt: skip
