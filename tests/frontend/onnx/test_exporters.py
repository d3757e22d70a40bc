"""Fixes name the option of the exporter that wrote the file."""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from microtir.errors import ExportProblem, Fix, UnsupportedModelError
from microtir.frontend import check, from_onnx
from microtir.frontend.onnx.exporters import EXPORTERS, with_exporters_option
from tests.support.onnx_models import ml_node, model_of, typed

pytestmark = pytest.mark.tools

ML = {"ai.onnx.ml": 4}


def written_by(producer: str, model: bytes) -> bytes:
    """The same model, as an exporter signs it."""
    read = onnx.load_model_from_string(model)
    read.producer_name = producer
    return bytes(read.SerializeToString())


def node(operator: str, *inputs: str, domain: str = "", **attributes: Any) -> Any:
    """A node that gives y."""
    return helper.make_node(operator, inputs or ["x"], ["y"], domain=domain, **attributes)


def with_open_extent() -> bytes:
    """An axis of an input is open."""
    return model_of([node("Relu")], [typed("x", (1, "length"))], ["y"])


def with_computed_shape() -> bytes:
    """A shape is an input."""
    inputs = [typed("x", (1, 4)), typed("s", (2,), np.int64)]
    return model_of([node("Reshape", "x", "s")], inputs, ["y"])


def in_training() -> bytes:
    """Noise is drawn."""
    random = helper.make_node("RandomNormal", [], ["y"], shape=[2])
    return model_of([random], [typed("x", (2,))], ["y"])


def of_old_set() -> bytes:
    """An operator was another one then."""
    nodes = [node("Add", "x", "x")]
    return model_of(nodes, [typed("x", (1,))], ["y"], opset=6)


def with_strings() -> bytes:
    """Categories are strings."""
    nodes = [ml_node("LabelEncoder", keys_strings=["a"], values_int64s=[1])]
    return model_of(nodes, [typed("x", (1,), np.int64)], ["y"], domains=ML)


def of_strings() -> bytes:
    """An input is a string."""
    x = helper.make_tensor_value_info("x", TensorProto.STRING, (1,))
    return model_of([node("Identity")], [x], ["y"])


def with_maps() -> bytes:
    """An output is a sequence of maps, and nobody knows of what."""
    maps = onnx.ValueInfoProto(name="y")
    held = maps.type.sequence_type.elem_type.map_type
    held.key_type = TensorProto.INT64
    held.value_type.tensor_type.elem_type = TensorProto.FLOAT
    zipped = helper.make_node(
        "ZipMap", ["x"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]
    )
    nodes = [zipped, node("Identity", "maps")]
    return model_of(nodes, [typed("x", (1, 2))], [maps], domains=ML)


def with_trees_of_doubles() -> bytes:
    """Leaves of a classifier hold doubles."""
    weights = helper.make_tensor("class_weights_as_tensor", TensorProto.DOUBLE, (2,), [0.1, 0.3])
    attributes: dict[str, Any] = {
        "nodes_treeids": [0, 1], "nodes_nodeids": [0, 0], "nodes_featureids": [0, 0],
        "nodes_modes": ["LEAF", "LEAF"], "nodes_values": [0.0, 0.0],
        "nodes_truenodeids": [0, 0], "nodes_falsenodeids": [0, 0], "classlabels_int64s": [0, 1],
        "class_treeids": [0, 1], "class_nodeids": [0, 0], "class_ids": [0, 0],
        "class_weights_as_tensor": weights,
    }  # fmt: skip
    nodes = [ml_node("TreeEnsembleClassifier", outputs=("y", "scores"), **attributes)]
    return model_of(nodes, [typed("x", (1, 1))], ["y"], domains=ML)


def of_four_bits() -> bytes:
    """Integers of 4 bits are computed with."""
    nodes = [
        helper.make_node("Cast", ["x"], ["few"], to=TensorProto.INT4),
        node("Concat", "few", "few", axis=0),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.INT4, (4,))
    return model_of(nodes, [typed("x", (2,))], [y])


def of_eight_bit_floats() -> bytes:
    """An input is a float of 8 bits."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT8E4M3FN, (1,))
    return model_of([node("Identity")], [x], ["y"])


def of_domain(domain: str) -> bytes:
    """An operator is one of nobody."""
    nodes = [node("Unheard", domain=domain)]
    return model_of(nodes, [typed("x", (1,))], ["y"], domains={domain: 1})


CASES = [
    ("pytorch", with_open_extent(), "without dynamic_axes"),
    ("pytorch", with_computed_shape(), "dynamo=True"),
    ("pytorch", in_training(), "model.eval()"),
    ("pytorch", of_old_set(), "torch.onnx.export: opset_version=17 or later"),
    ("pytorch", of_eight_bit_floats(), "model.float()"),
    ("pytorch", of_domain("org.pytorch.aten"), "dynamo=True"),
    ("tf2onnx", with_open_extent(), "--inputs"),
    ("tf2onnx", with_computed_shape(), "--inputs"),
    ("tf2onnx", of_old_set(), "tf2onnx: --opset 17 or later"),
    ("tf2onnx", in_training(), "training=False"),
    ("tf2onnx", of_domain("ai.onnx.contrib"), "--extra_opset"),
    ("skl2onnx", with_open_extent(), 'initial_types=[("x", FloatTensorType'),
    ("skl2onnx", of_old_set(), "target_opset=17"),
    ("skl2onnx", with_strings(), "sklearn.preprocessing.LabelEncoder"),
    ("skl2onnx", of_strings(), "sklearn.preprocessing.LabelEncoder"),
    ("skl2onnx", with_maps(), 'skl2onnx: options={"zipmap": False}'),
    ("skl2onnx", with_trees_of_doubles(), "FloatTensorType"),
    ("onnx.quantize", with_open_extent(), "make_dynamic_shape_fixed"),
    ("onnx.quantize", of_old_set(), "operator set 17"),
    ("onnx.quantize", of_four_bits(), "QuantType.QInt8"),
    ("onnx.quantize", of_eight_bit_floats(), "QuantType.QInt8"),
    ("onnx.quantize", of_domain("com.microsoft"), "quant_format=QuantFormat.QDQ"),
]


@pytest.mark.parametrize(
    ("producer", "model", "option"), CASES, ids=[f"{name}-{option}" for name, _, option in CASES]
)
def test_option_is_named(producer: str, model: bytes, option: str) -> None:
    """What `check` lists and what `from_onnx` raises have the option of this exporter alone."""
    problems = check(written_by(producer, model))
    assert [option in str(problem.fix) for problem in problems] == [True], problems
    with pytest.raises(UnsupportedModelError) as caught:
        from_onnx(written_by(producer, model))
    assert option in str(caught.value)
    for other in ("", "an unknown exporter"):
        (problem,) = check(written_by(other, model))
        assert problem.fix and EXPORTERS[producer].again not in problem.fix


def first_problem(model: bytes) -> UnsupportedModelError:
    """What is wrong with a model."""
    (problem,) = check(model)
    assert isinstance(problem, UnsupportedModelError)
    return problem


def test_every_option_is_met() -> None:
    """No row of the table is without a model that asks for it, but for what takes a large one."""
    met = {(producer, first_problem(model).export) for producer, model, _ in CASES}
    rows = {(name, problem) for name, known in EXPORTERS.items() for problem in known.options}
    assert rows - met == {("onnx.quantize", ExportProblem.DYNAMIC_QUANTISATION)}


def test_a_flag_comes_first() -> None:
    """Where microtir has a flag, that is said first, in the words of who is told."""
    problem = first_problem(written_by("pytorch", with_open_extent()))
    typed_fix = problem.for_command_line().fix
    assert isinstance(problem.fix, Fix) and typed_fix is not None
    assert typed_fix.startswith("give them, for example: microtir check MODEL --dim length=16; or ")
    assert "; or export again with torch.onnx.export: an example input" in typed_fix
    again = pickle.loads(pickle.dumps(problem))
    assert (again.export, again.export_value) == (ExportProblem.OPEN_EXTENT, "x")


def test_other_problems_are_left() -> None:
    """A problem that no option removes keeps its fix."""
    for problem in (
        UnsupportedModelError("x", fix="y"),
        UnsupportedModelError("x", fix="y", export=ExportProblem.MAPS),
    ):
        assert with_exporters_option(problem, "pytorch") is problem


def test_options_of_onnxruntime_exist() -> None:
    """The names are those of the installed package."""
    from onnxruntime import quantization
    from onnxruntime.tools import make_dynamic_shape_fixed

    known = set(inspect.signature(quantization.quantize_static).parameters) | set(dir(quantization))
    for option in EXPORTERS["onnx.quantize"].options.values():
        for name in re.findall(r"(\w+)=|\b(quantize_\w+)", option):
            assert set(name) - {""} <= known, option
    for name in re.findall(r"(Quant\w+)\.(\w+)", str(EXPORTERS["onnx.quantize"])):
        assert hasattr(getattr(quantization, name[0]), name[1])
    assert make_dynamic_shape_fixed.__name__.endswith("make_dynamic_shape_fixed")
