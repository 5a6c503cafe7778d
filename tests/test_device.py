"""Workers train on the CPU unless somebody says otherwise; what can be tested of a GPU without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lemmata as lm
from lemmata import device
from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.lab import process
from lemmata.lab.pool import Pool
from tests.toys import Square

ROOT = Path(__file__).parents[1]
SWEEP = lm.Sweep(Square(), (lm.axis("value", (2.0, 3.0)),), (0,))
VARIABLES = ("LEMMATA_DEVICE", "JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE")


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """No device is chosen, and what a command chooses is forgotten."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)


def worker_environment():
    return {
        name: value for name, value in process._environment().items() if name in (*VARIABLES, "XLA_FLAGS")
    }


def test_workers_train_on_the_cpu_by_default():
    found = worker_environment()
    assert found["JAX_PLATFORMS"] == "cpu"
    assert "gpu" not in found["XLA_FLAGS"]


@pytest.mark.parametrize("platform", ["cuda", "rocm", "cuda,cpu"])
def test_the_platform_of_jax_is_that_of_the_worker(monkeypatch, platform):
    monkeypatch.setenv("JAX_PLATFORMS", platform)
    found = worker_environment()
    assert found["JAX_PLATFORMS"] == platform
    assert found["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert "--xla_gpu_deterministic_ops=true" in found["XLA_FLAGS"].split()


def test_a_worker_on_the_gpu_lets_jax_look_for_it_though_its_driver_uses_the_cpu(monkeypatch):
    monkeypatch.setenv("LEMMATA_DEVICE", "gpu")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    found = worker_environment()
    assert "JAX_PLATFORMS" not in found
    assert found["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_one_gpu_takes_one_worker(monkeypatch):
    Pool(2).close()
    monkeypatch.setenv("LEMMATA_DEVICE", "gpu")
    Pool(1).close()
    with pytest.raises(BadInput, match="the device 'gpu' takes one worker process, not 2"):
        Pool(2)
    with pytest.raises(BadInput, match="takes one worker process, not 3"):
        lm.run(SWEEP, workers=3)


def test_a_run_in_this_process_without_a_gpu_is_refused_before_anything_is_written(monkeypatch, tmp_path):
    monkeypatch.setenv("LEMMATA_DEVICE", "gpu")
    with pytest.raises(BadInput, match="JAX finds no GPU here, only 'cpu'"):
        lm.run(SWEEP, out=tmp_path / "o")
    assert list(tmp_path.iterdir()) == []


def test_a_worker_without_its_gpu_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("LEMMATA_DEVICE", "gpu")
    with pytest.raises(
        BadInput, match=r"worker processes cannot be started: .*JAX finds no GPU here, only 'cpu'"
    ):
        lm.run(SWEEP, workers=1)


@pytest.mark.parametrize("call", ["lm.train(Decay())", "lm.run(lm.Sweep(Decay(), (), (0,)))"])
def test_a_platform_that_is_not_there_is_one_sentence(call):
    code = (
        f"import lemmata as lm; from tests.toys import Decay\ntry: {call}\n"
        "except lm.BadInput as error: print(error)"
    )
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {**os.environ, "JAX_PLATFORMS": "cuda", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.startswith("JAX does not find the device 'cuda' here ("), done.stderr
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "gpu", "--workers", "2"], "the device 'gpu' takes one worker process, not 2"),
        (["--device", "gpu", "--on", "dask"], "the workers of a Dask cluster train on the CPU"),
        (["--device", "gpu", "--workers", "0"], "JAX finds no GPU here"),
    ],
)
def test_what_the_command_cannot_do_with_a_gpu_is_one_sentence(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "benign-overfitting/fig4", "--scale", "smoke", *words]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert list(tmp_path.iterdir()) == []


def test_a_command_says_that_verdicts_are_calibrated_on_the_cpu_where_another_device_trains(capsys):
    assert main(["check", "benign-overfitting/no-claim", "--device", "gpu"]) == 2
    assert "verdicts are calibrated on the CPU" in capsys.readouterr().err
    assert main(["check", "benign-overfitting/no-claim", "--device", "cpu"]) == 2
    assert "calibrated" not in capsys.readouterr().err


def test_the_driver_of_workers_uses_the_cpu_and_tells_them_the_device(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    assert main(["check", "benign-overfitting/no-claim"]) == 2
    assert os.environ["JAX_PLATFORMS"] == "cpu"
    assert worker_environment()["JAX_PLATFORMS"] == "cuda"


def test_the_device_of_this_process_has_a_name():
    assert device.used() == "cpu"
