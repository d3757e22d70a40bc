"""Makes recurrent layers of loops over time that compute the cell of an LSTM in each turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Keeps, Rewrite, named_apart, with_nodes
from microtir.operators.activations.definition import Logistic, Tanh
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.control.definition import PutItem
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import Reshape
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.state.definition import Assign
from microtir.rewrite.optimise.linear_forms import LinearForm, LinearForms, Matrix
from microtir.rewrite.optimise.loops import Carried, Loop, loops_of


class FuseLstmLoops(Rewrite):
    """Replaces a loop by an LSTM if that is what its turns compute, in float32.

    A turn takes the next step of a sequence; adds up products of it and of the hidden state with
    constant matrices, as it likes; bends four parts of the sums by sigmoids and a TANH; and gives
    the cells and the hidden state their new values.  What is used behind the loop is one of these,
    or the list of hidden states.  Sums come in another order then, and so are other floats.
    """

    keeps = Keeps.SUMS

    def __call__(self, graph: Graph) -> Graph:
        # From the last one on: the numbers of those before stay.
        for loop in reversed(list(loops_of(graph))):
            fused = _fused(graph, loop)
            graph = graph if fused is None else fused
        return named_apart(graph)


@dataclass(frozen=True, slots=True)
class _Cell:
    """One turn of the loop: its states, and the arguments of the gates in their order."""

    hidden: Carried
    cell: Carried
    new_hidden: Tensor
    arguments: tuple[Tensor, Tensor, Tensor, Tensor]  # input, forget, cell, output


def _fused(graph: Graph, loop: Loop) -> Graph | None:
    """Return the graph with an LSTM in the place of a loop; None if it is none."""
    counter = loop.counter
    if counter is None:
        return None
    for taken in loop.producers.values():
        source = _sequence(taken, loop, counter)
        if source is None:
            continue
        for cell in _cells(loop):
            vectors = frozenset({taken.output, cell.hidden.turn})
            forms = LinearForms(loop.producers, vectors)
            gates = [forms.of(argument) for argument in cell.arguments]
            weights = _weights(gates, taken.output, cell)
            nodes = None if weights is None else _nodes(graph, loop, counter, cell, source, weights)
            if nodes is not None:
                return _replaced(graph, loop, nodes)
    return None


def _sequence(node: Node, loop: Loop, counter: Carried) -> Tensor | None:
    """Return the sequence (T, B, I) of which a node takes the step of a turn, if it does."""
    if node.op != Gather() or node.inputs[1] is not counter.turn:
        return None
    source = node.inputs[0]
    is_outside = source not in loop.producers and all(source is not v.turn for v in loop.carried)
    fits = source.dtype is DType.FLOAT32 and len(source.shape) == 3
    fits = fits and source.shape[0] == loop.turns and node.output.shape == source.shape[1:]
    return source if is_outside and fits else None


def _cells(loop: Loop) -> Iterator[_Cell]:
    """Yield what may be the cell of an LSTM."""
    for hidden in loop.carried:
        if not isinstance(hidden.new.op, Assign) or hidden.turn.dtype is not DType.FLOAT32:
            continue
        new_hidden = hidden.new.inputs[0]
        for show, bent in _operands(loop, new_hidden, Mul):
            output, new_cell = _argument(loop, show, Logistic), _argument(loop, bent, Tanh)
            cells = (c for c in loop.carried if _is_new(c, new_cell))
            for cell in cells if output is not None and new_cell is not None else ():
                for add, keep, new in _parts(loop, cell):
                    assert output is not None
                    yield _Cell(hidden, cell, new_hidden, (add, keep, new, output))


def _is_new(value: Carried, tensor: Tensor | None) -> bool:
    return isinstance(value.new.op, Assign) and value.new.inputs[0] is tensor


def _parts(loop: Loop, cell: Carried) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield the arguments of the input, the forget and the cell gate of a new cell."""
    for product, added in _operands(loop, cell.new.inputs[0], Add):
        for forget, old in _operands(loop, product, Mul):
            keep = _argument(loop, forget, Logistic)
            if keep is None or old is not cell.turn:
                continue
            for gate, bent in _operands(loop, added, Mul):
                add, new = _argument(loop, gate, Logistic), _argument(loop, bent, Tanh)
                if add is not None and new is not None:
                    yield add, keep, new


def _operands(loop: Loop, tensor: Tensor, op: type[Operator]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield both orders of the operands of a sum or a product of two values of one shape."""
    node = loop.producers.get(tensor)
    if node is not None and node.op == op():
        first, second = node.inputs
        if first.shape == second.shape:
            yield first, second
            yield second, first


def _argument(loop: Loop, tensor: Tensor, op: type[Operator]) -> Tensor | None:
    """Return what a value is a function of."""
    node = loop.producers.get(tensor)
    return node.inputs[0] if node is not None and node.op == op() else None


# --- what takes its place -------------------------------------------------------------------------


def _weights(
    gates: list[LinearForm | None], x: Tensor, cell: _Cell
) -> tuple[Tensor, ...] | None:  # fmt: skip
    """Return the weights of all gates for inputs, for the hidden state, and their biases."""
    units = cell.hidden.turn.shape[-1]
    present = [gate for gate in gates if gate is not None]
    if len(present) < len(gates) or any(len(gate.bias) != units for gate in present):
        return None
    matrices = [gate.matrices.get(v) for v in (x, cell.hidden.turn) for gate in present]
    known = [matrix for matrix in matrices if matrix is not None]
    if len(known) < len(matrices) or not all(map(_is_legal, known)):
        return None
    of_x, of_hidden = (
        {m.like.dtype for m in known[: len(gates)]},
        {m.like.dtype for m in known[len(gates) :]},
    )
    if len(of_x) > 1 or len(of_hidden) > 1:
        return None
    biases = (
        Tensor(
            f"{cell.cell.last.name}_bias",
            TensorType((units,), DType.FLOAT32),
            np.ascontiguousarray(gate.bias, np.float32),
        )
        for gate in present
    )
    return (*map(_constant, known), *biases)


def _is_legal(matrix: Matrix) -> bool:
    """Return whether an LSTM takes a matrix: floats, or int8 without a zero point."""
    like = matrix.like
    if like.dtype is DType.FLOAT32:
        return True
    return like.dtype is DType.INT8 and not any(like.type.quant.zero_points)


def _constant(matrix: Matrix) -> Tensor:
    values, quant = np.ascontiguousarray(matrix.values), matrix.like.type.quantization
    if quant is not None and quant.is_per_channel:
        rows = slice(matrix.first, matrix.first + len(values))
        quant = replace(quant, scales=quant.scales[rows], zero_points=quant.zero_points[rows])
    type_ = TensorType(values.shape, matrix.like.dtype, quant)
    return Tensor(matrix.like.name, type_, values)


def _nodes(
    graph: Graph, loop: Loop, counter: Carried, cell: _Cell, source: Tensor,
    weights: tuple[Tensor, ...],
) -> list[Node] | None:  # fmt: skip
    """Return an LSTM, and copies of what it gives; None where more is used behind the loop."""
    steps, batch = source.shape[:2]
    units = cell.hidden.turn.shape[-1]
    if not cell.hidden.turn.shape == cell.cell.turn.shape == (batch, units):
        return None
    known = {cell.hidden, cell.cell}
    used = [v for v in loop.carried if v not in known and _is_used(graph, v.last)]
    lists = [v for v in used if _is_list(v, loop, counter, cell, steps)]
    if not all(v in lists or _is_last(v, loop, cell) for v in used):
        return None
    end = graph.nodes[loop.stop]
    shape = (steps if lists else 1, batch, units)
    y = Tensor(f"{cell.hidden.last.name}_steps", TensorType(shape, DType.FLOAT32))
    op = Lstm(time_major=True, last_only=not lists)
    states = cell.hidden.first, cell.cell.first
    new_nodes = [
        Node(
            op, (source, *states, *weights), (y, cell.hidden.last, cell.cell.last), end.name,
            end.source,
        )
    ]  # fmt: skip
    for value in used:
        origin = y if value in lists else cell.hidden.last
        new_nodes.append(
            Node(Reshape(), (origin,), (value.last,), f"{value.last.name}_of", end.source)
        )
    return new_nodes


def _is_used(graph: Graph, tensor: Tensor) -> bool:
    return tensor in graph.outputs or bool(graph.consumers().get(tensor))


def _is_list(value: Carried, loop: Loop, counter: Carried, cell: _Cell, steps: int) -> bool:
    """Return whether a value is the list of all hidden states."""
    node = value.new
    if not isinstance(node.op, PutItem) or node.inputs[2] is not counter.turn:
        return False
    return value.turn.shape[0] == steps and _is_hidden(node.inputs[1], loop, cell)


def _is_last(value: Carried, loop: Loop, cell: _Cell) -> bool:
    """Return whether a value is the newest hidden state."""
    return isinstance(value.new.op, Assign) and _is_hidden(value.new.inputs[0], loop, cell)


def _is_hidden(tensor: Tensor, loop: Loop, cell: _Cell) -> bool:
    """Return whether a value is the new hidden state, in whatever shape."""
    node = loop.producers.get(tensor)
    if node is not None and isinstance(node.op, Reshape):
        (tensor,) = node.inputs
    return tensor is cell.new_hidden


def _replaced(graph: Graph, loop: Loop, new_nodes: list[Node]) -> Graph:
    before = [node for node in graph.nodes[: loop.start] if node not in loop.begins]
    return with_nodes(graph, [*before, *new_nodes, *graph.nodes[loop.stop + 1 :]])
