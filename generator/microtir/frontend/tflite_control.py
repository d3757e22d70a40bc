"""WHILE and IF of a TFLite file: the subgraphs that they run become nodes of the graph itself.

A loop must be bounded: a counter starts at a constant, grows by a constant in each turn, and the
loop ends when it reaches one.  Other conditions may end it before (Guard).  What a turn hands on
unchanged, such as weights, is no value of the loop; and what nothing needs is not read.  Variables
that a subgraph assigns are values of the loop or results of the branch, beside those of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.tflite_counters import Counter, Terms, counters_of, depends_on, terms_of
from microtir.frontend.tflite_file import FileGraph, FileOperator
from microtir.frontend.tflite_options import read_options
from microtir.frontend.tflite_scales import is_unlike
from microtir.frontend.tflite_subgraphs import IfOptions, WhileOptions
from microtir.frontend.tflite_variables import Cell, Resource, Scope
from microtir.graph.ir import Node, SourceLocation, Tensor, TensorType
from microtir.graph.names import brief
from microtir.graph.operator import Operator
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.control import definition as control
from microtir.operators.movement.definition import Relabel, Reshape
from microtir.operators.state.definition import Assign

MOST_TURNS = 1 << 24

Ends: TypeAlias = "tuple[list[Node], list[Tensor]]"
"""Nodes of a subgraph, and the tensors of the outputs that were asked for."""


class SubgraphReader(Protocol):
    """Reader of the subgraph around an operator, as readers of operators with subgraphs see it."""

    def subgraph(self, number: int, where: str) -> FileGraph:
        """Return a subgraph of the file; ModelFileError if there is none."""

    @property
    def scope(self) -> Scope:
        """Return what variables hold here."""

    def inline(
        self,
        number: int,
        label: str,
        arguments: Sequence[Tensor],
        outputs: Sequence[int],
        scope: Scope,
        source: SourceLocation,
    ) -> Ends:
        """Read a subgraph that an operator runs; give outputs of these positions.

        These tensors are its inputs.  What variables hold there is in `scope`.
        """

    def assigned(self, number: int, arguments: Sequence[Tensor]) -> frozenset[Resource]:
        """Return the variables that a subgraph assigns where these tensors are its inputs."""

    def assigning(self, number: int, arguments: Sequence[Tensor]) -> Sequence[FileOperator]:
        """Return its operators that do."""

    def is_handle(self, tensor: Tensor) -> bool:
        """Return whether a tensor stands for a variable."""

    def hand_on(self, index: int, handle: Tensor) -> None:
        """Let a tensor of this subgraph stand for the variable of a handle."""

    def is_resource(self, index: int) -> bool:
        """Return whether a tensor of this subgraph is a handle by its type."""

    def tensor(self, index: int) -> Tensor | None:
        """Return a tensor of this subgraph."""

    def new_tensor(self, name: str, type_: TensorType) -> Tensor:
        """Return a tensor that the file does not have."""

    def new_label(self, name: str) -> str:
        """Return the name of a node that the file does not have."""

    def is_used(self, index: int) -> bool:
        """Return whether another operator or a caller takes a tensor of this subgraph."""


class Control:
    """Reads one operator that runs subgraphs.

    Args:
        reader: of the subgraph in which it stands.
        operator: of the file.
        source: where that is.
        label: the name of the node that it would be.
    """

    def __init__(
        self, reader: SubgraphReader, operator: FileOperator, source: SourceLocation, label: str
    ) -> None:
        self._reader = reader
        self._operator = operator
        self._source = source
        self._label = label
        self._where = str(source)

    def read(self) -> list[Node]:
        """Return the nodes, which give each output of the operator that somebody takes.

        Raises:
            ModelFileError: it contradicts its subgraphs.
            UnsupportedModelError: nothing bounds the turns of a loop.
        """
        arguments = [self._given(index) for index in self._operator.inputs]
        wanted = [
            position
            for position, index in enumerate(self._operator.outputs)
            if self._reader.is_used(index) and not self._reader.is_resource(index)
        ]
        if self._operator.code == BuiltinOperator.IF:
            nodes, results = self._if(arguments, wanted)
        else:
            nodes, results = self._while(arguments, wanted)
        for position, result in zip(wanted, results, strict=True):
            nodes.append(self._named(self._operator.outputs[position], result))
        return nodes

    def _named(self, index: int, result: Tensor) -> Node:
        """Return what makes an output of a result, so that it has the name that callers know."""
        output = self._given(index)
        if (output.shape, output.dtype) != (result.shape, result.dtype):
            raise ModelFileError(
                f"its result {brief(output.name)!r} is {result.dtype.value} {result.shape}",
                where=self._where,
                legal=f"{output.dtype.value} {output.shape}",
                fix="export the model again",
            )
        label = self._reader.new_label(f"{self._label}_result")
        is_copied = is_unlike(result.type, output.type)
        op = Relabel(named=output.name) if is_copied else Reshape()
        return Node(op, (result,), (output,), label, self._source)

    def _given(self, index: int) -> Tensor:
        tensor = self._reader.tensor(index) if index >= 0 else None
        if tensor is None and index >= 0 and self._reader.is_resource(index):
            raise UnsupportedModelError(
                "at compile time it is not known which variable it uses",
                where=self._where,
                legal="a handle that a VAR_HANDLE creates and that nothing changes",
                fix="convert the model so that each handle always refers to the same variable",
            )
        if tensor is None:
            raise ModelFileError(
                "an input is missing, or could not be read", where=self._where,
                legal="a file that has all inputs", fix="export the model again",
            )  # fmt: skip
        return tensor

    # --- branches -------------------------------------------------------------------------------

    def _if(self, arguments: Sequence[Tensor], wanted: Sequence[int]) -> Ends:
        options = read_options(self._operator, IfOptions, self._where)
        branches = options.then_subgraph_index, options.else_subgraph_index
        flag, *rest = arguments
        for number in branches:
            self._check_ports(self._reader.subgraph(number, self._where), rest)
        if flag.data is not None:
            chosen = branches[0] if flag.data.all() else branches[1]
            return self._reader.inline(
                chosen, self._label, rest, wanted, self._reader.scope, self._source
            )
        changed = frozenset().union(*(self._reader.assigned(n, rest) for n in branches))
        scopes = [Scope(changed, self._reader.scope) for _ in branches]
        begin = self._node(control.Then(), (flag,), [("then", flag.type)])
        then, first = self._branch(branches[0], "then", rest, wanted, scopes[0])
        middle = self._node(control.Otherwise(), begin.outputs, [("otherwise", flag.type)])
        otherwise, second = self._branch(branches[1], "else", rest, wanted, scopes[1])
        held = self._held(scopes)
        for nodes, results, number in ((then, first, 0), (otherwise, second, 1)):
            held_results = [self._assign(values[number], "held") for _, values in held]
            nodes += held_results
            results += [node.output for node in held_results]
        named = [(f"result_{n}", t.type) for n, t in enumerate(first)]
        end = self._node(control.EndIf(), (*middle.outputs, *first, *second), named)
        for (cell, _), value in zip(held, end.outputs[len(wanted) :], strict=True):
            cell.current = value
        return [begin, *then, middle, *otherwise, end], list(end.outputs[: len(wanted)])

    def _branch(
        self,
        number: int,
        name: str,
        arguments: Sequence[Tensor],
        wanted: Sequence[int],
        scope: Scope,
    ) -> Ends:
        nodes, results = self._reader.inline(
            number, f"{self._label}_{name}", arguments, wanted, scope, self._source
        )
        outputs = [self._given(self._operator.outputs[position]) for position in wanted]
        relabels, results = self._relabelled(results, [output.type for output in outputs])
        nodes += relabels
        assigned = [self._assign(tensor, name) for tensor in results]
        return [*nodes, *assigned], [node.output for node in assigned]

    def _held(self, scopes: Sequence[Scope]) -> list[tuple[Cell, list[Tensor]]]:
        """Return the variables that branches assign, and what each holds behind each of them."""
        held = []
        for resource in dict.fromkeys(r for scope in scopes for r in scope.resources):
            cell = self._reader.scope.resources[resource]
            inner = [scope.resources.get(resource, cell) for scope in scopes]
            held.append((cell, [branch.current for branch in inner]))
        return held

    # --- loops ----------------------------------------------------------------------------------

    def _while(self, arguments: Sequence[Tensor], wanted: Sequence[int]) -> Ends:
        options = read_options(self._operator, WhileOptions, self._where)
        condition = self._reader.subgraph(options.cond_subgraph_index, self._where)
        body = self._reader.subgraph(options.body_subgraph_index, self._where)
        self._check_ports(condition, arguments, outputs=1)
        self._check_ports(body, arguments, outputs=len(arguments))
        fixed = {p: t for p, t in enumerate(arguments) if body.outputs[p] == body.inputs[p]}
        terms = self._bounded(condition, counters_of(body, arguments, fixed), fixed)
        for position in fixed:
            if self._reader.is_handle(arguments[position]):
                self._reader.hand_on(self._operator.outputs[position], arguments[position])
        if not terms.turns:
            return [], [arguments[position] for position in wanted]
        self._check_condition(options.cond_subgraph_index, arguments)
        needed = {position for position in wanted if position not in fixed}
        if terms.is_guarded:
            needed |= depends_on(condition, condition.outputs[0])
        for operator in self._reader.assigning(options.body_subgraph_index, arguments):
            needed |= {p for index in operator.inputs for p in depends_on(body, index)}
        carried = self._carried(body, needed, fixed)
        loop = _Loop(options, terms, fixed, carried)
        nodes, ends = self._loop(arguments, loop)
        return nodes, [fixed.get(p) or ends[p] for p in wanted]

    def _bounded(
        self, condition: FileGraph, counters: Mapping[int, Counter], fixed: Mapping[int, Tensor]
    ) -> Terms:
        terms = terms_of(condition, counters, fixed)
        if terms is None or terms.turns > MOST_TURNS:
            raise UnsupportedModelError(
                "the loop has no bound on its iterations"
                if terms is None
                else f"the loop runs up to {terms.turns} times",
                where=self._where,
                legal=f"at most {MOST_TURNS} iterations, and a counter whose start, increment and"
                " limit are constants",
                fix="give the loop a fixed number of steps, such as the length of the sequence",
            )
        return terms

    def _check_condition(self, number: int, arguments: Sequence[Tensor]) -> None:
        if self._reader.assigned(number, arguments):
            raise UnsupportedModelError(
                "the condition of the loop assigns a variable",
                where=self._where,
                legal="variables that the body of the loop assigns",
                fix="assign the variable in the body of the loop",
            )

    def _carried(self, body: FileGraph, wanted: set[int], fixed: Mapping[int, Tensor]) -> list[int]:
        """Return the positions of values that go from turn to turn, and that something needs."""
        needed = wanted - fixed.keys()
        while True:
            behind = {p for n in needed for p in depends_on(body, body.outputs[n])}
            if behind - fixed.keys() <= needed:
                break
            needed |= behind - fixed.keys()
        if any(self._reader.is_resource(self._operator.inputs[p]) for p in needed):
            raise UnsupportedModelError(
                "an iteration of the loop makes a handle refer to another variable",
                where=self._where,
                legal="loops that pass each handle on unchanged",
                fix="convert the model so that each handle always refers to the same variable",
            )
        return sorted(needed)

    def _loop(
        self, arguments: Sequence[Tensor], loop: _Loop
    ) -> tuple[list[Node], dict[int, Tensor]]:
        reader, carried = self._reader, loop.carried
        if loop.terms.turns == 1 and not loop.terms.is_guarded:
            number = loop.options.body_subgraph_index
            nodes, once = reader.inline(
                number, self._label, arguments, carried, reader.scope, self._source
            )
            return nodes, dict(zip(carried, once, strict=True))
        number = loop.options.body_subgraph_index
        scope = Scope(reader.assigned(number, arguments), reader.scope, is_loop=True)
        first = [self._assign(arguments[position], "first") for position in carried]
        types = [(f"turn_{position}", arguments[position].type) for position in carried]
        begin = self._node(control.Repeat(loop.terms.turns), [node.output for node in first], types)
        inside = list(arguments)
        for position, tensor in zip(carried, begin.outputs, strict=True):
            inside[position] = tensor
        guard: list[Node] = []
        if loop.terms.is_guarded:
            condition = loop.options.cond_subgraph_index
            label = f"{self._label}_condition"
            guard, (flag,) = reader.inline(condition, label, inside, [0], scope, self._source)
            guard.append(self._node(control.Guard(), (flag,), [("goes_on", flag.type)]))
        body, results = reader.inline(
            number, f"{self._label}_body", inside, carried, scope, self._source
        )
        relabels, results = self._relabelled(results, [arguments[p].type for p in carried])
        body += relabels
        held = [(reader.scope.resources[r], cell) for r, cell in scope.resources.items()]
        first += [self._assign(outer.current, "first") for outer, _ in held]
        begin = replace(
            begin,
            inputs=tuple(node.output for node in first),
            outputs=(*begin.outputs, *(cell.before for _, cell in held)),
        )
        body, last = self._last(body, begin.outputs, [*results, *(c.current for _, c in held)])
        ends = [(f"end_{position}", arguments[position].type) for position in carried]
        ends += [(f"end_{n}", cell.before.type) for n, (_, cell) in enumerate(held, len(arguments))]
        last_values = (*begin.outputs, *(node.output for node in last))
        flags = guard[-1].outputs if guard else ()
        end = self._node(control.EndRepeat(bool(guard)), (*flags, *last_values), ends)
        for (outer, _), value in zip(held, end.outputs[len(carried) :], strict=True):
            outer.current = value
        nodes = [*first, begin, *guard, *body, *last, end]
        return nodes, dict(zip(carried, end.outputs, strict=False))

    def _last(
        self, body: Sequence[Node], before: Sequence[Tensor], results: Sequence[Tensor]
    ) -> tuple[list[Node], list[Node]]:
        """Return the body, and the nodes that give each value of the loop its new one, at the end.

        A list gets an item in its place.
        """
        makers = {
            t: node for node in body for t in node.outputs if isinstance(node.op, control.PutItem)
        }
        last: list[Node] = []
        for old, new in zip(before, results, strict=True):
            maker = makers.get(new)
            is_in_place = maker is not None and maker.inputs[0] is old
            last.append(maker if maker and is_in_place else self._assign(new, "next"))
        moved = set(map(id, last))
        return [node for node in body if id(node) not in moved], last

    # --- nodes ----------------------------------------------------------------------------------

    def _relabelled(
        self, results: Sequence[Tensor], types: Sequence[TensorType]
    ) -> tuple[list[Node], list[Tensor]]:
        """Return results as those of the scales of other tensors, which take the integers."""
        nodes: list[Node] = []
        taken: list[Tensor] = []
        for result, type_ in zip(results, types, strict=True):
            if is_unlike(result.type, type_):
                wanted = replace(result.type, quantization=type_.quantization)
                op = Relabel(named=result.name)
                nodes.append(self._node(op, (result,), [("taken", wanted)]))
                result = nodes[-1].output
            taken.append(result)
        return nodes, taken

    def _assign(self, value: Tensor, name: str) -> Node:
        return self._node(Assign(), (value,), [(name, value.type)])

    def _node(
        self, op: Operator, inputs: Sequence[Tensor], outputs: Sequence[tuple[str, TensorType]]
    ) -> Node:
        tensors = tuple(self._reader.new_tensor(f"{self._label}_{n}", t) for n, t in outputs)
        label = self._reader.new_label(f"{self._label}_{op.name}")
        return Node(op, tuple(inputs), tensors, label, self._source)

    def _check_ports(
        self, graph: FileGraph, arguments: Sequence[Tensor], outputs: int | None = None
    ) -> None:
        """Check that a subgraph takes what it is given, and gives what is expected."""
        results = len(self._operator.outputs) if outputs is None else outputs
        if len(graph.inputs) != len(arguments) or len(graph.outputs) != results:
            raise ModelFileError(
                f"its subgraph '{graph.name}' has {len(graph.inputs)} inputs and "
                f"{len(graph.outputs)} outputs",
                where=self._where,
                legal=f"{len(arguments)} inputs and {results} outputs",
                fix="export the model again",
            )


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop: how often it runs, what it hands on unchanged, and what goes from turn to turn."""

    options: WhileOptions
    terms: Terms
    fixed: Mapping[int, Tensor]
    carried: Sequence[int]
