"""Conversions around operators of several outputs: every one that is read, in every situation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator

import microtir
from microtir import host
from microtir.frontend import float_layers, from_onnx
from microtir.frontend.onnx.readers import READERS
from microtir.graph.ir import Graph
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.rewrite.reference import execute
from tests.frontend.onnx.test_quantised import Parts
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed, with_inferred_outputs

pytestmark = pytest.mark.tools

RNG = np.random.default_rng(7)
NOTHING = np.zeros(0, np.float32)
STEP = 0.06  # more than a step of the largest scale that is drawn


@dataclass(frozen=True)
class Kind:
    """A node of several outputs.

    Args:
        inputs: shapes of what is quantised, in the node's order.
        outputs: types of the results.
        constants: operands behind the inputs; those that hold nothing are left out.
        attributes: of the node.
        domain: of the operator.
        opset: that has it.
        is_exact: it computes nothing but elements of its input, and where they are.
        absent: results that onnxruntime never gives.
    """

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    constants: Mapping[str, Array] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    opset: int = 21
    is_exact: bool = False
    absent: tuple[int, ...] = ()


F, I64 = TensorProto.FLOAT, TensorProto.INT64


def values(*shape: int) -> Array:
    """Return small numbers."""
    return RNG.uniform(-0.5, 0.5, shape).astype(np.float32)


def recurrent(gates: int, outputs: int) -> Kind:
    """Return a recurrent layer of 3 steps and 4 units."""
    weights = {"w": values(1, 4 * gates, 5), "r": values(1, 4 * gates, 4)}
    return Kind(((3, 1, 5),), (F,) * outputs, weights, {"hidden_size": 4})


def graph_of(*nodes: Any, inputs: Sequence[Any], outputs: Sequence[str]) -> Any:
    """Return a graph for an attribute."""
    results = [helper.make_tensor_value_info(name, F, None) for name in outputs]
    return helper.make_graph(list(nodes), "inner", list(inputs), results)


def branch(operator: str) -> Any:
    """Return a branch that sees a value outside and has two results."""
    first = helper.make_node(operator, ["seen"], [f"{operator}0"])
    second = helper.make_node("Add", ["seen", f"{operator}0"], [f"{operator}1"])
    return graph_of(first, second, inputs=(), outputs=[f"{operator}0", f"{operator}1"])


SCAN = graph_of(
    helper.make_node("Add", ["before", "row"], ["after"]),
    helper.make_node("Neg", ["after"], ["turned"]),
    inputs=[typed("before", (4,)), typed("row", (4,))],
    outputs=["after", "turned"],
)
LOOP = graph_of(
    helper.make_node("Identity", ["go"], ["again"]),
    helper.make_node("Neg", ["now"], ["next"]),
    helper.make_node("Abs", ["now"], ["kept"]),
    inputs=[
        helper.make_tensor_value_info("n", I64, ()),
        helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
        typed("now", (4,)),
    ],
    outputs=["again", "next", "kept"],
)
LOOP.output[0].type.tensor_type.elem_type = TensorProto.BOOL

KINDS: Mapping[str, Kind] = {
    "Split": Kind(((2, 6, 4),), (F, F, F), {"sizes": np.array([1, 2, 3])}, {"axis": 1},
                  is_exact=True),
    "TopK": Kind(((3, 7),), (F, I64), {"k": np.array([4])}, is_exact=True),
    "MaxPool": Kind(((1, 2, 6, 6),), (F, I64), {}, {"kernel_shape": [3, 2], "strides": [2, 1]},
                    is_exact=True),
    "Dropout": Kind(((3, 5),), (F, TensorProto.BOOL), is_exact=True),
    "Unique": Kind(((9,),), (F, I64, I64, I64), is_exact=True),
    "LayerNormalization": Kind(((3, 8),), (F, F, F), {"g": values(8), "b": values(8)}),
    "SkipSimplifiedLayerNormalization": Kind(
        ((1, 3, 8), (1, 3, 8)), (F, F, F, F), {"g": values(8)}, domain="com.microsoft",
        absent=(1, 2),
    ),
    "SkipLayerNormalization": Kind(
        ((1, 3, 8), (1, 3, 8)), (F, F, F, F), {"g": values(8), "b": values(8)},
        domain="com.microsoft", absent=(1, 2),
    ),
    "DynamicQuantizeLSTM": Kind(
        ((3, 1, 5),), (F, F, F),
        {
            "w": RNG.integers(-100, 100, (1, 5, 16)).astype(np.int8),
            "r": RNG.integers(-100, 100, (1, 4, 16)).astype(np.int8),
            **dict.fromkeys(("bias", "lengths", "hidden", "cell", "peepholes"), NOTHING),
            "ws": np.array([0.004], np.float32), "wz": np.zeros(1, np.int8),
            "rs": np.array([0.004], np.float32), "rz": np.zeros(1, np.int8),
        },
        {"hidden_size": 4}, domain="com.microsoft",
    ),
    "RNN": recurrent(1, 2),
    "GRU": recurrent(3, 2),
    "LSTM": recurrent(4, 3),
    "Attention": Kind(((1, 2, 3, 4),) * 3, (F, F, F, F), opset=24, absent=(1, 2)),
    "If": Kind(((3, 4),), (F, F), {}, {"then_branch": branch("Neg"), "else_branch": branch("Abs")}),
    "Loop": Kind(((4,),), (F, F), {}, {"body": LOOP}),
    "Scan": Kind(((4,), (3, 4)), (F, F), {}, {"body": SCAN, "num_scan_inputs": 1}),
    "DynamicQuantizeLinear": Kind(((3, 5),), (TensorProto.UINT8, F, TensorProto.UINT8)),
    "SoftmaxCrossEntropyLoss": Kind(((3, 5),), (F, F), {"labels": np.array([1, 0, 4])}),
    "LinearAttention": Kind(
        ((1, 3, 8),) * 3, (F, F), {},
        {"kv_num_heads": 2, "q_num_heads": 2, "update_rule": "linear"}, opset=27,
    ),
    "CausalConvWithState": Kind(((1, 3, 8),), (F, F), {"w": values(3, 1, 4)}, opset=27),
    "GroupQueryAttention": Kind(
        ((1, 1, 16),) * 3, (F, F, F),
        {"past_k": values(1, 2, 4, 8), "past_v": values(1, 2, 4, 8),
         "lengths": np.array([3], np.int32), "total": np.array(4, np.int32)},
        {"num_heads": 2, "kv_num_heads": 2}, domain="com.microsoft",
    ),
}  # fmt: skip
OTHERS = {
    "BatchNormalization",  # more than one in training mode alone, which is refused
    "SequenceMap",  # its results are sequences, which no conversion takes
    "LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier",  # of ai.onnx.ml, below
}  # fmt: skip


@dataclass(frozen=True)
class Situation:
    """What becomes of the results.

    Args:
        used: which of them there are conversions behind, by their place.
        ports: which of the others are outputs of the model as they are.
        is_alike: all are quantised by the scale of the input.
        is_short: results that nothing takes are left out where the operator allows it.
    """

    used: tuple[bool, ...]
    ports: tuple[bool, ...]
    is_alike: bool = False
    is_short: bool = False


def situations(count: int) -> list[Situation]:
    """Return what can become of some results."""
    every, none = (True,) * count, (False,) * count
    first, last = (True, *none[1:]), (*none[1:], True)
    return [
        Situation(every, none),
        Situation(every, none, is_alike=True),
        Situation(first, none),
        Situation(first, none, is_short=True),
        Situation(last, none, is_short=True),
        Situation(first, tuple(not used for used in first)),
        Situation(none, every),
    ]


def names_of(operator: str, kind: Kind, situation: Situation) -> list[str]:
    """Return the names of a node's results; empty for those that are left out."""
    names = [f"y{n}" * (n not in kind.absent) for n in range(len(kind.outputs))]
    if situation.is_short and not kind.domain:
        formal = defs.get_schema(operator, kind.opset, "").outputs
        optional = defs.OpSchema.FormalParameterOption.Optional
        for n, name in enumerate(names):
            is_taken = situation.used[n] or situation.ports[n]
            if not is_taken and n < len(formal) and formal[n].option == optional:
                names[names.index(name)] = ""
    while names and not names[-1]:
        names.pop()
    return names


def model(operator: str, kind: Kind, situation: Situation, dtype: Any) -> bytes:
    """Return a model with conversions around an operator."""
    parts = Parts(np.random.default_rng(3), dtype)
    ports = [f"x{n}" for n in range(len(kind.inputs))]
    if operator == "DynamicQuantizeLinear":  # takes floats alone
        inner = ports
    else:
        inner = [parts.quantised(port, f"d{port}") for port in ports]
    names = names_of(operator, kind, situation)
    held = {name: array for name, array in kind.constants.items() if array is not NOTHING}
    operands = [*inner, *(name * (name in held) for name in kind.constants)]
    if operator in ("If", "Loop"):  # a condition, or the number of turns, comes first
        operands = ["flag", *operands] if operator == "If" else ["turns", "", *operands]
        held["flag" if operator == "If" else "turns"] = np.array(3 if operator == "Loop" else True)
    if operator == "If":
        parts.nodes.append(helper.make_node("Identity", inner, ["seen"]))
        operands = operands[:1]
    parts.nodes.append(
        helper.make_node(operator, operands, names, domain=kind.domain, **kind.attributes)
    )
    outputs: list[Any] = []
    for n, (name, number) in enumerate(zip(names, kind.outputs, strict=False)):
        if not name or not (situation.used[n] or situation.ports[n]):
            continue
        if situation.ports[n] or number != F:
            outputs.append(helper.make_tensor_value_info(name, number, None))
        elif situation.is_alike and operator != "DynamicQuantizeLinear":
            scaling = "dx0_scale", "dx0_zero"
            parts.nodes += [
                helper.make_node("QuantizeLinear", [name, *scaling], [f"{name}_q"]),
                helper.make_node("DequantizeLinear", [f"{name}_q", *scaling], [f"{name}_d"]),
            ]
            outputs.append(f"{name}_d")
        else:
            outputs.append(parts.quantised(name, f"{name}_d"))
    given = [typed(port, shape) for port, shape in zip(ports, kind.inputs, strict=True)]
    domains = {kind.domain: 1} if kind.domain else None
    return model_of(parts.nodes, given, outputs, {**parts.constants, **held}, kind.opset, domains)


def computed(model: bytes, kind: Kind, inputs: Mapping[str, Array]) -> list[Array]:
    """Return the results of onnxruntime, or of the package's reference for what that has not."""
    if kind.opset < 26:
        inferred = model if kind.domain else with_inferred_outputs(model)
        return run_onnxruntime(inferred, inputs)
    return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, dict(inputs))]


def inputs_of(kind: Kind) -> dict[str, Array]:
    """Return the inputs of a model."""
    return {f"x{n}": values(*shape) for n, shape in enumerate(kind.inputs)}


def floats_of(graph: Graph) -> list[str]:
    """Return the operators that take or give floats, but for conversions."""
    nodes = [node for node in graph.nodes if not isinstance(node.op, Quantize | Dequantize)]
    return [
        node.op.name
        for node in nodes
        if any(tensor.dtype.is_float for tensor in (*node.inputs, *node.outputs))
    ]


def test_every_operator_of_several_outputs_is_listed() -> None:
    """Of all that are read."""
    read = {name for (_, name), reader in READERS.items() if reader.outputs > 1}
    assert read == {*KINDS, *OTHERS}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
@pytest.mark.parametrize("operator", KINDS)
def test_conversions_around(operator: str, dtype: Any) -> None:
    """Results are those of onnxruntime, whatever becomes of each."""
    kind = KINDS[operator]
    for situation in situations(len(kind.outputs)):
        made, inputs = model(operator, kind, situation, dtype), inputs_of(kind)
        want = computed(made, kind, inputs)
        graph = from_onnx(made).graph
        assert graph is not None
        found = execute(graph, inputs)
        counts = {counted.count for counted in graph.counted}
        got = [found[t.name] for t in graph.outputs if t.name not in counts]
        for have, expected in zip(got, want, strict=True):
            rows = have[: len(expected)] if counts else have  # as many as data say
            atol = 0 if kind.is_exact else STEP
            np.testing.assert_allclose(
                rows.astype(np.float64),
                expected.astype(np.float64),
                0,
                atol,
                err_msg=str(situation),
            )
        float_layers(made)


@pytest.mark.parametrize("operator", ["Split", "TopK"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
def test_what_moves_integers_has_no_floats(operator: str, dtype: Any) -> None:
    """Between the conversions of what the caller gives and takes."""
    kind = KINDS[operator]
    for situation in situations(len(kind.outputs)):
        graph = from_onnx(model(operator, kind, situation, dtype)).graph
        assert graph is not None
        assert not floats_of(graph), situation


@pytest.mark.parametrize("operator", ["Split", "TopK", "LSTM"])
def test_conversions_in_c(operator: str) -> None:
    """The C gives what the graph does."""
    kind = KINDS[operator]
    for situation in situations(len(kind.outputs))[::5]:
        module, inputs = from_onnx(model(operator, kind, situation, np.uint8)), inputs_of(kind)
        assert module.graph is not None
        want = execute(module.graph, inputs)
        got = host.load(microtir.build(module), sanitize=True).run(inputs)
        for name, array in want.items():
            np.testing.assert_allclose(got[name], array, 0, 0 if kind.is_exact else STEP)


def test_a_layer_of_several_results_is_one_in_floats() -> None:
    """It is listed once, however many of its results are quantised."""
    kind = KINDS["LSTM"]
    (layer,) = float_layers(model("LSTM", kind, situations(3)[0], np.int8))
    assert (layer.source.operator, layer.why) == ("LSTM", "no integer version of it exists")
    assert len(layer.operators) == 5  # with a conversion of the input, and one of each result
