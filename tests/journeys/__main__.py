"""Runs the journeys: models that other frameworks make anew, beside what is read of them.

    python -m tests.journeys --seeds 5
    python -m tests.journeys --seeds 5 --record

It runs where PyTorch and Keras are installed (`make journeys`).  The second form writes what the
journeys said, with versions and a digest of the sources that they tested; a test fails where these
have changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).with_name("recorded.json")
JOURNEYS = ("torch_modules", "torch_networks", "torch_quantised", "keras_layers")
_PACKAGES = ("torch", "torchvision", "torchao", "keras", "jax")
_PACKAGE = "generator/microtir"
_TESTED = (
    f"{_PACKAGE}/frontend/torch/*.py",
    f"{_PACKAGE}/frontend/keras/**/*.py",
    f"{_PACKAGE}/operators/*/torch*.py",
    "tests/journeys/*.py",
)


def tested_files() -> Iterator[Path]:
    """Yield the sources that the journeys test, and their own, sorted."""
    for pattern in _TESTED:
        yield from sorted(ROOT.glob(pattern))


def digest() -> str:
    """Return the SHA-256 of the sources and their names."""
    total = hashlib.sha256()
    for path in tested_files():
        for part in (path.relative_to(ROOT).as_posix().encode(), path.read_bytes()):
            total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()


def run(journey: str, seeds: int) -> tuple[int, str]:
    """Run a journey, show what it prints, and return its status and its last line."""
    command = [sys.executable, "-m", f"tests.journeys.{journey}", "--seeds", str(seeds)]
    environment = {"KERAS_BACKEND": "jax", **os.environ}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    sys.stdout.write(done.stdout)
    lines = done.stdout.strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the journeys, and record what they say; status 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.journeys")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    sources = digest()
    results = {name: run(name, options.seeds) for name in JOURNEYS}
    if options.record:
        content = {
            "sources": sources,
            "versions": {name: metadata.version(name) for name in _PACKAGES},
            "journeys": {
                name: {"seeds": options.seeds, "status": status, "summary": line}
                for name, (status, line) in results.items()
            },
        }
        RECORDED.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return max(status for status, _ in results.values())


if __name__ == "__main__":
    sys.exit(main())
