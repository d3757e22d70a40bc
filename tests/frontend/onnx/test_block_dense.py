"""com.microsoft's MatMulNBits against onnxruntime: weights of few bits, a scale for each block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from microtir import build, host
from microtir.config import microcontroller
from microtir.config.enums import BlockActivations
from microtir.dtype import DType
from microtir.errors import ConfigError, MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.module.ir_module import IRModule
from microtir.operators.block_dense.definition import rounds_rows
from microtir.operators.unary.definition import Abs
from microtir.rewrite.reference import execute
from tests.support.graphs import graph, node, tensor
from tests.support.nbits_models import DOMAINS, NbitsLayer, Zeros, nbits_layer
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed
from tests.support.seeds import seeds

pytestmark = pytest.mark.tools


def model(layers: list[NbitsLayer], inputs: dict[str, Array]) -> bytes:
    """Return a model of layers beside each other."""
    constants = {name: array for layer in layers for name, array in layer.constants.items()}
    outputs = [layer.node.output[0] for layer in layers]
    given = [typed(name, array) for name, array in inputs.items()]
    return model_of([layer.node for layer in layers], given, outputs, constants, domains=DOMAINS)


def drawn(rng: np.random.Generator, bits: int, tag: str = "") -> tuple[NbitsLayer, Array]:
    """Return any layer and an input for it; the last block is often not full."""
    channels, depth = (int(n) for n in rng.integers(1, (20, 150)))
    # onnxruntime has no floats as zero points of bytes.
    zeros = list(Zeros)[int(rng.integers(2 if bits == 8 else 3))]
    layer = nbits_layer(
        rng, channels, depth, bits=bits, block=int(rng.choice([16, 32, 64])), zeros=zeros,
        has_bias=bool(rng.integers(2)), flat=bool(rng.integers(2)), tag=tag,
    )  # fmt: skip
    lead = [int(n) for n in rng.integers(1, 4, int(rng.integers(1, 3)))]
    return layer, rng.normal(size=(*lead, depth)).astype(np.float32)


def near(got: Array, want: Array, layer: NbitsLayer, x: Array) -> None:
    """Both are sums of the same products in some order."""
    largest = layer.largest * float(np.abs(x).sum(axis=-1).max())
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 * largest + 1e-6)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_layers_equal_onnxruntimes(bits: int) -> None:
    """Any depth, block, zero points and bias, as onnxruntime computes it in float32."""
    for seed in seeds(0, 20):
        layer, x = drawn(np.random.default_rng(seed), bits)
        made = model([layer], {"x": x})
        (want,) = run_onnxruntime(made, {"x": x})
        graph = from_onnx(made).graph
        assert graph is not None
        near(execute(graph, {"x": x})["y"], want, layer, x)


@pytest.mark.parametrize("bits", [4, 8])
def test_rounded_rows_are_near_onnxruntimes(bits: int) -> None:
    """With accuracy_level 4 both round to 8 bits, a row here and a block there, and no other level.

    The products of a layer then miss those of floats by half a step of each element.
    """
    for seed in seeds(0, 12):
        rng = np.random.default_rng(seed)
        layer, x = drawn(rng, bits)
        exact, coarse = (
            model([NbitsLayer(node, layer.constants, 1.0)], {"x": x})
            for level in (1, 4)
            for node in [with_level(layer, level)]
        )
        (floats,) = run_onnxruntime(exact, {"x": x})
        (theirs,) = run_onnxruntime(coarse, {"x": x})
        (in_floats, ours) = (
            execute(graph, {"x": x})["y"]
            for made in (exact, coarse)
            for graph in [from_onnx(made).graph]
            if graph is not None
        )
        near(in_floats, floats, layer, x)
        step = np.abs(x).max(axis=-1, keepdims=True) / 254
        largest = step * layer.largest * np.sqrt(x.shape[-1]) * 2
        assert (np.abs(ours - floats) <= largest + 1e-6).all()
        assert (np.abs(ours - theirs) <= 2 * largest + 1e-6).all()
        assert np.abs(ours - floats).max() > 0 or x.size < 4


def with_level(layer: NbitsLayer, level: int) -> Any:
    """The node of a layer with an accuracy_level."""
    node = type(layer.node)()
    node.CopyFrom(layer.node)
    node.attribute.append(helper.make_attribute("accuracy_level", level))
    return node


def test_c_of_rounded_rows_equals_the_graph() -> None:
    """On a host and for each kind of zero points; a row without a number gives none."""
    rng = np.random.default_rng(2)
    layers, inputs = [], {}
    for number in range(9):
        layer, x = drawn(rng, (2, 4, 8)[number % 3], str(number))
        layers.append(NbitsLayer(with_level(layer, 4), layer.constants, layer.largest))
        x.reshape(-1, x.shape[-1])[0, 0] = (1, 0, np.nan, np.inf, 1e-40)[number % 5]
        if number % 5 == 4:
            x[...] = np.float32(1e-40)
        inputs[f"x{number}"] = x
    module = from_onnx(model(layers, inputs))
    assert module.graph is not None
    expected = execute(module.graph, inputs)
    got = host.load(build(module, microcontroller()), sanitize=True).run(inputs)
    for number, layer in enumerate(layers):
        x = np.nan_to_num(inputs[f"x{number}"], posinf=0.0)
        near(got[f"y{number}"], expected[f"y{number}"], layer, x)


@pytest.mark.parametrize("asked", list(BlockActivations))
def test_activations_are_chosen(asked: BlockActivations) -> None:
    """An option decides for all layers; without it each does what its file says."""
    rng = np.random.default_rng(0)
    layers = [nbits_layer(rng, 4, 32, tag=tag) for tag in "ab"]
    layers[1] = NbitsLayer(with_level(layers[1], 4), layers[1].constants, 1.0)
    module = from_onnx(model(layers, {f"x{t}": np.zeros((1, 32), np.float32) for t in "ab"}))
    config = microcontroller().with_(pass_config={"graph.block_activations": asked.value})
    operators = build(module, config).module.require_program("test").plan.operators
    found = [rounds_rows(op.node) for op in operators]
    expected = {BlockActivations.INT8: [True, True], BlockActivations.FLOAT32: [False, False]}
    assert found == expected.get(asked, [False, True])


def test_int8_of_no_such_layer_is_refused() -> None:
    """An option that would change nothing says so."""
    config = microcontroller().with_(pass_config={"graph.block_activations": "int8"})
    x, y = (tensor(n, (1, 4), DType.FLOAT32) for n in "xy")
    module = IRModule(graph=graph([node(Abs(), [x], y)], [x], [y]))
    with pytest.raises(ConfigError, match="int8 needs a layer whose weights have a scale"):
        build(module, config)


def test_c_equals_the_graph() -> None:
    """Layers of all kinds in one program, under sanitizers."""
    rng = np.random.default_rng(1)
    layers, inputs = [], {}
    for number in range(12):
        layer, inputs[f"x{number}"] = drawn(rng, (2, 4, 8)[number % 3], str(number))
        layers.append(layer)
    more = nbits_layer(rng, 3, 40, bits=8, zeros=Zeros.FLOATS, tag="f")
    inputs["xf"] = rng.normal(size=(1, 40)).astype(np.float32)
    module = from_onnx(model([*layers, more], inputs))
    assert module.graph is not None
    expected = execute(module.graph, inputs)
    got = host.load(build(module, microcontroller()), sanitize=True).run(inputs)
    for layer in (*layers, more):
        tag = layer.node.output[0][1:]
        near(got[f"y{tag}"], expected[f"y{tag}"], layer, inputs[f"x{tag}"])


def test_weights_stay_packed() -> None:
    """Flash holds two weights a byte, and a scale for each block."""
    layer = nbits_layer(np.random.default_rng(0), 64, 128, zeros=Zeros.PACKED)
    module = from_onnx(model([layer], {"x": np.zeros((1, 128), np.float32)}))
    (made,) = build(module, microcontroller()).metadata.layers
    blocks = 64 * 4
    assert made.weights_bytes == 64 * 128 // 2 + 4 * blocks + blocks // 2


@pytest.mark.parametrize(
    ("attributes", "constants", "error", "text"),
    [
        ({"bits": 3}, {}, ModelFileError, "'bits' is 3"),
        ({"block_size": 24}, {}, ModelFileError, "'block_size' is 24"),
        ({"block_size": 8}, {}, ModelFileError, "'block_size' is 8"),
        ({"K": 64}, {}, ModelFileError, "K 64 and N 3"),
        ({"N": 0}, {}, ModelFileError, "K 40 and N 0"),
        ({"N": 4}, {}, ModelFileError, r"the weights have the shape \(3, 2, 16\)"),
        ({"weight_prepacked": 1}, {}, UnsupportedModelError, "weight_prepacked"),
        ({}, {"scales": np.ones((3, 1), np.float32)}, ModelFileError, "the scales have the shape"),
        ({}, {"scales": None}, UnsupportedModelError, "computes the scales"),
        ({}, {"b": np.zeros((3, 2, 0), np.uint8)}, UnsupportedModelError, "weights are missing"),
        ({}, {"b": np.zeros((3, 2, 16), np.int8)}, UnsupportedModelError, "int8"),
    ],
)
def test_layers_that_are_refused(
    attributes: dict[str, int], constants: dict[str, Any], error: type[MicrotirError], text: str
) -> None:
    """Each says what does not fit, or what is not done."""
    layer = nbits_layer(np.random.default_rng(0), 3, 40, weight_prepacked=0)
    for attribute in layer.node.attribute:
        attribute.i = attributes.get(attribute.name, attribute.i)
    held = {n: a for n, a in {**layer.constants, **constants}.items() if a is not None}
    inputs = {"x": np.zeros((1, 40), np.float32)}
    computed = {n: layer.constants[n] for n in layer.constants if n not in held}
    with pytest.raises(error, match=text):
        from_onnx(model([NbitsLayer(layer.node, held, 1.0)], {**inputs, **computed}))


def test_an_order_of_groups_is_refused() -> None:
    """GPTQ's order by activations would take an index for each weight."""
    layer = nbits_layer(np.random.default_rng(0), 3, 40)
    layer.node.input.extend(["", "order"])
    held = {**layer.constants, "order": np.zeros(40, np.int32)}
    with pytest.raises(UnsupportedModelError, match="'g_idx'"):
        from_onnx(model([NbitsLayer(layer.node, held, 1.0)], {"x": np.zeros((1, 40), np.float32)}))
