"""What is compared with descent: pictures of the data, linear models, and attention built by hand."""

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from lemmata.errors import require
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured, World
from lemmata.studies.spatial_structure.network import Constants, association, output_of_projections
from lemmata.studies.spatial_structure.network.variants import associating_solution, shifted_solution
from lemmata.trial import Computed, Key, fixed


class Illustration(Computed):
    """One image with label +1 on its grid. `misleading` asks for one with more -1's than +1's (Figure 3)."""

    name: ClassVar[str] = "spatial-structure/illustration"
    dims: ClassVar = {"group_of": ("patch",), "coefficients": ("patch",)}
    paired: ClassVar = ("data.partition", "misleading")

    data: Structured = Structured(patches=16, dimension=2)
    misleading: bool = fixed(default=False)

    def compute(self, key: Key) -> dict[str, object]:
        group_of = self.data.group_of(jax.random.fold_in(key, 0))
        images = self.data.draw_coefficients(jax.random.fold_in(key, 1), group_of, 5000, jnp.float64)
        labels, coefficients = (np.asarray(part) for part in images)
        wanted = labels > 0
        if self.misleading:
            wanted &= coefficients.sum(axis=1) < 0
        require(bool(wanted.any()), "no such image among 5000: the spurious rate is too small to mislead.")
        chosen = coefficients[int(np.argmax(wanted))]
        by_group = [np.all(chosen[np.asarray(group_of) == g] == 1) for g in range(self.data.group_count)]
        return {
            "group_of": np.asarray(group_of),
            "coefficients": chosen,
            "signal_group": int(np.argmax(by_group)),
            "total": chosen.sum(),
        }


class LinearModel(Computed):
    """Logistic regression on whole images, on their coefficients along the feature, or on the total alone.

    The last two are told the feature: a generalised linear model could do no better by learning it.
    """

    name: ClassVar[str] = "spatial-structure/linear"
    paired: ClassVar = ("inputs",)

    data: Structured = Structured(dimension=8)
    ridge: float = 1e-3
    inputs: Literal["patches", "coefficients", "total"] = fixed(default="coefficients")
    samples: int = fixed(default=8000)
    test_samples: int = fixed(default=20_000)

    def compute(self, key: Key) -> dict[str, object]:
        world = self.data.world(jax.random.fold_in(key, 0))
        train, test = (
            self._inputs(jax.random.fold_in(key, i), world, count)
            for i, count in ((1, self.samples), (2, self.test_samples))
        )
        weights = logistic_regression(*train, self.ridge)
        margin = test[1] * (test[0] @ weights[:-1] + weights[-1])
        return {
            "test_error": np.mean(margin < 0) + 0.5 * np.mean(margin == 0),
            "predicted_error": theory.glm_error(*self.data.facts),
        }

    def _inputs(self, key: Key, world: World, count: int) -> tuple[np.ndarray, np.ndarray]:
        if self.inputs == "patches":
            images = self.data.draw(key, world, count)
            return np.asarray(images.patches).reshape(count, -1), np.asarray(images.labels)
        labels, columns = (np.asarray(x) for x in self.data.draw_coefficients(key, world.group_of, count))
        return columns if self.inputs == "coefficients" else columns.sum(axis=1, keepdims=True), labels


def logistic_regression(inputs: np.ndarray, labels: np.ndarray, ridge: float) -> np.ndarray:
    """Weights, the intercept last, that minimise the mean logistic loss plus `ridge |w|^2 / 2`."""

    def risk(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = labels * (inputs @ w[:-1] + w[-1])
        pull = -labels * scipy.special.expit(-margin) / len(labels)
        gradient = np.append(pull @ inputs, pull.sum()) + ridge * w
        return float(np.mean(np.logaddexp(0, -margin)) + ridge * w @ w / 2), gradient

    start = np.zeros(inputs.shape[1] + 1)
    return scipy.optimize.minimize(risk, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x


class HandBuilt(Computed):
    """Network (T) with the true feature as its value vector and attention built by hand (Theorem 3.2)."""

    name: ClassVar[str] = "spatial-structure/hand-built"
    paired: ClassVar = ("strength", "solution", "degree")

    data: Structured = Structured(dimension=2)
    strength: float = 8.0
    linear: float = 1e-9
    degree: int = fixed(default=3)
    solution: Literal["shifted", "associating", "uniform"] = fixed(default="shifted")
    test_samples: int = fixed(default=20_000)

    def compute(self, key: Key) -> dict[str, object]:
        data = self.data
        group_of = data.group_of(jax.random.fold_in(key, 0))
        build = shifted_solution if self.solution == "shifted" else associating_solution
        logits = build(group_of, 0.0 if self.solution == "uniform" else self.strength)
        labels, coefficients = data.draw_coefficients(jax.random.fold_in(key, 1), group_of, self.test_samples)
        margin = labels * output_of_projections(coefficients, logits, Constants(self.degree, self.linear))
        measured = association(logits, group_of, data.group_count)
        return {
            "test_error": jnp.mean(margin <= 0, dtype=margin.dtype),
            "overlap": measured["overlap"],
            "exact": measured["exact"],
        }
