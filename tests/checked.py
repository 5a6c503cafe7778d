"""How arguments are checked under test: shapes by jaxtyping, types by beartype; a whole number is a number."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
