"""Names of fields and records: what they mean in one line, their symbol in the paper, and their unit.

`COMMON` holds for every study. The module `names` of a study has `NAMES`, the same for its own fields (by dotted path, or by
its last word) and records. What neither names is called by its own words.
"""

import importlib.util
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import xarray as xr


class Name(NamedTuple):
    """A meaning in one line, and the paper's symbol; both may be empty."""

    meaning: str
    symbol: str = ""


COMMON: dict[str, Name] = {
    # how a training goes
    "learning_rate": Name("step size", "eta"),
    "target_loss": Name("training loss at which the run stops", "eps"),
    "momentum": Name("share of the last step that is kept"),
    "attention_rate": Name("factor on the step size of queries and keys"),
    "method": Name("plain descent, momentum or Adam"),
    "loss": Name("loss that is minimised"),
    "batches": Name("how samples are taken in a step"),
    "batch": Name("samples in a step", "B"),
    "stop": Name("when a run ends"),
    "descent.steps": Name("largest number of steps", "T"),
    "logs": Name("number of logged steps"),
    "spacing": Name("how logged steps are spaced"),
    "log_at": Name("logged steps, in place of a spacing"),
    "precision": Name("floating type of the training"),
    "simulator": Name("how the training is computed"),
    "probes": Name("what is looked at beside the losses"),
    "test_points": Name("fresh points in the test"),
    "test_samples": Name("samples in the test"),
    "prompts": Name("prompts in the test"),
    # sizes
    "samples": Name("training samples", "N"),
    "tokens": Name("tokens of a sample", "L"),
    "dim": Name("dimension of a token", "d"),
    "patterns": Name("patterns", "M"),
    "neurons": Name("neurons of the hidden layer", "m"),
    "width": Name("width of the network", "m"),
    "heads": Name("attention heads", "H"),
    "key_dim": Name("dimension of queries and keys"),
    "value_dim": Name("dimension of values"),
    "examples": Name("examples in a training prompt", "l_tr"),
    "lengths": Name("examples in a test prompt", "l_ts"),
    "starts": Name("starts of the search"),
    "draws": Name("random draws"),
    # data
    "noise": Name("size of the noise"),
    "relevant_fraction": Name("share of relevant tokens"),
    "confusion_fraction": Name("share of confusion tokens"),
    "match_fraction": Name("share of matching examples"),
    "init_std": Name("standard deviation of the initial weights", "xi"),
    "hidden_std": Name("standard deviation of the initial hidden layer", "xi"),
    "value_error": Name("error of the initial values", "sigma"),
    "query_key_error": Name("error of the initial queries and keys", "delta"),
    "key_query_error": Name("error of the initial queries and keys", "delta"),
    # records
    "status": Name("how the run ended: 1 converged, 2 capped, 3 diverged, 4 failed"),
    "steps": Name("steps until the run ended", "T"),
    "step": Name("step of the training", "t"),
    "log": Name("number of the logged step"),
    "seed": Name("seed of the run"),
    "train_loss": Name("training loss"),
    "test_loss": Name("loss on fresh data"),
    "test_error": Name("share of fresh data with the wrong label"),
    "test_hinge": Name("hinge loss on fresh data"),
    "error": Name("error on fresh data"),
    "attention": Name("attention, by query and key"),
    "margin": Name("margin"),
    "gap": Name("test loss minus training loss"),
    "time": Name("sum of the step sizes so far"),
    "bias": Name("trained bias, by distance", "b"),
}

STEPS = ("steps", "step", "signal_leads", "noise_leads", "slope_leaves", "loss_steps", "event1", "event3")
"""Records that are numbers of steps."""


@cache
def names_near(module: str) -> dict[str, Name]:
    """Return the names of the study to which a module belongs; none if no package above it has a module `names`."""
    package = module
    while package := package.rpartition(".")[0]:
        if package == "lemmata":
            return {}
        if importlib.util.find_spec(f"{package}.names") is not None:
            return importlib.import_module(f"{package}.names").NAMES
    return {}


def name_of(kind: type, path: str) -> Name:
    """Return the name of a field, by dotted path, or of a record of a kind of trial.

    >>> from lemmata import study
    >>> name_of(type(study("benign-overfitting").template()), "data.samples").symbol
    'N'
    """
    known, last = names_near(kind.__module__), path.rpartition(".")[2]
    plain = last.removesuffix("_curve")
    found = next(
        (table[key] for table in (known, COMMON) for key in (path, last, plain) if key in table), None
    )
    if found is None:
        found = Name(plain.replace("_", " "))
    return found._replace(meaning=f"{found.meaning} at the logged steps") if last != plain else found


def described(results: xr.Dataset, paths: Mapping[str, str]) -> xr.Dataset:
    """Give every variable and coordinate the attributes `long_name`, `units` and, where the paper has one, `symbol`.

    `paths`: the dotted paths of the fields that axes set, by axis.
    """
    found, held = results.copy(), np.atleast_1d(results.coords["trial"].values).ravel()
    kinds = [type(one.trial) for one in held if one is not None]
    for name in [name for name in found.variables if name != "trial" and kinds]:
        own = name_of(kinds[0], paths.get(str(name), str(name)))
        steps = str(name).removesuffix("_curve") in STEPS and str(name) not in paths
        attrs = {"long_name": own.meaning, "units": "steps" if steps else "1"}
        if own.symbol:
            attrs["symbol"] = own.symbol
        found[name].attrs |= {key: value for key, value in attrs.items() if key not in found[name].attrs}
    return found
