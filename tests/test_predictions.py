"""The formulas of every study at settings all over: a prediction, or one sentence that says why there is none."""

import typing
from dataclasses import is_dataclass
from math import isnan

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lemmata.errors import BadInput
from lemmata.study import studies
from lemmata.trial import fields, put_all

STUDIES = studies()
EXAMPLES = {
    "benign-overfitting": 60,
    "chain-of-thought": 12,
    "gcn-sampling": 60,
    "graph-transformer": 15,
    "group-imbalance": 6,
    "in-context-learning": 12,
    "multihead": 200,
    "shallow-vit": 300,
    "spatial-structure": 60,
}
"""Settings that are looked at: many where the formulas take no time."""


def _kind(trial, path):
    """The declared type of a field."""
    *parts, last = path.split(".")
    for part in parts:
        trial = getattr(trial, part)
    assert is_dataclass(trial)
    return typing.get_type_hints(type(trial))[last]


def _values(trial, path, value):
    """Values for a field: edges, other sizes and other words. Whole numbers only get smaller, since the time goes with them."""
    options = typing.get_args(_kind(trial, path))
    if typing.get_origin(_kind(trial, path)) is typing.Literal:
        return st.sampled_from(options)
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.sampled_from(sorted({0, 1, 2, 3, value // 2, max(value - 1, 0), value}))
    if isinstance(value, float):
        near = st.floats(-3, 3).map(lambda power: value * 10.0**power)
        return st.one_of(st.sampled_from((0.0, 0.05, 0.2, 0.5, 1.0, 2.0)), st.floats(0, 1), near)
    return None


def _changes(trial):
    """Some fields with new values."""
    free = {path: _values(trial, path, value) for path, value in fields(trial).items()}
    kept = {path: values for path, values in free.items() if values is not None}
    names = st.lists(st.sampled_from(sorted(kept)), min_size=1, max_size=6, unique=True)
    return names.flatmap(lambda some: st.fixed_dictionaries({path: kept[path] for path in some}))


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.id)
def test_predict_raises_nothing_but_bad_input(study):
    template = study.template()

    @settings(
        max_examples=EXAMPLES[study.id],
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(_changes(template))
    def looked_at(changes):
        try:
            conditions, predictions = study.predict(put_all(template, changes))
        except BadInput as error:
            said = str(error)
            if "leave the numbers of a computer" in said and "OverflowError" not in said:
                raise AssertionError(said) from error
            return
        for condition in conditions:
            assert not isnan(condition.margin), condition
        assert predictions

    looked_at()


def test_the_root_of_the_output_bound_is_inside_its_bracket():
    """The upper end of the bracket was the root up to rounding, and may then lie below it."""
    study = STUDIES["shallow-vit"]
    words = {
        "data.relevant_fraction": 0.2,
        "data.confusion_fraction": 0.05,
        "network.value_error": 0.05,
        "network.key_query_error": 0.0,
        "network.neurons": 10_000,
        "data.patterns": 5,
    }
    assert study.predict(put_all(study.template(), words))
