"""One descent."""

from typing import ClassVar

from lemmata.descent import Descent, Draw, Learner
from lemmata.trial import Key, Precision, Record, fixed

from .data import Bowl
from .network import height


class Descending(Learner):
    """Plain gradient descent from a random point; arms that differ in the descent start at the same point."""

    name: ClassVar[str] = "skeleton/descending"
    paired: ClassVar[tuple[str, ...]] = ("descent",)

    data: Bowl = Bowl()
    descent: Descent = Descent(learning_rate=0.1, target_loss=1e-3, steps=2000, logs=12)
    precision: Precision = fixed(default="float64")

    def draw(self, key: Key) -> Draw:
        return Draw(params=self.data.draw(key), data=None)

    def objective(self, params, batch, world, key):
        return height(self.data.curvature, params)

    def watch(self, state) -> Record:
        return {"loss": state.fit.loss}

    def record(self, state) -> Record:
        return {"loss": state.fit.loss}
