"""`python -m benchmarks naive MODEL...`: how much of models is spent by naive kernels.

A model is a file, or one of `scripts.models.shapes` by its name.

An operator is naive where it takes more than `NAIVE` times the goal of its row in `operator_rows`,
for its size, on a Cortex-M4 at `speed`, whatever its kernel is called.  An operator without a row
counts with what the nearest row has.  Below each model stands what naive instructions are spent
in, the largest part first.  `near` says for how many layers what planning states is within 5 % of
what was measured.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.layers import for_speed
from benchmarks.nearest_rows import CPU, goal, nearest
from benchmarks.operators import BOARDS, NEAR
from microtir import driver, frontend
from microtir.boards import load_board
from microtir.errors import MicrotirError
from microtir.profiling import profile
from scripts.models.shapes import SHAPES

NAIVE = 1.5  # times the goal
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Naive:
    """What a model takes, and what of it is naive, by operator and kernel.

    Args:
        instructions: of a run.
        macs: of the model.
        parts: naive instructions by what they are spent in, the largest first.
        layers: with instructions of their own.
        near: those for which planning states about as many.
    """

    instructions: int
    macs: int
    parts: Mapping[str, int]
    layers: int
    near: int

    @property
    def share(self) -> float:
        return sum(self.parts.values()) / max(self.instructions, 1)


def measure(path: Path) -> Naive:
    """Build a model for speed, run it, and hold its operators against their goals."""
    board = load_board(BOARDS[CPU])
    read = frontend.from_onnx if path.suffix == ".onnx" else frontend.from_tflite
    artifact = driver.build(read(path), for_speed(board, "model"))
    layers = profile(artifact, board).layers
    taken, calls = Counter[str](), Counter[str]()
    for layer in layers[1:]:
        taken[layer.name] += layer.instructions
        calls[layer.name] = max(calls[layer.name], layer.calls)
    program = artifact.module.require_program("naive")
    stated = Counter[str]()
    for decision in program.decisions.values():
        stated[decision.layer] += decision.instructions
    parts, near = Counter[str](), 0
    for group in program.plan.groups:
        for operator in group.operators:
            node, kernel = operator.node, operator.candidate.kernel
            # What runs row by row is called for each row; else each call is a run of its own.
            times = 1 if group.nest else max(calls[node.name], 1)
            error = abs(stated[node.name] * times - taken[node.name])
            near += taken[node.name] > 0 and error <= NEAR * taken[node.name]
            if taken[node.name] > NAIVE * goal(node) * times:
                parts[f"{node.op.name}, {kernel}; {nearest(node).name}"] += taken[node.name]
    return Naive(
        sum(layer.instructions for layer in layers),
        sum(layer.macs for layer in layers),
        dict(parts.most_common()),
        sum(count > 0 for count in taken.values()),
        near,
    )


def measure_all(named: Sequence[str]) -> dict[str, Naive]:
    """Print a line for each model, and what is naive in it."""
    found: dict[str, Naive] = {}
    print(f"{'model':<56}{'instructions':>14}{'per MAC':>9}{'naive':>8}{'near':>10}")
    for name in named:
        with tempfile.TemporaryDirectory() as folder:
            path = _file(name, Path(folder))
            model = _read(path)
        if model is None:
            continue
        found[path.name] = model
        a_mac = f"{model.instructions / model.macs:.2f}" if model.macs else ""
        near = f"{model.near}/{model.layers}"
        figures = f"{model.instructions:>14,}{a_mac:>9}{model.share:>8.0%}{near:>10}"
        print(f"{path.name:<56}{figures}", flush=True)
        for part, count in list(model.parts.items())[:_SHOWN]:
            print(f"    {count / model.instructions:>5.1%}  {part}")
    return found


def not_recorded(_found: Mapping[str, Naive]) -> None:
    """Say that there is no file of models that are not part of the project."""
    raise SystemExit("naive: shares are not recorded; leave --record out")


def _file(name: str, folder: Path) -> Path:
    """Return the file of a model; that of a shape is written into the folder."""
    if name not in SHAPES:
        return Path(name)
    path = folder / f"{name}.tflite"
    path.write_bytes(SHAPES[name][1]())
    return path


def _read(path: Path) -> Naive | None:
    try:
        return measure(path)
    except MicrotirError as error:
        print(f"{path.name:<56}{str(error).splitlines()[0]}")
        return None
