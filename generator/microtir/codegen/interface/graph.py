"""Prints the graph executor's table, one node per statement of main, as C and as JSON for tools."""

from __future__ import annotations

import json
from collections.abc import Iterator

from microtir.codegen.interface.call_table import CallTable, TableTensor, make_table, tensor_of
from microtir.codegen.interface.checks import model_checks
from microtir.codegen.interface.constant_pools import constants_struct, given_constants
from microtir.codegen.interface.devices import struct_name
from microtir.codegen.interface.entry import names_of, run_name, run_parameters, with_devices
from microtir.codegen.interface.graph_nodes import GraphNode, node_graph
from microtir.codegen.interface.packed import RUNTIME_VERSION
from microtir.codegen.interface.parts import Draft, Part, Place, file_comment, rendered
from microtir.codegen.interface.pools import workspace_pools
from microtir.codegen.interface.state import identity
from microtir.codegen.printer.c_types import C_TYPES, integer_literal, runtime_dtype
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.functions import FunctionText, c_function
from microtir.codegen.printer.layout import columns
from microtir.codegen.printer.main_printer import MainPrinter, views_of
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import SourceFile
from microtir.dtype import DType
from microtir.module.ir_module import ModelInfo, PortKind
from microtir.support.code_templates import render
from microtir.support.encoding import c_comment, c_string
from microtir.tir.ir import Buffer, BufferView


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the tables and the functions of the nodes."""
    program, model = draft.program, draft.model
    table = make_table(program, model)
    nodes = [
        _node_function(program, table, number, draft.requirements)
        for number in range(len(table.nodes))
    ]
    firsts, first = [], 0
    for node in table.nodes:
        firsts.append(first)
        first += len(node.arguments)
    stem = program.name
    shapes = [
        (f"static const int32_t {stem}_shape_{i}[]", ", ".join(map(str, port.type.shape)))
        for i, port in enumerate(model.ports)
    ]
    yield Part(Place.INCLUDES, f'#include "{stem}_graph.h"')
    yield rendered(
        Place.TABLES,
        "graph.c.j2",
        name=stem,
        nodes=nodes,
        node_rows=columns([
            (f"{{{stem}_node_{i},", f"{start},", f"{len(node.outputs)},",
             f"{integer_literal(node.cost(model), DType.UINT32)}}},",
             f"/* {c_comment(node.name)} */")
            for i, (node, start) in enumerate(zip(table.nodes, firsts, strict=True))
        ]),
        argument_rows=[
            " ".join(f"{number}," for number in node.arguments) for node in table.nodes
        ],
        tensor_rows=columns([
            (f"{{{t.offset},", f"{t.bytes},", f"{t.place_text},",
             f"{runtime_dtype(t.dtype)}}},", f"/* {c_comment(t.name)} */")
            for t in table.tensors
        ]),
        shapes=[f"{head} = {{{extents}}};" for head, extents in shapes if extents],
        port_rows=_port_rows(program, model),
        pool_rows=_pool_rows(program),
        state=_state_row(program),
        names=_node_names(program, table),
        fields=_fields(program, model, len(table.nodes)),
    )  # fmt: skip


def _port_rows(program: CProgram, model: ModelInfo) -> list[str]:
    rows = []
    for i, (port, buffer) in enumerate(zip(model.ports, program.entry.params, strict=False)):
        assert isinstance(buffer, Buffer)
        rank = len(port.type.shape)
        shape = f"{program.name}_shape_{i}" if rank else "NULL"
        alignment = max(buffer.alignment, buffer.dtype.bytes)
        rows.append(f"{{{runtime_dtype(buffer.dtype)}, {rank}, {shape}, {alignment}}},")
    return rows


def _pool_rows(program: CProgram) -> list[str]:
    return columns([
        (f"{{{pool.name if pool.has_array else 'NULL'},", f"{pool.size},",
         f"{pool.plan.alignment}}},", f"/* {c_comment(pool.plan.name)} */")
        for pool in workspace_pools(program)
    ])  # fmt: skip


def _state_row(program: CProgram) -> str:
    """Return what the table says of the struct of a state; nothing for a model without."""
    if not program.states:
        return ""
    macro = f"{program.macro}_STATE"
    number = f"UINT32_C({identity(program)})"
    return f"{program.name}_begin, {macro}_SIZE, {number}, {macro}_ALIGNMENT"


def is_debug(program: CProgram) -> bool:
    """Return whether nodes have names, and a run can be observed."""
    return program.config.runs_observed()


def _node_names(program: CProgram, table: CallTable) -> list[str]:
    if not is_debug(program):
        return []
    return [f"{c_string(node.name)}," for node in table.nodes]


def _fields(program: CProgram, model: ModelInfo, node_count: int) -> list[str]:
    stem, macro = program.name, program.macro
    return [
        f"{stem}_nodes,",
        f"{stem}_arguments,",
        f"{stem}_tensors,",
        f"{stem}_ports,",
        f"{stem}_node_names," if is_debug(program) else "NULL, /* names of the nodes */",
        f"{stem}_pools,",
        f"&{stem}_state_facts," if program.states else "NULL, /* a state */",
        f"{node_count}, /* nodes */",
        f"{len(model.inputs)}, /* inputs */",
        f"{len(model.outputs)}, /* outputs */",
        f"{len(workspace_pools(program))}, /* pools */",
        f"{macro}_PARAMETERS_ALIGNMENT,"
        if program.has_external_params
        else "0, /* no file of weights */",
        f"{len(program.given_pools)}, /* pools of constants */",
        f"{len(program.devices)}, /* devices */",
        f"{macro}_PARAMETERS_IDENTITY," if program.has_external_params else "0, /* identity */",
        f"{macro}_PARAMETERS_SIZE" if program.has_external_params else "0",
    ]


def _node_function(
    program: CProgram, table: CallTable, number: int, requirements: Requirements
) -> FunctionText:
    """Return one node: it finds its tensors by number and runs its statement of main."""
    node = table.nodes[number]
    model = program.model
    assert model is not None
    names = ScopedNames(program.file_names)
    for taken in ("executor", "tensors"):
        names.reserve(taken)
    written = {*node.outputs, *node.scratch}
    views: dict[tuple[int, BufferView], int] = {}
    position = {n: i for i, (n, _) in enumerate(table.numbered(node))}
    known = {tensor: n for n, tensor in enumerate(table.tensors)}
    for offset, view in views_of(node.statement):
        step = node.first_step + offset
        views[step, view] = known[tensor_of(program, model, step, view)]
    labels = {n: names.reserve(tensor.name) for n, tensor in table.numbered(node)}
    pointers = [
        _pointer(tensor, labels[n], position[n], n in written)
        for n, tensor in table.numbered(node)
    ]  # fmt: skip
    if any(program.takes_constants(layer) for layer in node.layers):
        passed = program.given_constants
        pointers.append(f"{passed.type} *{passed.name} = executor->{passed.name};")
    if any(program.takes_devices(layer) for layer in node.layers):
        pointers.append(f"const {struct_name(program)} *const devices = executor->devices;")
    texts = {
        (step, view, True): _part(table.tensors[n], view, labels[n])
        for (step, view), n in views.items()
    }
    printer = MainPrinter(program, names, requirements, texts, node.first_step)
    lines = [*pointers, "", *printer.lines(node.statement), f"return {program.macro}_OK;"]
    parameters = ["const struct microtir_graph_executor *executor", "const uint16_t *tensors"]
    return c_function(f"static int32_t {program.name}_node_{number}", parameters, lines)


def _part(tensor: TableTensor, view: BufferView, name: str) -> str:
    """Return a pointer to what a call is given of a tensor: a part of what a caller gives."""
    is_whole = tensor.place not in ("INPUT", "OUTPUT") or not view.byte_offset
    return name if is_whole else f"{name} + {view.byte_offset // view.dtype.bytes}"


def _pointer(tensor: TableTensor, name: str, position: int, is_written: bool) -> str:
    """Return a pointer of a node, to a tensor at a position of its arguments."""
    access, const = ("write", "") if is_written else ("read", "const ")
    place = f"microtir_graph_{access}(executor, tensors[{position}])"
    return f"{const}{C_TYPES[tensor.dtype]} *const {name} = {place};"


def entries(program: CProgram, requirements: Requirements) -> list[FunctionText]:
    """Return `<name>_run`, and for debugging the function that tells an observer about the run."""
    model = program.model
    assert model is not None
    setup = [*model_checks(program, model, requirements), "", *_executor(program, model)]
    if not is_debug(program):
        body = [*setup, "return microtir_graph_run(&executor);"]
        return with_devices(program, f"{program.name}_run", run_parameters(program), body)
    observe = f"{program.name}_run_observed"
    names = names_of(run_parameters(program))
    call = f"return {observe}({', '.join([*names, 'NULL', 'NULL'])});"
    body = [*setup, "return microtir_graph_run_observed(&executor, observer, platform);"]
    return [
        *with_devices(program, observe, _observed_parameters(program), body),
        c_function(f"int32_t {run_name(program)}", run_parameters(program), [call]),
    ]


def _observed_parameters(program: CProgram) -> list[str]:
    observers = [
        "const struct microtir_graph_observer *observer",
        "const struct microtir_platform *platform",
    ]
    return [*run_parameters(program), *observers]


def _executor(program: CProgram, model: ModelInfo) -> list[str]:
    """Return the executor of one run, on the stack."""
    members = {
        kind: ", ".join(f"{kind.value}s->{p.c_name}" for p in model.ports if p.kind is kind)
        for kind in PortKind
    }
    pools = ", ".join(pool.name if pool.size else "NULL" for pool in workspace_pools(program))
    parameters = "parameters" if program.has_external_params else "NULL"
    constants = "constants" if program.given_pools else "NULL"
    devices = "devices" if program.devices else "NULL"
    state = "(uint8_t *)state" if program.states else "NULL"
    values = f"&{program.name}_table, input_pointers, output_pointers, pool_pointers, {state}"
    values += f", {parameters}, {constants}, {devices}"
    return [
        *given_constants(program),
        f"const void *input_pointers[] = {{{members[PortKind.INPUT] or 'NULL'}}};",
        f"void *output_pointers[] = {{{members[PortKind.OUTPUT] or 'NULL'}}};",
        f"uint8_t *pool_pointers[] = {{{pools}}};",
        f"const struct microtir_graph_executor executor = {{{values}}};",
    ]


def files(draft: Draft) -> Iterator[SourceFile]:
    """Yield the header of the table, and the graph as JSON."""
    program, model = draft.program, draft.model
    name = f"{program.name}_graph"
    counts = columns([
        (f"#define {program.macro}_INPUT_COUNT", str(len(model.inputs))),
        (f"#define {program.macro}_OUTPUT_COUNT", str(len(model.outputs))),
        (f"#define {program.macro}_POOL_COUNT", str(len(workspace_pools(program)))),
    ])  # fmt: skip
    least = max((node.cost(model) for node in make_table(program, model).nodes), default=0)
    declarations = []
    if struct := constants_struct(program):
        comment = "The constant pools that a run is given, for microtir_graph_set_constants()."
        declarations.append(f"/* {comment} */\n{struct}")
    if is_debug(program):
        text = f"Runs the model like {program.name}_run() and tells the observer about each node."
        head = f"int32_t {program.name}_run_observed"
        observed = c_function(head, _observed_parameters(program), comment=[text])
        declarations.append(observed.declaration)
    yield SourceFile(
        f"{name}.h",
        render(
            "c/graph.h.j2",
            comment=file_comment(program, f"{name}.h: the table of calls"),
            name=program.name,
            macro=program.macro,
            runtime_version=RUNTIME_VERSION,
            counts="\n".join(counts),
            least_step=integer_literal(least, DType.UINT32),
            declarations=declarations,
        ),
    )
    yield SourceFile(f"{name}.json", json.dumps(_json(program, model), indent=1) + "\n")


def _json(program: CProgram, model: ModelInfo) -> dict[str, object]:
    """Return the graph in the form of TVM's graph executor; `offset`, `pool` and `place` are ours.

    Inputs come first as nodes without an operator, and what the last run has left; then the calls.
    An entry of a node is one of the tensors that it writes. Shapes are those of memory: a layout
    may be wider than the tensor.
    """
    graph = node_graph(program, model)
    unread = len(make_table(program, model).tensors)
    return {
        "nodes": [_json_node(node) for node in graph.nodes],
        "arg_nodes": [n for n, node in enumerate(graph.nodes) if not node.is_call],
        "heads": [[*head, 0] for head in graph.heads],
        "node_row_ptr": graph.row_pointers,
        "attrs": {
            "dltype": ["list_str", [t.dtype.value for t in graph.entries]],
            "shape": ["list_shape", [[t.elements] for t in graph.entries]],
            "storage_id": ["list_int", [unread if n is None else n for n in graph.numbers]],
            "place": ["list_str", [t.place.lower() for t in graph.entries]],
            "offset": ["list_int", [t.offset for t in graph.entries]],
            "pool": ["list_int", [t.pool for t in graph.entries]],
        },
    }


def _json_node(node: GraphNode) -> dict[str, object]:
    inputs = [[*entry, 0] for entry in node.inputs]
    if not node.is_call:
        return {"op": node.kind, "name": node.name, "inputs": inputs}
    attributes = {
        "func_name": node.function,
        "layers": list(node.layers),
        "num_inputs": str(len(inputs)),
        "num_outputs": str(node.output_count),
        "flatten_data": "0",
    }
    return {"op": node.kind, "name": node.name, "attrs": attributes, "inputs": inputs}
