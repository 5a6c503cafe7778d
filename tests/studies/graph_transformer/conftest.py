"""Small graphs that the tests share."""

import pytest

from lemmata.studies.graph_transformer.figures import small, template


@pytest.fixture(scope="session")
def little():
    """A graph of 60 nodes and a network of 16 neurons, in double precision."""
    return small(template())
