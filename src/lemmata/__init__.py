"""Lemmata: a laboratory for theorems about how attention models train.

>>> import lemmata as lm
>>> study = lm.study("benign-overfitting")
>>> study.title
'Benign overfitting of a transformer'
"""

from lemmata.errors import BadInput
from lemmata.study import study

__all__ = ["BadInput", "study"]
__version__ = "0.1.0"
