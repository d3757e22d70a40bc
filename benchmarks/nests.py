"""What compilers make of loop nests: the part `nests` of `python -m benchmarks calibrate`.

Each row of `operator_rows`, at few channels, and elementwise functions of floats are compiled with
no other kernels than nests and run on an emulated CPU.  The instructions of each kind of work
(`microtir.tir.analysis.work`) are those with which the layers come out nearest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

import numpy as np

from benchmarks.layers import for_speed, layer, module_of
from benchmarks.operator_models import (
    Kind,
    Make,
    Y,
    gathered_rows,
    moved,
    pool,
    prelu,
)
from benchmarks.operator_models import (
    unary as function,
)
from benchmarks.operator_rows import ROWS
from benchmarks.operators import BOARDS
from microtir import driver, frontend
from microtir.boards import Board, load_board
from microtir.boards.errors import BuildError, ModelTooLargeError
from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.kernels.common.nest import FAMILY, Nest
from microtir.kernels.table import kernel_of
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add, Atan2, Maximum, Mul, Pow, Sub
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.conditions.definition import Comparison, Equal, Greater
from microtir.operators.division.definition import Div, FloorDiv, FloorMod
from microtir.operators.unary import definition as unary
from microtir.plan.ir import Candidate
from microtir.plan.measured import Measured
from microtir.profiling import profile

__all__ = ["CPUS", "FAMILY", "fitted", "measure", "nearness"]

CPUS = tuple(BOARDS)
"""CPUs that have figures; what is compiled for others is stated in those of a Cortex-M4."""

CHANNELS = (8, 4)
"""Channels of rows: the first number with which a layer fits the board counts."""

FUNCTIONS: tuple[tuple[Operator, int], ...] = (
    *((op, 1) for op in (
        unary.Abs(), unary.Sign(), unary.Sqrt(), unary.Exp(), unary.Log(), unary.Erf(),
        unary.Sin(), unary.Cos(), unary.Floor(), unary.Ceil(), unary.Round(),
    )),
    *((op, 2) for op in (
        Pow(), Atan2(), Div(), FloorDiv(), FloorMod(), Add(), Sub(), Mul(), Maximum(), Greater(),
        Equal(),
    )),
)  # fmt: skip
"""Functions of floats, with their operands: most of them no row has."""

MORE: tuple[tuple[Make, Kind, int], ...] = (
    *((moved(gathered_rows), Kind.INT8, width) for width in (3, 5, 10, 21, 32, 45, 64)),
    *((pool(code, 2, 2, image), kind, 8)
      for code in (Code.AVERAGE_POOL_2D, Code.MAX_POOL_2D) for kind in (Kind.INT8, Kind.INT16)
      for image in ((8, 8), (7, 9))),
    *((pool(Code.AVERAGE_POOL_2D, 2, 1, (9, 7)), kind, 8) for kind in (Kind.INT8, Kind.INT16)),
    (pool(Code.MAX_POOL_2D, 2, 1, (9, 7)), Kind.INT16, 8),
    *((function(Code.QUANTIZE, Y), Kind.UINT8, width) for width in (6, 8)),
    *((prelu(image), Kind.INT8, 5) for image in ((7, 5), (12, 9))),
)  # fmt: skip
"""Sizes that no row has: rows of several widths, small windows, both arms of a choice."""

SCALES = ((0.05, 0.03, 0.1), (0.02, 0.02, 0.02), (0.11, 0.013, 0.07), (0.004, 0.9, 1.1))
"""Scales of two operands and a result: of sums and products that are rescaled in several ways."""

_STIFF, _NEAR, _TURNS = 0.005, 0.03, 10


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that is a nest: its work, and the instructions that it takes."""

    work: Mapping[str, float]
    measured: int


class _Nests(Measured):
    """Records that leave no kernel but nests, where there is one."""

    def applied(self, node: Node, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        offered = tuple(candidates)
        return tuple(c for c in offered if isinstance(kernel_of(node, c), Nest)) or offered


def measured(module: IRModule, board: Board) -> list[Layer]:
    """Build a model of nests and count what each takes on a board."""
    config = for_speed(board, "row")
    lowered = driver.lower(
        module.with_configuration(config),
        records=_Nests(str(config.primary_target()), MappingProxyType({})),
    )
    taken = {c.name: c for c in profile(driver.build(lowered), board).layers if c.calls == 1}
    layers = []
    for op in lowered.require_program("nests").plan.operators:
        kernel = kernel_of(op.node, op.candidate)
        if isinstance(kernel, Nest) and op.node.name in taken:
            layers.append(Layer(kernel.work(op.node), taken[op.node.name].instructions))
    return layers


def _modules(channels: int) -> Iterator[tuple[str, IRModule]]:
    for row in ROWS:
        for kind in (kind for kind in row.goals if kind is not Kind.UINT8):
            file = row.make(kind, channels).file
            yield f"{kind.value}: {row.name}", frontend.from_tflite(file, name="row")
    for number, (make, of, width) in enumerate(MORE):
        yield f"more {number}", frontend.from_tflite(make(of, width).file, name="row")
    for op, operands in FUNCTIONS:
        yield op.name, _of_one(op, [TensorType((1, 96), DType.FLOAT32)] * (operands + 1))
    for number, scales in enumerate(SCALES):
        for op, dtype in product((Add(), Sub(), Mul()), (DType.INT8, DType.INT16)):
            point = 3 if dtype is DType.INT8 else 0
            types = [TensorType((1, 96), dtype, Quantization((s,), (point,))) for s in scales]
            yield f"{op.name} {dtype.value} {number}", _of_one(op, types)


def _of_one(op: Operator, types: Sequence[TensorType]) -> IRModule:
    """Return a model of one operator, given the types of its operands and its result."""
    of_result = DType.BOOL if isinstance(op, Comparison) else types[-1].dtype
    *inputs, y = (Tensor(f"t{i}", each) for i, each in enumerate(types))
    y = Tensor(y.name, replace(y.type, dtype=of_result))
    return module_of(layer(op, tuple(inputs), (y,), "layer"))


def measure(cpu: str) -> list[Layer]:
    """Measure all layers that fit the board of a CPU."""
    board, found = load_board(BOARDS[cpu]), dict[str, list[Layer]]()
    for channels in CHANNELS:
        for name, module in _modules(channels):
            if name not in found:
                try:
                    found[name] = measured(module, board)
                except (ModelTooLargeError, BuildError) as error:
                    print(f"{name:<64} {str(error).splitlines()[0]}")
    return [each for layers in found.values() for each in layers if each.measured]


_OPERATIONS = {
    "add", "address", "bits", "branch", "clamp", "compare", "convert", "div", "entry", "layer",
    "load", "minmax", "mla", "mul", "pointer", "row", "saturate", "select", "shift", "store",
    "turn", "widen",
}  # fmt: skip

_OF_INTEGERS = {"choose", "count", "multiply", "rounding", "saturating"}


def expected(kind: str, *, has_floats: bool = True) -> float:
    """Return about what a kind takes: an operation one instruction, a function some.

    Where a library computes floats, their operations take as much as functions, and these more.
    """
    operation, _, operand = kind.partition("_")
    if operation in _OPERATIONS:
        return 1.0 if has_floats or (operand != "float" and operation != "convert") else 60.0
    return 20.0 if has_floats or operation in _OF_INTEGERS else 1000.0


def fitted(layers: Sequence[Layer], *, has_floats: bool = True) -> dict[str, float]:
    """Return the figures with which layers come out nearest, the median rather than the worst.

    None is less than 0; what the layers say little about is what is expected of it.
    """
    kinds = sorted({kind for made in layers for kind in made.work})
    shares = np.array([[made.work.get(k, 0) / made.measured for k in kinds] for made in layers])
    prior = np.array([expected(kind, has_floats=has_floats) for kind in kinds])
    pull = np.diag(_STIFF * np.sqrt(len(layers)) / prior)
    weights = np.ones(len(layers))
    figures = prior
    for _ in range(_TURNS):
        equations = np.vstack([shares * weights[:, np.newaxis], pull])
        figures = _least_squares(equations, np.concatenate([weights, pull @ prior]))
        weights = np.maximum(np.abs(shares @ figures - 1), _NEAR) ** -0.5
    return dict(zip(kinds, figures.round(2).tolist(), strict=True))


def _least_squares(equations: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Return the nearest solution; what would be less than 0 is 0."""
    used = np.full(equations.shape[1], fill_value=True)
    while True:
        result = np.zeros(len(used))
        result[used] = np.linalg.lstsq(equations[:, used], sides, rcond=None)[0]
        if (result >= 0).all():
            return result
        used[result.argmin()] = False


def nearness(layers: Sequence[Layer], figures: Mapping[str, float]) -> str:
    """Return the parts of layers that are stated within 5, 10 and 20 %."""
    errors = np.array([
        sum(figures[kind] * n for kind, n in made.work.items()) / made.measured - 1
        for made in layers
    ])  # fmt: skip
    parts = (
        f"{np.mean(np.abs(errors) <= limit):.0%} within {limit:.0%}" for limit in (0.05, 0.1, 0.2)
    )
    return f"{len(layers)} layers: {', '.join(parts)}"
