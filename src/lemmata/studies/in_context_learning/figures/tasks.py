"""Figure E.2: how many training tasks suffice."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import MEAN, lines, reference
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, at_most, every_run, experiment, made, theorem
from lemmata.measure.simple import mean
from lemmata.scale import Scale, by_scale
from lemmata.studies.in_context_learning.figures.common import LAYER, UNSAID, at_end, labels, seeds, timed
from lemmata.studies.in_context_learning.theory import in_domain
from lemmata.studies.in_context_learning.trials import Layer
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all


def with_patterns(trial: Layer, m: int) -> Layer:
    return put_all(trial, {"data.relevant": m, "data.feature_dim": m + trial.data.irrelevant})


def with_tasks(trial: Layer, ratio: float) -> Layer:
    return put_all(trial, {"data.task_count": round(ratio * trial.data.relevant)})


def sweep(scale: Scale) -> Sweep:
    trial = put_all(timed(scale, 600, 200), {"data.relevant_fraction": 0.6, "test.tasks": "all"})
    patterns = Axis("patterns", by_scale(scale, (6,), (4, 6, 8), (4, 6, 8, 10)), with_patterns)
    ratios = by_scale(scale, (0.5, 1.0), (0.5, 0.75, 1.0, 1.5), (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0))
    return Sweep(trial, (patterns, Axis("tasks_per_pattern", ratios, with_tasks)), seeds(scale, 4))


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Error and hinge loss on all tasks over the number of training tasks."""
    figure, axes = canvas(2)
    for one, variable in zip(axes, ("error", "hinge"), strict=True):
        values = at_end(results, variable)
        lines(one, values, "tasks_per_pattern", "patterns", "M_1 = {:g}", style="o-", centre="mean")
        reference(one, x=1.0, label="|T_tr| = M_1")
        panel(one, "training tasks over M_1", f"{variable} on all tasks")
    return figure, f"Up to M_1 tasks are drawn from the cyclic set, more contain it. {MEAN}"


def error(enough: float, fewer: float):
    """An error with M_1 tasks and more, and one with fewer."""
    return made(error=lambda t: np.where(t.data.task_count >= t.data.relevant, enough, fewer))


tasks = Figure(
    "figE-2", "Error against the number of training tasks", LAYER + " alpha = alpha' = 0.6, M_2 = 24, tested on all tasks.",
    sweep, draw, labels=labels, upheld_by=error(0.01, 0.12),
    claims=[
        Claim(
            "tasks-suffice", "With M_1 or more training tasks that cover every pattern and label, the error on all tasks is about 0",
            theorem("Theorem 6.3.3, Figure E.2"), headline=True,
            number=lambda r: at_end(r, "error"), holds=every_run(at_most(0.02, because="about 0: one in fifty")),
            cells=lambda r: r.tasks_per_pattern >= 1, conditions=in_domain,
            refuted_by=error(0.05, 0.12),
        ),
        Claim(
            "tasks-needed", "With M_1/2 or fewer training tasks the error on all tasks is significant: above 0.05",
            experiment("Figure E.2", proxy=UNSAID),
            number=lambda r: mean(at_end(r, "error")), holds=at_least(0.05, because="one in twenty"),
            cells=lambda r: r.tasks_per_pattern <= 0.5,
            refuted_by=error(0.01, 0.02),
        ),
    ],
)  # fmt: skip
