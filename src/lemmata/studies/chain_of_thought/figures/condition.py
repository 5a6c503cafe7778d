"""Figure 7.5: chain of thought succeeds where in-context learning fails, because Condition 7.3.2 is missed in half of the rows."""

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, about, at_least, at_most, every_run, made, ours, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.simple import mean
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.figures.common import LENGTH_LABEL, labels, scaled, seeds, template
from lemmata.studies.chain_of_thought.theory import cot_conditions, icl_conditions
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all


def sweep(scale: Scale) -> Sweep:
    """tau_o = 0.4 and rho_o = 0.1 with Condition 7.3.2 met, and missed in half of the rows."""
    lengths = by_scale(scale, (5, 40), (5, 20, 80, 320, 1280), (5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560))
    trial = put_all(
        scaled(template(), scale),
        {"test.lengths": lengths, "test.prompts": by_scale(scale, 100, 400, 2000)},
    )
    return Sweep(trial, (axis("test.errors", ("pairs-hold", "pairs-fail")),), seeds(scale, 4, 10))


def both(case: str, title: str) -> Panel:
    """Both errors over the length, in one of the two cases."""
    return Panel(
        {"chain of thought": lambda r: chosen(r, errors=case).cot_error, "in-context learning": lambda r: chosen(r, errors=case).icl_error},
        "length", LENGTH_LABEL, "test error", title,
        at={"in-context limit": lambda r: over_cells(chosen(r, errors=case), lambda t: 1 - theory.test_quality(t).right_rows)},
    )  # fmt: skip


def shrinks(r, variable: str):
    """The error at the longest prompt over that at the shortest."""
    return mean(r[variable].isel(length=-1) / r[variable].isel(length=0))


def condition_holds(r):
    return r.errors == "pairs-hold"


def condition_fails(r):
    return r.errors == "pairs-fail"


HALVED = at_most(0.5, because="half, from 5 to 1280 examples")

gap = Figure(
    "fig7-5", "Chain of thought against in-context learning, with and without Condition 7.3.2",
    "Ten patterns in pairs; tau_o = 0.4, rho_o = 0.1.",
    sweep,
    panels(both("pairs-hold", "Condition 7.3.2 holds"), both("pairs-fail", "it fails in half of the rows"), sharey=True,
           caption="Transitions with τ_o = 0.4 and ρ_o = 0.1."),
    labels=labels,
    upheld_by=made(
        cot_error=lambda t, length: 0.8 * length**-0.3, last_step_error=lambda t, length: 0.8 * length**-0.3,
        icl_error=lambda t, length: 0.8 * length**-0.3 if t.test.errors == "pairs-hold" else 0.5,
    ),
    claims=[
        Claim(
            "icl-fails", "Where Condition 7.3.2 fails, the in-context error is at least of order one whatever the length",
            theorem("Theorem 5 (a)"), headline=True,
            number=lambda r: r.icl_error.min("length"),
            holds=every_run(at_least(0.25, because="half of the limit 1/2")),
            cells=condition_fails, conditions=icl_conditions,
            refuted_by=made(icl_error=lambda t, length: 0.1),
        ),
        Claim(
            "icl-limit", "Where Condition 7.3.2 fails, the in-context error tends to the share of rows whose likeliest label is "
            "wrong, here 1/2", ours("after Theorem 5"),
            number=lambda r: mean(r.icl_error.isel(length=-1)),
            holds=about(0.5, 0.4, 0.6, because="a tenth: 1280 examples leave some of the rows undecided at rho_o = 0.1"),
            cells=condition_fails, conditions=icl_conditions,
            refuted_by=made(icl_error=lambda t, length: 0.02),
        ),
        Claim(
            "icl-succeeds", "Where Condition 7.3.2 holds, the in-context error falls with the length",
            theorem("Theorem 5 (b), Figure 7.5"), headline=True,
            number=lambda r: shrinks(r, "icl_error"), holds=HALVED, cells=condition_holds, conditions=icl_conditions,
            refuted_by=made(icl_error=lambda t, length: 0.4),
        ),
        Claim(
            "cot-where-icl-fails", "Where in-context learning fails, the chain of thought still succeeds",
            theorem("Theorems 4 and 5, Figure 7.5"), headline=True,
            number=lambda r: shrinks(r, "cot_error"), holds=HALVED, cells=condition_fails, conditions=cot_conditions,
            refuted_by=made(cot_error=lambda t, length: 0.4),
        ),
        Claim(
            "last-step-where-icl-fails", "The chain of thought still succeeds there when only its last step is judged",
            theorem("Remark 5, footnote 32"),
            number=lambda r: shrinks(r, "last_step_error"), holds=HALVED, cells=condition_fails, conditions=cot_conditions,
            refuted_by=made(last_step_error=lambda t, length: 0.4),
        ),
    ],
)  # fmt: skip
