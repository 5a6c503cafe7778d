"""Pickles are read without running what they name."""

import collections
import os
import pickle
import pickletools
import subprocess

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lemmata.data import unpickle as module
from lemmata.data.unpickle import Matrix, array_of, unpickle
from lemmata.errors import BadInput


class Calls:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_calls_a_function_is_refused_and_not_run(tmp_path, protocol):
    mark = tmp_path / "mark"
    data = pickle.dumps({"data": Calls(os.system, f"touch {mark}")}, protocol)
    with pytest.raises(BadInput, match="system"):
        unpickle(data, "evil")
    assert not mark.exists()
    pickle.loads(data)  # the pickle is a real one: read without care, it runs
    assert mark.exists()


@pytest.mark.parametrize(
    "value",
    [
        Calls(subprocess.call, "true"),
        Calls(eval, "1"),
        Calls(getattr, "", "join"),
        Calls(np.load, "x", None, True),
        Calls(open, "x"),
        collections.OrderedDict(),
        np.random.default_rng(0),
    ],
)
def test_everything_else_than_arrays_dicts_and_matrices_is_refused(value):
    with pytest.raises(BadInput, match="it names"):
        unpickle(pickle.dumps(value, 2), "evil")


@pytest.mark.parametrize(
    "array", [np.arange(6, dtype=">i4").reshape(2, 3), np.ones((2, 2), np.float32), np.eye(3).T]
)
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_arrays_come_out_as_they_were(array, protocol):
    found = array_of(unpickle(pickle.dumps(array, protocol), "good"), "good")
    assert np.array_equal(found, array)


def test_the_names_that_old_numpy_and_scipy_wrote_are_known():
    data = pickle.dumps({"a": np.arange(3, dtype=np.uint8), "m": csr_matrix(np.eye(2))}, 2)
    old = data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray").replace(
        b"scipy.sparse._csr", b"scipy.sparse.csr"
    )
    assert old != data
    found = unpickle(old, "old")
    assert array_of(found["a"], "old").tolist() == [0, 1, 2]
    assert isinstance(found["m"], Matrix)
    assert array_of(found["m"].part("data"), "old").tolist() == [1, 1]


def test_a_defaultdict_becomes_a_dict():
    graph = collections.defaultdict(list, {0: [1], 1: [0]})
    found = unpickle(pickle.dumps(graph, 2), "graph")
    assert type(found) is dict
    assert found == {0: [1], 1: [0]}


@pytest.mark.parametrize("array", [np.array([{}], object), np.array(["text"]), np.array([1 + 1j])])
def test_arrays_of_anything_but_numbers_are_refused(array):
    with pytest.raises(BadInput, match="does not hold numbers"):
        array_of(unpickle(pickle.dumps(array, 2), "evil"), "evil")


@pytest.mark.parametrize("shape", [(4,), (-1,), (2**40, 2**40), [3], "3"])
def test_an_array_whose_shape_does_not_fit_its_bytes_is_refused(shape):
    array = module.Array()
    kind = module.Kind("u1")
    array.__setstate__((1, shape, kind, False, b"abc"))
    with pytest.raises(BadInput, match="do not agree"):
        array_of(array, "evil")


def test_a_damaged_pickle_is_refused_wherever_it_is_cut():
    data = pickle.dumps({"data": np.arange(10), "labels": [1, 2]}, 2)
    ends = [position for _, _, position in pickletools.genops(data) if position]
    for end in ends:
        with pytest.raises(BadInput, match="refused"):
            unpickle(data[:end], "cut")
