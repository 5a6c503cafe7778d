"""Fits classic learners of scikit-learn (the extra `baselines`) to many small sets."""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from lemmata.errors import BadInput

Learnt = Literal["logistic", "svm-gaussian", "svm-linear", "1-nn", "3-nn"]


def classify(
    method: Learnt,
    inputs: Float[np.ndarray, "sets samples dim"],
    labels: Float[np.ndarray, "sets samples"],
    asked: Float[np.ndarray, "sets dim"],
) -> Float[np.ndarray, " sets"]:
    """Fit a learner to each set and return its label (+1 or -1) of the query point of that set.

    A set with one class gives that class. If a set has fewer samples than neighbours are needed, all of them are used."""
    return np.array([_one(method, x, y, q) for x, y, q in zip(inputs, labels, asked, strict=True)])


def _one(method: Learnt, inputs: np.ndarray, labels: np.ndarray, asked: np.ndarray) -> float:
    if (labels == labels[0]).all():
        return float(labels[0])
    learner = _learner(method, len(labels))
    return float(learner.fit(inputs, labels).predict(asked[None])[0])


def _learner(method: Learnt, samples: int) -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.svm import SVC
    except ModuleNotFoundError:
        raise BadInput("classic learners come from scikit-learn: pip install 'lemmata[baselines]'.") from None
    if method == "logistic":
        return LogisticRegression(max_iter=1000)
    if method.startswith("svm"):
        return SVC(kernel="rbf" if method == "svm-gaussian" else "linear")
    return KNeighborsClassifier(min(int(method[0]), samples))
