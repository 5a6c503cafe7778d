"""Identity, random keys and fields of trials."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.studies.benign_overfitting.figures import template
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.sweep import Sweep, axis, buckets
from lemmata.trial import Computed, fixed, get, identity, key_number, put, put_all, random_key


def test_identity_depends_on_content_and_seed_only():
    again = put(put(template(), "data.samples", 7), "data.samples", 10)
    assert identity(again, 0) == identity(template(), 0)
    assert identity(template(), 1) != identity(template(), 0)
    assert identity(put(template(), "data.signal_norm", 51.0), 0) != identity(template(), 0)


class Part(eqx.Module):
    size: float = 1.0


class Other(eqx.Module):
    size: float = 1.0


class Whole(Computed):
    """A trial with a part."""

    name: ClassVar = "toys/whole"

    data: Part | Other = Part()

    def compute(self, key):
        return {}


def test_a_raised_revision_and_a_part_of_another_kind_make_another_trial_with_draws_of_its_own(monkeypatch):
    def both(trial):
        return identity(trial, 0), key_number(trial, 0)

    first = both(Whole())
    assert all(a != b for a, b in zip(first, both(Whole(Other())), strict=True))
    monkeypatch.setattr(Whole, "revision", 2)
    assert all(a != b for a, b in zip(first, both(Whole()), strict=True))


def test_paired_fields_share_the_random_key_and_others_do_not():
    def bits(trial):
        return jax.random.key_data(random_key(trial, 0)).tolist()

    assert bits(put(template(), "simulator", "gram")) == bits(template())
    assert bits(put(template(), "descent.learning_rate", 0.3)) == bits(template())
    assert bits(put(template(), "data.signal_norm", 3.0)) != bits(template())


def test_adding_an_axis_value_or_a_seed_moves_no_cell():
    few = Sweep(template(), (axis("data.samples", (2, 4)),), (0, 1))
    more = Sweep(template(), (axis("data.samples", (2, 3, 4)),), (0, 1, 2))
    assert {c.id for c in few.cells} < {c.id for c in more.cells}


def test_cells_are_bucketed_by_what_fixes_shapes():
    sweep = Sweep(
        template(), (axis("data.samples", (2, 4)), axis("data.signal_norm", (1.0, 2.0, 3.0))), (0, 1)
    )
    assert sorted(len(bucket) for bucket in buckets(sweep.cells)) == [6, 6]


@pytest.mark.parametrize(("text", "value"), [("25", 25.0), ("2.5e1", 25.0)])
def test_text_is_parsed_to_the_type_of_the_field(text, value):
    assert get(put(template(), "data.signal_norm", text), "data.signal_norm") == value


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("data.sample", "3", "did you mean 'data.samples'"),
        ("data.samples", "2.5", "takes a whole number"),
        ("data.samples", "0", "at least one sample"),
        ("data.dim", "-4", "must be 3 or more"),
        ("data.signal_norm", "nan", "takes a finite number"),
        ("simulator", "grim", "takes row or gram or"),
        ("data.orthogonal_noise", "perhaps", "takes true or false"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(path, value, says):
    with pytest.raises(BadInput, match=says) as error:
        put(template(), path, value)
    assert "\n" not in str(error.value)


class Ranged(Computed):
    """One number of every kind."""

    name: ClassVar = "toys/ranged"

    test_samples: int = fixed(default=3)
    degree: int = fixed(default=3)
    left_out: int = fixed(default=0)
    rate: float = 0.5
    offset: float = 0.0
    ramp_steps: float = 0.0

    def compute(self, key):
        return {}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"test_samples": 0}, "'test_samples' must lie between 1 and"),
        ({"degree": -1}, "'degree' must lie between 0 and"),
        ({"degree": 10**400}, "lie between"),
        ({"left_out": -1}, "'left_out' must lie between 0 and"),
        ({"rate": -0.5}, "'rate' must not be negative"),
        ({"rate": math.inf}, "'rate' must be a finite number"),
        ({"offset": math.nan}, "'offset' must be a finite number"),
        ({"rate": 1e37}, "'rate' must be a finite number \\(0, or 1e-36 to 1e\\+36 in size\\)"),
        ({"offset": -1e-37}, "'offset' must be a finite number"),
        ({"ramp_steps": -1.0}, "'ramp_steps' must not be negative"),
    ],
)
def test_every_number_has_a_range_whatever_its_study_asks_for(changes, says):
    with pytest.raises(BadInput, match=says) as error:
        Ranged(**changes)
    assert "\n" not in str(error.value)
    assert Ranged(degree=0, left_out=0, offset=-1.0, rate=0.0).offset == -1.0


class Counted(eqx.Module):
    """A part that looks at its numbers while it is built."""

    tokens: int = fixed(default=3)

    def __check_init__(self):
        np.int32(self.tokens)


class Counting(Computed):
    name: ClassVar = "toys/counting"

    data: Counted = Counted()
    named: tuple[int, ...] = fixed(default=())

    def compute(self, key):
        return {}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("data.tokens", "0", "'tokens' must lie between 1 and 1e"),
        ("data.tokens", "1e12", "a number is larger than 'Counted' can count"),
        ("named", "{}", "takes a list such as"),
        ("named", "1,2", "takes a list such as"),
    ],
)
def test_what_a_part_cannot_be_built_from_is_one_sentence(path, value, says):
    with pytest.raises(BadInput, match=says):
        put(Counting(), path, value)


@pytest.mark.parametrize("values", [(), (1.0, float("nan")), (1.0, 1.0)])
def test_a_grid_must_be_finite_and_without_repeats(values):
    with pytest.raises(BadInput, match="axis 'signal_norm'"):
        axis("data.signal_norm", values)


def test_fields_changed_together_need_only_make_sense_together():
    both = {"data.relevant_fraction": 0.96, "data.confusion_fraction": 0.04}
    with pytest.raises(BadInput):
        put(ViTTraining(), "data.relevant_fraction", 0.96)
    made = put_all(ViTTraining(), both)
    assert [get(made, path) for path in both] == [0.96, 0.04]
