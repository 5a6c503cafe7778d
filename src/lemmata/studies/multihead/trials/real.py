"""Sentences of SST-2 classified by a BERT encoder with any number of heads, fine-tuned or from scratch (Figure 6)."""

from functools import lru_cache
from math import sqrt
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from lemmata.data import load
from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.parts.bert import Encoder, Sentences, drawn_encoder, encoder_of, marked, sentences
from lemmata.parts.pictures import in_parts
from lemmata.parts.transformers import Dense, dense
from lemmata.trial import Key, Precision, Supply, Tracks, fixed

PIECES, WIDTH, DEPTH, PLACES, TRAINED_HEADS = 12838, 384, 6, 128, 12
"""The encoder of the file: word pieces, width, layers, positions, and the heads that it was trained with."""

AT_ONCE = 109
"""The number of sentences that are tested together; it divides the 872 of the development set."""


class Text(NamedTuple):
    """Sentences for training, and those of the development set."""

    train: Sentences
    dev: Sentences


class Classifier(eqx.Module):
    """An encoder, and an affine map of the state of its first piece."""

    encoder: Encoder
    head: Dense


class RealSentences(Learner):
    """Fine-tunes the encoder of `minilm`, or trains a small one from scratch.

    `start`: weights of the file, or drawn ones of `width` and `depth`.
    `heads`: the number of heads, in place of the 12 that the weights were trained with.
    `scale`: attention logits are divided by the root of the width of their own heads, or of that of 12 heads.
    `text`: SST-2, or made sentences for tests.
    """

    name: ClassVar[str] = "multihead/real-sentences"
    paired: ClassVar[tuple[str, ...]] = ("heads", "scale", "descent")
    lockstep: ClassVar[bool] = False

    heads: int = fixed(default=12)
    scale: Literal["own", "twelve"] = fixed(default="own")
    start_from_file: bool = fixed(default=True)
    text: Literal["sst2", "made"] = fixed(default="sst2")
    sentences: int = fixed(default=6920)
    tests: int = fixed(default=872)
    length: int = fixed(default=64)
    width: int = fixed(default=64)
    depth: int = fixed(default=2)
    descent: Descent = Descent(
        learning_rate=5e-5, method="adam", loss="cross-entropy", batches="epochs", batch=32, stop="cap", steps=216,
        logs=22, spacing="even",
    )  # fmt: skip
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.precision == "float32", "real data are trained in single precision (precision=float32).")
        width = WIDTH if self.start_from_file else self.width
        require(width % self.heads == 0, f"{self.heads} heads do not divide the width {width}.")
        require(self.length <= PLACES, f"the encoder has {PLACES} positions, fewer than {self.length}.")
        require(
            self.text == "sst2" or not self.start_from_file, "made sentences have no word pieces of the file."
        )

    @property
    def data_sets(self) -> tuple[str, ...]:
        return ("minilm",) if self.text == "sst2" else ()

    @property
    def samples(self) -> int:
        return self.sentences

    @property
    def _scale(self) -> float:
        width = WIDTH if self.start_from_file else self.width
        return sqrt(TRAINED_HEADS / width) if self.scale == "twelve" else 0.0

    def supplied(self, key: Key) -> Supply:
        if self.text == "made":
            return Supply()
        train, dev = sentences("train", self.length), sentences("dev", self.length)
        require(self.sentences <= len(train.labels), f"SST-2 has {len(train.labels)} sentences for training.")
        drawn = np.asarray(jax.random.permutation(key, len(train.labels)))[: self.sentences]
        text = Text(_some(train, drawn), _some(dev, np.arange(self.tests)))
        return Supply(
            text,
            self._classifier(key, encoder_of(_weights(), self.heads, self._scale))
            if self.start_from_file
            else None,
        )

    def takes(self, key: Key) -> Taken:
        return Taken("the sentences come from a data set (text).", jax.eval_shape(self._drawn, key))

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def draw_with(self, key: Key, data: Text | None, weights: Classifier | None) -> Draw:
        start, made = jax.random.split(key)
        text = self._made(made) if data is None else data
        return Draw(self._drawn(start) if weights is None else weights, text.train, text.dev)

    def _drawn(self, key: Key) -> Classifier:
        size = (WIDTH, self.heads, DEPTH) if self.start_from_file else (self.width, self.heads, self.depth)
        pieces = PIECES if self.text == "sst2" else 50
        places = PLACES if self.start_from_file else self.length
        return self._classifier(key, drawn_encoder(key, pieces, places, *size, self._scale))

    def _classifier(self, key: Key, encoder: Encoder) -> Classifier:
        return Classifier(encoder, dense(jax.random.fold_in(key, 1), encoder.words.shape[1], 2))

    def _made(self, key: Key) -> Text:
        """Draw sentences whose label says which half of the pieces is more frequent."""

        def drawn(key: Key, count: int) -> Sentences:
            label, piece, which = jax.random.split(key, 3)
            labels = jax.random.randint(label, (count,), 0, 2, jnp.int32)
            own = jax.random.bernoulli(which, 0.8, (count, self.length)) == (labels[:, None] > 0)
            pieces = jax.random.randint(piece, (count, self.length), 0, 25) + 25 * own
            return Sentences(pieces.astype(jnp.uint16), jnp.full(count, self.length, jnp.int32), labels)

        one, other = jax.random.split(key)
        return Text(drawn(one, self.sentences), drawn(other, self.tests))

    def objective(self, params: Classifier, batch: Sentences, world: Sentences, key: Key) -> Float[Array, ""]:
        labels = jnp.asarray(batch.labels)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(self._logits(params, batch), labels))

    def _logits(self, params: Classifier, batch: Sentences) -> Float[Array, "n 2"]:
        there = marked(jnp.asarray(batch.lengths), self.length)
        return params.head(params.encoder(jnp.asarray(batch.pieces).astype(jnp.int32), there)[:, 0])

    def watch(self, state: Learning) -> dict[str, Array]:
        return {"train_loss": self.loss(state)}

    def track(self, state: Learning) -> Tracks:
        return Tracks(total={"loss_sum": self.loss(state)})

    def record(self, state: Learning) -> dict[str, Array]:
        dev: Sentences = state.world
        size = in_parts(self.tests, AT_ONCE)
        parts = jax.tree.map(lambda x: jnp.asarray(x).reshape(-1, size, *x.shape[1:]), dev)
        logits = jax.lax.map(lambda part: self._logits(state.params, part), parts).reshape(self.tests, 2)
        labels = jnp.asarray(dev.labels)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return {"dev_loss": jnp.mean(losses), "accuracy": jnp.mean(jnp.argmax(logits, axis=-1) == labels)}


def _some(given: Sentences, chosen: np.ndarray) -> Sentences:
    return Sentences(*(np.asarray(part)[chosen] for part in given))


@lru_cache(maxsize=1)
def _weights() -> dict[str, np.ndarray]:
    """Return the arrays of the file."""
    return load("minilm")
