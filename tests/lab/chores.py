"""Tasks for tests of the pool. They import little, so that a worker starts fast."""

import os
import signal
import sys
import time
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Batch:
    """Numbers to be squared one by one. -1 kills the process, -2 never ends, -3 raises."""

    numbers: tuple[int, ...]
    seconds: float = 0.0
    at_once: int = 1

    def __len__(self):
        return len(self.numbers)

    def split(self):
        middle = len(self) // 2
        return [
            replace(self, numbers=part) for part in (self.numbers[:middle], self.numbers[middle:]) if part
        ]

    def without(self, squares):
        return replace(self, numbers=tuple(n for n in self.numbers if n not in dict(squares)))


def square(batch):
    for number in batch.numbers:
        time.sleep(batch.seconds)
        if number == -1:
            print("this is the end", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if number == -2:
            time.sleep(600)
        if number == -3:
            raise ValueError("three")
        yield [(number, number**2)]


def who(_):
    return os.getpid()


def meet(place):
    """Wait until the expected number of processes work at the same time."""
    folder, expected = place
    (folder / str(os.getpid())).touch()
    deadline = time.time() + 60
    while len(list(folder.iterdir())) < expected:
        if time.time() > deadline:
            raise TimeoutError
        time.sleep(0.01)
    return os.getpid()


def where(_):
    return {
        "path": sys.path,
        "cores": os.sched_getaffinity(0),
        "flags": os.environ["XLA_FLAGS"].split(),
        "tunables": os.environ.get("GLIBC_TUNABLES", "").split(":"),
        "jax": "jax" in sys.modules,
    }


def talk(text):
    print(text)


def wait_for_peace(folder):
    """Write the number of this process to a file, and end when the file `over` exists."""
    (folder / str(os.getpid())).touch()
    while not (folder / "over").exists():
        time.sleep(0.01)
    return "done"


def not_sendable(_):
    return lambda: None


def sleep_and_tell(path):
    """Write the number of this process to a file, then take long."""
    path.write_text(str(os.getpid()))
    time.sleep(600)
