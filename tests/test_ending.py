"""Ctrl-C and SIGTERM, wherever they fall: the end comes at once, with a sentence and a code of its own, and nothing is torn."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lemmata.lab.store import Store

ROOT = Path(__file__).parents[1]

HANGING = """
import sys, time, os
from pathlib import Path
from lemmata import ending
ending.install_signal_handlers()
def hang(*_, **__):
    Path("there").touch()
    while True:
        time.sleep(600)
"""

PHASES = {
    "import": """
class Hanging:
    def find_spec(self, name, *_):
        if name == "equinox":
            hang()
sys.meta_path.insert(0, Hanging())
""",
    "compile": """
from lemmata.lab import work
def compile_for_long(*_):
    import jax, jax.numpy as jnp
    def program(x):
        for _ in range(3000):
            x = jnp.sin(x) @ x
        return x
    lowered = jax.jit(program).lower(jnp.ones((9, 9)))
    Path("there").touch()
    while True:
        lowered.compile()
work.run_block = compile_for_long
""",
    "run": """
from lemmata.lab import work
def run_for_ever(*_):
    import jax
    Path("there").touch()
    jax.lax.while_loop(lambda x: x >= 0, lambda x: x * 1.0, 0.0).block_until_ready()
work.run_block = run_for_ever
""",
    "write": """
flush = os.fsync
def hang_in_a_segment(handle):
    if "segments" in os.readlink(f"/proc/self/fd/{handle}"):
        hang()
    flush(handle)
os.fsync = hang_in_a_segment
""",
    "draw": """
from matplotlib.figure import Figure
Figure.savefig = hang
""",
}

RUN = """
from lemmata.cli import main
sys.exit(main(["run", "benign-overfitting/fig1", "--scale", "smoke", "--workers", "0", "--out", "store"]))
"""


def ended(folder, code, sent):
    """Exit code and standard error of a program that was sent a signal when it had got where it hangs."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, cwd=folder, env=env, text=True, stderr=subprocess.PIPE) as process:
        deadline = time.time() + 120
        while not (folder / "there").exists():
            assert time.time() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(sent)
        began = time.time()
        _, said = process.communicate(timeout=60)
    assert time.time() - began < 5
    return process.returncode, said


CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.mark.parametrize(("sent", "code"), CODES)
def test_the_end_comes_at_once_with_one_sentence_after_the_last_acts(tmp_path, sent, code):
    acts = """
def fail():
    raise ValueError
with ending.on_exit(Path("second").touch), ending.on_exit(fail), ending.on_exit(Path("first").touch):
    hang()
"""
    returned, said = ended(tmp_path, HANGING + acts, sent)
    assert returned == code
    assert "Run the same command again" in said
    assert len(said.strip().splitlines()) == 1
    assert (tmp_path / "first").stat().st_mtime_ns <= (tmp_path / "second").stat().st_mtime_ns


def test_a_last_act_that_takes_for_ever_does_not_keep_the_end_away(tmp_path):
    code = HANGING + "with ending.on_exit(lambda: time.sleep(600)):\n    hang()"
    assert ended(tmp_path, code, signal.SIGTERM)[0] == 143


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), CODES)
@pytest.mark.parametrize("phase", PHASES)
def test_a_run_is_ended_in_any_phase_and_nothing_is_torn(tmp_path, phase, sent, code):
    returned, said = ended(tmp_path, HANGING + PHASES[phase] + RUN, sent)
    assert returned == code
    assert "Traceback" not in said
    assert "Run the same command again" in said
    store = Store(tmp_path / "store")
    if store.exists:
        assert store.problems() == []
        assert (phase == "draw") == (len(store.done()) > 0)
    assert not list(tmp_path.rglob("*.png"))
