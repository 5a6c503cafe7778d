"""Every public function answers a wrongly typed call with `BadInput`, one sentence, before anything is written.

`DOORS` lists the public functions with arguments that are right, and for every argument the samples that are right too. All
other samples are tried, one at a time."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib.figure
import numpy as np
import pytest
import xarray as xr

import lemmata as lm
from lemmata import data, desk, results, trial
from lemmata.descent import Descent
from lemmata.errors import BadInput
from lemmata.figure import Figure
from lemmata.scale import by_scale, scale_named
from lemmata.study import Study
from tests.draw.synthetic import synthetic
from tests.toys import Decay, Square

SAMPLES = {
    "nothing": None,
    "flag": True,
    "whole": 3,
    "real": -1.5,
    "nan": float("nan"),
    "text": "word",
    "no text": "",
    "bytes": b"word",
    "list": [],
    "texts": ["one", "two"],
    "tuple": (),
    "numbers": (1, 2),
    "mapping": {},
    "wrong mapping": {1: 2},
    "object": object(),
    "function": lambda *_: None,
    "class": int,
    "array": np.arange(2.0),
    "path": Path("word"),
    "other trial": Square(),
    "dataset": xr.Dataset(),
}
TEXT = ("text", "no text")
WHOLE = ("whole",)
NUMBER = ("whole", "real", "nan")
FLAG = ("flag",)
OUT = (*TEXT, "path")
OPTIONAL = ("nothing",)
MAPPING = ("mapping", "dataset")
"""A Dataset is a mapping, and this one is empty."""

STUDY = lm.study("benign-overfitting")
FIGURE = STUDY.figure("fig4")
SWEEP = lm.Sweep(Decay(), (lm.axis("rate", (0.5, 0.6)),), (0,))
MADE = results.made(SWEEP, {"x": lambda trial, rng: 1.0})
OPTIONS = {
    "changes": (*MAPPING, *OPTIONAL),
    "axes": (*MAPPING, *OPTIONAL),
    "seeds": (*WHOLE, *OPTIONAL),
    "out": (*OUT, *OPTIONAL),
}
TRIALS = ("other trial",)


class Door(NamedTuple):
    """A public function, arguments that are right, and for each argument the samples that are of the right kind."""

    call: Callable[..., Any]
    right: dict[str, Any]
    fitting: dict[str, tuple[str, ...]]


DOORS = {
    "run": Door(
        lm.run,
        {"sweep": SWEEP},
        {
            "sweep": (),
            "out": (*OUT, *OPTIONAL),
            "workers": WHOLE,
            "progress": (*FLAG, *OPTIONAL),
            "executor": OPTIONAL,
            "limit": (*NUMBER, *OPTIONAL),
            "fail_fast": FLAG,
        },
    ),
    "train": Door(
        lm.train,
        {"trial": Decay()},
        {"trial": (), "seed": WHOLE, "key": OPTIONAL, "data": tuple(SAMPLES), "weights": tuple(SAMPLES)},
    ),
    "Sweep": Door(
        lm.Sweep,
        {"template": Decay(), "axes": (), "seeds": (0,)},
        {
            "template": TRIALS,
            "axes": ("tuple",),
            "seeds": ("numbers",),
            "keep": (*OPTIONAL, "function", "class"),
        },
    ),
    "Sweep.with_seeds": Door(SWEEP.with_seeds, {"seeds": [1]}, {"seeds": ("numbers",)}),
    "Sweep.with_fields": Door(SWEEP.with_fields, {"changes": {}}, {"changes": MAPPING}),
    "Axis": Door(
        lm.Axis,
        {"name": "rate", "values": (1.0,), "place": "rate"},
        {"name": TEXT, "values": ("numbers",), "place": (*TEXT, "function", "class")},
    ),
    "Axis.apply": Door(
        lm.axis("rate", (1.0,)).apply,
        {"trial": Decay(), "value": 0.5},
        {"trial": (), "value": NUMBER},
    ),
    "Axis.moved": Door(lm.axis("rate", (1.0,)).moved, {"template": Decay()}, {"template": TRIALS}),
    "axis": Door(
        lm.axis,
        {"path": "rate", "values": (1.0,)},
        {"path": TEXT, "values": ("texts", "numbers", "array"), "name": (*TEXT, *OPTIONAL)},
    ),
    "Descent": Door(
        lm.Descent,
        {},
        {
            **dict.fromkeys(("learning_rate", "target_loss", "momentum", "attention_rate"), WHOLE),
            **dict.fromkeys(("method", "loss", "batches", "stop", "spacing"), ()),
            **dict.fromkeys(("batch", "steps", "logs"), WHOLE),
            "log_at": ("tuple", "numbers"),
        },
    ),
    "Descent.log_steps_to": Door(lm.Descent().log_steps_to, {"last": 5}, {"last": WHOLE}),
    "check": Door(
        lm.check,
        {"name": "benign-overfitting/no-claim"},
        {
            "name": (),
            "scale": (),
            "workers": WHOLE,
            "changes": (*MAPPING, *OPTIONAL),
            "seeds": (*WHOLE, *OPTIONAL),
            "out": (*TEXT, *OPTIONAL),
            "inside": FLAG,
            "more": FLAG,
            "budget": (*WHOLE, *OPTIONAL),
            "bars": ("function", "class"),
            "on": (),
            "limit": (*NUMBER, *OPTIONAL),
            "fail_fast": FLAG,
        },
    ),
    "export": Door(lm.export, {"results": MADE, "path": "a.nc"}, {"results": (), "path": OUT}),
    "data.load": Door(data.load, {"name": "mnist"}, {"name": TEXT}),
    "data.provenance": Door(data.provenance, {"name": "mnist"}, {"name": TEXT}),
    "data.get": Door(data.get, {"name": "no data"}, {"name": TEXT, "source": (*OUT, *OPTIONAL)}),
    "picture": Door(lm.picture, {"results": xr.Dataset()}, {"results": ()}),
    "kernels_on": Door(lm.kernels_on, {"on": True}, {"on": FLAG}),
    "Figure.complete": Door(FIGURE.complete, {"results": synthetic(FIGURE)}, {"results": ()}),
    "study": Door(lm.study, {"id": "benign-overfitting"}, {"id": ()}),
    "scale_named": Door(scale_named, {"name": "quick"}, {"name": ()}),
    "place_order": Door(
        desk.place_order, {"name": "benign-overfitting/fig4"}, {"name": (), "scale": ("nothing", "no text")}
    ),
    "Study.figure": Door(STUDY.figure, {"id": "fig4"}, {"id": ()}),
    "Study.claim": Door(STUDY.claim, {"id": STUDY.claims[0].id}, {"id": ()}),
    "Study.bearing_on": Door(STUDY.bearing_on, {"figure": "fig4"}, {"figure": TEXT}),
    "Study.predict": Door(STUDY.predict, {"trial": STUDY.template()}, {"trial": ()}),
    "Study.check": Door(
        STUDY.check,
        {},
        {"only": OPTIONAL, "rate": OPTIONAL, "inside": FLAG},
    ),
    "Study.computed": Door(STUDY.computed, {"formula": lambda: 1.0}, {"formula": ("function", "class")}),
    "predict": Door(lm.predict, {"name": "multihead"}, {"name": (), "set": (*MAPPING, *OPTIONAL)}),
    "Hook": Door(lm.Hook, {"measures": {"a": len}}, {"measures": MAPPING, "every": WHOLE}),
    "Study.module": Door(STUDY.module, {"name": "theory"}, {"name": ()}),
    "Study.finding": Door(STUDY.finding, {"line": STUDY.ledger[0]}, {"line": ()}),
    "Study.draw_number": Door(STUDY.draw_number, {"figure": "fig4"}, {"figure": TEXT}),
    "Figure.order": Door(FIGURE.order, {"scale": "smoke"}, {"scale": (), **OPTIONS, "reading": ("no text",)}),
    "Figure.run": Door(
        FIGURE.run,
        {"scale": "smoke"},
        {
            "scale": (),
            "workers": WHOLE,
            "progress": (*FLAG, *OPTIONAL),
            "executor": OPTIONAL,
            "set": OPTIONS["changes"],
            **{name: kinds for name, kinds in OPTIONS.items() if name != "changes"},
            "reading": ("no text",),
        },
    ),
    "Figure.draw": Door(
        FIGURE.draw, {"results": xr.Dataset()}, {"results": (), "verdicts": (*OPTIONAL, "list")}
    ),
    "fields": Door(trial.fields, {"trial": Decay()}, {"trial": TRIALS}),
    "get": Door(trial.get, {"trial": Decay(), "path": "rate"}, {"trial": (), "path": ()}),
    "put": Door(
        trial.put,
        {"trial": Decay(), "path": "rate", "value": 0.5},
        {"trial": (), "path": (), "value": NUMBER},
    ),
    "put_all": Door(trial.put_all, {"trial": Decay(), "changes": {}}, {"trial": TRIALS, "changes": MAPPING}),
    "trials": Door(results.trials, {"results": MADE}, {"results": ()}),
    "trial_at": Door(results.trial_at, {"results": MADE, "rate": 0.5}, {"results": (), "rate": WHOLE}),
    "over_cells": Door(
        results.over_cells,
        {"results": MADE, "function": lambda trial: 1.0},
        {"results": (), "function": ("function", "class")},
    ),
    "settings": Door(results.settings, {"results": MADE}, {"results": ()}),
    "made": Door(
        results.made,
        {"source": SWEEP, "variables": {}},
        {"source": (), "variables": MAPPING, "scale": (), "seeds": (*WHOLE, *OPTIONAL)},
    ),
}
FREE = {"Study.template", "studies"}
"""What takes no arguments."""

WRONG = [
    (name, argument, sample)
    for name, door in DOORS.items()
    for argument, fitting in door.fitting.items()
    for sample in SAMPLES
    if sample not in fitting
]


def refused(call, *given, **named):
    """The sentence with which a call is refused."""
    try:
        call(*given, **named)
    except BadInput as error:
        sentence = str(error)
    else:
        pytest.fail(f"not refused: {given} {named}")
    assert "\n" not in sentence
    assert len(sentence) > 10
    return sentence


@pytest.mark.parametrize("name", DOORS)
def test_a_wrongly_typed_argument_is_one_sentence_and_writes_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, right, _ = DOORS[name]
    for argument, sample in [wrong[1:] for wrong in WRONG if wrong[0] == name]:
        refused(call, **{**right, argument: SAMPLES[sample]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", DOORS)
def test_missing_unknown_and_surplus_arguments_are_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, right, _ = DOORS[name]
    parameters = inspect.signature(call).parameters.values()
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            rest = {word: value for word, value in right.items() if word != parameter.name}
            assert f"'{parameter.name}'" in refused(call, **rest)
    assert "unknown" in refused(call, **right, colour=1) or name == "trial_at"
    if not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        refused(call, *[1] * 30)
    assert list(tmp_path.iterdir()) == []


def test_every_public_function_is_listed():
    def public(thing, prefix=""):
        return {
            f"{prefix}{name}"
            for name, one in vars(thing).items()
            if inspect.isfunction(one) and name[0] != "_"
        }

    functions = {name for name in lm.__all__ if callable(getattr(lm, name))} - {"BadInput"}
    for kind in (Study, Figure, lm.Sweep, lm.Axis, Descent):
        functions |= public(kind, f"{kind.__name__}.")
    functions |= {f"data.{name}" for name in data.__all__ if inspect.isfunction(getattr(data, name))}
    functions -= {
        f"Figure.{name}" for name in ("sweep", "picture", "labels", "derived")
    }  # a figure's own functions
    assert functions - DOORS.keys() - FREE == set()


def test_the_sentence_says_what_was_given_and_what_is_taken():
    assert refused(lm.run, None) == "'sweep' of run takes a Sweep, not None."
    assert refused(lm.run, SWEEP, workers="2") == "'workers' of run takes a whole number, not '2'."
    assert refused(lm.run, SWEEP, wokers=2).startswith(
        "unknown argument of run 'wokers'; did you mean 'workers'?"
    )
    assert refused(lm.train, Decay) == "'trial' of train takes a Trial, not the class Decay."
    assert refused(lm.axis, "rate", "0.5") == "'values' of axis takes a list of values, not '0.5'."
    assert refused(FIGURE.run, wokers=2).startswith(
        "unknown argument of Figure.run 'wokers'; did you mean 'workers'?"
    )
    assert refused(lm.Sweep, Decay(), lm.axis("rate", (1,)), (0,)) == (
        "'axes' of Sweep takes a tuple of Axis objects, not an Axis."
    )
    assert refused(STUDY.check, MADE, 3) == "'results' of Study.check takes a Dataset, not 3."
    assert (
        refused(FIGURE.run, "smoke", executor=4)
        == "'executor' of Figure.run takes an Executor or None, not 4."
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: lm.train(Decay(rate="fast")), "'rate' of toys/decay takes a number, not 'fast'"),
        (lambda: lm.Sweep(Decay(precision="half"), (), (0,)), "'precision' of toys/decay takes 'float32' or"),
        (lambda: lm.train(Decay(), key=jax.numpy.ones(3)), "takes one random key"),
        (lambda: lm.train(Decay(), 10**5000), "a seed lies within 64 bits"),
        (lambda: lm.Sweep(Decay(), (), (1, 1)), "the sweep holds a seed twice"),
        (
            lambda: lm.Sweep(Decay(), (lm.axis("rate", (1,), name="seed"),), (0,)),
            "cannot be the name of an axis",
        ),
        (lambda: lm.axis("rate", [np.ones(2)]), "axis 'rate' takes numbers, words or tuples"),
        (lambda: lm.Axis("a", (1,), lambda trial, value: None).apply(Decay(), 1), "must return a trial"),
        (lambda: by_scale("huge", 1, 2, 3), "takes 'smoke' or 'quick' or 'paper', not 'huge'"),
        (lambda: FIGURE.draw(MADE), "these results do not say that they belong to"),
        (lambda: STUDY.predict(Decay()), "the formulas of 'benign-overfitting' take a BenignOverfitting"),
        (lambda: results.over_cells(MADE, lambda trial: None), "must return a number, not None"),
        (lambda: results.trial_at(MADE, rate=7.0), "is no place in these results"),
    ],
)
def test_values_of_the_right_kind_that_cannot_be_used_are_one_sentence(call, sentence):
    assert sentence in refused(call)


def test_numbers_of_numpy_are_numbers():
    sweep = lm.Sweep(Decay(), (lm.axis("rate", np.array([0.5, 0.6])),), (np.int64(1), 2))
    assert sweep.dims == {"rate": (0.5, 0.6), "seed": (1, 2)}
    assert int(lm.train(Decay(rate=np.float64(0.5)), seed=np.int64(1))["steps"]) == 10


def test_no_module_hides_a_public_function():
    """A package that is loaded becomes an attribute of the one around it: `lm.studies()` worked once."""
    assert set(lm.studies()) == set(lm.studies())
    assert [name for name in lm.__all__ if inspect.ismodule(getattr(lm, name))] == []


def test_the_picture_of_results_is_drawn_with_their_verdicts():
    assert isinstance(lm.picture(synthetic(FIGURE)), matplotlib.figure.Figure)


@pytest.mark.parametrize("name", lm.__all__)
def test_every_public_name_shows_an_example(name):
    assert ">>> " in (getattr(lm, name).__doc__ or "")
