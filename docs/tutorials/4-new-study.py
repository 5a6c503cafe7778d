# %% [markdown]
# # A new study in an hour
#
# A theorem becomes a study: a package with its model, its formulas, its claims, and verdicts. This tutorial
# builds one room by room. The theorem is from Zhang, Singh, Latham and Saxe (ICML 2025). Linear attention that
# trains on in-context regression goes through plateaus of known height, one for each eigenvector of the
# covariance of its inputs.
#
# The finished study is in `plugins/linear-attention` of the repository. What follows is its first figure.

# %%
import subprocess
import sys
from pathlib import Path

from lemmata.study import study_or_package

NAME = "saddles"
FOLDER = Path(NAME).resolve()
PACKAGE = FOLDER / "lemmata_saddles"


def command(*words):
    """Run a command of Lemmata in the folder of the study and print what it says."""
    folder = FOLDER if FOLDER.exists() else Path.cwd()
    done = subprocess.run(
        [sys.executable, "-m", "lemmata", *words], capture_output=True, text=True, cwd=folder
    )
    print((done.stdout + done.stderr).strip())


def room(path, text):
    """Write a file of the study."""
    (PACKAGE / path).write_text(text.lstrip())


# %% [markdown]
# ## Start from a study that works
#
# `lemmata new` writes a package with gradient descent on a quadratic bowl. It has every room that a study
# needs.

# %%
command("new", NAME)

# %% [markdown]
# ## The data
#
# A prompt has N samples (x, y) with y = w.x, where x has the covariance Lambda and w is drawn anew for each
# prompt. The loss over all prompts needs only the eigenvalues of Lambda and N. A number that may vary inside
# one compiled program is a plain field. What fixes a shape is `fixed()`.

# %%
room(
    "data.py",
    '''
"""In-context linear regression: `x ~ N(0, Lambda)`, `w ~ N(0, I)`, `y_n = w.x_n`."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.trial import fixed


class Regression(eqx.Module):
    """`Lambda = diag(D, ..., 1) / trace`, and `context` samples before the query."""

    context: float = 31.0
    dim: int = fixed(default=4)

    def __check_init__(self):
        require(self.dim >= 1, f"a token has at least one dimension, not {self.dim}.")
        require(self.context >= 1, f"a prompt has at least one sample, not {self.context}.")

    @property
    def eigenvalues(self) -> Float[Array, " dim"]:
        return jnp.arange(self.dim, 0, -1.0) / (self.dim * (self.dim + 1) / 2)
''',
)

# %% [markdown]
# ## The network
#
# The displayed equation comes first. The layer is linear in the prompt through one matrix A, so its loss is a
# quadratic form in A.

# %%
room(
    "network.py",
    '''
"""`yhat = sum_i v_i (beta.k_i) (q_i.x_q)` with `beta = (1/N) sum_n y_n x_n`, a function of `A = sum_i v_i k_i q_i^T` alone.

`L(A) = tr Lambda - 2 tr(A Lambda^2) + tr(A^T E A Lambda)` with `E = Lambda^2 + (Lambda + tr(Lambda) I) Lambda / N` (15).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class Heads(NamedTuple):
    value: Float[Array, " heads"]
    key: Float[Array, "heads dim"]
    query: Float[Array, "heads dim"]


def loss(heads: Heads, own: Float[Array, " dim"], context: float | Array) -> Float[Array, ""]:
    """The mean square error over all prompts; `own` are the eigenvalues."""
    a = jnp.einsum("i,ia,ib->ab", *heads)
    memory = own**2 + (own + jnp.sum(own)) * own / context
    return jnp.sum(own) - 2 * jnp.diagonal(a) @ own**2 + jnp.sum(a**2 * memory[:, None] * own)
''',
)

# %% [markdown]
# ## The training
#
# A `Learner` says what is drawn, what is minimised and what is recorded. The lab does the rest: batches, steps,
# lanes, storage.

# %%
room(
    "trials.py",
    '''
"""Gradient descent on the loss over all prompts."""

from typing import ClassVar

import jax

from lemmata.descent import Descent, Draw, Learner
from lemmata.trial import Key, Precision, Record, fixed

from .data import Regression
from .network import Heads, loss


class Population(Learner):
    """`init`: the standard deviation of every weight at the start. A step takes `learning_rate` units of tau."""

    name: ClassVar[str] = "saddles/population"
    paired: ClassVar[tuple[str, ...]] = ("descent",)

    data: Regression = Regression()
    init: float = 0.05
    heads: int = fixed(default=5)
    descent: Descent = Descent(learning_rate=0.5, stop="cap", steps=16_000, logs=300)
    precision: Precision = fixed(default="float64")

    def draw(self, key: Key) -> Draw:
        shapes = ((self.heads,), (self.heads, self.data.dim), (self.heads, self.data.dim))
        keys = jax.random.split(key, 3)
        weights = [self.init * jax.random.normal(one, shape) for one, shape in zip(keys, shapes, strict=True)]
        return Draw(params=Heads(*weights), data=None)

    def objective(self, params, batch, world, key):
        return loss(params, self.data.eigenvalues, self.data.context) / 2

    def watch(self, state) -> Record:
        return {"error": 2 * state.fit.loss}

    def record(self, state) -> Record:
        return {"error": 2 * state.fit.loss}
''',
)

# %% [markdown]
# ## The theory
#
# One function a statement, in float64, with the formula and its number in the docstring. `predict` says what
# the theory expects of a trial before anything trains. The paper does not ask for distinct eigenvalues, but its
# fixed points need them. Here they always are.

# %%
room(
    "theory.py",
    '''
"""The heights of the plateaus (19), and a condition."""

import numpy as np

from lemmata.measure.compare import Condition
from lemmata.study import Prediction

from .trials import Population


def plateaus(trial: Population) -> np.ndarray:
    """(19): `L(M_m) = tr Lambda - sum_{d <= m} lambda_d / (1 + (1 + tr(Lambda)/lambda_d) / N)`, for m = 0 to D."""
    own = np.arange(trial.data.dim, 0, -1.0)
    own /= own.sum()
    falls = own / (1 + (1 + 1 / own) / float(trial.data.context))
    return 1 - np.concatenate([[0.0], np.cumsum(falls)])


def enough_heads(trial: Population) -> list[Condition]:
    return [Condition("H >= D", trial.heads >= trial.data.dim, trial.heads / trial.data.dim)]


def predict(trial: Population) -> tuple[list[Condition], list[Prediction]]:
    named = [Prediction(f"loss at plateau {m}", float(one)) for m, one in enumerate(plateaus(trial))]
    return enough_heads(trial), named
''',
)
(PACKAGE / "answer.py").unlink()  # a sentence for `lemmata predict`; this study does without

# %% [markdown]
# ## The figure and its claims
#
# A claim says beforehand what would refute it. `number` measures the results, `holds` says what the number must
# be and why. Two made cases, results without training, show that the claim can fail and can hold. Both lie near
# the tolerance.

# %%
(PACKAGE / "figures" / "steps.py").unlink()
room(
    "figures/__init__.py",
    '''
"""The experiments, a file each."""

from .plateaus import fig3a
from .plateaus import template as template

FIGURES = (fig3a,)
''',
)
room(
    "figures/plateaus.py",
    '''
"""Figure 3a: the loss goes from plateau to plateau."""

import numpy as np
import xarray as xr

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, Made, at_most, every_run, made, theorem
from lemmata.results import trial_at
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep

from ..theory import enough_heads, plateaus
from ..trials import Population


def template() -> Population:
    return Population()


def sweep(scale: Scale) -> Sweep:
    return Sweep(template(), (), tuple(range(by_scale(scale, 2, 4, 20))))


def gap_of_stops(results: xr.Dataset) -> xr.DataArray:
    """The largest distance from any height of (19) to the errors at which a run falls slowest, over log steps."""
    heights, passed = plateaus(trial_at(results)), np.diff(np.log(results.step.values + 1.0))

    def of_run(curve: np.ndarray) -> float:
        speed = -np.diff(np.log(curve)) / passed
        slow = (speed[1:-1] < speed[:-2]) & (speed[1:-1] <= speed[2:])
        return float(np.max(np.min(abs(curve[1:-2][slow][:, None] - heights), axis=1), initial=0))

    return xr.apply_ufunc(of_run, results.error_curve, input_core_dims=[["step"]], vectorize=True)


def stairs(shift: float) -> Made:
    """An error that goes from plateau to plateau, each of them moved, but for the first and the last."""

    def curve(trial: Population, step: np.ndarray) -> np.ndarray:
        moved = plateaus(trial)
        moved[1:-1] += shift
        risen = (step[:, None] / np.geomspace(20, trial.steps / 4, len(moved) - 1)) ** 8
        return moved[0] + (risen / (1 + risen)) @ np.diff(moved)

    return made(error_curve=curve, noise=0.0)


fig3a = Figure(
    "fig3a",
    "Loss of linear attention with separate keys and queries",
    setup="D = 4, N = 31, five heads, a start of 0.05; the loss over all prompts.",
    sweep=sweep,
    picture=panels(
        Panel(
            lambda r: r.error_curve.isel(seed=[0]),
            "step",
            "step",
            "loss",
            at={f"$L(M_{m})$": lambda r, m=m: plateaus(trial_at(r))[m] for m in range(5)},
            style="-",
        ),
        caption="The loss of one run, and the heights of (19).",
    ),
    claims=[
        Claim(
            "end-at-minimum",
            "In every run the loss ends at its global minimum, the last height of (19)",
            theorem("(19)"),
            headline=True,
            number=lambda r: abs(r.error / plateaus(trial_at(r))[-1] - 1),
            holds=every_run(at_most(0.01, because="the next height lies half as high again")),
            conditions=enough_heads,
            refuted_by=made(error=lambda t: 1.02 * plateaus(t)[-1], noise=0.001),
            upheld_by=made(error=lambda t: 1.002 * plateaus(t)[-1], noise=0.001),
        ),
        Claim(
            "plateaus-at-19",
            "In every run the loss falls slowest at the heights of (19)",
            theorem("(19)"),
            headline=True,
            number=gap_of_stops,
            holds=every_run(at_most(0.02, because="neighbouring heights lie at least 0.07 apart")),
            conditions=enough_heads,
            refuted_by=stairs(0.03),
            upheld_by=stairs(0.005),
        ),
    ],
)
''',
)

# %% [markdown]
# ## The ledger and the title page
#
# The ledger lists the statements of the paper, and what each is held against.

# %%
room(
    "ledger.py",
    '''
"""The numbered statements of the paper, and what each is held against."""

from lemmata.study import Statement

LEDGER = (
    Statement("(15)", "E = Lambda^2 + (Lambda + tr(Lambda) I) Lambda / N", function="network.loss"),
    Statement(
        "(19)",
        "L(M_m) = tr Lambda - sum_{d <= m} lambda_d / (1 + (1 + tr(Lambda)/lambda_d) / N)",
        function="theory.plateaus",
        held_against="claim plateaus-at-19, claim end-at-minimum",
    ),
)
''',
)
room(
    "__init__.py",
    '''
"""Linear attention from saddle to saddle."""

from lemmata.study import Study

STUDY = Study(
    id="saddles",
    title="Linear attention from saddle to saddle",
    summary="Linear attention with separate keys and queries learns in-context regression one eigenvector at a time.",
    citation="""
@inproceedings{zhang2025training,
  title     = {Training Dynamics of In-Context Learning in Linear Attention},
  author    = {Zhang, Yedi and Singh, Aaditya K. and Latham, Peter E. and Saxe, Andrew},
  booktitle = {International Conference on Machine Learning},
  year      = {2025}
}
""",
    version="ICML 2025, PMLR 267",
    package=__name__,
)
''',
)

# %% [markdown]
# ## Check it before anything trains
#
# The command trains nothing. It says what cannot work, in a sentence with file and line. Here is what a
# misspelt record looks like.

# %%
text = (PACKAGE / "figures" / "plateaus.py").read_text()
room("figures/plateaus.py", text.replace("r.error /", "r.eror /"))
command("lock", "lemmata_saddles", "--check")
room("figures/plateaus.py", text)

# %%
command("lock", "lemmata_saddles", "--check")

# %% [markdown]
# ## Register, train and judge
#
# `lemmata lock` registers the claims. From then on a change of a claim means fresh seeds. In a terminal, after
# `pip install -e saddles`, `lemmata check saddles` trains and judges. In a notebook, the figure does.

# %%
command("lock", "lemmata_saddles")
sys.path.insert(0, str(FOLDER))
study = study_or_package("lemmata_saddles")
figure = study.figure("fig3a")
results = figure.run(progress=False, out=FOLDER / "runs")
verdicts = study.check(results)
verdicts

# %%
figure.picture(results, verdicts)

# %% [markdown]
# ## What next
#
# A claim that fails is published as failing, with its numbers. Do not widen the tolerance. Ask which condition
# the statement needs, and state that claim beside the first. The finished study does this: with equal
# eigenvalues it finds fixed points that the paper does not count. [Adding a study](../adding-a-study.md) explains
# each room, all checks, and how to publish.
