"""Compile the sentences model to C and let the C finish sentences.

    python -m examples.sentences.demo

The cache of keys and values is a state of the model: the C keeps it, and a run is given a token
and its place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import microtir
from examples.sentences.corpus import LENGTH, split, text_of, tokens_of
from microtir import CompilationConfig, MicrotirError

FOLDER = Path(__file__).parent
STATES = "past.*=present.*"


def compile_model(bits: int, target: str = "c -mcpu=cortex-m4", **more: Any) -> microtir.Artifact:
    """Compile the model with weights of 8 or 4 bits; what it keeps is a state."""
    module = microtir.frontend.from_onnx(FOLDER / f"sentences_int{bits}.onnx")
    config = CompilationConfig(targets=target, module_name="sentences", states=STATES, **more)
    return microtir.build(module, config)


def continued(step: Callable[[int, int], int], text: str, most: int = LENGTH) -> str:
    """Return what comes behind the beginning of a line, up to its end.

    Args:
        step: gives the best next token, given one and its place; a place of 0 begins anew.
        text: the beginning.
        most: characters of a line.
    """
    given, made = [0, *tokens_of(text)], list[int]()
    for place in range(most):
        token = given[place] if place < len(given) else made[-1]
        best = step(token, place)
        if place + 1 >= len(given):
            if best == 0:
                break
            made.append(best)
    return text_of(made)


def step_of(model: microtir.host.Model) -> Callable[[int, int], int]:
    """Return what runs the C for one token."""

    def step(token: int, place: int) -> int:
        found = model.run({"token": np.array([[token]], np.int64),
                           "place": np.array([place], np.int32)})  # fmt: skip
        return int(found["next"].item())

    return step


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: that of the demonstration, or of the error that ended it."""
    parser = argparse.ArgumentParser(description="Let the C finish sentences.")
    parser.add_argument("text", nargs="*", help="beginnings of lines; by default some of the test")
    parser.add_argument("--bits", type=int, choices=(4, 8), default=4, help="of a weight")
    parser.add_argument("--output", type=Path, help="folder for C")
    try:
        return demonstrate(parser.parse_args(arguments))
    except MicrotirError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def demonstrate(arguments: argparse.Namespace) -> int:
    """Return 0 when all lines are written."""
    artifact = compile_model(arguments.bits)
    folder = arguments.output or Path(f"build/sentences_int{arguments.bits}")
    artifact.export(folder)
    step = step_of(microtir.host.load(artifact))
    for text in arguments.text or [first for first, _ in split()[1][:4]]:
        print(f"{text}|{continued(step, text)}")
    memory = artifact.metadata.memory
    assert memory is not None
    print(f"weights    {artifact.metadata.weights_bytes} bytes of flash")
    print(f"workspace  {memory.workspace_size} bytes of RAM, beside the state (sentences.h)")
    print(f"C sources in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
