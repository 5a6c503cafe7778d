"""The same trial with the same seed has the same identity and the same draws everywhere, on every release.

The numbers below were made by Python 3.11 with JAX 0.10.2. A change of one is a change of what users have published: records of
that trial get other identities, and seeds other samples.
"""

import importlib

import jax
import numpy as np
import pytest

from lemmata import guard
from lemmata.threefry import new_key
from lemmata.trial import identity, key_number, random_key

SEED = 7
PINNED = [
    ("benign_overfitting", "BenignOverfitting", "ab69475e91947a3d", 4110335624981703557, 2139832825),
    ("chain_of_thought", "Reasoning", "e820ae667b0af27e", 6624909546716687902, 3838526033),
    ("gcn_sampling", "Draws", "d21aba36a17b49ec", 7569808920579777782, 318890977),
    ("graph_transformer", "GraphTraining", "2f15191360135b5a", 3272104046028234724, 4148132110),
    ("group_imbalance", "Starts", "ecbb73826b6b94ff", 2249073582130050954, 2552883671),
    ("in_context_learning", "Layer", "f42f1cf1dbcdabe0", 6330500723399281526, 2147647219),
    ("multihead", "Training", "6a53f6a6590b3b07", 6353361522197194934, 467741833),
    ("shallow_vit", "ViTTraining", "31852fa95bbe4b57", 8024916228965035045, 120002860),
    ("spatial_structure", "Illustration", "0cdf574e687181f4", 6228250921422679070, 113241597),
]


@pytest.mark.parametrize(("study", "kind", "id", "number", "bits"), PINNED)
def test_a_trial_of_each_study_keeps_its_identity_and_its_first_draw(study, kind, id, number, bits):
    trial = getattr(importlib.import_module(f"lemmata.studies.{study}.trials"), kind)()
    assert identity(trial, SEED) == id
    assert key_number(trial, SEED) == number
    with guard.double():
        assert jax.random.bits(random_key(trial, SEED), dtype="uint32") == bits


def test_draws_of_every_kind_stay_the_same():
    with guard.double():
        key = new_key(6228250921422679070)
        assert jax.random.randint(key, (3,), 0, 1000).tolist() == [426, 128, 41]
        assert jax.random.permutation(key, 6).tolist() == [1, 3, 2, 5, 0, 4]
        assert jax.random.choice(key, 10, (3,), replace=False).tolist() == [1, 3, 6]
        assert jax.random.categorical(key, np.zeros(5), shape=(5,)).tolist() == [2, 2, 4, 0, 0]
        assert jax.random.rademacher(jax.random.fold_in(key, 3), (6,)).tolist() == [1, -1, 1, -1, -1, -1]
        assert jax.random.uniform(key).item() == pytest.approx(0.40509095703696074, rel=1e-15)
        assert jax.random.normal(key, dtype="float32").item() == pytest.approx(-1.9371085, rel=1e-6)
