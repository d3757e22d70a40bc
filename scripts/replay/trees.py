"""The two states that are compared: a commit, unpacked beside the checkout, and the checkout."""

from __future__ import annotations

import hashlib
import io
import json
import os
import queue
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from scripts.replay.cases import Case

ROOT = Path(__file__).resolve().parents[2]
_CACHE = ROOT / "build" / "replay"
_WORKER = Path(__file__).with_name("worker.py")
_WORKERS = 2

Outcome = dict[str, Any]
"""`{"files": {path: SHA-256}}`, or `{"refused": words}`."""


def git(*arguments: str) -> bytes:
    """Return what git prints; a failure ends the program with git's own words."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"replay: git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def unpack(commit: str, folder: Path) -> None:
    """Write the files of a commit into an empty folder."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", commit))) as archive:
        for member in archive:  # our own repository's files, which git itself checked out here
            archive.extract(member, folder)


@dataclass(frozen=True, slots=True)
class Tree:
    """A state of the project.

    `cached_as` is the commit under which outcomes are kept, None where there are changes that no
    commit holds.
    """

    folder: Path
    cached_as: str | None

    def outcomes(self, cases: Sequence[Case], show: Callable[[str], None]) -> dict[str, Outcome]:
        """Return the outcome of each case by its key; those that are known are not made again."""
        known = self._cached()
        missing = [c for c in cases if _identity(c, self.folder) not in known]
        made = _compile_all(self.folder, missing, show)
        known |= {_identity(c, self.folder): o for c, o in zip(missing, made, strict=True)}
        self._keep(known)
        return {c.key: known[_identity(c, self.folder)] for c in cases}

    def files(self, cases: Sequence[Case], folder: Path) -> list[Path]:
        """Compile cases into a folder of their own each; return those folders in order."""
        folder.mkdir()
        with _Worker(self.folder) as worker:
            worker.compile(cases, keep=folder)
        return [folder / f"case{number}" for number in range(len(cases))]

    def _cached(self) -> dict[str, Outcome]:
        if self.cached_as is None or not self._cache_file().exists():
            return {}
        return dict(json.loads(self._cache_file().read_text()))

    def _keep(self, known: dict[str, Outcome]) -> None:
        if self.cached_as is not None:
            _CACHE.mkdir(parents=True, exist_ok=True)
            self._cache_file().write_text(json.dumps(known))

    def _cache_file(self) -> Path:
        return _CACHE / f"{self.cached_as}.json"


def _identity(case: Case, folder: Path) -> str:
    """Return a key that changes with all that an outcome depends on beside the package."""
    given = folder / case.model  # an absolute path stays as it is
    content = given.read_bytes() if given.is_file() else case.model.encode()
    facts = (case.key, sys.version, version("numpy"), version("tflite"), _WORKER.read_text())
    return f"{case.key} | {hashlib.sha256(content + repr(facts).encode()).hexdigest()[:16]}"


class _Worker:
    """A process that compiles with the package of one tree."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join((str(folder / "generator"), str(folder)))
        environment = os.environ | {"PYTHONPATH": path}  # and any hash seed: files depend on none
        self.process = subprocess.Popen(
            [sys.executable, str(_WORKER)], cwd=folder, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def compile(self, cases: Sequence[Case], keep: Path | None = None) -> list[Outcome]:
        assert self.process.stdin is not None and self.process.stdout is not None
        request = {"cases": [asdict(c) for c in cases], "keep": keep and str(keep)}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"replay: compiling ended with {self.process.wait()}: {cases[0].key}")
        return list(json.loads(answer))


def _compile_all(
    folder: Path, cases: Sequence[Case], show: Callable[[str], None]
) -> Iterable[Outcome]:
    """Compile cases with a few workers at a time; the outcomes are in the order of the cases."""
    batches = queue.SimpleQueue[tuple[int, list[Case]]]()
    done = 0
    for _, group in groupby(cases, key=lambda c: c.batch):
        batch = list(group)
        batches.put((done, batch))
        done += len(batch)
    outcomes: list[Outcome] = [{}] * len(cases)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with _Worker(folder) as worker:
                while not failures:
                    try:
                        start, batch = batches.get_nowait()
                    except queue.Empty:
                        return
                    outcomes[start : start + len(batch)] = worker.compile(batch)
                    show(f"{start + len(batch)} of {len(cases)}")
        except BaseException as failure:  # noqa: BLE001 - raised again by the thread that waits
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(_WORKERS if cases else 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return outcomes
