"""The document's figures of one layer, and the experiments that its theorems ask for."""

import xarray as xr

from lemmata.results import trials
from lemmata.studies.chain_of_thought import pictures
from lemmata.studies.chain_of_thought.trials import MASSES, Reasoning, Testing
from lemmata.study import Figure, Scale, by_scale
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all

LENGTHS = (1, 2, 3, 5, 8, 12, 20, 30, 40)


def template() -> Reasoning:
    """Section 7.4: d_X = 30, M = 20, M' = 10, K = 3, alpha = 0.4, alpha' = 0.8, tau = 0.5, rho = 0.8."""
    return Reasoning(test=Testing(lengths=LENGTHS))


def small(trial: Reasoning) -> Reasoning:
    """A trial shrunk for tests."""
    return put_all(
        trial,
        {
            "data.dim": 16, "data.patterns": 11, "data.examples": 10, "descent.steps": 200, "descent.batch": 33,
            "watched": 66, "test.prompts": 200, "test.lengths": (2, 8, 20), "descent.logs": 12,
        },
    )  # fmt: skip


def complete(results: xr.Dataset) -> xr.Dataset:
    """Names of attention masses, lengths of test prompts and reasoning steps."""
    one = trials(results)[0]
    assert isinstance(one, Reasoning)
    deepest = results.sizes.get("reasoning_step", 0)
    labels = {
        "mass": list(MASSES),
        "length": list(one.test.lengths),
        "reasoning_step": list(range(1, deepest + 1)),
    }
    return results.assign_coords({dim: names for dim, names in labels.items() if dim in results.dims})


def _scaled(trial: Reasoning, scale: Scale) -> Reasoning:
    return small(trial) if scale == "smoke" else trial


def _seeds(scale: Scale, quick: int = 5, paper: int = 20) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def _against(path: str, values: tuple[float, ...], errors: str):
    def sweep(scale: Scale) -> Sweep:
        chosen = values[:: len(values) - 1] if scale == "smoke" else values
        trial = put_all(template(), {"test.errors": errors})
        return Sweep(_scaled(trial, scale), (axis(f"test.{path}", chosen),), _seeds(scale))

    return sweep


_match = _against("match_fraction", (0.2, 0.3, 0.4, 0.6, 0.8), "even")
_trajectory = _against("trajectory", (0.3, 0.4, 0.5, 0.6, 0.7), "even")
_primacy = _against("primacy", (0.2, 0.35, 0.5, 0.65, 0.8), "single")


def _condition(scale: Scale) -> Sweep:
    """Figure 7.5: tau_o = 0.4 and rho_o = 0.1 with Condition 7.3.2 met, and missed in half of the rows."""
    lengths = by_scale(scale, (5, 40), (5, 20, 80, 320), (5, 10, 20, 40, 80, 160, 320, 640))
    trial = put_all(template(), {"test.lengths": lengths, "test.prompts": by_scale(scale, 100, 400, 2000)})
    if scale == "smoke":
        trial = put_all(small(trial), {"test.lengths": lengths})
    return Sweep(trial, (axis("test.errors", ("pairs-hold", "pairs-fail")),), _seeds(scale, 4, 10))


def _dynamics(scale: Scale) -> Sweep:
    """Figure 7.6 with a step of 1, as the theorem has it, so that the stages can be told apart."""
    steps = by_scale(scale, 1500, 6000, 30_000)
    trial = put_all(
        _scaled(template(), scale), {"descent.learning_rate": 1.0, "descent.steps": steps, "descent.logs": 60}
    )
    return Sweep(put_all(trial, {"timed": True, "watched": 66}), (), _seeds(scale, 8, 20))


def _span(scale: Scale) -> Sweep:
    kinds = ("subset", "rotations", "zero-sum", "mean", "outside")
    return Sweep(_scaled(template(), scale), (axis("test.kind", kinds),), _seeds(scale, 8, 20))


def _stage_one(scale: Scale) -> Sweep:
    alphas = by_scale(scale, (0.2, 0.8), (0.1, 0.2, 0.4, 0.8), (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8))
    steps = by_scale(scale, 1500, 3000, 6000)
    trial = put_all(_scaled(template(), scale), {"descent.learning_rate": 1.0, "descent.steps": steps})
    trial = put_all(trial, {"timed": True, "watched": 66, "test.prompts": 50})
    return Sweep(trial, (axis("data.match_fraction", alphas),), _seeds(scale))


def _with_steps(trial: Reasoning, steps: int) -> Reasoning:
    """K steps, the batch holding every pattern at every step once."""
    return put_all(trial, {"data.steps": steps, "descent.batch": steps * trial.data.patterns})


def _tail(scale: Scale) -> Sweep:
    """Late in training, for several K and M: what the constant of the tail depends on."""
    patterns = by_scale(scale, (8,), (10, 20), (10, 20, 40))
    rounds = by_scale(scale, 300, 1500, 6000)
    trial = put_all(
        _scaled(template(), scale), {"descent.steps": rounds, "test.prompts": 50, "test.patterns": 5}
    )
    depth = Axis("reasoning_steps", by_scale(scale, (2, 3), (2, 3, 4, 5), (2, 3, 4, 5, 6)), _with_steps)
    width = Axis("patterns", patterns, lambda one, m: put_all(one, {"data.patterns": m, "data.dim": m + 10}))
    return Sweep(trial, (width, depth), _seeds(scale, 4, 10))


def _agreement(scale: Scale) -> Sweep:
    trial = put_all(
        small(template()), {"precision": "float64", "descent.steps": by_scale(scale, 30, 100, 300)}
    )
    return Sweep(trial, (axis("simulator", ("patterns", "tokens")),), _seeds(scale, 3, 5))


_LAYER = "One layer, W trained directly, read-out (0 I); step 10 and 600 steps, which is step 1 and 6000 up to noise."

FIGURES: dict[str, Figure] = {
    figure.id: figure
    for figure in (
        Figure(
            "fig7-3a", _match, pictures.cot_over_length, _LAYER + " Errors even over the steps.", complete
        ),
        Figure(
            "fig7-3b",
            _trajectory,
            pictures.cot_over_length,
            _LAYER + " Errors even over the steps.",
            complete,
        ),
        Figure(
            "fig7-3c", _primacy, pictures.cot_over_length, _LAYER + " All errors in the first step.", complete
        ),
        Figure(
            "fig7-4a",
            _match,
            pictures.icl_over_length,
            "The trainings of fig7-3a, asked in one go.",
            complete,
        ),
        Figure(
            "fig7-4b",
            _trajectory,
            pictures.icl_over_length,
            "The trainings of fig7-3b, asked in one go.",
            complete,
        ),
        Figure(
            "fig7-4c",
            _primacy,
            pictures.icl_over_length,
            "The trainings of fig7-3c, asked in one go.",
            complete,
        ),
        Figure(
            "fig7-5",
            _condition,
            pictures.cot_and_icl,
            "The construction in pairs of patterns; tau_o = 0.4, rho_o = 0.1.",
            complete,
        ),
        Figure(
            "fig7-6",
            _dynamics,
            pictures.masses,
            "Step 1; the stage ends when 5 % of the attention are left on other steps.",
            complete,
        ),
        Figure(
            "span",
            _span,
            pictures.kinds,
            "Test patterns inside and outside the span, settings of fig7-3.",
            complete,
        ),
        Figure("stage-one", _stage_one, pictures.stage_one, "Step 1, alpha varied.", complete),
        Figure("tail", _tail, pictures.tail, "Step 10; M and K varied.", complete),
        Figure("agreement", _agreement, pictures.agreement, "A small instance in float64.", complete),
    )
}
