"""The pages that take a person from a trained model to C: what can be run here is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from microtir.frontend.onnx.exporters import EXPORTERS
from tests.support.pages import ROOT, follow

pytestmark = pytest.mark.tools

PAGES = ("from-pytorch.md", "from-keras.md")


def code_of_others(page: str) -> list[str]:
    """Blocks that need what the tests do not install: `py`, and not `python`."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_code_for_other_packages_is_python(page: str) -> None:
    """What cannot be run here is at least a program."""
    blocks = code_of_others(page)
    assert blocks
    for block in blocks:
        compile(block, page, "exec", dont_inherit=True)


def exported_by_pytorch() -> onnx.ModelProto:
    """A network as torch.onnx.export writes it, in place of the one that the page exports."""
    rng = np.random.default_rng(0)
    shapes = {"w0": (8, 1, 3, 3), "b0": (8,), "w1": (16, 8, 3, 3), "b1": (16,), "w2": (4, 256),
              "b2": (4,)}  # fmt: skip
    constants = [
        numpy_helper.from_array((rng.standard_normal(shape) * 0.3).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    window: dict[str, Any] = {"pads": [1, 1, 1, 1], "strides": [2, 2], "kernel_shape": [3, 3]}
    nodes = [
        helper.make_node("Conv", ["image", "w0", "b0"], ["c0"], **window),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"], **window),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Flatten", ["r1"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w2", "b2"], ["scores"], transB=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 16, 16])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph(nodes, "main_graph", [image], [scores], constants)
    sets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10, producer_name="pytorch")


@pytest.mark.parametrize("has_second_file", [False, True])
def test_from_pytorch(
    has_second_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file in floats is quantised as the page says; both equal onnxruntime.

    Without `external_data=False` the exporter writes all but short arrays into a second file.
    """
    monkeypatch.chdir(tmp_path)
    onnx.save(
        exported_by_pytorch(), "net.onnx", save_as_external_data=has_second_file,
        location="net.onnx.data", size_threshold=256,
    )  # fmt: skip
    assert Path("net.onnx.data").exists() == has_second_file
    images = np.random.default_rng(1).random((32, 1, 16, 16), np.float32)
    np.save("images.npy", images)
    printed = follow("from-pytorch.md", tmp_path)
    assert onnx.load("net_int8.onnx").producer_name in EXPORTERS
    assert "net_int8.onnx: no problems" in printed
    assert printed.count("equal: 4 samples, 16 values") == 2
    assert printed.count("reference: onnxruntime") == 2
    assert (tmp_path / "net" / "net_int8.c").is_file()


def test_from_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example stands for what the converter writes; it equals both interpreters."""
    monkeypatch.chdir(tmp_path)
    printed = follow("from-keras.md", tmp_path)
    assert printed.count("equal: 4 samples, 40 values") == 2
    assert "reference: tflite-micro" in printed
    assert "reference: LiteRT's reference kernels" in printed


def test_from_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C says of every flower what scikit-learn says."""
    monkeypatch.chdir(tmp_path)
    printed = follow("from-scikit-learn.md", tmp_path)
    assert "equal: 150 samples, 600 values" in printed
    assert "equal: 4 samples, 16 values" in printed
