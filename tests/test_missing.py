"""A run with a number that is not finite has diverged, unless its trial declares that the number may be missing."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.cli import main
from lemmata.desk import stored_order
from lemmata.guard import double
from lemmata.lab.work import Chunk, run_chunk
from lemmata.loop import train
from lemmata.status import CAPPED, CONVERGED, DIVERGED
from lemmata.study import studies
from lemmata.sweep import Sweep, axis, buckets
from lemmata.trial import Computed, Descending, Tracks, fixed, random_key, with_precision
from tests.toys import Decay

BAD = ("nan", "inf", "-inf")
STUDIES = list(studies().values())


class Gap(Decay):
    """As `Decay`, with a number that is not finite in one place."""

    name: ClassVar = "toys/gap"

    place: str = fixed(default="nowhere")
    bad: str = fixed(default="0")

    def step(self, state):
        x, rest = super().step(state)
        return x, jnp.where((self.place == "loss") & (x == 0.25), float(self.bad), rest)

    def loss(self, state):
        return super().loss(state) + 0 * state[1]

    def watch(self, state):
        late = (state[0] < 0.2) & (self.place == "curve")
        return {"x": jnp.where(late, float(self.bad), state[0])}

    def record(self, state):
        found = super().record(state)
        if self.place == "record":
            found["pair"] = found["pair"].at[1].set(float(self.bad))
        return found

    def track(self, state):
        bad = jnp.where(self.place == "track", float(self.bad), 0.0)
        return Tracks(largest={"most": jnp.abs(bad)})


class Excused(Gap):
    name: ClassVar = "toys/excused"
    may_be_missing: ClassVar = ("pair", "x", "most")


class Root(Computed):
    """A plain function that is not a number below zero."""

    name: ClassVar = "toys/root"

    value: float = -1.0

    def compute(self, key):
        with np.errstate(invalid="ignore"):
            return {"root": np.sqrt([4.0, self.value]), "count": 3, "none": np.zeros(0)}


class ExcusedRoot(Root):
    name: ClassVar = "toys/excused-root"
    may_be_missing: ClassVar = ("root",)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", ["record", "curve", "track"])
def test_a_number_that_is_not_finite_makes_a_run_diverged_unless_it_may_be_missing(place, bad):
    assert train(Gap(place=place, bad=bad))["status"] == DIVERGED
    assert train(Excused(place=place, bad=bad))["status"] == CONVERGED


def test_a_loss_that_is_not_finite_at_one_step_ends_the_run_whatever_may_be_missing():
    for kind in (Gap, Excused):
        record = train(kind(place="loss", bad="nan"))
        assert (record["status"], record["steps"]) == (DIVERGED, 2)


def test_what_a_curve_lacks_after_the_end_of_a_run_is_not_missing():
    record = train(Gap())
    assert record["status"] == CONVERGED
    assert np.isnan(record["x_curve"][-1])
    assert train(Gap(rate=1e-6))["status"] == CAPPED


def test_the_lab_looks_at_records_too():
    cells = Sweep(Gap(bad="nan"), (axis("place", ("nowhere", "record", "curve")),), (0,)).cells
    for kind in buckets(cells):
        (found,) = [outcome for part in run_chunk(Chunk(tuple(kind), 2)) for outcome in part]
        expected = CONVERGED if kind[0].trial.place == "nowhere" else DIVERGED
        assert found.record["status"] == expected


@pytest.mark.parametrize(
    ("trial", "expected"), [(Root(), DIVERGED), (Root(1.0), CONVERGED), (ExcusedRoot(), CONVERGED)]
)
def test_a_computed_number_that_is_not_finite_counts_as_diverged(trial, expected):
    cells = Sweep(trial, (), (0,)).cells
    (found,) = [outcome for part in run_chunk(Chunk(tuple(cells), 1)) for outcome in part]
    assert found.record["status"] == expected


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_what_may_be_missing_is_recorded(study):
    """Of a training every declared name is one of a record of the study's figures: no name is left over."""
    declared: dict[type, set[str]] = {}
    for id in study.figures:
        for bucket in buckets(study.figure(id).sweep("smoke").cells):
            trial = bucket[0].trial
            left = declared.setdefault(type(trial), set(trial.may_be_missing))
            if left and isinstance(trial, Descending):
                left -= _recorded(trial)
    assert not {
        kind.__name__: left for kind, left in declared.items() if left and issubclass(kind, Descending)
    }


def _recorded(trial: Descending) -> set[str]:
    with double():
        one = with_precision(trial)

        def seen(key):
            state = one.start(key)
            tracks = one.track(state)
            return {**one.record(state), **one.watch(state), **tracks.first, **tracks.largest, **tracks.total}

        return set(jax.eval_shape(seen, random_key(trial, 0)))


@pytest.mark.parametrize("figure", ["fig3-5", "figB-6"])
def test_the_printed_start_of_the_graph_transformer_gives_numbers_and_a_picture(figure, tmp_path, capsys):
    """Its logits are so large that an empty slot overflowed."""
    words = [
        *("run", f"graph-transformer/{figure}", "--scale", "smoke", "--set", "network.start=printed"),
        *("--workers", "0", "--out", str(tmp_path / "o")),
    ]
    assert main(words) == 0
    assert (tmp_path / "o" / f"{figure}.png").stat().st_size > 5000
    results = stored_order(str(tmp_path / "o")).results()
    assert (results.status == CONVERGED).all()
    for name in ("test_hinge", "test_error", "attention", "confused", "bias", "train_hinge"):
        assert np.isfinite(results[name]).all(), name
    capsys.readouterr()
