"""Prints the nodes of a graph as applications for microTVM's graph executor read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from microtir.codegen.interface.graph_nodes import GraphNode, NodeGraph, node_graph
from microtir.codegen.microtvm.dlpack import dlpack_dtype
from microtir.codegen.printer.constants import ConstantArray
from microtir.codegen.program import CProgram
from microtir.dtype import DType
from microtir.module.ir_module import ModelInfo
from microtir.support.encoding import c_string

_ANY = 0  # the number of an input that no node reads


def graph_tables(program: CProgram, model: ModelInfo) -> Iterator[str]:
    """Yield the constants of `tvmgen_<mod>_module` that describe its graph."""
    graph = node_graph(program, model)
    counts = (graph.input_count, len(graph.heads))
    assert counts == (len(model.inputs), len(model.outputs)), "none lies in the workspace"
    inputs = [entry for node in graph.nodes for entry in node.inputs]
    if inputs:
        yield from _array("TVMGraphExecutorNodeEntry", "read", map(_entry, inputs))
    yield from _array("TVMGraphExecutorNode", "nodes", _rows(graph, model))
    yield from _array("uint32_t", "input_nodes", map(str, range(graph.input_count)))
    yield from _array("uint32_t", "row_pointers", map(str, graph.row_pointers))
    yield from _array("TVMGraphExecutorNodeEntry", "outputs", map(_entry, graph.heads))
    numbers = (_ANY if number is None else number for number in graph.numbers)
    yield from _array("uint16_t", "tensors", map(str, numbers))
    yield "static const struct tvm_graph_nodes facts = {"
    yield f"    nodes, input_nodes, row_pointers, outputs, tensors, {len(graph.nodes)},"
    yield "};"
    rows = list(map(_parameter, program.constants)) if program.has_external_params else []
    if rows:
        yield from _array("struct tvm_graph_parameter", "parameters", iter(rows))
    table = f"{'parameters' if rows else 'NULL'}, {len(rows)}"
    yield f"static const struct tvm_graph_model graph = {{{program.name}_graph, &facts, {table}}};"


def _parameter(array: ConstantArray) -> str:
    kind = "{kDLUInt, 8, 1}" if array.dtype is DType.BOOL else dlpack_dtype(array.dtype)
    return f"{{{c_string(array.name)}, {kind}, {array.offset}, {array.bytes}}}"


def _array(kind: str, name: str, values: Iterator[str]) -> Iterator[str]:
    yield f"static const {kind} {name}[] = {{"
    yield from (f"    {value}," for value in list(values) or ["0"])
    yield "};"


def _entry(entry: Sequence[int]) -> str:
    node, index = entry
    return f"{{{node}, {index}, 0}}"


def _rows(graph: NodeGraph, model: ModelInfo) -> Iterator[str]:
    first = 0
    for number, node in enumerate(graph.nodes):
        # Applications look inputs up by their names in the model file.
        name = model.inputs[number].name if number < graph.input_count else node.name
        yield _row(node, name, first)
        first += len(node.inputs)


def _row(node: GraphNode, name: str, first: int) -> str:
    count = len(node.inputs)
    # Clients' pointers have no const, and the entries stay in flash.
    inputs = f"(TVMGraphExecutorNodeEntry *)(uintptr_t)&read[{first}]" if count else "NULL"
    outputs = node.output_count if node.is_call else 0
    param = f"{{{c_string(node.function)}, {count}, {outputs}, 0}}"
    return f"{{{c_string(node.kind)}, {c_string(name)}, {param}, {inputs}, {count}}}"
