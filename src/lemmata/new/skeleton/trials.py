"""One training."""

from typing import ClassVar

from lemmata.descent import Descent, Draw, Learner
from lemmata.trial import Key, Precision, Record, fixed

from .data import Bowl
from .network import height


class BowlDescent(Learner):
    """Plain gradient descent from a random point; trials that differ in the descent alone start at the same point."""

    name: ClassVar[str] = "skeleton/descent"
    paired: ClassVar[tuple[str, ...]] = ("descent",)

    data: Bowl = Bowl()
    descent: Descent = Descent(learning_rate=0.1, target_loss=1e-3, steps=5000, logs=12)
    precision: Precision = fixed(default="float64")

    def draw(self, key: Key) -> Draw:
        start = self.data.draw(key)
        return Draw(params=start, data=None, world=height(self.data.curvature, start))

    def objective(self, params, batch, world, key):
        return height(self.data.curvature, params)

    def watch(self, state) -> Record:
        return {"loss": state.fit.loss}

    def record(self, state) -> Record:
        """The loss at the end, and its ratio to the first loss."""
        return {"loss": state.fit.loss, "shrink": state.fit.loss / state.world}
