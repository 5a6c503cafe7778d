"""Data and weights of one's own, in every study: the record is computed from them, and what cannot be used is refused."""

import importlib.util
import inspect
import pkgutil
import re

import jax
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.loop import train
from lemmata.own import Taken, accepted
from lemmata.study import studies
from lemmata.trial import Computed, Descending, Trial, kind

STUDIES = list(studies().values())
RELATIVE, ABSOLUTE = 1e-7, 1e-10
"""Two float64 computations of a few steps; what is searched for (a critical point) is found to the root of its precision."""


def own(package: str):
    """The module of a study's cases, None where there is none: the registry test says so."""
    name = f"tests.own.{package.rpartition('.')[2]}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


MODULES = {study.id: own(study.package) for study in STUDIES}
CASES = [
    pytest.param(case, id=f"{id}/{case.name}")
    for id, module in MODULES.items()
    if module
    for case in module.CASES
]
REFUSED = [
    pytest.param(one, id=f"{id}/{number}")
    for id, module in MODULES.items()
    if module
    for number, one in enumerate(module.REFUSED)
]


def trials(package: str, base: type[Trial]) -> dict[str, type[Trial]]:
    """The trials of a study of one base class, by name."""
    found = {}
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and issubclass(value, base) and value.__module__.startswith(package):
                found[value.name] = value
    return {name: value for name, value in found.items() if name and not inspect.isabstract(value)}


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_every_stepped_trial_of_a_study_is_handed_data_and_weights(study):
    module = MODULES[study.id]
    assert module, f"write tests/own/{study.package.rpartition('.')[2]}.py: see tests/own/__init__.py"
    tried = [*module.CASES, *module.REFUSED]
    for part in ("data", "weights"):
        given = {kind(one.trial) for one in tried if getattr(one, part) is not None}
        assert set(trials(study.package, Descending)) <= given, f"{part} is not handed in"
        assert any(getattr(case, part) is not None for case in module.CASES), f"no case has {part}"


@pytest.mark.parametrize("case", CASES)
def test_the_record_of_own_data_and_weights_is_what_they_give(case):
    assert case.trial.precision == "float64"
    found = train(case.trial, case.seed, data=case.data, weights=case.weights)
    drawn = train(case.trial, case.seed)
    expected = {name: np.asarray(value) for name, value in case.expected().items()}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=RELATIVE, atol=ABSOLUTE, err_msg=name)
    assert any(not np.allclose(drawn[name], value, rtol=1e-5) for name, value in expected.items())


@pytest.mark.parametrize("case", CASES)
def test_own_data_and_weights_with_nan_are_refused(case):
    for part in ("data", "weights"):
        given = {"data": None, "weights": None, part: getattr(case, part)}
        leaves, structure = jax.tree.flatten(given[part])
        first = next((i for i, leaf in enumerate(leaves) if np.asarray(leaf).dtype.kind == "f"), None)
        if first is not None:
            leaves[first] = np.full_like(np.asarray(leaves[first]), np.nan)
            given[part] = jax.tree.unflatten(structure, leaves)
            with pytest.raises(BadInput, match="NaN"):
                train(case.trial, case.seed, **given)


@pytest.mark.parametrize("one", REFUSED)
def test_what_a_training_cannot_use_is_refused_in_one_sentence(one):
    with pytest.raises(BadInput) as refused:
        train(one.trial, data=one.data, weights=one.weights)
    said = str(refused.value)
    assert one.words in said
    assert said.endswith(".")
    assert len(said) < 600
    assert "\n" not in said


def test_numbers_come_to_the_type_of_the_training_or_are_refused():
    shapes = {"w": jax.ShapeDtypeStruct((2,), np.float32), "n": jax.ShapeDtypeStruct((), np.int32)}
    found, nothing = accepted(Taken(shapes, "no weights."), {"w": np.array([1, 2]), "n": np.int64(3)}, None)
    assert nothing is None
    assert (found["w"].dtype, found["n"].dtype) == (np.float32, np.int32)
    for changed, said in (
        ({"w": np.array([1e300, 0.0])}, "too large for float32"),
        ({"n": np.int64(2**40)}, "int32 does not have"),
        ({"n": np.array(1.5)}, "of the type int32, not float64"),
        ({"w": "text"}, "of the type float32"),
    ):
        with pytest.raises(BadInput, match=said):
            accepted(Taken(shapes, "no weights."), {"w": np.zeros(2), "n": np.int64(0)} | changed, None)
    with pytest.raises(BadInput, match="no weights"):
        accepted(Taken(shapes, "no weights."), None, np.zeros(2))


def test_parts_of_the_data_may_have_any_number_of_samples():
    shapes = (jax.ShapeDtypeStruct((4, 2), np.float64), jax.ShapeDtypeStruct((4,), np.float64))
    accepted(Taken(shapes, None, (True, False)), (np.zeros((9, 2)), np.zeros(4)), None)
    with pytest.raises(BadInput, match=re.escape("data[1] takes an array of shape (4,), not (9,)")):
        accepted(Taken(shapes, None, (True, False)), (np.zeros((9, 2)), np.zeros(9)), None)
    with pytest.raises(BadInput, match="at least 1, not 0"):
        accepted(Taken(shapes, None, True), (np.zeros((0, 2)), np.zeros(0)), None)


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_computed_trials_refuse_data_and_weights(study):
    for made in trials(study.package, Computed).values():
        for data, weights in ((np.zeros(3), None), (None, np.zeros(3))):
            with pytest.raises(BadInput, match="takes no data or weights"):
                train(made(), data=data, weights=weights)
