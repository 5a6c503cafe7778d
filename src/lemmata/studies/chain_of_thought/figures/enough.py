"""Theorem 4 where all of its conditions hold: how many examples make the chain of thought err in less than 1 % of the steps.

With the constant 1 the error is not zero: a search finds 3 % (two likely labels leave Phi(-sqrt(log M))). So the constant is 2.5.
"""

from math import ceil

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, at_most, every_run, made, theorem
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.figures.common import COT_LABEL, ZERO_WHY, labels, seeds, template
from lemmata.studies.chain_of_thought.trials import Reasoning
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

CONSTANT = 2.5


def with_examples(trial: Reasoning, match_fraction: float) -> Reasoning:
    """Test with this share of matching examples: prompts of as many examples as (7.20) asks for, and `CONSTANT` times as many."""
    trial = put_all(trial, {"test.match_fraction": match_fraction})
    q = theory.test_quality(trial)
    asked = theory.cot_examples(match_fraction, q.trajectory, q.primacy, trial.data.patterns)
    lengths = (ceil(round(asked, 9)), ceil(round(CONSTANT * asked, 9)))
    return put_all(trial, {"test.lengths": lengths})


def sweep(scale: Scale) -> Sweep:
    """K = 2, M = 40, B = 160, eta = 0.9: all conditions hold with the loss eps that the batch allows."""
    trial = put_all(
        template(),
        {
            "simulator": "classes", "data.steps": 2, "data.patterns": 40, "data.dim": 50, "data.match_fraction": 0.8,
            "descent.batch": 160, "descent.learning_rate": 0.9, "descent.steps": 2000, "descent.logs": 40, "watched": 80,
            "test.errors": "single", "test.trajectory": 0.624, "test.primacy": 0.3,
            "test.prompts": by_scale(scale, 200, 1000, 4000),
        },
    )  # fmt: skip
    shares = by_scale(scale, (1.0,), (0.6, 0.8, 1.0), (0.4, 0.6, 0.8, 1.0))
    return Sweep(trial, (Axis("match_fraction", shares, with_examples),), seeds(scale, 10))


def last(results):
    """The error at the longest prompt of each cell."""
    return results.cot_error.isel(length=-1)


enough = Figure(
    "enough-examples", "Chain of thought with as many examples as Theorem 4 asks for, and 2.5 times as many",
    "All errors in the first step, tau = 0.624, so that two labels are likely. The loss eps is the smallest that the batch allows.",
    sweep,
    panels(Panel(lambda r: r.cot_error, "match_fraction", "α', the share of matching examples", COT_LABEL, arms="length",
                 names="constant {}"),
           caption="Test error with (α'τρ)⁻² log M examples times a constant."),
    [
        Claim(
            "cot-to-zero", "With 2.5 (alpha' tau rho)^-2 log M examples the chain-of-thought error is zero",
            theorem("Theorem 4, (7.20)"), headline=True,
            number=last, holds=every_run(at_most(0.01, because=ZERO_WHY)),
            conditions=theory.cot_conditions_by_batch,
            refuted_by=made(cot_error=lambda t, length: 0.02), upheld_by=made(cot_error=lambda t, length: 0.005),
        ),
    ],
    labels=lambda trial: {**labels(trial), "length": (1.0, CONSTANT)},
    space={"match_fraction": (0.3, 1.0), "test.trajectory": (0.15, 0.95), "test.primacy": (0.1, 0.95), "test.errors": ("even", "single")},
)  # fmt: skip
