"""Traces each operator of a model file to the C that computes it, and to the tests of the operator.

Names come from the model's file: what a spreadsheet would take for a formula is marked as text, and
the page escapes every value.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields

from microtir.artifact import Artifact, LayerData
from microtir.codegen.program import make_program
from microtir.evidence.operator_tests import recorded_tests
from microtir.evidence.part import Part
from microtir.graph.ir import Graph, Node
from microtir.support.templates import render_page

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Row:
    """A function of an operator; an operator without one has a row that says where its work went.

    `index` and `operator` are position and type in the model file, `lines` those of `file`, the
    generated C; `kernels` are functions that it calls, with their lines.
    """

    index: int
    operator: str
    name: str
    tir_function: str
    c_function: str
    file: str
    lines: str
    kernels: str
    note: str
    tests: str


def matrix_part(artifact: Artifact) -> Part:
    """Return the matrix as CSV and as a self-contained page."""
    rows = trace(artifact)
    columns = [field.name.replace("_", " ") for field in fields(Row)]
    cells = [[str(value) for value in astuple(row)] for row in rows]
    facts = artifact.metadata.model
    model = facts.file if facts else artifact.metadata.module_name
    page = render_page("evidence/matrix.html.j2", model=model, columns=columns, rows=cells)
    without = sum(not row.c_function for row in rows)
    untested = sorted({row.operator for row in rows if not row.tests})
    return Part(
        "matrix",
        {"matrix.csv": _csv(columns, cells), "matrix.html": _bytes(page)},
        "`matrix.csv`, `matrix.html`",
        "The function and lines of the C that compute each operator of the model, and the test "
        "files of microtir that execute operators of that type.",
        "the compiler, which names its functions; a run of the named tests",
        f"{len(rows) - without} functions, {without} operators without a function, "
        f"{len(untested)} types of operators without a test",
        holds=not untested,
    )


def trace(artifact: Artifact) -> tuple[Row, ...]:
    """Return the rows of a compiled model, in the order of the operators in its file."""
    graph, program = artifact.module.graph, make_program(artifact.module)
    assert graph is not None
    layers = artifact.metadata.layers
    rows = [
        _of_layer(artifact, layer, function.name)
        for layer, function in zip(layers, program.layers, strict=True)
    ]
    return tuple(sorted([*rows, *_without(graph, layers)], key=lambda row: row.index))


def _of_layer(artifact: Artifact, layer: LayerData, tir_function: str) -> Row:
    kernels = [
        f"{kernel.function} ({_lines(kernel.lines)})"
        for kernel in artifact.metadata.kernels
        if layer.function in kernel.layers
    ]
    return Row(
        layer.index,
        layer.operator,
        layer.name,
        tir_function,
        layer.function,
        f"c/{artifact.metadata.module_name}.c",
        _lines(layer.lines),
        "; ".join([*kernels, *(f"{name} (external)" for name in layer.externs)]),
        "",
        "; ".join(recorded_tests(layer.operator)),
    )


def _without(graph: Graph, layers: Iterable[LayerData]) -> Iterator[Row]:
    """Yield the operators without a function, with the nearest ones that have one."""
    computed = {layer.index for layer in layers}
    writers = {tensor: node for node in graph.nodes for tensor in node.outputs}
    readers = defaultdict[object, list[Node]](list)
    for node in graph.nodes:
        for tensor in node.inputs:
            readers[tensor].append(node)

    def before(node: Node) -> Iterable[Node]:
        return (writers[tensor] for tensor in node.inputs if tensor in writers)

    def after(node: Node) -> Iterable[Node]:
        return (reader for tensor in node.outputs for reader in readers[tensor])

    for node in graph.nodes:
        if node.source.index not in computed:
            ends = _nearest(node, before, computed), _nearest(node, after, computed)
            note = (
                f"no function: between operators {ends[0] or '(input)'} and {ends[1] or '(output)'}"
            )
            source = node.source
            tests = "; ".join(recorded_tests(source.operator))
            yield Row(source.index, source.operator, node.name, "", "", "", "", "", note, tests)


def _nearest(node: Node, step: Callable[[Node], Iterable[Node]], computed: set[int]) -> str:
    """Return the first operators with a function in a direction, by their indices."""
    seen, waiting, ends = {node}, [node], set[int]()
    while waiting:
        for other in step(waiting.pop()):
            if other.source.index in computed:
                ends.add(other.source.index)
            elif other not in seen:
                seen.add(other)
                waiting.append(other)
    return ", ".join(map(str, sorted(ends)))


def _lines(lines: tuple[int, ...]) -> str:
    return "-".join(map(str, lines))


def _csv(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([f"'{c}" if c.startswith(_FORMULA) else c for c in row] for row in rows)
    return _bytes(stream.getvalue())


def _bytes(text: str) -> bytes:
    return text.encode(errors="backslashreplace")  # a name may be no text
