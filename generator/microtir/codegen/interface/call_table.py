"""Cuts main into the nodes of a graph executor: what each calls, and the tensors that it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from microtir.codegen.interface.state import layout
from microtir.codegen.printer.main_printer import label_of, views_of
from microtir.codegen.program import CProgram
from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.module.ir_module import ModelInfo, PortKind
from microtir.tir.ir import Buffer, BufferView, Invoke, PrimFunc, Stmt
from microtir.tir.visitor import invokes_of, statements_of

MAX_NUMBER = 65535  # of a tensor, node or argument: the runtime counts in 16 bits
UNKNOWN_COST = 2**32 - 1  # and what is more than the runtime counts


@dataclass(frozen=True, slots=True)
class TableTensor:
    """A tensor of the graph: `offset` is in bytes in the workspace or the state, else its number.

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

        Who gave a kernel no cycles said how many instructions it takes. A function that finishes a
        layer costs nothing more: all of it is counted at the first function.
        """
        decided = [model.decisions.get(layer.name) for layer in self.layers]
        known = [d.cycles or d.instructions for d in decided if d is not None]
        return min(sum(known), UNKNOWN_COST) if model.decisions else UNKNOWN_COST


@dataclass(frozen=True, slots=True)
class CallTable:
    """The nodes and tensors that the generated tables of a graph list."""

    nodes: tuple[TableNode, ...]
    tensors: tuple[TableTensor, ...]

    def numbered(self, node: TableNode) -> tuple[tuple[int, TableTensor], ...]:
        return tuple((n, self.tensors[n]) for n in node.arguments)


def make_table(program: CProgram, model: ModelInfo) -> CallTable:
    """Cut main into nodes.

    Raises:
        UsageError: there are more of something than the runtime counts.
    """
    tensors: dict[TableTensor, int] = {}
    nodes, step = [], 0
    for statement in statements_of(program.entry.body):
        invokes = invokes_of(statement)
        if not invokes:
            continue
        views = {
            view: tensor_of(program, model, step + offset, view)
            for offset, view in views_of(statement)
        }
        numbers = {t: tensors.setdefault(t, len(tensors)) for t in views.values()}
        written = dict.fromkeys(views[v] for i in invokes for v in _written(program, i))
        left = [views[view] for view in _tensors_written(program, invokes[-1])]
        names = ("OUTPUT", "STATE")
        outputs = dict.fromkeys(t for t in written if t.place in names or t in left)
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
            f"the graph has too many nodes ({len(nodes)}) or tensors ({len(tensors)})",
            where="executor",
            legal=f"at most {MAX_NUMBER} tensors, and as many arguments of nodes",
            fix="use executor 'aot'",
        )
    return table


def _written(program: CProgram, invoke: Invoke) -> Iterator[BufferView]:
    """Yield what a call writes, scratch and sums included."""
    written = program.written[program.callee(invoke.function)]
    yield from (view for parameter, view in program.views(invoke) if parameter in written)


def _tensors_written(program: CProgram, invoke: Invoke) -> Iterator[BufferView]:
    """Yield the tensors of the model among what a call writes."""
    tensors = program.tensors_written(program.callee(invoke.function))
    yield from (view for parameter, view in program.views(invoke) if parameter in tensors)


def tensor_of(program: CProgram, model: ModelInfo, step: int, view: BufferView) -> TableTensor:
    """Return the tensor of the graph that a view of a step of main is."""
    buffers = [p for p in program.entry.params if isinstance(p, Buffer)]
    index = buffers.index(view.buffer)
    elements = math.prod(view.shape)
    first = len(buffers) - len(model.states)
    if index >= first:
        offset = layout(program).offsets[index - first] + view.byte_offset
        return TableTensor(
            "STATE", offset, elements, view.dtype, model.states[index - first].c_name
        )
    if index >= len(model.ports):
        filled = [number for number, pool in enumerate(model.memory.pools) if pool.size]
        pool = filled[index - len(model.ports)]
        alive = [
            p
            for p in model.memory.placements
            if p.pool == pool and p.first_step <= step <= p.last_step
        ]
        name = label_of(alive, step, view)
        return TableTensor("WORKSPACE", view.byte_offset, elements, view.dtype, name, pool)
    port = model.ports[index]
    ports = model.inputs if port.kind is PortKind.INPUT else model.outputs
    # A part of it is found by its offset from the pointer of the whole.
    elements = port.type.elements
    return TableTensor(port.kind.name, ports.index(port), elements, view.dtype, port.c_name)


def _node_name(layers: Sequence[PrimFunc]) -> str:
    """Return the name of the operator in the model file, of several the first and the last."""
    names = [layer.origin.node if layer.origin else layer.name for layer in layers]
    return names[0] if len(set(names)) == 1 else f"{names[0]} ... {names[-1]}"
