"""Kernels are compiled once, and left out where they cannot be."""

import shutil

import jax
import jax.numpy as jnp
import pytest

from lemmata import native

TWICE = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
ffi::Error twice(ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y) {
  for (size_t n = 0; n < x.element_count(); ++n) y->typed_data()[n] = 2 * x.typed_data()[n];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(twice_float64, twice,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>());
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "cache"))

    def written(text):
        path = tmp_path / "twice.cc"
        path.write_text(text)
        native.loaded.cache_clear()
        return path

    yield written
    native.loaded.cache_clear()


@pytest.mark.skipif(not shutil.which("c++"), reason="there is no C++ compiler")
def test_a_kernel_is_compiled_once_and_called_from_compiled_programs(kernel, tmp_path):
    assert native.loaded(kernel(TWICE), "twice_float64")
    [library] = (tmp_path / "cache" / "kernels").glob("*.so")
    made = library.stat().st_mtime_ns
    twice = jax.jit(jax.ffi.ffi_call("twice_float64", jax.ShapeDtypeStruct((3,), jnp.float64)))
    assert twice(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert native.loaded(kernel(TWICE), "twice_float64")
    assert [one.stat().st_mtime_ns for one in library.parent.glob("*.so")] == [made]


@pytest.mark.skipif(not shutil.which("c++"), reason="there is no C++ compiler")
def test_kernels_prepared_by_one_process_are_found_by_others(kernel, tmp_path, monkeypatch):
    """One that does not compile keeps nobody from the others."""
    monkeypatch.setattr(native, "HOME", tmp_path)
    (tmp_path / "broken.cc").write_text("this is no C++")
    path = kernel(TWICE.replace("twice_float64", "double_float64"))
    native.prepare(tmp_path / "nothing")
    made = [one.stat().st_mtime_ns for one in (tmp_path / "cache" / "kernels").glob("*.so")]
    assert len(made) == 1
    assert native.loaded(path, "double_float64")
    assert [one.stat().st_mtime_ns for one in (tmp_path / "cache" / "kernels").glob("*.so")] == made


def test_headers_of_xla_are_where_jax_says():
    assert native.xla_headers().samefile(jax.ffi.include_dir())


def test_a_kernel_that_does_not_compile_is_left_out(kernel):
    assert not native.loaded(kernel("this is no C++"), "twice_float64")


def test_a_kernel_is_left_out_where_there_is_no_compiler(kernel, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert not native.loaded(kernel(TWICE), "twice_float64")


def test_a_kernel_is_left_out_where_nothing_can_be_written(kernel, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "file"))
    assert not native.loaded(kernel(TWICE), "twice_float64")
