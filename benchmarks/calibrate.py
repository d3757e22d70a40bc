"""`python -m benchmarks calibrate`: what compilers make around micro-kernels, for each CPU.

Kernels count what their templates print (`microtir.kernels.common.counted`). What is around the
calls, loops and conditions, follows from no template: random layers are measured on an emulated
CPU, and the instructions of each kind of code are those with which the layers come out nearest,
each weighted by its size. `nests` are what compilers make of loops without micro-kernels
(`benchmarks/nests.py`). `--record` writes all of them to `kernels/measured/CPU.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from benchmarks import nests, operators
from benchmarks.layers import for_speed, layer, module_of, records_for
from microtir import driver
from microtir.boards import load_board
from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.kernels.common.counted import Counted, measured_file
from microtir.kernels.table import KERNELS
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.plan.ir import IN_ONE_CALL
from microtir.profiling import profile

LAYERS = 48
BOARDS = MappingProxyType({"cortex-m4": "mps2_an386", "cortex-m55": "mps3_an547"})
_DATA, _WEIGHT = Quantization((0.05,), (3,)), 0.01

Figures = Mapping[str, float]
"""Instructions of each kind of code around the calls of a family."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer, and what it takes.

    Args:
        node: the layer.
        printed: instructions that the kernel counts in its templates.
        around: how often each kind of code runs beside them.
        measured: all instructions, on the emulator.
    """

    node: Node
    printed: int
    around: Mapping[str, int]
    measured: int

    def error(self, figures: Figures) -> float:
        """Return by which part figures miss what was measured; less than 0: they say too little."""
        stated = self.printed + sum(figures[kind] * n for kind, n in self.around.items())
        return stated / self.measured - 1


def _dense(rng: np.random.Generator, name: str) -> Node:
    rows, outputs = int(rng.choice([1, 1, 2, 3, 8])), int(rng.integers(2, 70))
    inputs = 4 * int(rng.integers(2, 100))
    return _layer(name, FullyConnected(), (rows, inputs), (outputs, inputs), (rows, outputs), rng)


def _dense_nibbles(rng: np.random.Generator, name: str) -> Node:
    node = _dense(rng, name)
    x, w, *rest = node.inputs
    small = replace(w, data=None if w.data is None else w.data >> 4)
    return replace(node, inputs=(x, small, *rest))


def _convolution(rng: np.random.Generator, name: str) -> Node:
    taps, stride = int(rng.choice([1, 3, 3, 5])), int(rng.choice([1, 1, 2]))
    height, width = (int(n) for n in rng.integers(5, 14, 2))
    channels, filters = int(rng.choice([1, 3, 8, 16, 24, 32])), int(rng.integers(4, 49))
    border = (taps - 1) // 2 * int(rng.integers(2))
    op = Conv2D((stride, stride), padding=Padding2D(*[border] * 4))
    rows, columns = ((n + 2 * border - taps) // stride + 1 for n in (height, width))
    weights = filters, taps, taps, channels
    return _layer(name, op, (1, height, width, channels), weights, (1, rows, columns, filters), rng)


def _matmul(rng: np.random.Generator, name: str) -> Node:
    stacks, rows, depth, columns = (int(n) for n in rng.integers(1, (4, 30, 50, 40)))
    op = BatchMatmul(bool(rng.integers(4) == 0), bool(rng.integers(2)))
    shapes = (
        (stacks, *((depth, rows) if op.adj_x else (rows, depth))),
        (stacks, *((columns, depth) if op.adj_y else (depth, columns))),
        (stacks, rows, columns),
    )
    quants = _DATA, _DATA, replace(_DATA, scales=(1.0,))
    *inputs, y = (
        Tensor(f"{name}_{letter}", TensorType(shape, DType.INT8, quant))
        for letter, shape, quant in zip("xwy", shapes, quants, strict=True)
    )
    return layer(op, tuple(inputs), (y,), name)


DRAWN: Mapping[str, Callable[[np.random.Generator, str], Node]] = MappingProxyType({
    "dense_s8_1x8_dsp": _dense, "dense_s4_1x8_dsp": _dense_nibbles,
    "dense_s8_2x4_mve": _dense, "conv_s8_2x4_mve": _convolution, "matmul_s8_2x4_dsp": _matmul,
    "matmul_s8_2x4_mve": _matmul,
})  # fmt: skip
"""Random layers for a kernel of each family."""


def _layer(
    name: str,
    op: Operator,
    shape: tuple[int, ...],
    weights: tuple[int, ...],
    output: tuple[int, ...],
    rng: np.random.Generator,
) -> Node:
    scales = Quantization((_WEIGHT,) * weights[0], (0,) * weights[0], 0)
    inputs = (
        Tensor(f"{name}_x", TensorType(shape, DType.INT8, _DATA)),
        Tensor(
            f"{name}_w", TensorType(weights, DType.INT8, scales),
            rng.integers(-50, 50, weights).astype(np.int8),
        ),
    )  # fmt: skip
    y = Tensor(f"{name}_y", TensorType(output, DType.INT8, replace(_DATA, scales=(1.0,))))
    return layer(op, inputs, (y,), name)


def kernel_of(name: str) -> Counted:
    """Return the kernel of a name that counts."""
    return next(k for k in KERNELS if k.name == name and isinstance(k, Counted))


def measure(name: str, seeds: Sequence[int]) -> list[Layer]:
    """Measure random layers with a kernel, all in one model.

    Args:
        name: of the kernel.
        seeds: of the layers; those that the kernel refuses are left out.
    """
    kernel = kernel_of(name)
    drawn = [DRAWN[name](np.random.default_rng(seed), f"layer{seed}") for seed in seeds]
    nodes = tuple(node for node in drawn if kernel.refusal(node) is None)
    board = load_board(BOARDS[kernel.measured_on])
    config = for_speed(board, "layers")
    module = module_of(*nodes, name="layers").with_configuration(config)
    lowered = driver.lower(module, records=records_for(name, nodes, config))
    counted = {
        cost.name: cost.instructions for cost in profile(driver.build(lowered), board).layers
    }
    return [
        Layer(
            node, kernel.printed(node, IN_ONE_CALL), kernel.around(node, IN_ONE_CALL),
            counted[node.name],
        )
        for node in nodes
    ]  # fmt: skip


def fitted(layers: Sequence[Layer]) -> Figures:
    """Return the figures with which layers come out nearest; none is less than 0."""
    kinds = sorted({kind for made in layers for kind in made.around})
    while True:
        counts = np.array([[made.around.get(k, 0) for k in kinds] for made in layers], np.float64)
        rests = np.array([made.measured - made.printed for made in layers], np.float64)
        sizes = np.array([made.measured for made in layers], np.float64)
        found = np.linalg.lstsq(counts / sizes[:, np.newaxis], rests / sizes, rcond=None)[0]
        if (found >= 0).all():
            break
        kinds.pop(int(found.argmin()))
    figures = dict(zip(kinds, found.round(1).tolist(), strict=True))
    return {kind: figures.get(kind, 0.0) for made in layers for kind in sorted(made.around)}


def measure_all(named: list[str]) -> dict[str, dict[str, Figures]]:
    """Print a line for each kernel that is named, or for all, and return figures by CPU."""
    found: dict[str, dict[str, Figures]] = {}
    named = named or [*DRAWN, nests.FAMILY]
    for cpu in nests.CPUS if nests.FAMILY in named else ():
        layers_of_cpu = nests.measure(cpu)
        has_floats = cpu in operators.WITH_GOALS
        found[cpu] = {nests.FAMILY: nests.fitted(layers_of_cpu, has_floats=has_floats)}
        print(f"{nests.FAMILY} {cpu:<18}{nests.nearness(layers_of_cpu, found[cpu][nests.FAMILY])}")
    for name in (name for name in named if name != nests.FAMILY):
        kernel, layers = kernel_of(name), measure(name, range(LAYERS))
        figures = found.setdefault(kernel.measured_on, {})[kernel.family] = fitted(layers)
        largest = max(abs(made.error(figures)) for made in layers)
        print(f"{name:<24}{len(layers)} layers, at most {100 * largest:.2f} % off: {figures}")
    return found


def record(found: Mapping[str, Mapping[str, Figures]]) -> None:
    """Write the figures; those of other families stay."""
    for cpu, figures in found.items():
        file = measured_file(cpu)
        known = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        text = json.dumps({**known, **figures}, indent=2, sort_keys=True)
        file.write_text(f"{text}\n", encoding="utf-8")
