"""Write a graph as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from microtir.errors import ToolError, UnsupportedModelError
from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.names import brief
from microtir.operators import record_of
from microtir.operators.recurrent.definition import Lstm
from microtir.support.arguments import checked_arguments
from microtir.support.files import replace_file
from microtir.support.resources import install_extra
from microtir.writers.onnx.operators import writer_of
from microtir.writers.onnx.qdq import QdqGraph
from microtir.writers.straight import Straight

_OPSET = 21  # the first one in which QuantizeLinear gives integers of 16 bits
_FORMAT = 10


@checked_arguments
def write_onnx(graph: Graph, path: str | Path) -> None:
    """Write a graph as an .onnx file, which is there as a whole or not at all.

    Integers become real numbers before a layer and integers behind it (QDQ), as ONNX has it.  What
    the graph keeps from run to run is an input and an output of the model, loops are written out
    turn by turn, and LSTMs are those of floats.

    Args:
        graph: as a reader or the quantiser gives it, before the driver has changed anything.
        path: of the file; one that is there is replaced.

    Raises:
        ToolError: the package `onnx` is not installed.
        UnsupportedModelError: with a problem for each node that is not written.
        OutputError: the file cannot be written.
    """
    replace_file(Path(path), onnx_bytes(graph))


@checked_arguments
def onnx_bytes(graph: Graph) -> bytes:
    """Return what `write_onnx` writes: the same bytes for the same graph.

    Raises:
        ToolError: the package `onnx` is not installed.
        UnsupportedModelError: with a problem for each node that is not written.
    """
    try:
        from onnx import ValueInfoProto, helper
    except ImportError:
        raise ToolError(
            "the package onnx is not installed, and is needed to write ONNX models",
            where=graph.name,
            fix=install_extra("onnx"),
        ) from None
    graph = Straight()(graph)
    writers = [(node, writer_of(node)) for node in graph.nodes]
    refused = [_problem(node) for node, write in writers if write is None]
    if refused:
        raise UnsupportedModelError(
            f"layers of the model that cannot be written as ONNX: {len(refused)}",
            where=f"{graph.name}.onnx",
            problems=refused,
        )
    written = QdqGraph()
    for tensor in (*graph.inputs, *graph.outputs):
        written.value(tensor)
    for node, write in writers:
        if write is not None:
            write(written, node)

    def port(tensor: Tensor) -> ValueInfoProto:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype.value))
        return helper.make_tensor_value_info(written.value(tensor), kind, tensor.shape)

    inputs, outputs = ([*map(port, ts)] for ts in (graph.inputs, graph.outputs))
    body = helper.make_graph(written.nodes, graph.name, inputs, outputs, written.constants)
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(body, opset_imports=opsets, producer_name="microtir")
    model.ir_version = _FORMAT
    return bytes(model.SerializeToString(deterministic=True))


def floats_instead(graph: Graph) -> tuple[str, ...]:
    """Return names of layers of integers that the file has in floats: LSTMs."""
    nodes = (node for node in graph.nodes if isinstance(node.op, Lstm))
    return tuple(node.name for node in nodes if not node.inputs[0].dtype.is_float)


def _problem(node: Node) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"microtir cannot write {record_of(node.op).name} as ONNX",
        where=f"{node.source} ({brief(node.name)!r})",
        legal="layers that microtir can write (see docs/quantise.md)",
        fix="write a .tflite file",
    )
