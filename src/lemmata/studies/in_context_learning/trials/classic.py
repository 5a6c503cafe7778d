"""Classic learners that are fitted to the contexts of every prompt (figure 6.4)."""

from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.guard import double
from lemmata.parts.baselines import Learnt, classify
from lemmata.studies.in_context_learning.data import Contexts, pattern_frame, tokens
from lemmata.studies.in_context_learning.trials import testing
from lemmata.studies.in_context_learning.trials.testing import DIMS, Place, Testing
from lemmata.trial import Computed, Key, fixed


class Classic(Computed):
    """Fitted to the inputs and labels of the contexts of each prompt, asked for its query; the tests are those of `Layer`.
    Learners have scikit-learn's default settings (C = 1, gamma "scale"); contexts of one class give that class."""

    name: ClassVar[str] = "in-context-learning/classic"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = DIMS
    paired: ClassVar[tuple[str, ...]] = ("method",)

    data: Contexts = Contexts()
    test: Testing = Testing()
    method: Learnt = fixed(default="logistic")

    def __check_init__(self):
        self.test.fits(self.data)

    def compute(self, key: Key) -> dict[str, object]:
        with double():
            frame = pattern_frame(self.data, jnp.float64)
            table, trained = self.data.table(jax.random.fold_in(key, 0))
            inside = testing.in_domain(self.test, self.data, frame, table, trained)
            found: dict[str, object] = {"error": self._errors(inside, jax.random.fold_in(key, 1))}
            outside = []
            for kind in self.test.kinds:
                rows = self.test.rows(kind, self.data.relevant, self.test.coefficient_sum)
                place = testing.out_of_domain(self.test, frame, rows)
                outside.append(self._errors(place, jax.random.fold_in(key, 2)))
            return found | ({"ood_error": np.stack(outside)} if outside else {})

    def _errors(self, place: Place, key: Key) -> np.ndarray:
        """The error on the grid of fractions and lengths."""
        room, test = max(self.test.lengths), self.test

        @jax.jit
        def drawn(fraction, length):
            found = testing.draw(place, key, test.prompts, fraction, length, room, test.selection)
            return found, *tokens(place.frame, found)

        errors = np.zeros((len(test.fractions), len(test.lengths)))
        for i, fraction in enumerate(test.fractions):
            for j, length in enumerate(test.lengths):
                prompts, context, query = drawn(jnp.asarray(fraction, jnp.float64), jnp.asarray(length))
                inputs = np.asarray(context)[:, :length, :-1]
                said = classify(
                    self.method, inputs, np.asarray(prompts.label)[:, :length], np.asarray(query)[:, :-1]
                )
                errors[i, j] = np.mean(said != np.asarray(prompts.target))
        return errors
