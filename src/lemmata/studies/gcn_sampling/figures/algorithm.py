"""Algorithm 2 in full beside the practical setting; and both ways to compute a step."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, line, lines, reference, rows
from lemmata.draw.palette import BLUE, GREY
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_most, every_run, identity, made, ours, proof
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.trend import difference
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.data import DegreeGroups
from lemmata.studies.gcn_sampling.figures.common import CONSTANT, FIFTIETH, RAW, seeds, sized, with_degree
from lemmata.studies.gcn_sampling.trials import Training
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all

MODES = ("practical", "full")


def algorithm_sweep(scale: Scale) -> Sweep:
    trial = with_degree(sized(scale), by_scale(scale, 4, 5, 10))
    return Sweep(trial, (axis("mode", by_scale(scale, ("full",), MODES, MODES)),), seeds(scale, 8))


def agreement_sweep(scale: Scale) -> Sweep:
    graph = DegreeGroups(degrees=(6, 2), sizes=(10, 50), features=4, target_width=4)
    steps = by_scale(scale, 20, 60, 200)
    trial = Training(graph=graph, labels=40, dropout=0.0, precision="float64", budget=steps, rates=(0.6, 0.8))
    trial = put_all(trial, {"width": 12, "descent.steps": steps, "descent.learning_rate": 0.01})
    return Sweep(trial, (axis("engine", ("field", "whole")),), seeds(scale, 3, 5))


@picture
def draw_algorithm(results: xr.Dataset) -> Drawn:
    """Algorithm 2 beside the practical setting."""
    figure, axes = canvas(height=2.6)
    trained = results["train_error"] / results["label_moment"]
    rows(axes, results["normalised_error"], "mode", BLUE, "test", -0.1, bar=np.mean)
    rows(axes, trained, "mode", GREY, "labelled nodes", 0.1, bar=np.mean)
    panel(axes, "error / mean of y²", "", "", "")
    return figure, "Bars: mean over seeds, dots: seeds."


@picture
def draw_agreement(results: xr.Dataset) -> Drawn:
    """Both engines, and their difference."""
    figure, panels = canvas(2)
    curves = results["error_curve"]
    lines(panels[0], curves, "step", "engine", "{}")
    gap = abs(curves.sel(engine="field") - curves.sel(engine="whole")) + 1e-18
    line(panels[1], gap, "step", BLUE, "difference")
    reference(panels[1], y=1e-12, label="1e-12")
    panel(panels[0], "step", RAW, "", "")
    panel(panels[1], "step", "difference of the errors", "", "y")
    return figure, f"In float64. {BAND}"


def practical_excess(r: xr.Dataset) -> Estimate:
    """By how much the practical setting predicts worse than Algorithm 2 in full."""
    error = r.normalised_error
    return difference(chosen(error, mode="practical"), chosen(error, mode="full"))


def in_full(r: xr.Dataset) -> xr.DataArray:
    return r.mode == "full"


def practical_worse(by: float):
    return made(noise=0.001, normalised_error=lambda t: 0.5 + by * (t.mode == "practical"))


def end_norm(id: str, statement: str, where: str, record: str, layer: int, law) -> Claim:
    """That what a layer has learnt has at the end at most the norm of the proof; `law(trial)` is that norm."""

    def number(r: xr.Dataset) -> xr.DataArray:
        ends = over_cells(
            r, lambda t: theory.end_bounds(t.width, t.algorithm.accuracy, t.algorithm.size)[layer - 1]
        )
        return r[record] / ends

    return Claim(
        id, statement, proof(where),
        number=number, holds=every_run(at_most(1.0, because="the bound is printed without a constant")), cells=in_full,
        refuted_by=made({record: lambda t: 2 * law(t)}), upheld_by=made({record: lambda t: 0.5 * law(t)}),
    )  # fmt: skip


def outputs_of(share: float):
    """Outputs of this share of the bound with C_0 = 30."""
    return made(norm=lambda t: 1.0, largest_output=lambda t: share * 31)


algorithm = Figure(
    "algorithm", "Algorithm 2 in full beside the practical setting",
    "Table 5.1 with eps_0 = 0.01 and C_0 = 30, rounds of 100 steps.",
    algorithm_sweep, draw_algorithm,
    claims=[
        Claim(
            "practical-enough", "Without the noise, random signs, decay and regularisers of Algorithm 2, training predicts as well, "
            "within 0.02 of the labels' second moment", proof("Section 5.3.3, footnote 25"),
            number=practical_excess, holds=at_most(0.02, because=FIFTIETH),
            refuted_by=practical_worse(0.04), upheld_by=practical_worse(0.01),
        ),
        end_norm("end-norm-w", "Algorithm 2 ends with |W_T|_{2,4} at most eps_0^(1/4) tau'_w", "(D.126)", "learnt_w", 1,
                 lambda t: 30 * t.width**-0.745),
        end_norm("end-norm-v", "Algorithm 2 ends with |V_T|_F at most eps_0^(1/2) tau'_v", "(D.127)", "learnt_v", 2,
                 lambda t: t.width**-0.005),
        Claim(
            "output-size", "The outputs of Algorithm 2 are at most |A*|^2 (eps_c + C_0)", proof("(D.132)"),
            number=lambda r: r.largest_output / theory.output_bound(r.norm, over_cells(r, lambda t: t.algorithm.size)),
            holds=every_run(at_most(1.0, because=CONSTANT)), cells=in_full,
            refuted_by=outputs_of(2.0), upheld_by=outputs_of(0.5),
        ),
    ],
)  # fmt: skip


def disagreement(r: xr.Dataset) -> xr.DataArray:
    """The largest difference of the two engines along the test error, in parts of it."""
    field, whole = (chosen(r.error_curve, engine=name) for name in ("field", "whole"))
    return abs(field / whole - 1).max("step").expand_dims(engine=r.engine)


def engines_apart(by: float):
    return made(noise=0.0, error_curve=lambda t, step: (1 + by * (t.engine == "field")) / (1 + step / 100))


agreement = Figure(
    "agreement", "Training in the receptive field and on the whole graph", "A small graph in float64, without dropout.",
    agreement_sweep, draw_agreement,
    claims=[
        Claim(
            "two-ways", "Training in the receptive field of the batch is training on the whole graph", ours("README, two ways"),
            number=disagreement, holds=identity(1e-9, because="rounding over the steps of a run"),
            refuted_by=engines_apart(3e-9), upheld_by=engines_apart(5e-10),
        ),
    ],
)  # fmt: skip
