"""How arguments are checked under test: shapes by jaxtyping, types by beartype; a number of NumPy's is a number."""

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

NUMBERS = FrozenDict(
    {int: int | np.integer, float: float | int | np.floating | np.integer, bool: bool | np.bool_}
)
checked = beartype(conf=BeartypeConf(hint_overrides=NUMBERS))
