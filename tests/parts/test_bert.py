"""The encoder with the weights of the file, against a forward pass written out in NumPy from the same file."""

import os
from math import erf, sqrt
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import data
from lemmata.errors import BadInput
from lemmata.parts.bert import encoder_of, marked, sentences

SHARED = Path(__file__).parents[3] / "shared" / "data" / "text" / "sst2_minilm.npz"


def found():
    """The file of minilm, where it is here, or None."""
    named = os.environ.get("LEMMATA_DATA")
    own = Path(named) / "minilm.npz" if named else None
    return next((path for path in (own, SHARED) if path is not None and path.is_file()), None)


@pytest.fixture
def minilm(tmp_path, monkeypatch):
    source = found()
    if source is None:
        pytest.skip("minilm is not here: set LEMMATA_DATA, or put shared/data beside the project")
    monkeypatch.setenv("LEMMATA_DATA", str(tmp_path))
    data.get("minilm", source)
    return {
        name: array.astype(np.float64) for name, array in data.load("minilm").items() if name.startswith("w/")
    }


def written_out(weights, tokens, heads=12):
    """The states of one sentence after six layers, token by token and head by head, in float64."""

    def get(name):
        return weights[f"w/{name}"]

    def affine(x, name):
        return x @ get(f"{name}/weight").T + get(f"{name}/bias")

    def normed(x, name):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-12) * get(f"{name}/weight") + get(f"{name}/bias")

    gelu = np.vectorize(lambda v: v * (1 + erf(v / sqrt(2))) / 2)
    x = get("embeddings/word_embeddings/weight")[tokens]
    x = x + get("embeddings/position_embeddings/weight")[: len(tokens)]
    x = normed(x + get("embeddings/token_type_embeddings/weight")[0], "embeddings/LayerNorm")
    each = x.shape[1] // heads
    for i in range(6):
        at = f"layer/{i}"
        query, key, value = (affine(x, f"{at}/attention/self/{part}") for part in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for h in range(heads):
            own = slice(h * each, (h + 1) * each)
            logits = query[:, own] @ key[:, own].T / sqrt(each)
            share = np.exp(logits - logits.max(1, keepdims=True))
            mixed[:, own] = share / share.sum(1, keepdims=True) @ value[:, own]
        x = normed(x + affine(mixed, f"{at}/attention/output/dense"), f"{at}/attention/output/LayerNorm")
        inner = gelu(affine(x, f"{at}/intermediate/dense"))
        x = normed(x + affine(inner, f"{at}/output/dense"), f"{at}/output/LayerNorm")
    return x


@pytest.mark.slow
def test_the_encoder_reproduces_the_states_of_twenty_sentences(minilm):
    some = sentences("dev", 64)
    pieces, lengths = jnp.asarray(some.pieces[:20], jnp.int32), jnp.asarray(some.lengths[:20])
    states = np.asarray(encoder_of(minilm, 12)(pieces, marked(lengths, 64)))
    for own, tokens, length in zip(states, some.pieces, some.lengths, strict=False):
        np.testing.assert_allclose(own[:length], written_out(minilm, tokens[:length].astype(int)), atol=1e-3)


@pytest.mark.slow
def test_sentences_come_back_in_words(minilm):
    some, words = sentences("train", 64), data.load("minilm")["vocabulary"]
    first = [str(words[piece]) for piece in some.pieces[0][: some.lengths[0]]]
    assert (first[0], first[-1]) == ("[CLS]", "[SEP]")
    assert len(some.labels) == 6920
    assert 0.5 < some.labels.mean() < 0.54


def test_a_file_without_sentences_is_refused(monkeypatch):
    monkeypatch.setattr("lemmata.parts.bert.load", lambda name: {"vocabulary": np.array(["a"])})
    with pytest.raises(BadInput, match="holds no sentences of SST-2"):
        sentences("train", 8)
