"""A pool runs every task once, whatever happens to its workers."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from lemmata import guard
from lemmata.errors import BadInput
from lemmata.lab import pool as pool_module
from lemmata.lab.pool import Lost, Pool, TimeLimit
from lemmata.lab.process import LARGE_PAGES, ONE_THREAD, Worker, large_pages, prestart_workers
from tests import toys
from tests.lab.chores import Batch, meet, not_sendable, square, talk, wait_for_peace, where, who

ROOT = Path(__file__).parents[2]


def squared(results) -> dict[int, int]:
    """Return all squares in the results, each number once."""
    pairs = [pair for _, part in results if not isinstance(part, Exception) for pair in part]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def alive(pool: Pool) -> list[int]:
    return [worker.process.pid for worker in pool._alive]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(pool_module, "RETRY_PAUSE_SECONDS", 0.2)


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as two:
        yield two


def wait_until(met, seconds=60):
    deadline = time.time() + seconds
    while not met():
        assert time.time() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [0, 2])
def test_parts_of_results_come_one_by_one_with_what_was_left_of_their_task(workers):
    with Pool(workers) as pool:
        results = list(pool.run(square, [Batch((1, 2)), Batch((3,))]))
    assert squared(results) == {1: 1, 2: 4, 3: 9}
    assert {task.numbers for task, _ in results} == {(1, 2), (2,), (3,)}


def test_tasks_are_taken_only_when_somebody_is_free(pool):
    taken = []

    def tasks():
        for number in range(6):
            taken.append(number)
            yield Batch((number,))

    results = pool.run(square, tasks())
    next(results)
    assert len(taken) <= 2
    assert len(list(results)) == 5


def test_workers_are_kept_from_one_run_to_the_next_and_none_is_started_for_nothing(tmp_path):
    with Pool(2) as pool:
        list(pool.run(who, []))
        assert alive(pool) == []
        [(_, one)] = pool.run(who, [1])
        assert alive(pool) == [one]
        first = {pid for _, pid in pool.run(meet, [(tmp_path, 2)] * 2)}
        assert first == set(alive(pool)) > {one}
        assert {pid for _, pid in pool.run(meet, [(tmp_path, 2)] * 2)} <= first
        assert set(alive(pool)) == first


def test_workers_called_early_are_those_of_the_next_pool_and_end_when_nobody_needs_them(monkeypatch):
    started, start = [], Worker.start

    def seen(slot, module):
        started.append(start(slot, module))
        return started[-1]

    monkeypatch.setattr(Worker, "start", staticmethod(seen))
    with prestart_workers(2, who.__module__):
        first, second = (worker.process for worker in started)
        with Pool(2) as pool:
            assert [pid for _, pid in pool.run(who, [1])] == [first.pid]
        assert second.poll() is None
    assert second.poll() is not None
    assert len(started) == 2


def test_a_worker_has_one_core_one_thread_large_pages_the_guard_and_the_path_of_its_driver(pool):
    [(_, found)] = pool.run(where, [None])
    assert found["path"] == sys.path
    assert len(found["cores"]) == 1
    assert all(flag in found["flags"] for flag in ONE_THREAD)
    assert LARGE_PAGES in found["tunables"]
    assert guard.FLAG in found["flags"] or guard._release() < guard.FIRST_BAD
    assert not found["jax"]


def test_what_its_user_told_the_c_library_is_kept():
    told = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}
    large_pages(told)
    assert told["GLIBC_TUNABLES"] == f"glibc.malloc.arena_max=2:{LARGE_PAGES}"
    own = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}
    large_pages(own)
    assert own["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=0"


@pytest.mark.parametrize("sizes", [(20, 15, 15), (21, 14, 13), (18, 16, 14)])
def test_small_products_compile_in_little_memory_for_a_worker(sizes):
    """With one thread, LLVM took more than 20 GB for these products."""
    code = f"""
        import resource
        from lemmata.lab.process import one_thread
        one_thread()
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30,) * 2)
        import jax
        m, k, n = {sizes}
        jax.jit(jax.numpy.matmul)(jax.numpy.ones((m, k), "float32"), jax.numpy.ones((k, n), "float32"))
    """
    as_users_do = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    program = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(program, capture_output=True, text=True, env=as_users_do)
    assert done.returncode == 0, done.stderr[-500:]


def test_once_jax_has_started_a_worker_may_run_on_any_core():
    """Otherwise two commands with one worker each would share the first core while the others are idle."""
    with Pool(1) as pool:
        assert [found for _, found in pool.run(toys.cores, [None])] == [os.sched_getaffinity(0)]


def test_what_workers_print_does_not_reach_the_output_of_the_driver(pool, capfd):
    list(pool.run(talk, ["noise"]))
    assert capfd.readouterr() == ("", "")


def test_an_exception_is_given_back_and_ends_nothing(pool):
    results = list(pool.run(square, [Batch((1, -3, 2)), Batch((4,))]))
    assert squared(results) == {1: 1, 4: 16}
    [(task, error)] = [result for result in results if isinstance(result[1], Exception)]
    assert task.numbers == (-3, 2)
    assert str(error) == "three"


def test_a_result_or_a_task_that_cannot_be_sent_is_an_exception(pool):
    [(_, error)] = pool.run(not_sendable, [1])
    assert isinstance(error, Exception)
    [(_, error)] = pool.run(who, [lambda: None])
    assert isinstance(error, Exception)
    assert len(list(pool.run(who, range(4)))) == 4


def test_a_cell_that_kills_its_worker_is_found_and_takes_no_other_with_it(pool):
    numbers = (*range(10), -1, *range(10, 20))
    results = list(pool.run(square, [Batch(numbers), Batch((30, 31))]))
    assert squared(results) == {n: n * n for n in (*range(20), 30, 31)}
    [(task, error)] = [result for result in results if isinstance(result[1], Exception)]
    assert task.numbers == (-1,)
    assert isinstance(error, Lost)
    assert str(error).startswith("3 times, with no other cell at work, its worker was killed by SIGKILL")
    assert "this is the end" in str(error)


def test_a_cell_is_not_blamed_for_kills_that_hit_all_workers_however_often(tmp_path):
    """Two cells, each alone in its worker: both workers are killed five times while the cells are at work."""
    results, kills = [], []

    def kill_all():
        while len(kills) < 5:
            there = [
                path
                for path in tmp_path.iterdir()
                if path.name not in kills and Path("/proc", path.name).exists()
            ]
            if there and len(pool._alive) == 2 and all(worker.ready for worker in pool._alive):
                kills.append(there[0].name)
                for worker in tuple(pool._alive):
                    worker.process.send_signal(signal.SIGKILL)
            time.sleep(0.01)
        (tmp_path / "over").touch()

    with Pool(2) as pool:
        killer = threading.Thread(target=kill_all)
        killer.start()
        results = list(pool.run(wait_for_peace, [tmp_path] * 2))
        killer.join()
    assert [result for _, result in results] == ["done"] * 2


def test_a_cell_whose_worker_is_killed_waits_until_no_other_is_at_work(pool):
    results = list(pool.run(square, [Batch((-1,)), *(Batch((n,), 0.05) for n in range(8))]))
    assert [isinstance(result, Lost) for _, result in results] == [False] * 8 + [True]


def test_workers_that_are_killed_for_ever_end_the_run_with_a_sentence(monkeypatch):
    monkeypatch.setattr(pool_module, "MAX_KILLED_TOGETHER", 1)
    monkeypatch.setattr(Pool, "_idle_was_killed", lambda self, since: True)
    with (
        Pool(1) as pool,
        pytest.raises(BadInput, match="something kills all worker processes again and again"),
    ):
        list(pool.run(square, [Batch((-1,))]))


def test_workers_killed_all_at_once_again_and_again_lose_nothing_and_parallel_work_goes_on(tmp_path):
    batches = [Batch(tuple(range(begin, begin + 20)), 0.01) for begin in range(0, 200, 20)]
    results = []
    with Pool(3) as pool:
        for result in pool.run(square, batches):
            results.append(result)
            if len(results) in (15, 30, 45, 60, 75):
                for pid in alive(pool):
                    os.kill(pid, signal.SIGKILL)
        assert squared(results) == {n: n * n for n in range(200)}
        assert len({pid for _, pid in pool.run(meet, [(tmp_path, 3)] * 3)}) == 3


def test_a_cell_that_takes_too_long_is_found_by_its_time_limit(monkeypatch):
    monkeypatch.setattr("lemmata.lab.process.CHUNK_GRACE_SECONDS", 0.0)
    with Pool(2, limit=0.5) as pool:
        results = list(pool.run(square, [Batch((1, -2, 2)), Batch((3,))]))
    assert squared(results) == {1: 1, 2: 4, 3: 9}
    [(task, error)] = [result for result in results if isinstance(result[1], Exception)]
    assert task.numbers == (-2,)
    assert isinstance(error, TimeLimit)
    with pytest.raises(BadInput, match="time limit needs worker processes"):
        Pool(0, limit=1.0)


def test_a_run_that_is_left_early_leaves_no_answers_for_the_next(pool):
    results = pool.run(square, [Batch(tuple(range(100)), 0.01), Batch(tuple(range(100, 200)), 0.01)])
    next(results)
    results.close()
    assert squared(pool.run(square, [Batch((7,))])) == {7: 49}


def test_workers_that_cannot_start_are_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "lemmata").mkdir()
    (tmp_path / "lemmata" / "__init__.py").write_text("raise ImportError('broken installation')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with (
        Pool(2) as pool,
        pytest.raises(
            BadInput, match="cannot be started: its worker ended with exit code 1: ImportError: broken"
        ),
    ):
        list(pool.run(who, range(3)))
    assert alive(pool) == []


# Executors ---------------------------------------------------------------------------------------------------------------


def test_any_executor_will_do():
    with ThreadPoolExecutor(2) as threads:
        pool = Pool(executor=threads)
        assert pool.workers == 2
        results = list(pool.run(square, [Batch((n, n + 100)) for n in range(10)] + [Batch((-3,))]))
    assert squared(results) == {n: n * n for n in (*range(10), *range(100, 110))}
    assert [str(error) for _, error in results if isinstance(error, Exception)] == ["three"]


class Breaking(Executor):
    """An executor whose workers die. Each death breaks the task; after three the executor is broken."""

    def __init__(self):
        self.submitted = 0

    def submit(self, *_):
        self.submitted += 1
        if self.submitted > 4:
            raise BrokenExecutor("all gone")
        future = Future()
        future.set_exception(BrokenExecutor("a worker died"))
        return future


def test_an_executor_that_is_broken_is_one_sentence_and_a_task_that_breaks_it_is_given_up():
    with pytest.raises(BadInput, match="takes no more work: all gone"):
        list(Pool(executor=Breaking()).run(square, [Batch((1, 2))]))
    [(_, error)] = Pool(executor=Breaking()).run(square, [Batch((1,))])
    assert isinstance(error, Lost)


def test_an_executor_that_returns_nothing_for_long_is_asked_for_its_workers(monkeypatch):
    """Dask uses this to report a cluster without workers."""
    monkeypatch.setattr(pool_module, "EXECUTOR_CHECK_SECONDS", 0.0)

    class Idle(Executor):
        def submit(self, work, *_):
            self.future = Future()
            return self.future

        def check_workers(self):
            self.future.set_result([None])

    assert len(list(Pool(executor=Idle()).run(who, [1]))) == 1


# Drivers -----------------------------------------------------------------------------------------------------------------


def driver(tmp_path, code: str, **options) -> subprocess.Popen:
    (tmp_path / "driver.py").write_text(code)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}
    return subprocess.Popen([sys.executable, "driver.py"], cwd=tmp_path, env=env, text=True, **options)


def test_workers_do_not_outlive_a_driver_that_was_killed(tmp_path):
    code = (
        "from pathlib import Path; from lemmata.lab.pool import Pool; from tests.lab.chores import sleep_and_tell\n"
        "list(Pool(1).run(sleep_and_tell, [Path('pid')]))"
    )
    with driver(tmp_path, code) as process:
        told = tmp_path / "pid"
        wait_until(lambda: told.exists() and told.read_text())
        process.kill()
    wait_until(lambda: not Path(f"/proc/{told.read_text()}").exists())
