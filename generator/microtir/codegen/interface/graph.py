"""Prints the graph executor's table, one node per statement of main, as C and as JSON for tools."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from microtir.codegen.interface import header
from microtir.codegen.interface.constant_pools import (
    constants_struct,
    given_constants,
    passed_constant_pools,
)
from microtir.codegen.interface.devices import activated_name, struct_name
from microtir.codegen.interface.entry import (
    activating_entry,
    model_checks,
    model_signature,
    run_parameters,
)
from microtir.codegen.interface.packed import RUNTIME_VERSION
from microtir.codegen.interface.pools import passed_pools, workspace_pools
from microtir.codegen.printer.c_types import C_TYPES, integer_literal, runtime_dtype
from microtir.codegen.printer.environment import render
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.functions import FunctionText, joined, signature
from microtir.codegen.printer.layout import block_comment, columns
from microtir.codegen.printer.main_printer import MainPrinter, label_of, views_of
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import SourceFile
from microtir.config.enums import ExecutorKind
from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.ir_module import ModelInfo, PortKind
from microtir.support.encoding import c_comment, c_string
from microtir.tir.ir import Buffer, BufferView, Invoke, PrimFunc, Seq, Stmt
from microtir.tir.visitor import walk

MAX_NUMBER = 65535  # of a tensor, node or argument: the runtime counts in 16 bits
UNKNOWN_COST = 2**32 - 1  # and what is more than the runtime counts
_PLACES = ("INPUT", "OUTPUT", "WORKSPACE")


@dataclass(frozen=True, slots=True)
class TableTensor:
    """A tensor of the graph: `offset` is in bytes in the workspace, else its number in its place.

    `elements` are those of the layout that it has in memory, `pool` is the number of its pool of
    the workspace.
    """

    place: str
    offset: int
    elements: int
    dtype: DType
    name: str = field(compare=False)
    pool: int = 0

    @property
    def place_text(self) -> str:
        """Return the tensor's place as C."""
        return f"MICROTIR_GRAPH_{self.place}{f' + {self.pool}' if self.pool else ''}"

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class TableNode:
    """One statement of main; `outputs`, `inputs` and `scratch` are numbers of tensors.

    Outputs are what it leaves for others, scratch what it writes for itself: rings, sums.
    """

    name: str
    layers: tuple[PrimFunc, ...]
    statement: Stmt
    first_step: int
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    scratch: tuple[int, ...]

    @property
    def arguments(self) -> tuple[int, ...]:
        """Return all of them, in the order in which the node's function takes them."""
        return (*self.outputs, *self.inputs, *self.scratch)

    def cost(self, model: ModelInfo) -> int:
        """Return cycles of its layers, estimated or of tuning records.

        `UNKNOWN_COST` without either.

        Who gave a kernel no cycles said how many instructions it takes.
        """
        decided = [model.decisions.get(layer.name) for layer in self.layers]
        known = [d.cycles or d.instructions for d in decided if d is not None]
        return min(sum(known), UNKNOWN_COST) if len(known) == len(decided) else UNKNOWN_COST


@dataclass(frozen=True, slots=True)
class CallTable:
    """The nodes and tensors that the generated tables of a graph list."""

    nodes: tuple[TableNode, ...]
    tensors: tuple[TableTensor, ...]

    def numbered(self, node: TableNode) -> tuple[tuple[int, TableTensor], ...]:
        """Return the tensors of a node in the order of its arguments, with their numbers."""
        return tuple((n, self.tensors[n]) for n in node.arguments)


@dataclass(frozen=True, slots=True)
class GraphText:
    """The finished lines of a graph's tables, for the template."""

    nodes: list[FunctionText]
    node_rows: list[str]
    argument_rows: list[str]
    tensor_rows: list[str]
    shapes: list[str]
    port_rows: list[str]
    pool_rows: list[str]
    names: list[str]
    fields: list[str]


def make_table(program: CProgram, model: ModelInfo) -> CallTable:
    """Cut main into nodes.

    Raises:
        UsageError: there are more of something than the runtime counts.
    """
    tensors: dict[TableTensor, int] = {}
    nodes, step = [], 0
    for statement in _statements(program.entry.body):
        invokes = [node for node in walk(statement) if isinstance(node, Invoke)]
        if not invokes:
            continue
        views = {
            view: _tensor(program, model, step + offset, view)
            for offset, view in views_of(statement)
        }
        numbers = {t: tensors.setdefault(t, len(tensors)) for t in views.values()}
        written = dict.fromkeys(views[v] for i in invokes for v in _written(program, i))
        left = [views[view] for view in _tensors_written(program, invokes[-1])]
        outputs = dict.fromkeys(t for t in written if t.place == "OUTPUT" or t in left)
        parts = (
            outputs,
            [t for t in numbers if t not in written],
            [t for t in written if t not in outputs],
        )
        layers = tuple(dict.fromkeys(program.callee(invoke.function) for invoke in invokes))
        groups = [tuple(numbers[t] for t in part) for part in parts]
        nodes.append(TableNode(_node_name(layers), layers, statement, step, *groups))
        step += len(invokes)
    table = CallTable(tuple(nodes), tuple(tensors))
    if max(len(tensors), sum(len(node.arguments) for node in nodes)) > MAX_NUMBER:
        raise UsageError(
            f"the graph has {len(nodes)} nodes with {len(tensors)} tensors",
            where="executor",
            legal=f"at most {MAX_NUMBER} tensors and arguments of nodes",
            fix="use executor 'aot'",
        )
    return table


def _statements(body: Stmt) -> Iterator[Stmt]:
    if isinstance(body, Seq):
        for statement in body.statements:
            yield from _statements(statement)
    else:
        yield body


def _written(program: CProgram, invoke: Invoke) -> Iterator[BufferView]:
    """Yield what a call writes, scratch and sums included."""
    written = program.written[program.callee(invoke.function)]
    yield from (view for parameter, view in program.views(invoke) if parameter in written)


def _tensors_written(program: CProgram, invoke: Invoke) -> Iterator[BufferView]:
    """Yield the tensors of the model among what a call writes."""
    tensors = program.tensors_written(program.callee(invoke.function))
    yield from (view for parameter, view in program.views(invoke) if parameter in tensors)


def _tensor(program: CProgram, model: ModelInfo, step: int, view: BufferView) -> TableTensor:
    buffers = [p for p in program.entry.params if isinstance(p, Buffer)]
    index = buffers.index(view.buffer)
    elements = math.prod(view.shape)
    if index >= len(model.ports):
        filled = [number for number, pool in enumerate(model.memory.pools) if pool.size]
        pool = filled[index - len(model.ports)]
        placed = tuple(p for p in model.memory.placements if p.pool == pool)
        name = label_of(placed, step, view)
        return TableTensor("WORKSPACE", view.byte_offset, elements, view.dtype, name, pool)
    port = model.ports[index]
    ports = model.inputs if port.kind is PortKind.INPUT else model.outputs
    return TableTensor(port.kind.name, ports.index(port), elements, view.dtype, port.c_name)


def _node_name(layers: Sequence[PrimFunc]) -> str:
    """Return the name of the operator in the model file, of several the first and the last."""
    names = [layer.origin.node if layer.origin else layer.name for layer in layers]
    return names[0] if len(set(names)) == 1 else f"{names[0]} ... {names[-1]}"


def graph_text(program: CProgram, model: ModelInfo, requirements: Requirements) -> GraphText:
    """Return the tables and the functions of the nodes."""
    table = make_table(program, model)
    nodes = [
        _node_function(program, table, number, requirements) for number in range(len(table.nodes))
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
    return GraphText(
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


def is_debug(program: CProgram) -> bool:
    """Return whether nodes have names, and a run can be observed."""
    return program.config.executor.kind is ExecutorKind.DEBUG


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
        views[step, view] = known[_tensor(program, model, step, view)]
    labels = {n: names.reserve(tensor.name) for n, tensor in table.numbered(node)}
    pointers = [
        _pointer(tensor, labels[n], position[n], n in written)
        for n, tensor in table.numbered(node)
    ]  # fmt: skip
    if any(program.takes_constants(layer) for layer in node.layers):
        given = program.given_constants
        pointers.append(f"{given.type} *{given.name} = executor->{given.name};")
    if any(program.takes_devices(layer) for layer in node.layers):
        pointers.append(f"const {struct_name(program)} *const devices = executor->devices;")
    texts = {(step, view, True): labels[n] for (step, view), n in views.items()}
    printer = MainPrinter(program, names, requirements, texts, node.first_step)
    lines = [*pointers, "", *printer.lines(node.statement), f"return {program.macro}_OK;"]
    parameters = ["const struct microtir_graph_executor *executor", "const uint16_t *tensors"]
    head = signature(f"static int32_t {program.name}_node_{number}", parameters)
    return FunctionText("", "\n".join(head), joined(lines))


def _pointer(tensor: TableTensor, name: str, position: int, is_written: bool) -> str:
    """Return a pointer of a node, to a tensor at a position of its arguments."""
    access, const = ("write", "") if is_written else ("read", "const ")
    place = f"microtir_graph_{access}(executor, tensors[{position}])"
    return f"{const}{C_TYPES[tensor.dtype]} *const {name} = {place};"


def graph_entries(program: CProgram, model: ModelInfo) -> list[FunctionText]:
    """Return `<name>_run`, and for debugging the function that tells an observer about the run."""
    setup = [*model_checks(program, model), "", *_executor(program, model)]
    if not is_debug(program):
        body = [*setup, "return microtir_graph_run(&executor);"]
        return _with_devices(program, f"{program.name}_run", run_parameters(program), body)
    given = ["inputs", "outputs", *(pool.name for pool in passed_pools(program))]
    given += [pool.name for pool in passed_constant_pools(program)]
    given += ["parameters"] * program.has_external_params + ["devices"] * bool(program.devices)
    observe = f"{program.name}_run_observed"
    call = f"return {observe}({', '.join([*given, 'NULL', 'NULL'])});"
    body = [*setup, "return microtir_graph_run_observed(&executor, observer, platform);"]
    return [
        *_with_devices(program, observe, _observed_parameters(program), body),
        FunctionText("", "\n".join(model_signature(program)), joined([call])),
    ]


def _with_devices(
    program: CProgram, name: str, parameters: list[str], body: list[str]
) -> list[FunctionText]:
    """Return function `name`.

    Where devices must be active for it, with the one that sees to that.
    """
    head = f"static int32_t {activated_name(name)}" if program.devices else f"int32_t {name}"
    text = FunctionText("", "\n".join(signature(head, parameters)), joined(body))
    return [text, activating_entry(program, name, parameters)] if program.devices else [text]


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
    values = f"&{program.name}_table, input_pointers, output_pointers, pool_pointers, {parameters}"
    values += f", {constants}, {devices}"
    return [
        *given_constants(program),
        f"const void *input_pointers[] = {{{members[PortKind.INPUT] or 'NULL'}}};",
        f"void *output_pointers[] = {{{members[PortKind.OUTPUT] or 'NULL'}}};",
        f"uint8_t *pool_pointers[] = {{{pools}}};",
        f"const struct microtir_graph_executor executor = {{{values}}};",
    ]


def graph_files(program: CProgram, model: ModelInfo) -> Iterator[SourceFile]:
    """Yield the header of the table, and the graph as JSON."""
    name = f"{program.name}_graph"
    counts = columns([
        (f"#define {program.macro}_INPUT_COUNT", str(len(model.inputs))),
        (f"#define {program.macro}_OUTPUT_COUNT", str(len(model.outputs))),
        (f"#define {program.macro}_POOL_COUNT", str(len(workspace_pools(program)))),
    ])  # fmt: skip
    least = max((node.cost(model) for node in make_table(program, model).nodes), default=0)
    observed = ""
    if is_debug(program):
        text = f"Runs the model like {program.name}_run() and tells the observer about each node."
        lines = signature(f"int32_t {program.name}_run_observed", _observed_parameters(program))
        observed = "\n".join([*block_comment([text]), *lines[:-1], f"{lines[-1]};"])
    yield SourceFile(
        f"{name}.h",
        render(
            "c/graph.h.j2",
            comment=header.file_comment(program, f"{name}.h: the table of calls"),
            name=program.name,
            macro=program.macro,
            runtime_version=RUNTIME_VERSION,
            counts="\n".join(counts),
            least_step=integer_literal(least, DType.UINT32),
            constants_struct=constants_struct(program),
            observed=observed,
        ),
    )
    yield SourceFile(f"{name}.json", json.dumps(_json(program, model), indent=1) + "\n")


def _json(program: CProgram, model: ModelInfo) -> dict[str, object]:
    """Return the graph in the form of TVM's graph executor; `offset`, `pool` and `place` are ours.

    Inputs come first as nodes without an operator, then the calls; an entry of a node is one of
    the tensors that it writes. Shapes are those of memory: a layout may be wider than the tensor.
    """
    table = make_table(program, model)
    nodes: list[dict[str, object]] = []
    entries: list[TableTensor] = []
    produced: dict[TableTensor, list[int]] = {}
    for tensor in table.tensors:
        if tensor.place == "INPUT":
            produced[tensor] = [len(nodes), 0, 0]
            nodes.append({"op": "null", "name": tensor.name, "inputs": []})
            entries.append(tensor)
    input_count = len(nodes)
    for number, node in enumerate(table.nodes):
        reads = [table.tensors[n] for n in node.inputs]
        inputs = [produced[tensor] for tensor in reads if tensor in produced]
        for index, n in enumerate(node.outputs):
            produced[table.tensors[n]] = [len(nodes), index, 0]
            entries.append(table.tensors[n])
        nodes.append({
            "op": "tvm_op",
            "name": node.name,
            "attrs": {
                "func_name": f"{program.name}_node_{number}",
                "layers": [program.names[layer] for layer in node.layers],
                "num_inputs": str(len(inputs)),
                "num_outputs": str(len(node.outputs)),
                "flatten_data": "0",
            },
            "inputs": inputs,
        })  # fmt: skip
    pointers = [0]
    for number in range(len(nodes)):
        is_call = number >= input_count
        count = len(table.nodes[number - input_count].outputs) if is_call else 1
        pointers.append(pointers[-1] + count)
    outputs = [t for t in produced if t.place == "OUTPUT"]
    return {
        "nodes": nodes,
        "arg_nodes": list(range(input_count)),
        "heads": [produced[t] for t in sorted(outputs, key=lambda t: t.offset)],
        "node_row_ptr": pointers,
        "attrs": {
            "dltype": ["list_str", [t.dtype.value for t in entries]],
            "shape": ["list_shape", [[t.elements] for t in entries]],
            "storage_id": ["list_int", [table.tensors.index(t) for t in entries]],
            "place": ["list_str", [t.place.lower() for t in entries]],
            "offset": ["list_int", [t.offset for t in entries]],
            "pool": ["list_int", [t.pool for t in entries]],
        },
    }
