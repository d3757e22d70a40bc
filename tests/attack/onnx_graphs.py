"""Random ONNX models of many operators, with inputs, legal as they are drawn.

A step adds one operator, mostly to the result of an earlier one. Results of another shape than
the operator wants are flattened, tiled or cut, and reshaped. Values that are joined go through a
Tanh, so that a difference of rounding does not grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from onnx import helper

from tests.support.onnx_models import Array, model_of, typed, with_inferred_outputs

_MOST_ELEMENTS = 4096
_MOST_TURNS = 10

Recipe: TypeAlias = "Callable[[OnnxSketch], None]"


@dataclass(frozen=True)
class OnnxStep:
    """One operator of a graph, with the seed of its attributes and shapes."""

    operator: str
    seed: int


@dataclass(frozen=True)
class OnnxCase:
    """A model with the values of its inputs."""

    model: bytes
    inputs: Mapping[str, Array]


@dataclass
class _Graph:
    nodes: list[Any] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    results: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    joined: set[str] = field(default_factory=set)


def draw_onnx_steps(seed: int) -> tuple[OnnxStep, ...]:
    """Draw three to nine steps."""
    rng = np.random.default_rng([seed, 78])
    names = sorted(RECIPES)
    return tuple(
        OnnxStep(names[int(rng.integers(len(names)))], seed * 16 + number)
        for number in range(int(rng.integers(3, 10)))
    )


def join_onnx(steps: Sequence[OnnxStep]) -> OnnxCase:
    """Return the model of a graph of these steps; outputs are what nothing takes, and others."""
    graph = _Graph()
    for number, step in enumerate(steps):
        sketch = OnnxSketch(graph, number, step)
        RECIPES[step.operator](sketch)
    rng = np.random.default_rng([steps[0].seed, len(steps)])
    outputs = [name for name, _ in graph.results if name not in graph.joined or rng.random() < 0.3]
    inputs = [typed(name, values) for name, values in graph.inputs.items()]
    model = model_of(graph.nodes, inputs, outputs, graph.constants)
    return OnnxCase(with_inferred_outputs(model), graph.inputs)


class OnnxSketch:
    """A step in the making, and its random choices."""

    def __init__(self, graph: _Graph, number: int, step: OnnxStep) -> None:
        self.graph, self.number, self.operator = graph, number, step.operator
        self.rng = np.random.default_rng([step.seed, 6])
        self._count = 0

    def integer(self, low: int, high: int) -> int:
        """Draw an integer of [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, *choices: Any) -> Any:
        return choices[self.integer(0, len(choices) - 1)]

    def shape(self, low: int = 1, high: int = 4) -> tuple[int, ...]:
        """Draw a shape of small extents."""
        return tuple(self.integer(1, 5) for _ in range(self.integer(low, high)))

    def normal(self, *shape: int) -> Array:
        """Draw values around zero, now and then larger ones."""
        spread = self.pick(0.3, 1.0, 1.0, 4.0)
        return np.asarray(self.rng.standard_normal(shape) * spread, np.float32)

    def name(self, kind: str) -> str:
        """Return a name that no other tensor has."""
        self._count += 1
        return f"s{self.number}_{kind}{self._count}"

    def constant(self, values: Array) -> str:
        """Add a constant."""
        name = self.name("c")
        self.graph.constants[name] = values
        return name

    def ints(self, *numbers: int) -> str:
        """Add a constant vector of int64."""
        return self.constant(np.array(numbers, np.int64))

    def input(self, shape: tuple[int, ...]) -> str:
        """Return floats of a shape: an earlier result, or an input of the model."""
        fitting = [
            (name, have)
            for name, have in self.graph.results
            if math.prod(have) <= _MOST_ELEMENTS
            and 0 < math.prod(shape) <= math.prod(have) * _MOST_TURNS
        ]
        if fitting and self.rng.random() < 0.75:
            name, have = self.pick(*fitting)
            return self._adapted(name, have, shape)
        return self.fresh(self.normal(*shape))

    def fresh(self, values: Array) -> str:
        """Add an input of the model."""
        name = self.name("x")
        self.graph.inputs[name] = values
        return name

    def add(self, operator: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or those of several."""
        names = [self.name(operator.lower()) for _ in range(outputs)]
        self.graph.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def finish(self, inputs: Sequence[str], shape: tuple[int, ...], **attributes: Any) -> None:
        """Add the node of the step, whose result later steps may take."""
        self.result(self.add(self.operator, inputs, **attributes), shape)

    def result(self, name: str, shape: tuple[int, ...]) -> None:
        """Offer floats of this shape to later steps."""
        self.graph.results.append((name, tuple(shape)))

    def _adapted(self, name: str, have: tuple[int, ...], shape: tuple[int, ...]) -> str:
        self.graph.joined.add(name)
        elements, wanted = math.prod(have), math.prod(shape)
        if have != shape:
            name = self.add("Reshape", [name, self.ints(elements)])
            if (turns := -(-wanted // elements)) > 1:
                name = self.add("Tile", [name, self.ints(turns)])
            if turns * elements != wanted:
                name = self.add("Slice", [name, self.ints(0), self.ints(wanted)])
            name = self.add("Reshape", [name, self.ints(*shape)])
        return str(self.add("Tanh", [name]))


# --- recipes ------------------------------------------------------------------------------------


def _unary(s: OnnxSketch) -> None:
    shape = s.shape()
    s.finish([s.input(shape)], shape)


def _scaled(**ranges: tuple[float, float]) -> Recipe:
    def recipe(s: OnnxSketch) -> None:
        shape = s.shape()
        drawn = {name: float(s.rng.uniform(*ends)) for name, ends in ranges.items()}
        s.finish([s.input(shape)], shape, **drawn)

    return recipe


def _clip(s: OnnxSketch) -> None:
    shape = s.shape()
    ends = [s.constant(np.array(v, np.float32)) for v in (-s.rng.random(), s.rng.random())]
    s.finish([s.input(shape), *s.pick(ends, ends[:1], ["", ends[1]])], shape)


def _positive(s: OnnxSketch) -> None:
    shape = s.shape()
    s.finish([s.fresh(np.abs(s.normal(*shape)) + np.float32(0.1))], shape)


def _binary(s: OnnxSketch) -> None:
    common = s.shape(0, 4)
    first = tuple(1 if s.rng.random() < 0.2 else n for n in common)
    second = tuple(
        1 if m == n and s.rng.random() < 0.4 else n for n, m in zip(common, first, strict=True)
    )
    operands = [s.input(first) if first else s.fresh(s.normal())]
    values = s.normal(*second)
    operands.append(s.constant(values) if s.rng.random() < 0.3 or not second else s.input(second))
    s.finish(operands, np.broadcast_shapes(first, second))


def _quotient(s: OnnxSketch) -> None:
    shape = s.shape()
    divisor = s.normal(*shape)
    divisor = np.where(np.abs(divisor) < 0.2, np.float32(0.2), divisor)
    s.finish([s.input(shape), s.constant(divisor)], shape)


def _many(s: OnnxSketch) -> None:
    shape = s.shape()
    s.finish([s.input(shape) for _ in range(s.integer(1, 4))], shape)


def _compared(s: OnnxSketch) -> None:
    shape = s.shape()
    values = s.normal(*shape)
    pair = [s.fresh(values), s.fresh(np.where(s.rng.random(shape) < 0.3, values, s.normal(*shape)))]
    mask = s.add(s.operator, pair)
    s.result(s.add("Where", [mask, s.input(shape), s.input(shape)]), shape)


def _reduced(s: OnnxSketch) -> None:
    shape = s.shape()
    axes = [n for n in range(len(shape)) if s.rng.random() < 0.5] or [len(shape) - 1]
    keep = s.integer(0, 1)
    result = tuple(1 if n in axes else e for n, e in enumerate(shape) if keep or n not in axes)
    positive = s.operator in ("ReduceLogSum", "ReduceL2")
    x = s.fresh(np.abs(s.normal(*shape)) + np.float32(0.1)) if positive else s.input(shape)
    given = [axis - len(shape) if s.rng.random() < 0.3 else axis for axis in axes]
    s.finish([x, s.ints(*given)], result, keepdims=keep)


def _along_axis(s: OnnxSketch) -> None:
    shape = s.shape()
    s.finish([s.input(shape)], shape, axis=s.integer(-len(shape), len(shape) - 1))


def _cumulated(s: OnnxSketch) -> None:
    shape = s.shape()
    axis = s.constant(np.array(s.integer(-len(shape), len(shape) - 1), np.int64))
    flags = {"exclusive": s.integer(0, 1), "reverse": s.integer(0, 1)}
    s.finish([s.input(shape), axis], shape, **flags)


def _transposed(s: OnnxSketch) -> None:
    shape = s.shape()
    turn = [int(axis) for axis in s.rng.permutation(len(shape))]
    s.finish([s.input(shape)], tuple(shape[axis] for axis in turn), perm=turn)


def _reshaped(s: OnnxSketch) -> None:
    shape = s.shape()
    size = math.prod(shape)
    divisor = next(n for n in range(s.integer(1, size), 0, -1) if size % n == 0)
    wanted = s.pick([-1], [divisor, -1], [0, -1])
    made = {1: (size,), 2: (shape[0] if wanted[0] == 0 else divisor, -1)}[len(wanted)]
    result = tuple(size // made[0] if n < 0 else n for n in made)
    s.finish([s.input(shape), s.ints(*wanted)], result)


def _flattened(s: OnnxSketch) -> None:
    shape = s.shape()
    axis = s.integer(0, len(shape))
    s.finish([s.input(shape)], (math.prod(shape[:axis]), math.prod(shape[axis:])), axis=axis)


def _unsqueezed(s: OnnxSketch) -> None:
    shape = s.shape(1, 3)
    axis = s.integer(0, len(shape))
    s.finish([s.input(shape), s.ints(axis)], (*shape[:axis], 1, *shape[axis:]))


def _squeezed(s: OnnxSketch) -> None:
    shape = list(s.shape(1, 3))
    axis = s.integer(0, len(shape))
    s.finish([s.input((*shape[:axis], 1, *shape[axis:])), s.ints(axis)], tuple(shape))


def _concatenated(s: OnnxSketch) -> None:
    shape = s.shape()
    axis = s.integer(0, len(shape) - 1)
    parts = [s.integer(1, 4) for _ in range(s.integer(1, 4))]
    inputs = [s.input((*shape[:axis], n, *shape[axis + 1 :])) for n in parts]
    s.finish(inputs, (*shape[:axis], sum(parts), *shape[axis + 1 :]), axis=axis)


def _split(s: OnnxSketch) -> None:
    shape = s.shape()
    axis = s.integer(0, len(shape) - 1)
    parts = [s.integer(1, 3) for _ in range(s.integer(2, 3))]
    x = s.input((*shape[:axis], sum(parts), *shape[axis + 1 :]))
    names = s.add("Split", [x, s.ints(*parts)], len(parts), axis=axis)
    for name, part in zip(names, parts, strict=True):
        s.result(name, (*shape[:axis], part, *shape[axis + 1 :]))


def _sliced(s: OnnxSketch) -> None:
    shape = s.shape()
    begins, ends, steps, result = [], [], [], []
    for extent in shape:
        begin = s.integer(0, extent - 1)
        end, step = s.integer(begin + 1, extent), s.integer(1, 2)
        begins.append(begin - extent if s.rng.random() < 0.3 else begin)
        ends.append(end if s.rng.random() < 0.7 or end < extent else 1 << 40)
        steps.append(step)
        result.append(-(-(end - begin) // step))
    axes = s.ints(*range(len(shape)))
    operands = [s.input(shape), s.ints(*begins), s.ints(*ends), axes, s.ints(*steps)]
    s.finish(operands, tuple(result))


def _padded(s: OnnxSketch) -> None:
    shape = tuple(s.integer(3, 5) for _ in range(s.integer(1, 4)))
    before, after = ([s.integer(0, 2) for _ in shape] for _ in range(2))
    mode = s.pick("constant", "constant", "reflect", "edge")
    extra = [s.constant(np.array(0.5, np.float32))] if mode == "constant" else []
    result = tuple(b + n + a for b, n, a in zip(before, shape, after, strict=True))
    s.finish([s.input(shape), s.ints(*before, *after), *extra], result, mode=mode)


def _tiled(s: OnnxSketch) -> None:
    shape = s.shape(1, 3)
    turns = [s.integer(1, 3) for _ in shape]
    result = tuple(n * t for n, t in zip(shape, turns, strict=True))
    s.finish([s.input(shape), s.ints(*turns)], result)


def _expanded(s: OnnxSketch) -> None:
    result = s.shape()
    shape = tuple(1 if s.rng.random() < 0.5 else n for n in result)
    s.finish([s.input(shape), s.ints(*result)], result)


def _gathered(s: OnnxSketch) -> None:
    shape = s.shape()
    axis, chosen = s.integer(0, len(shape) - 1), s.shape(0, 2)
    indices = np.asarray(s.rng.integers(-shape[axis], shape[axis], chosen), np.int64)
    place = s.constant(indices) if s.rng.random() < 0.5 else s.fresh(indices)
    s.finish([s.input(shape), place], (*shape[:axis], *chosen, *shape[axis + 1 :]), axis=axis)


def _blocks(s: OnnxSketch) -> None:
    n, high, wide, depth, size = 1, s.integer(1, 3), s.integer(1, 3), s.integer(1, 3), 2
    flat, deep = (n, depth, high * size, wide * size), (n, depth * size * size, high, wide)
    given, result = (flat, deep) if s.operator == "SpaceToDepth" else (deep, flat)
    mode = {"mode": s.pick("DCR", "CRD")} if s.operator == "DepthToSpace" else {}
    s.finish([s.input(given)], result, blocksize=size, **mode)


def _resized(s: OnnxSketch) -> None:
    n, c, high, wide = 1, s.integer(1, 3), s.integer(2, 5), s.integer(2, 5)
    result = (n, c, s.integer(1, 9), s.integer(1, 9))
    mode = s.pick("nearest", "linear")
    where = s.pick("asymmetric", "half_pixel", "align_corners")
    extra = {"nearest_mode": "floor"} if mode == "nearest" else {}
    operands = [s.input((n, c, high, wide)), "", "", s.ints(*result)]
    s.finish(operands, result, mode=mode, coordinate_transformation_mode=where, **extra)


def _window(
    s: OnnxSketch, extents: Sequence[int], most: int = 3
) -> tuple[dict[str, Any], list[int]]:
    """Draw taps, strides and borders; return them with the places along each axis."""
    taps = [s.integer(1, min(most, extent)) for extent in extents]
    strides = [s.integer(1, 2) for _ in extents]
    before, after = ([s.integer(0, tap - 1) for tap in taps] for _ in range(2))
    places = [
        (n + b + a - tap) // stride + 1
        for n, b, a, tap, stride in zip(extents, before, after, taps, strides, strict=True)
    ]
    return {"kernel_shape": taps, "strides": strides, "pads": [*before, *after]}, places


def _convolved(s: OnnxSketch) -> None:
    extents = [s.integer(1, 8) for _ in range(s.integer(1, 2))]
    attributes, places = _window(s, extents)
    groups, each = s.pick(1, 1, 2, 3), s.integer(1, 3)
    channels = groups * s.integer(1, 3)
    weights = s.normal(channels, each, *attributes["kernel_shape"])
    bias = [s.constant(s.normal(channels))] if s.rng.random() < 0.7 else []
    batch = s.pick(1, 1, 2)
    operands = [s.input((batch, groups * each, *extents)), s.constant(weights), *bias]
    s.finish(operands, (batch, channels, *places), group=groups, **attributes)


def _pooled(s: OnnxSketch) -> None:
    extents = [s.integer(1, 8) for _ in range(s.integer(1, 2))]
    attributes, places = _window(s, extents)
    if s.operator == "AveragePool":
        attributes["count_include_pad"] = s.integer(0, 1)
    shape = (s.pick(1, 1, 2), s.integer(1, 5))
    s.finish([s.input((*shape, *extents))], (*shape, *places), **attributes)


def _global(s: OnnxSketch) -> None:
    shape = (s.integer(1, 2), s.integer(1, 4), s.integer(1, 5), s.integer(1, 5))
    s.finish([s.input(shape)], (*shape[:2], 1, 1))


def _gemm(s: OnnxSketch) -> None:
    rows, depth, columns = s.integer(1, 4), s.integer(1, 20), s.integer(1, 6)
    left, right = s.integer(0, 1), s.integer(0, 1)
    weights = s.normal(*((columns, depth) if right else (depth, columns)))
    bias = s.constant(s.normal(*s.pick((columns,), (1, columns), (rows, columns))))
    operands = [s.input((depth, rows) if left else (rows, depth)), s.constant(weights), bias]
    factors = {"alpha": s.pick(1.0, 0.5), "beta": s.pick(1.0, 2.0)}
    s.finish(operands, (rows, columns), transA=left, transB=right, **factors)


def _matmul(s: OnnxSketch) -> None:
    rows, depth, columns = s.integer(1, 4), s.integer(1, 20), s.integer(1, 6)
    outer = s.shape(0, 2)
    second = (*s.pick(outer, ()), depth, columns)
    right = s.constant(s.normal(*second)) if s.rng.random() < 0.5 else s.input(second)
    s.finish([s.input((*outer, rows, depth)), right], (*outer, rows, columns))


def _normalised(s: OnnxSketch) -> None:
    shape = (s.integer(1, 2), 4, s.integer(1, 4), s.integer(2, 4))
    scale, bias = s.constant(np.abs(s.normal(4)) + np.float32(0.1)), s.constant(s.normal(4))
    extra, attributes = [], {"epsilon": 1e-2}
    if s.operator == "BatchNormalization":
        extra = [s.constant(s.normal(4)), s.constant(np.abs(s.normal(4)) + np.float32(0.3))]
    if s.operator == "GroupNormalization":
        attributes["num_groups"] = s.pick(1, 2)
    s.finish([s.input(shape), scale, bias, *extra], shape, **attributes)


def _layer_normalised(s: OnnxSketch) -> None:
    shape = s.shape(2, 4)
    axis = s.integer(1, len(shape) - 1)
    scale, bias = s.constant(s.normal(*shape[axis:])), s.constant(s.normal(*shape[axis:]))
    s.finish([s.input(shape), scale, bias], shape, axis=axis, epsilon=1e-2)


def _local_response(s: OnnxSketch) -> None:
    shape = (1, s.integer(1, 5), s.integer(1, 4), s.integer(1, 4))
    s.finish([s.input(shape)], shape, size=s.pick(1, 3))


def _slopes(s: OnnxSketch) -> None:
    shape = s.shape()
    s.finish([s.input(shape), s.constant(s.normal(shape[-1]))], shape)


def _recurrent(s: OnnxSketch) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[s.operator]
    steps, batch, width, units = s.integer(1, 4), s.pick(1, 1, 2), s.integer(1, 5), s.integer(1, 5)
    direction = s.pick("forward", "forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    weights = [s.constant(s.normal(ways, gates * units, n)) for n in (width, units)]
    bias = [s.constant(s.normal(ways, 2 * gates * units))] if s.rng.random() < 0.7 else []
    turned = {"linear_before_reset": s.integer(0, 1)} if s.operator == "GRU" else {}
    x = s.input((steps, batch, width))
    s.finish([x, *weights, *bias], (steps, ways, batch, units),
             hidden_size=units, direction=direction, **turned)  # fmt: skip


def _table() -> dict[str, Recipe]:
    rows: tuple[tuple[Recipe, str], ...] = (
        (_unary, "Abs Neg Relu Sigmoid Tanh Softplus Softsign Erf Gelu HardSwish Mish"),
        (_unary, "Sin Cos Atan Exp Identity"),
        (_positive, "Log Sqrt Reciprocal"),
        (_scaled(alpha=(0.01, 1.0)), "LeakyRelu Elu Celu ThresholdedRelu"),
        (_scaled(alpha=(0.1, 0.4), beta=(0.3, 0.6)), "HardSigmoid"),
        (_scaled(alpha=(1.0, 2.0), gamma=(0.5, 1.5)), "Selu"),
        (_clip, "Clip"),
        (_binary, "Add Sub Mul"),
        (_quotient, "Div"),
        (_many, "Sum Mean Max Min"),
        (_compared, "Greater GreaterOrEqual Less LessOrEqual Equal"),
        (_reduced, "ReduceSum ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare"),
        (_reduced, "ReduceProd ReduceLogSum ReduceLogSumExp"),
        (_along_axis, "Softmax LogSoftmax"),
        (_cumulated, "CumSum"),
        (_transposed, "Transpose"),
        (_reshaped, "Reshape"),
        (_flattened, "Flatten"),
        (_unsqueezed, "Unsqueeze"),
        (_squeezed, "Squeeze"),
        (_concatenated, "Concat"),
        (_split, "Split"),
        (_sliced, "Slice"),
        (_padded, "Pad"),
        (_tiled, "Tile"),
        (_expanded, "Expand"),
        (_gathered, "Gather"),
        (_blocks, "DepthToSpace SpaceToDepth"),
        (_resized, "Resize"),
        (_convolved, "Conv"),
        (_pooled, "MaxPool AveragePool"),
        (_global, "GlobalAveragePool GlobalMaxPool"),
        (_gemm, "Gemm"),
        (_matmul, "MatMul"),
        (_normalised, "BatchNormalization InstanceNormalization GroupNormalization"),
        (_layer_normalised, "LayerNormalization"),
        (_local_response, "LRN"),
        (_slopes, "PRelu"),
        (_recurrent, "LSTM GRU RNN"),
    )  # fmt: skip
    return {name: recipe for recipe, names in rows for name in names.split()}


RECIPES: Mapping[str, Recipe] = _table()
