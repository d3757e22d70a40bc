"""Several elementwise operators as one: an element of the result is computed in one go.

What lies between them has no memory.  Each operator keeps its formula, and so its bits: a value
that goes from one to the next is a variable of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from microtir import te
from microtir.errors import TirError
from microtir.graph.ir import Array, Node, Tensor
from microtir.operators import OperatorRecord, UserOperator, record_of
from microtir.operators.common.broadcast import ROWS, elementwise
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.rows import Extents
from microtir.operators.common.shapes import Shape, declared_shapes
from microtir.operators.common.tflite_operands import MANY
from microtir.operators.common.types import ANY_TYPES
from microtir.operators.custom.definition import Custom
from microtir.operators.definition import Definition, Trait
from microtir.operators.selection.definition import Select
from microtir.operators.tables import has_table
from microtir.rewrite.facts.sums import fits
from microtir.rewrite.reference import evaluate
from microtir.tir import ir
from microtir.tir.visitor import walk


@dataclass(frozen=True, slots=True)
class Chain:
    """Elementwise operators of one shape, of which only the last one's result is read elsewhere.

    Attributes:
        nodes: in the order in which they run.
        inputs: what they read of others, constants included, each once.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Tensor, ...]

    @staticmethod
    def of(nodes: Sequence[Node]) -> Chain:
        inside = {node.output for node in nodes}
        read = (tensor for node in nodes for tensor in node.inputs if tensor not in inside)
        return Chain(tuple(nodes), tuple(dict.fromkeys(read)))

    def node(self) -> Node:
        """Return the node that stands for the chain: for the last operator of the file in it."""
        op, last = Custom(self._record()), self.nodes[-1]
        of_file = (node for node in reversed(self.nodes) if node.source.index >= 0)
        stands = next(of_file, last)
        return Node(op, self.inputs, last.outputs, stands.name, stands.source)

    def _record(self) -> OperatorRecord:
        *others, last = (record_of(node.op).name for node in self.nodes)
        definition = Definition(
            Custom,
            types=ANY_TYPES,
            quantization=UNUSED,
            shapes=declared_shapes,
            inputs=(1, MANY),
            traits=frozenset({Trait.ELEMENTWISE}),
            title=f"{', '.join(others)} and {last}",
            label="chain",
        )
        return OperatorRecord(
            definition,
            lambda _op, node, *inputs: self._evaluated(node.output.shape, inputs),
            Formula(lambda layer: elementwise(layer, self.element), ROWS),
        )

    def _evaluated(self, shape: Shape, inputs: Sequence[Array]) -> Array:
        """Return the result for arrays of the inputs, of a shape that a pass may have cut."""
        values: dict[Tensor, Array] = dict(zip(self.inputs, inputs, strict=True))
        seen = {tensor: _with_shape(tensor, array.shape) for tensor, array in values.items()}
        for node in self.nodes:
            seen[node.output] = _with_shape(node.output, shape)
            operands = tuple(seen[tensor] for tensor in node.inputs)
            part = replace(node, inputs=operands, outputs=(seen[node.output],))
            (values[node.output],) = evaluate(part, [values[tensor] for tensor in node.inputs])
        return values[self.nodes[-1].output]

    def element(self, *elements: te.Expr) -> te.Expr:
        """Return an element of the result, given that of each input."""
        values = dict(zip(self.inputs, elements, strict=True))
        # What is computed where a condition holds has no name outside of it.
        arms = {t for node in self.nodes if isinstance(node.op, Select) for t in node.inputs[1:]}
        for node in self.nodes:
            value = _element_of(node, values)
            values[node.output] = value if node.output in arms else te.bind("value", value)
        return values[self.nodes[-1].output]

    def holds_no_more(self) -> bool:
        """Return whether operators apart would hold as much until the last one runs.

        Else what some of them read could be over before others are there, in another order.
        """
        *before, last = self.nodes
        sources: dict[Tensor, frozenset[Tensor]] = {}
        for node in before:
            own = (sources.get(tensor, frozenset({tensor})) for tensor in node.activations)
            read = frozenset[Tensor]().union(*own)
            dying = read.difference(last.inputs)
            if len(read) > 1 or any(t.type.bytes > node.output.type.bytes for t in dying):
                return False
            sources[node.output] = read
        return True

    def keeps_bits(self) -> bool:
        """Return whether one function computes what several do.

        A formula may ask where its element is, or read a value only where a condition holds.  Sums
        of products of floats are rounded otherwise in a function that makes integers of floats.
        """
        elements = [
            te.placeholder((1,), tensor.dtype, f"x{n}")[0] for n, tensor in enumerate(self.inputs)
        ]
        try:
            y = te.compute((1,), lambda _place: self.element(*elements), "y")
            body = te.create_schedule(y).primfunc(None, "chain").body
        except TirError:
            return False
        casts = (e for e in walk(body) if isinstance(e, ir.Cast) and e.value.dtype.is_float)
        return all(cast.dtype.is_float for cast in casts)


def may_be_part(node: Node) -> bool:
    """Return whether a node may be part of a chain."""
    record = record_of(node.op)
    if not record.has(Trait.ELEMENTWISE) or record.formula is None or len(node.outputs) > 1:
        return False
    op, result = node.op, node.output
    return (
        not isinstance(op, UserOperator)
        and not record.has(Trait.MOVES_DATA)
        and not record.has(Trait.OPAQUE)
        and not has_table(op, node.inputs[0].type, result.type)
        and bool(result.shape)
        and fits(node)
        and all(t.is_constant or t.shape == result.shape for t in node.inputs)
        and not (isinstance(op, Select) and node.inputs[0].shape != result.shape)
        and not any(t.type.is_per_channel for t in (*node.inputs, result))
    )


def _with_shape(tensor: Tensor, shape: Shape) -> Tensor:
    return Tensor(tensor.name, replace(tensor.type, shape=shape), tensor.data)


def _element_of(node: Node, values: Mapping[Tensor, te.Expr]) -> te.Expr:
    """Return what the formula of a node makes of one element of each input."""
    formula = record_of(node.op).formula
    assert formula is not None, "may_be_part() was asked"
    one = _OneElement(node, values)
    formula.compute(cast("FormulaContext", one))
    assert one.result is not None
    return one.result


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of which one element is known, whatever place is asked for."""

    value: te.Expr

    @property
    def extents(self) -> Extents:
        raise TirError("a formula asks for all of an input", where="an element of a chain")

    def at(self, *_place: te.ExprLike) -> te.Expr:
        return self.value

    def __getitem__(self, _place: object) -> te.Expr:
        return self.value


class _OneElement:
    """Context of a formula that computes one element: no more than that is known."""

    takes_row_range = False
    sums_fit = True

    def __init__(self, node: Node, values: Mapping[Tensor, te.Expr]) -> None:
        self.node = node
        self._values = [values[tensor] for tensor in node.inputs]
        self.result: te.Expr | None = None

    def image(self, position: int, *, flat: bool = False) -> _Operand:
        return _Operand(self._values[position])

    def whole(self, position: int, _shape: Shape | None = None) -> _Operand:
        return _Operand(self._values[position])

    def rows(self, element: Callable[..., te.ExprLike], *, flat: bool = False) -> None:
        """Take the result, which says itself where it is asked for a place."""
        self.tensor(element, (1,) * 3)

    def tensor(self, element: Callable[..., te.ExprLike], shape: Shape) -> None:
        place = [te.var(f"place{axis}", 0, 1) for axis in range(len(shape))]
        self.result = te.as_expr(element(*place), self.node.output.dtype)

    def __getattr__(self, name: str) -> Any:
        raise TirError(f"a formula asks for '{name}'", where="an element of a chain")
