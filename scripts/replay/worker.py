"""Compile the cases that come in on standard input, with the package of the current folder.

It runs as a program of its own, in the tree of either commit, so it uses the public API and the
odd graphs of the tests only.  A line in is a JSON object with `cases` and `keep`; a line out is the
outcome of each case: `{"files": {path: SHA-256}}`, or `{"refused": words}`.  With `keep`, a folder,
the files themselves are left there, one folder a case.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import microtir
from microtir import CompilationConfig, Executor, Target
from microtir.errors import MicrotirError


@lru_cache(maxsize=1)
def _module(model: str) -> Any:
    if model.startswith("odd:"):
        from tests.support.odd_graphs import odd_graph

        return microtir.IRModule(graph=odd_graph(int(model.removeprefix("odd:"))))
    return microtir.frontend.from_tflite(model)


def _config(target: str, goal: str, executor: str) -> CompilationConfig:
    kind, _, interface = executor.partition(" ")
    options = {"interface-api": interface} if interface else {}
    config = CompilationConfig.from_target(Target(target))
    return config.with_(executor=Executor(kind, options), optimize=goal)


def _compiled(case: dict[str, str], folder: Path) -> dict[str, Any]:
    """Compile one case into a folder; say what became of it."""
    try:
        config = _config(case["target"], case["goal"], case["executor"])
        microtir.build(_module(case["model"]), config).export(folder)
    except MicrotirError as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        "files": {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }
    }


def main() -> None:
    """Answer every line until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        outcomes = []
        for number, case in enumerate(request["cases"]):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(request["keep"] or scratch) / f"case{number}"
                outcomes.append(_compiled(case, folder))
        print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main()
