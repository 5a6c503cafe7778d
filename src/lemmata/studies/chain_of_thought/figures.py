"""The document's figures, and the experiments that its theorems ask for."""

import xarray as xr

from lemmata.results import trials
from lemmata.studies.chain_of_thought import pictures
from lemmata.studies.chain_of_thought.trials import MASSES, Deep, Reasoning, Testing
from lemmata.study import Figure, Scale, by_scale
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all

LENGTHS = (1, 2, 3, 5, 8, 12, 20, 40, 60)
LIMIT = 0.7071
"""sqrt(2)/2, the largest noise of (7.11)."""


def template() -> Reasoning:
    """Section 7.5: d_X = 30, M = 20, M' = 10, K = 3, alpha = 0.4, alpha' = 0.8, tau = 0.5, rho = 0.8, noise 0.2."""
    return Reasoning(test=Testing(lengths=LENGTHS))


def small(trial: Reasoning) -> Reasoning:
    """A trial shrunk for tests."""
    return put_all(
        trial,
        {
            "data.dim": 24, "data.patterns": 11, "data.examples": 10, "descent.steps": 200, "descent.batch": 33,
            "watched": 66, "test.prompts": 100, "test.lengths": (8, 12, 40), "descent.logs": 12,
        },
    )  # fmt: skip


def complete(results: xr.Dataset) -> xr.Dataset:
    """Names of attention masses, lengths of test prompts and reasoning steps."""
    one = trials(results)[0]
    names: dict[str, list] = {"mass": list(MASSES), "power": [1, 2, 3]}
    if isinstance(one, Reasoning):
        names["length"] = list(one.test.lengths)
    counted = ("reasoning_step", "layer", "head", "example", "column_step")
    names |= {dim: list(range(1, results.sizes.get(dim, 0) + 1)) for dim in counted}
    return results.assign_coords({dim: labels for dim, labels in names.items() if dim in results.dims})


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
_noise = _against("noise", (0.0, 0.2, 0.4, 0.55, LIMIT), "even")


def _condition(scale: Scale) -> Sweep:
    """Figure 7.5: tau_o = 0.4 and rho_o = 0.1 with Condition 7.3.2 met, and missed in half of the rows."""
    lengths = by_scale(scale, (5, 40), (5, 20, 80, 320, 1280), (5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560))
    trial = put_all(
        _scaled(template(), scale),
        {"test.lengths": lengths, "test.prompts": by_scale(scale, 100, 400, 2000)},
    )
    return Sweep(trial, (axis("test.errors", ("pairs-hold", "pairs-fail")),), _seeds(scale, 4, 10))


def _slow(scale: Scale) -> Reasoning:
    """A step of 1, as the theorem has it, so that the stages can be told apart."""
    steps = by_scale(scale, 1500, 4000, 30_000)
    return put_all(
        _scaled(template(), scale),
        {
            "descent.learning_rate": 1.0, "descent.steps": steps, "descent.logs": 60, "timed": True, "watched": 66,
            "test.lengths": (12,), "test.prompts": 100,
        },
    )  # fmt: skip


def _dynamics(scale: Scale) -> Sweep:
    return Sweep(_slow(scale), (), _seeds(scale, 6, 20))


def _stage_one(scale: Scale) -> Sweep:
    alphas = by_scale(scale, (0.2, 0.8), (0.1, 0.2, 0.4, 0.8), (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8))
    return Sweep(_slow(scale), (axis("data.match_fraction", alphas),), _seeds(scale, 4, 10))


def _span(scale: Scale) -> Sweep:
    kinds = ("subset", "rotations", "zero-sum", "mean", "outside")
    trial = put_all(
        _scaled(template(), scale),
        {"data.dim": 40, "test.lengths": (12, 40, 80), "test.match_fraction": 0.4, "test.others": "one"},
    )
    return Sweep(trial, (axis("test.kind", kinds),), _seeds(scale, 6, 20))


def _with_steps(trial: Reasoning, steps: int) -> Reasoning:
    """K steps, the batch holding every pattern at every step once."""
    return put_all(trial, {"data.steps": steps, "descent.batch": steps * trial.data.patterns})


def _iterations(scale: Scale) -> Sweep:
    """Long trainings for several K and M: times to a loss, gradients of the first stage, the constant of the tail."""
    patterns = by_scale(scale, (8,), (10, 40), (10, 20, 40, 80))
    rounds = by_scale(scale, 300, 1500, 6000)
    trial = put_all(
        _scaled(template(), scale),
        {
            "descent.steps": rounds, "descent.logs": 50, "test.prompts": 50, "test.patterns": 5, "test.lengths": (12,),
            "watched": 120,
        },
    )  # fmt: skip
    depth = Axis("reasoning_steps", by_scale(scale, (2, 3), (2, 4), (2, 3, 4, 5, 6)), _with_steps)
    width = Axis("patterns", patterns, lambda one, m: put_all(one, {"data.patterns": m, "data.dim": m + 10}))
    return Sweep(trial, (width, depth), _seeds(scale, 4, 10))


def _training_noise(scale: Scale) -> Sweep:
    """Noise on the training tokens too, up to the limit of the test's: the weights themselves are trained."""
    trial = put_all(
        _scaled(template(), scale), {"simulator": "tokens", "test.lengths": (8, 12, 40), "test.noise": LIMIT}
    )
    return Sweep(
        trial,
        (axis("data.noise", by_scale(scale, (0.0, LIMIT), (0.0, 0.4, LIMIT), (0.0, 0.2, 0.4, LIMIT))),),
        _seeds(scale, 4, 10),
    )


def _agreement(scale: Scale) -> Sweep:
    trial = put_all(
        small(template()), {"precision": "float64", "descent.steps": by_scale(scale, 30, 100, 300)}
    )
    return Sweep(trial, (axis("simulator", ("patterns", "tokens")),), _seeds(scale, 3, 5))


def _classes(scale: Scale) -> Sweep:
    return Sweep(_scaled(template(), scale), (axis("simulator", ("patterns", "classes")),), _seeds(scale))


def _chain(scale: Scale) -> Sweep:
    """One prompt of eight examples, its attention along training."""
    looks = by_scale(scale, (5, 20, 60, 200), (5, 25, 100, 600), (5, 25, 100, 600))
    trial = put_all(
        _scaled(template(), scale),
        {"shown": 8, "test.lengths": (12,), "test.prompts": 100, "descent.log_at": looks},
    )
    return Sweep(trial, (), (0,))


def _layers(positions: str, heads: int, reasoning_steps: int, rounds: int):
    def sweep(scale: Scale) -> Sweep:
        trial = put_all(
            Deep(),
            {
                "positions": positions, "heads": heads, "data.steps": reasoning_steps,
                "descent.batch": 20 * reasoning_steps, "descent.steps": by_scale(scale, 40, rounds, 4 * rounds),
            },
        )  # fmt: skip
        if scale == "smoke":
            trial = put_all(
                trial,
                {"data.patterns": 8, "data.dim": 12, "descent.batch": 16, "watched": 16, "descent.logs": 6},
            )
        return Sweep(trial, (), _seeds(scale, 3, 10))

    return sweep


_LAYER = "One layer, W trained directly, read-out (0 I); step 10 and 600 steps, which is step 1 and 6000 up to noise."
_DEEP = "Residual layers, all weights trained by Adam; the document says no more than the number of layers and heads."

FIGURES: dict[str, Figure] = {
    id: Figure(id, sweep, picture, reading, complete)
    for id, sweep, picture, reading in (
        ("fig7-3a", _match, pictures.cot_over_length, _LAYER + " Errors even over the steps."),
        ("fig7-3b", _trajectory, pictures.cot_over_length, _LAYER + " Errors even over the steps."),
        ("fig7-3c", _primacy, pictures.cot_over_length, _LAYER + " All errors in the first step."),
        ("fig7-4a", _match, pictures.icl_over_length, "The trainings of fig7-3a, asked in one go."),
        ("fig7-4b", _trajectory, pictures.icl_over_length, "The trainings of fig7-3b, asked in one go."),
        ("fig7-4c", _primacy, pictures.icl_over_length, "The trainings of fig7-3c, asked in one go."),
        ("fig7-5", _condition, pictures.cot_and_icl, "Ten patterns in pairs; tau_o = 0.4, rho_o = 0.1."),
        (
            "fig7-6",
            _dynamics,
            pictures.masses,
            "Step 1; stage one ends when 5 % of the attention are left on other steps.",
        ),
        ("fig7-7", _layers("steps", 2, 2, 1000), pictures.layers, _DEEP),
        ("figF-1", _layers("sinusoids", 1, 3, 2000), pictures.layers, _DEEP),
        ("chain", _chain, pictures.chain, "One test prompt of eight examples, settings of fig7-3."),
        (
            "span",
            _span,
            pictures.kinds,
            "Test patterns inside and outside the span (d_X = 40, so that both fit); 40 % of the examples match, the "
            "others all begin with one other pattern, so that a vote that is blind to patterns is lost.",
        ),
        ("noise", _noise, pictures.noise, "Settings of fig7-3; the noise of the test varied."),
        (
            "training-noise",
            _training_noise,
            pictures.noise,
            "Noise in training too; the test's at its limit.",
        ),
        ("stage-one", _stage_one, pictures.stage_one, "Step 1, alpha varied."),
        ("iterations", _iterations, pictures.iterations, "Step 10; M and K varied, d_X = M + 10."),
        ("classes", _classes, pictures.classes, "Settings of fig7-3; all chance averaged out in one arm."),
        ("agreement", _agreement, pictures.agreement, "A small instance in float64."),
    )
}
