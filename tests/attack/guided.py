"""Files that coverage guides: what a damaged file reaches in a reader says how to damage it next.

    make fuzz MINUTES=10          # all kinds of files, in an environment with atheris

A child process reads the files of one kind with the branches of the readers counted by atheris, as
libFuzzer does it for C.  Good files are the first, and half of the damages are those of
`mutated_files`, which know archives; the others are libFuzzer's.  A file that raises anything but a
`MicrotirError`, takes too long or too much memory ends the child, and is kept.
"""

from __future__ import annotations

import argparse
import random
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.attack.shrink import REPRODUCERS

ROOT = Path(__file__).resolve().parents[2]
READERS = ("frontend", "graph", "host.samples", "operators", "rewrite")
"""Rooms of the package whose branches are counted."""

PLANTED = "planted fault"
"""A kind whose reader is wrong, behind branches that only coverage leads to."""

SEEDS = 20
"""Good files of a kind to begin with."""

_LONGEST = 1 << 16  # bytes of a file
_DONE = re.compile(r"^Done (\d+) runs in", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """What came of the files of a kind.

    Args:
        kind: of files.
        tried: how many were read; 0 if a file ended the child.
        problem: the end of what the child said, where a file ended it.
    """

    kind: str
    tried: int
    problem: str = ""


def guided(kind: str, seed: int, limit: str, folder: Path) -> Trial:
    """Read files of a kind in a child up to a limit; a file that ends it is kept in the folder.

    Args:
        kind: its name.
        seed: of good files and damages.
        limit: a flag of libFuzzer, of time or of runs.
        folder: is made where it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.attack.guided", "--child", kind]
    flags = [
        f"-seed={seed + 1}", limit, "-timeout=20", "-rss_limit_mb=2048",
        f"-max_len={_LONGEST}", f"-artifact_prefix={folder}/", "-print_final_stats=0",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as corpus:
        child = subprocess.run(
            [*command, corpus, str(seed), *flags],
            cwd=ROOT, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    done = _DONE.search(child.stderr)
    if child.returncode == 0 and done:
        return Trial(kind, int(done[1]))
    return Trial(kind, 0, f"{child.stderr[-1000:]}\n{child.stdout[-1000:]}")


def _zeros(seed: int) -> Mapping[str, bytes]:
    return {"m.x": bytes(8)}


def _fail_behind_branches(path: Path) -> None:
    """Raise what no reader may for one file in 2^24, byte by byte, as a parser does."""
    for place, byte in enumerate(path.read_bytes()[:3]):
        if place == 0 and byte != ord("m"):
            return
        if place == 1 and byte != ord("t"):
            return
        if place == 2 and byte == ord("i"):
            raise KeyError("the planted fault")


def _child(name: str, corpus: Path, seed: int, flags: Sequence[str]) -> None:
    """Read files of a kind until the time is over, or a file ends the process."""
    atheris = import_module("atheris")  # has no types, and is only where files are guided

    with atheris.instrument_imports(include=[f"microtir.{room}" for room in READERS]):
        from tests.attack import mutated_files  # its imports are counted
    planted = mutated_files.Kind(PLANTED, _zeros, atheris.instrument_func(_fail_behind_branches))
    (kind,) = (kind for kind in (planted, *mutated_files.KINDS) if kind.name == name)
    for number in range(SEEDS):
        files = kind.files(seed + number)
        (corpus / str(number)).write_bytes(next(iter(files.values())))

    def mutate(data: bytes, longest: int, number: int) -> bytes:
        generator = random.Random(number)

        def change(name: str, content: bytes) -> bytes:
            return bytes(atheris.Mutate(content, longest))

        if generator.random() < 0.5:
            other = next(iter(kind.files(seed + number % SEEDS).values()))
            return mutated_files.damaged(generator, data, other)[:longest]
        if data.startswith(mutated_files.ARCHIVE):
            return mutated_files.with_member(generator, data, change)[:longest]
        return change("", data)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "one_board")
        folder.mkdir()
        files = kind.files(seed)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        path = folder / next(iter(files))

        def read(data: bytes) -> None:
            path.write_bytes(data)
            result = mutated_files.result_of(kind, path)
            if result not in mutated_files.RESULTS:
                raise AssertionError(result)

        atheris.Setup([sys.argv[0], *flags, str(corpus)], read, custom_mutator=mutate)
        atheris.Fuzz()


def main(arguments: Sequence[str]) -> int:
    """Attack each kind for its part of the time.

    Returns:
        1 if a file was found that ends a reader, 2 if nothing can count branches, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.attack.guided", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all kinds")
    parser.add_argument("--seed", type=int, help="of the good files and of the damages")
    parser.add_argument("kinds", nargs="*", help="names of kinds; all if none is")
    given = parser.parse_args(arguments)
    try:
        import_module("atheris")
    except ImportError:
        sys.stderr.write("atheris is not installed: `make fuzz` installs it, on Linux\n")
        return 2
    from tests.attack.mutated_files import KINDS  # not counted here

    kinds = given.kinds or [kind.name for kind in KINDS]
    seed = secrets.randbelow(1 << 30) if given.seed is None else given.seed
    sys.stdout.write(f"seed {seed}\n")
    seconds = max(1, round(given.minutes * 60 / len(kinds)))
    faults = 0
    with tempfile.TemporaryDirectory() as scratch:
        if not guided(PLANTED, seed, "-runs=1000000", Path(scratch)).problem:
            sys.stdout.write("a planted fault was not found: nothing guides the damage\n")
            return 1
    for kind in kinds:
        folder = REPRODUCERS / f"guided_{kind.replace(' ', '_')}_{seed}"
        trial = guided(kind, seed, f"-max_total_time={seconds}", folder)
        faults += bool(trial.problem)
        said = f"FOUND, see {folder}\n{trial.problem}" if trial.problem else f"{trial.tried} tried"
        sys.stdout.write(f"{kind}: {said}\n")
        sys.stdout.flush()
    return 1 if faults else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
    else:
        sys.exit(main(sys.argv[1:]))
