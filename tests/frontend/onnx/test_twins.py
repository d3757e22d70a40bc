"""A network in ONNX is the C of its TFLite twin, but for names: with `numerics` tflm.

Both are compiled from files.  Comments go, which say scales in the words of the formats, and the
number that guards the header; then each name is the number of its first use in a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.qdq import qdq_model
from benchmarks.qoperator import qoperator_model
from microtir import CompilationConfig, build
from microtir.codegen import SourceFile
from microtir.config import Numerics
from microtir.frontend import from_onnx, from_tflite
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import Padding, TfliteActivation
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import ReshapeOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.support import resources
from microtir.writers.tflite import TfliteBuilder
from scripts.models.keyword_spotter import TimePadding, keyword_spotter

_COMMENTS = re.compile(r"/\*.*?\*/", re.S)
_GUARDS = re.compile(r"_FINGERPRINT\b.*")
_TOKENS = re.compile(r'"[^"]*"|\w+|[^\w\s]')
RELU = TfliteActivation.RELU

pytestmark = pytest.mark.tools


class Network:
    """A TFLite file that is written layer by layer."""

    def __init__(self, seed: int) -> None:
        self.builder, self.rng = TfliteBuilder(), np.random.default_rng(seed)
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.scales: dict[int, float] = {}

    def activation(self, *shape: int, zero_point: int = -128, scale: float = 0.0) -> int:
        """Add an activation, of a scale that is drawn or given."""
        name = f"t{len(self.shapes)}"
        scale = scale or float(np.float32(self.rng.uniform(0.02, 0.09)))
        index = self.builder.tensor(name, shape, np.int8, None, [scale], [zero_point])
        self.shapes[index], self.scales[index] = shape, scale
        return index

    def layer(self, x: int, weights: tuple[int, ...], code: Code, options: Any, *shape: int) -> int:
        """Add a layer of weights, with a scale for each output, and a bias."""
        y = self.activation(*shape)
        outputs = weights[0]
        scales = self.rng.uniform(0.002, 0.02, outputs).astype(np.float32)
        data = self.rng.integers(-127, 128, weights)
        w = self.builder.tensor("w", weights, np.int8, data, scales, axis=0)
        bias = self.rng.integers(-900, 900, outputs)
        b = self.builder.tensor("b", (outputs,), np.int32, bias, scales, axis=0)
        self.builder.operator(code, [x, w, b], [y], options)
        return y

    def mean(self, x: int) -> int:
        """Add the mean of an image, without its axes."""
        _, rows, columns, channels = self.shapes[x]
        of_x = self.scales[x]
        pooled = self.activation(1, 1, 1, channels, scale=of_x)
        options = Pool2DOptions(Padding.VALID, columns, rows, columns, rows)
        self.builder.operator(Code.AVERAGE_POOL_2D, [x], [pooled], options)
        flat = self.activation(1, channels, scale=of_x)
        reshape = ReshapeOptions((1, channels))
        self.builder.operator(Code.RESHAPE, [pooled], [flat], reshape)
        return flat

    def dense(self, x: int, outputs: int) -> int:
        """Add a fully connected layer with a ReLU."""
        rows, features = self.shapes[x]
        options = FullyConnectedOptions(activation=RELU)
        return self.layer(x, (outputs, features), Code.FULLY_CONNECTED, options, rows, outputs)

    def convolution(self, x: int, channels: int, stride: int = 1) -> int:
        """Add a convolution of 3x3 with a ReLU; padded by one where nothing is left out."""
        _, rows, columns, inputs = self.shapes[x]
        padding = Padding.SAME if stride == 1 else Padding.VALID
        size = [n if stride == 1 else (n - 3) // stride + 1 for n in (rows, columns)]
        options = Conv2DOptions(padding, stride, stride, RELU)
        weights = (channels, 3, 3, inputs)
        return self.layer(x, weights, Code.CONV_2D, options, 1, *size, channels)


def autoencoder() -> bytes:
    """Fully connected layers."""
    network = Network(1)
    first = y = network.activation(2, 24)
    for outputs in (16, 4, 24):
        y = network.dense(y, outputs)
    return network.builder.build([first], [y])


def residual() -> bytes:
    """Convolutions of a colour image, one of them skipped; a mean, and a dense layer."""
    network = Network(2)
    first = network.activation(1, 13, 13, 3, zero_point=3)
    x = network.convolution(first, 8, stride=2)
    y = network.convolution(x, 8)
    total = network.activation(1, 6, 6, 8)
    network.builder.operator(Code.ADD, [x, y], [total], AddOptions(RELU))
    return network.builder.build([first], [network.dense(network.mean(total), 3)])


def digits() -> bytes:
    """The example."""
    return resources.example("digits/digits_int8.tflite").read_bytes()


NETWORKS: tuple[Callable[[], bytes], ...] = (
    autoencoder,
    residual,
    digits,
    lambda: keyword_spotter(TimePadding.SAME),
    lambda: keyword_spotter(TimePadding.VALID),
)


def nameless(graph: Graph | None, target: str) -> list[str]:
    """The functions and tables of a graph's C, each with names by the number of their first use."""
    config = CompilationConfig(targets=target, module_name="twin", numerics=Numerics.TFLM)
    files = build(IRModule(graph=graph), config).files
    sources = (file for file in files if isinstance(file, SourceFile) and file.path[-2:] == ".c")
    text = "".join(_GUARDS.sub("", _COMMENTS.sub("", file.text)) for file in sources)
    return [_numbered(part) for part in text.split("\n}")]


def _numbered(text: str) -> str:
    numbers: dict[str, str] = {}

    def named(token: str) -> str:
        is_name = token[0].isalpha() or token[0] == "_"
        return numbers.setdefault(token, f"n{len(numbers)}") if is_name else token

    return " ".join(map(named, _TOKENS.findall(text)))


@pytest.mark.parametrize("number", range(len(NETWORKS)))
def test_the_c_of_both_formats_differs_in_names(number: int) -> None:
    """For a Cortex-M4, of conversions around layers and of QLinear operators."""
    data = NETWORKS[number]()
    twin = from_tflite(data).graph
    assert twin is not None
    expected = nameless(twin, "c -mcpu=cortex-m4")
    forms = [qdq_model(twin, unsigned=False, channels_last=True)]
    if not any(node.op.name in ("pad", "max_pool_2d") for node in twin.nodes):
        forms.append(qoperator_model(twin, channels_last=True))
    for model in forms:
        assert nameless(from_onnx(model).graph, "c -mcpu=cortex-m4") == expected
