"""The soak: tests of random cases with fresh seeds, again and again, for a given time.

`python -m tests.soak --minutes 10` draws a seed and runs the files with such tests in an order of
the seed's, as many at once as there are processors.  A failure is printed when it occurs, with the
command that repeats it.  Nothing is started that could not end in time; what still runs then is
ended, and said to be.

With `--of-sources` the first seed is computed from the sources, as `.ci/run` wants it: an accepted
change is accepted again, whoever repeats it, and the next change draws other cases.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).resolve().parents[1]
_RANDOM = re.compile(r"\bgiven\(|mark\.soak")
_SEEDS = 1 << 20
_NOTHING_SELECTED = 5  # a status of pytest
_SHOWN_LINES = 60
_SOURCES = ("generator", "templates", "runtime_crt", "boards", "tests")
_SOURCE_SUFFIXES = frozenset({".py", ".c", ".h", ".j2", ".toml"})


@dataclass
class Soak:
    """A run: what was started from one first seed until a moment."""

    deadline: float
    rounds: Iterator[tuple[str, int]]
    lock: Lock = field(default_factory=Lock)
    passed: int = 0
    cut: int = 0
    failed: list[tuple[str, int]] = field(default_factory=list)

    def work(self) -> None:
        """Run one file after the other until the time is over."""
        while (left := self.deadline - time.monotonic()) > 1:
            with self.lock:
                taken = next(self.rounds, None)
            if taken is None:
                return
            self._note(*taken, *run(*taken, left))

    def _note(self, path: str, seed: int, status: int | None, output: str) -> None:
        with self.lock:
            if status is None:
                self.cut += 1
            elif status in (0, _NOTHING_SELECTED):
                self.passed += 1
            else:
                self.failed.append((path, seed))
                said = "\n".join(output.splitlines()[-_SHOWN_LINES:])
                sys.stdout.write(
                    f"{said}\n\nsoak: FAILED {path} with seed {seed}; repeat it with\n"
                )
                sys.stdout.write(f"  {repetition(path, seed)}\n\n")
                sys.stdout.flush()


def repetition(path: str, seed: int) -> str:
    """Return the command that runs one file with one seed again."""
    return f"make soak SEED={seed} FILES={path}"


def command(path: str, seed: int) -> list[str]:
    """Return what runs the random tests of a file with a seed."""
    return [
        sys.executable, "-m", "pytest", "-q", "-x", "--tier", "soak", "--soak-seed", str(seed),
        f"--hypothesis-seed={seed}", "-p", "no:cacheprovider", path,
    ]  # fmt: skip


def run(path: str, seed: int, limit: float) -> tuple[int | None, str]:
    """Return the status of a file's tests, None if the time was over before, and what they said."""
    environment = {k: v for k, v in os.environ.items() if k != "CI"}
    with subprocess.Popen(
        command(path, seed), cwd=ROOT, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, ""
    return process.returncode, output


def random_files(root: Path = ROOT) -> list[str]:
    """Return the test files that draw random cases."""
    return [
        path.relative_to(root).as_posix()
        for path in sorted((root / "tests").rglob("test_*.py"))
        if _RANDOM.search(path.read_text(encoding="utf-8"))
    ]


def seed_of_sources(root: Path = ROOT) -> int:
    """Return a seed that changes with any source, by its path and its content."""
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _SOURCE_SUFFIXES and path.is_file():
                digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return int.from_bytes(digest.digest()[:8], "little") % _SEEDS


def first_seed(seed: int | None, of_sources: bool) -> int:
    """Return the seed that was given, else that of the sources, else one that is drawn."""
    if seed is not None:
        return seed
    return seed_of_sources() if of_sources else secrets.randbelow(_SEEDS)


def rounds(first: int, files: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield files with seeds: all files in a random order, then all with the next seed."""
    order = random.Random(first)
    for seed in range(first, first + _SEEDS):
        for path in order.sample(files, len(files)):
            yield path, seed % _SEEDS


def main(arguments: Sequence[str]) -> int:
    """Soak as the arguments say; the status is 1 if a test has failed, 2 if none has passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, at most")
    parser.add_argument("--seed", type=int, help="the first seed; one round if it is given")
    parser.add_argument("--of-sources", action="store_true", help="the first seed is the sources'")
    parser.add_argument("files", nargs="*", help="test files; all with random cases if none is")
    given = parser.parse_args(arguments)
    files = given.files or random_files()
    first = first_seed(given.seed, given.of_sources)
    order = ((p, first) for p in files) if given.seed is not None else rounds(first, files)
    sys.stdout.write(f"soak: {len(files)} files from seed {first} on, {given.minutes:g} minutes\n")
    sys.stdout.flush()
    soak = Soak(time.monotonic() + 60 * given.minutes, iter(order))
    count = os.cpu_count() or 1
    with ThreadPoolExecutor(count) as pool:
        for worker in [pool.submit(soak.work) for _ in range(count)]:
            worker.result()
    sys.stdout.write(
        f"soak: {soak.passed} runs passed, {len(soak.failed)} failed, "
        f"{soak.cut} ended by the time\n"
    )
    for path, seed in soak.failed:
        sys.stdout.write(f"  {repetition(path, seed)}\n")
    return 1 if soak.failed else 0 if soak.passed else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
