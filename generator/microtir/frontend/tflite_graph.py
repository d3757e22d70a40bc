"""The operators of a subgraph of a TFLite file into nodes of the graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.support import node_problems
from microtir.frontend.tflite_control import Control
from microtir.frontend.tflite_decoding import CODE as DECODE
from microtir.frontend.tflite_decoding import decoded
from microtir.frontend.tflite_file import (
    OPTIONAL,
    FileGraph,
    FileOperator,
    ModelFile,
    dataflow_damage,
)
from microtir.frontend.tflite_gates import Gates, ends_runs
from microtir.frontend.tflite_lists import ItemUpdate, item_updates
from microtir.frontend.tflite_npu import scratch_of_npus
from microtir.frontend.tflite_operators import READERS, Readers, readers_with
from microtir.frontend.tflite_options import read_options
from microtir.frontend.tflite_refusals import operator_title, unknown_operator
from microtir.frontend.tflite_scales import OneScale, is_unlike
from microtir.frontend.tflite_shapes import LARGEST_SHAPE, ShapeValues, completed, fits, is_free
from microtir.frontend.tflite_subgraphs import CONTROL_OPTIONS, MOST_DEPTH, Effects
from microtir.frontend.tflite_tensors import Tensors
from microtir.frontend.tflite_variables import VARIABLE_OPTIONS, Resource, Scope, Variables
from microtir.graph.ir import Array, Graph, Node, SourceLocation, State, Tensor, TensorType
from microtir.graph.names import brief, short_name
from microtir.operators import OperatorRecord
from microtir.operators.common.shapes import Shape
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader, check_arity
from microtir.operators.common.tflite_schema import BuiltinOperator, TfliteType
from microtir.operators.control.definition import PutItem
from microtir.operators.movement.definition import Relabel, Reshape
from microtir.operators.state.definition import Assign
from microtir.rewrite.facts.rules import inferred_shapes
from microtir.rewrite.imports.older_quantization import legal_form
from microtir.rewrite.reference import evaluate, known_inputs, known_values
from microtir.support.unique_names import UniqueNames


@dataclass(slots=True)
class _File:
    """The state that the readers of all subgraphs of a file share."""

    model: ModelFile
    operators: Sequence[OperatorRecord]
    readers: Readers
    problems: list[MicrotirError] = field(default_factory=list)
    tensor_names: UniqueNames = field(default_factory=UniqueNames)
    node_names: UniqueNames = field(default_factory=UniqueNames)
    handles: dict[Tensor, Resource] = field(default_factory=dict)

    def handle(self, resource: Resource) -> Tensor:
        """Return the tensor that stands for a variable among what subgraphs are given."""
        known = {handle: tensor for tensor, handle in self.handles.items()}
        if resource not in known:
            known[resource] = Tensor(resource[1], TensorType((), DType.INT32))
            self.handles[known[resource]] = resource
        return known[resource]


class GraphReader:
    """Reads operators one by one; a problem with one does not hide the others.

    Args:
        model: the file.
        number: of the subgraph.
        operators: those of the user.
        file: what a reader shares with the one that calls its subgraph.
        label: what the names of such a subgraph begin with.
        depth: how many others call it.
        scope: what variables hold where it is called; None for what callers run.
    """

    def __init__(
        self,
        model: ModelFile,
        number: int,
        operators: Sequence[OperatorRecord] = (),
        *,
        file: _File | None = None,
        label: str = "",
        depth: int = 0,
        is_model: bool = True,
        arguments: Sequence[Tensor] = (),
        scope: Scope | None = None,
    ) -> None:
        graph = model.graphs[number]
        self._file = file or _File(model, operators, readers_with(operators))
        self._model = model
        self._number = number
        self._is_model = is_model
        self._graph = graph
        self._label = label
        self._depth = depth
        scratch = scratch_of_npus(graph)
        disorder = dataflow_damage(graph, is_model=is_model, scratch=scratch)
        self.problems.extend((*graph.damage, *disorder))
        begin = f"{label}/" if label else ""
        self._tensors = Tensors(graph, self.problems.append, self._file.tensor_names, begin)
        self._values = ShapeValues(graph, self._tensors.shape_of)
        self._effects = Effects(model.graphs)
        handles = [self._file.handles.get(tensor) for tensor in arguments]
        scope = scope or Scope(self._effects.of_subgraph(number, ()))
        self._variables = Variables(graph, self._tensors, self._left_by, scope)
        for index, resource in zip(graph.inputs, handles, strict=False):
            if resource is not None:
                self._variables.bind(index, resource)
        self._overwritten: set[int] = set()  # variable tensors that each run writes first
        self._gates = Gates(self._tensors, self._variables, self.new_label)
        # Those that operators hand on are known before these are read.
        self._handles = self._effects.handles(graph, self._variables.handles)
        self._taken: list[Node] = []
        self._computable: set[Tensor] = set()
        self._updates = item_updates(graph) if depth else {}
        self._used = {i for op in graph.operators for i in op.inputs} | set(graph.outputs)

    @property
    def problems(self) -> list[MicrotirError]:
        """Return what keeps the compiler from taking the model."""
        return self._file.problems

    def graph(self, name: str) -> Graph:
        """Return the graph; what it leaves out or lacks is in `problems`."""
        inputs = self._tensors.model_inputs()
        known = self._nodes(self._graph.outputs)
        if self._gates and not self.problems:
            known = self._gates.close(known, self._graph.outputs)
        outputs, copies = self._outputs(known)
        states, assigns = self._states()
        return Graph(
            name=name,
            inputs=(*inputs, *(state.before for state in states)),
            outputs=(*outputs, *(state.after for state in states)),
            nodes=(*known, *copies, *assigns),
            source_sha256=self._model.sha256,
            source_bytes=self._model.size,
            states=states,
        )

    def _nodes(self, outputs: Sequence[int]) -> list[Node]:
        graph = self._graph
        always = {
            op.index
            for op in graph.operators
            if self._effects.of_operator(op, self._handles) or ends_runs(op)
        }
        operators = _needed(graph, outputs, self._updates, always)
        prefix = f"{self._label}_" if self._label else ""
        names = {
            op.index: (short_name(graph.tensors[op.outputs[0]].name) if op.outputs else "")
            or f"operator_{op.index}"
            for op in operators
        }
        take = self._file.node_names.take
        named = {index: take(f"{prefix}{name}") for index, name in names.items()}
        read = [node for op in graph.operators for node in self._next(op, named.get(op.index))]
        return [*self._taken, *read]

    # --- what operators ask that run subgraphs ---------------------------------------------------

    def subgraph(self, number: int, where: str) -> FileGraph:
        """Return a subgraph of the file.

        Raises:
            ModelFileError: there is none of this number, or it is the one that calls it.
        """
        graphs = self._model.graphs
        is_other = 0 <= number < len(graphs) and number != self._number
        if not is_other or self._depth == MOST_DEPTH:
            raise ModelFileError(
                f"it calls subgraph {number}, which is missing, nested too deep, or its own graph",
                where=where,
                legal=f"a subgraph from 0 to {len(graphs) - 1}, nested at most {MOST_DEPTH} deep",
                fix="export the model again",
            )
        return graphs[number]

    def assigned(self, number: int, arguments: Sequence[Tensor]) -> frozenset[Resource]:
        return self._effects.of_subgraph(number, [self._file.handles.get(t) for t in arguments])

    def assigning(self, number: int, arguments: Sequence[Tensor]) -> list[FileOperator]:
        graph = self._model.graphs[number]
        pairs = zip(graph.inputs, map(self._file.handles.get, arguments), strict=False)
        known = {index: resource for index, resource in pairs if resource is not None}
        handles = self._effects.handles(graph, known)
        return [op for op in graph.operators if self._effects.of_operator(op, handles)]

    def is_handle(self, tensor: Tensor) -> bool:
        return tensor in self._file.handles

    def hand_on(self, index: int, handle: Tensor) -> None:
        self._variables.bind(index, self._file.handles[handle])

    def is_resource(self, index: int) -> bool:
        return self._graph.tensors[index].type == TfliteType.RESOURCE

    @property
    def scope(self) -> Scope:
        return self._variables.scope

    def inline(
        self,
        number: int,
        label: str,
        arguments: Sequence[Tensor],
        outputs: Sequence[int],
        scope: Scope,
        source: SourceLocation,
    ) -> tuple[list[Node], list[Tensor]]:
        """Read a subgraph that an operator runs; give outputs of these positions.

        These tensors are its inputs.  What variables hold there is in `scope`.

        Raises:
            ModelFileError: a tensor has another type there, or an output could not be read.
        """
        reader = GraphReader(
            self._model, number,
            file=self._file, label=label, depth=self._depth + 1, is_model=False,
            arguments=arguments, scope=scope,
        )  # fmt: skip
        reader._bind(arguments, source)
        graph = self._model.graphs[number]
        wanted = [graph.outputs[position] for position in outputs]
        nodes = reader._nodes(wanted)
        results = [reader.tensor(index) for index in wanted]
        tensors = [tensor for tensor in results if tensor is not None]
        if len(tensors) < len(results):
            raise ModelFileError(
                "its output tensors could not be read", where=f"{self._model.file}: '{graph.name}'",
                fix="export the model again",
            )  # fmt: skip
        return nodes, tensors

    def _bind(self, arguments: Sequence[Tensor], source: SourceLocation) -> None:
        """Let tensors of another subgraph be the inputs of this one."""
        for index, tensor in zip(self._graph.inputs, arguments, strict=False):
            if tensor in self._file.handles:
                continue
            own = self._tensors.get(index)
            if own is not None and (own.shape, own.dtype) != (tensor.shape, tensor.dtype):
                raise ModelFileError(
                    f"{brief(own.name)!r} is {own.dtype.value} {own.shape}",
                    where=f"{self._model.file}: '{self._graph.name}'",
                    legal=f"{tensor.dtype.value} {tensor.shape}, which the caller passes",
                    fix="export the model again",
                )
            if own is not None and is_unlike(tensor.type, own.type):
                taken = self.new_tensor(f"{own.name}_taken", own.type)
                label = self.new_label(f"{short_name(taken.name)}_relabelled")
                op = Relabel(named=own.name)
                self._taken.append(Node(op, (tensor,), (taken,), label, source))
                tensor = taken
            self._tensors.replace(index, tensor)

    def tensor(self, index: int) -> Tensor | None:
        """Return a tensor of this subgraph; of a handle, what stands for its variable."""
        resource = self._variables.handles.get(index)
        return self._tensors.get(index) if resource is None else self._file.handle(resource)

    def new_tensor(self, name: str, type_: TensorType) -> Tensor:
        return self._tensors.new(name, type_)

    def new_label(self, name: str) -> str:
        return self._file.node_names.take(name)

    def is_used(self, index: int) -> bool:
        return index in self._used

    def _left_by(self, number: int) -> dict[Resource, Array]:
        """Run a subgraph that initialises variables; return what it leaves in them.

        Raises:
            ModelFileError: there is no such subgraph.
            UnsupportedModelError: what it does is not known at compile time.
        """
        where = f"{self._model.file}: CALL_ONCE"
        known_numbers = range(len(self._model.graphs))
        if not self._is_model or number == self._number or number not in known_numbers:
            raise ModelFileError(
                f"it calls subgraph {number}, which is missing or its own graph",
                where=where,
                legal=f"a CALL_ONCE of the main graph for a subgraph up to {known_numbers[-1]}",
                fix="export the model again",
            )
        reader = GraphReader(self._model, number, self._file.operators, is_model=False)
        graph = reader.graph("")
        if reader.problems:
            raise reader.problems[0]
        known = known_values(graph)
        left = {resource: known.get(t) for resource, t in reader.resources.items()}
        values = {resource: value for resource, value in left.items() if value is not None}
        if len(values) < len(left):
            raise UnsupportedModelError(
                "the initial values of variables depend on inputs",
                where=where,
                legal="constants, and values that are computed from constants",
                fix="initialise variables with constants",
            )
        return values

    @property
    def resources(self) -> Mapping[Resource, Tensor]:
        return self._variables.resources

    def _outputs(self, nodes: Sequence[Node]) -> tuple[tuple[Tensor, ...], list[Node]]:
        """Return the outputs, and the copies that some of them are.

        The format lists any tensor as an output, as often as it likes.  Here an output is the
        result of an operator, and memory of its own: an input, a constant, and an output that is
        listed again are copied.
        """
        produced = {tensor for node in nodes for tensor in node.outputs}
        outputs: list[Tensor] = []
        copies: list[Node] = []
        for index in self._graph.outputs:
            tensor = self._tensors.get(index)
            if tensor is None:
                continue
            if tensor in outputs or tensor not in produced:
                copied = self._tensors.copied(tensor)
                label = self.new_label(short_name(copied.name))
                source = SourceLocation(self._model.file, -1, "COPY")
                copies.append(Node(Reshape(), (tensor,), (copied,), label, source))
                tensor = copied
            outputs.append(tensor)
        return tuple(outputs), copies

    def _states(self) -> tuple[tuple[State, ...], list[Node]]:
        """Return the states, and the nodes that give them their new values."""
        states: list[State] = []
        assigns: list[Node] = []
        for cell in self._variables.cells:
            after = self._tensors.new(f"{cell.before.name}_after", cell.before.type)
            label = self.new_label(f"assign_{short_name(cell.before.name)}")
            source = SourceLocation(self._model.file, -1, "ASSIGN_VARIABLE")
            assigns.append(Node(Assign(), (cell.current,), (after,), label, source))
            states.append(State(cell.before, after, cell.initial))
        return tuple(states), assigns

    def _next(self, operator: FileOperator, name: str | None) -> list[Node]:
        """Return the nodes of the next operator; none if it cannot be read, or if none is needed.

        Args:
            operator: of the file, in its order.
            name: None for what no output depends on but by a shape.
        """
        if operator.code in VARIABLE_OPTIONS:
            return self._visit_variable(operator)
        if self._values.visit(operator) and operator.outputs[0] not in self._graph.outputs:
            (index,) = operator.outputs
            value = self._values.get(index)
            assert value is not None
            self._tensors.know(index, value)
            return []
        if name is None:
            self._check_dropped(operator)
            return []
        if operator.code in CONTROL_OPTIONS:
            return self._controlled(operator)
        if operator.code == BuiltinOperator.DENSIFY:
            self._densify(operator)
            return []
        if operator.custom_name == DECODE:
            self._decode(operator, name)
            return []
        if operator.index in self._updates:
            node = self._put(operator, self._updates[operator.index], name)
            return [] if node is None else [node]
        noted, gates = len(self.problems), len(self._gates)
        nodes = self._read(operator, name)
        is_whole = len(self.problems) == noted and len(nodes) == 1
        if is_whole and self._know(operator, nodes[0]):
            return []
        return [*nodes, self._gates.last] if len(self._gates) > gates else nodes

    def _know(self, operator: FileOperator, node: Node) -> bool:
        """Make constants of the results of a node, if readers of operators may ask for them.

        Axes, shapes and indices are a few numbers, some of which are scaled as floats on the way;
        larger constants are folded later.
        """
        if not set(operator.outputs).isdisjoint(self._graph.outputs):
            return False
        if any(tensor.type.elements > LARGEST_SHAPE for tensor in node.outputs):
            return False
        inputs = known_inputs(node, {})
        if inputs is None:
            return False
        for index, value in zip(operator.outputs, evaluate(node, inputs), strict=True):
            self._tensors.know(index, value)
            self._values.know(index, value)
        return True

    def _densify(self, operator: FileOperator) -> None:
        """Let the result of DENSIFY be its constant, which is read in full where it is sparse."""
        where = str(self._source(operator))
        if len(operator.inputs) != 1 or len(operator.outputs) != 1:
            self.problems.append(
                ModelFileError(
                    f"it has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs",
                    where=where,
                    legal="1 input and 1 output",
                    fix="export or download the model again",
                )
            )
            return
        source = self._tensors.get(operator.inputs[0])
        if source is None:
            self._computable.update(self._outputs_of(operator))
        elif source.data is None or source.shape != self._graph.tensors[operator.outputs[0]].shape:
            self.problems.append(
                ModelFileError(
                    f"its input {brief(source.name)!r} is not a constant of its output's shape",
                    where=where,
                    legal="a sparse constant with this shape",
                    fix="export or download the model again",
                )
            )
        else:
            self._tensors.replace(operator.outputs[0], source)

    def _decode(self, operator: FileOperator, name: str) -> None:
        """Make constants of what an operator decodes."""
        where = f"{self._source(operator)} ({brief(name)!r})"
        tensors = self._outputs_of(operator)
        if len(tensors) < len(operator.outputs):
            return  # the problem of the tensor is noted
        try:
            values = decoded(self._graph, operator, [tensor.type for tensor in tensors], where)
        except MicrotirError as error:
            self.problems.append(error)
            self._computable.update(tensors)
            return
        for index, value in zip(operator.outputs, values, strict=True):
            self._tensors.know(index, value)

    def _put(self, operator: FileOperator, update: ItemUpdate, name: str) -> Node | None:
        """Return the node that gives an item of a list its value."""
        indices = update.list, update.item, update.index, operator.outputs[0]
        tensors = [self._tensors.get(index) for index in indices]
        known = tuple(tensor for tensor in tensors if tensor is not None)
        if len(known) < len(tensors):
            return None
        node = Node(PutItem(), known[:3], known[3:], name, self._source(operator))
        self.problems.extend(node_problems(node, f"{node.source} ({brief(name)!r})"))
        return node

    def _source(self, operator: FileOperator) -> SourceLocation:
        """Return where an operator stands; its number tells it from those of other subgraphs."""
        title, file = operator_title(operator), self._model.file
        if not self._depth:
            return SourceLocation(file, operator.index, title)
        before = sum(len(graph.operators) for graph in self._model.graphs[: self._number])
        index = before + operator.index
        return SourceLocation(
            file, index, title, subgraph=brief(self._graph.name), position=operator.index
        )

    def _controlled(self, operator: FileOperator) -> list[Node]:
        if not self._all_read(operator, but_handles=True):
            return []
        try:
            source = self._source(operator)
            label = f"{self._label}_" * bool(self._label) + f"{source.operator}_{operator.index}"
            return Control(self, operator, source, label.lower()).read()
        except MicrotirError as error:
            self.problems.append(error)
            return []

    def _visit_variable(self, operator: FileOperator) -> list[Node]:
        """Return the node that takes the integers of a variable for those of another scale."""
        source = self._source(operator)
        try:
            relabelled = self._variables.visit(operator, str(source))
        except MicrotirError as error:
            self.problems.append(error)
            return []
        if relabelled is None:
            return []
        held, taken = relabelled
        label = self.new_label(f"{short_name(taken.name)}_relabelled")
        return [Node(Relabel(named=taken.name), (held,), (taken,), label, source)]

    def _read(self, operator: FileOperator, name: str) -> list[Node]:
        """Return the node of an operator and those of its scales; none if it cannot be read."""
        source = self._source(operator)
        where = f"{source} ({brief(name)!r})"
        inputs = tuple(self._tensors.get(index) for index in operator.inputs)
        outputs = self._outputs_of(operator)
        nodes: list[Node] = []
        # What follows from a shape that is not known is no problem of its own.
        is_open = any(map(self._is_open, operator.inputs))
        try:
            reader = self._reader(operator, where)
            if self._all_read(operator) and not is_open:
                options = read_options(operator, reader.options, where)
                operands = Operands(
                    where,
                    reader.code,
                    options,
                    inputs,
                    outputs,
                    self._is_computable,
                    operator.custom_options,
                    frozenset(
                        n
                        for n, i in enumerate(operator.inputs)
                        if self._is_variable(i) or i in self._overwritten
                    ),
                    self._offsets_of(operator),
                    any(is_free(self._graph.tensors[index]) for index in operator.outputs),
                )
                nodes = self._convert(operator, reader, operands, name, source)
        except MicrotirError as error:
            self.problems.append(error)
        if not nodes:
            # Operators that use the results are not to blame for them.
            self._computable.update(outputs)
        return nodes

    def _offsets_of(self, operator: FileOperator) -> tuple[int, ...]:
        """Return where the file places inputs and outputs of an operator in memory."""
        offsets = self._graph.offsets
        indices = (*operator.inputs, *operator.outputs)
        return tuple(offsets[i] if i != OPTIONAL else -1 for i in indices) if offsets else ()

    def _is_open(self, index: int) -> bool:
        """Return whether the shape of a tensor is not known."""
        return index != OPTIONAL and self._tensors.shape_of(index) is None

    def _reader(self, operator: FileOperator, where: str) -> TfliteReader:
        """Return the reader of an operator.

        Raises:
            UnsupportedModelError: there is none.
        """
        reader = self._file.readers.get(operator.custom_name or operator.code)
        if reader is None:
            own_readers = self._file.readers.keys() - READERS.keys()
            custom = sorted(name for name in own_readers if isinstance(name, str))
            raise unknown_operator(operator, where, custom)
        return reader

    def _all_read(self, operator: FileOperator, *, but_handles: bool = False) -> bool:
        """Return whether all tensors could be read; the problem of one that could not is noted."""
        indices = [
            index
            for index in (*operator.inputs, *operator.outputs)
            if index != OPTIONAL and not (but_handles and self.is_resource(index))
        ]
        return all(self._tensors.get(index) is not None for index in indices)

    def _convert(
        self,
        operator: FileOperator,
        reader: TfliteReader,
        operands: Operands,
        name: str,
        source: SourceLocation,
    ) -> list[Node]:
        check_arity(operands, reader)
        converted = reader.read(operands)
        node = Node(converted.op, converted.inputs, operands.outputs, name, source)
        operands = self._completed(operator, operands, node, converted.shape or converted.free)
        for tensor in (*converted.inputs, *operands.outputs):
            if tensor.type.elements == 0:
                raise operands.malformed(
                    f"{brief(tensor.name)!r} has the shape {tensor.shape}, which has no elements",
                    "extents above 0",
                )
        written = operands.output.shape
        if converted.shape not in (None, written):
            raise operands.malformed(
                f"its output has the shape {written}", f"{converted.shape}, by its inputs"
            )
        if reader.updates or converted.memory:
            inputs, outputs = self._with_variables(operator, converted, operands, name)
        elif self._is_initial(operator):
            self._initialise(operator.outputs[0], node, operands.where)
            return []
        else:
            inputs, outputs = converted.inputs, operands.outputs
            self._check_variables(operator, operands)
        node = Node(converted.op, inputs, outputs, name, source)
        nodes = OneScale(self.new_tensor, self.new_label).nodes(node, reader.moved, reader.fixed)
        for new_node in nodes:
            self.problems.extend(node_problems(legal_form(new_node), operands.where))
        if converted.period > 1:
            self._gates.add(node, converted.period)
        if all(self._is_computable(tensor) for tensor in inputs):
            self._computable.update(operands.outputs)
        return nodes

    def _check_dropped(self, operator: FileOperator) -> None:
        """Check that what no output of this run depends on does not initialise later ones."""
        if operator.code != BuiltinOperator.DEQUANTIZE:
            return
        try:
            for index in filter(self._is_variable, operator.outputs):
                self._variables.check_unused(index, str(self._source(operator)))
        except MicrotirError as error:
            self.problems.append(error)

    def _is_initial(self, operator: FileOperator) -> bool:
        """Return whether an operator gives a variable tensor its first value.

        LiteRT dequantises a constant in the first run alone.
        """
        return (
            operator.code == BuiltinOperator.DEQUANTIZE
            and self._is_variable(operator.outputs[0])
            and self._graph.tensors[operator.inputs[0]].data is not None
        )

    def _initialise(self, index: int, node: Node, where: str) -> None:
        """Let a variable tensor begin with what a node makes of a constant."""
        problems = list(node_problems(node, where))
        self.problems.extend(problems)
        data = node.inputs[0].data
        if not problems and data is not None:
            (value,) = evaluate(node, [data])
            self._variables.begin(index, value, where)

    def _check_variables(self, operator: FileOperator, operands: Operands) -> None:
        """Take what an operator that keeps nothing writes into variable tensors; it may read some.

        One that is written in each run before it is read keeps nothing from run to run.
        """
        for index in filter(self._is_variable, operator.outputs):
            self._variables.check_unused(index, operands.where)
            self._overwritten.add(index)
        for index in operator.inputs:
            if self._is_variable(index):
                self._variables.read(index, operands.where)

    def _is_variable(self, index: int) -> bool:
        """Return whether a tensor keeps its value; what a caller gives does not."""
        if index == OPTIONAL or index in self._graph.inputs or index in self._overwritten:
            return False
        return self._graph.tensors[index].is_variable

    def _with_variables(
        self, operator: FileOperator, converted: Converted, operands: Operands, name: str
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return inputs and outputs of a node with the old and new values of its variables."""
        inputs, outputs = list(converted.inputs), list(operands.outputs)
        variable = {self._tensors.get(i): i for i in operator.inputs if self._is_variable(i)}
        where = operands.where
        overwritten = {self._tensors.get(i): i for i in operator.inputs if i in self._overwritten}
        for tensor in converted.inputs:
            if tensor in variable:
                outputs.append(self._variables.updated(variable[tensor], where))
            elif tensor in overwritten:
                outputs.append(self.new_tensor(f"{tensor.name}_next", tensor.type))
                self._tensors.replace(overwritten[tensor], outputs[-1])
        if converted.kept_output:
            inputs.insert(0, self._variables.written(operator.outputs[0], where))
        else:
            inputs += [
                self._variables.written(i, where) for i in operator.outputs if self._is_variable(i)
            ]
        for memory in converted.memory:
            before, after = self._variables.remembered(memory, name)
            inputs.append(before)
            outputs.append(after)
        return tuple(inputs), tuple(outputs)

    def _completed(
        self, operator: FileOperator, operands: Operands, node: Node, known: Shape | None
    ) -> Operands:
        """Return the operands with the shapes of outputs that depend on the batch.

        Args:
            operator: of the file.
            operands: its tensors, as they are stored.
            node: what becomes of it.
            known: the shape of its output, where its reader knows it.
        """
        stored = [self._graph.tensors[index] for index in operator.outputs]
        # Converters do not know what custom operators give, and store no extents.
        unsaid = {t.index for t in stored if operator.custom_name and not (t.shape or t.signature)}
        if not any(map(is_free, stored)) and not unsaid:
            return operands
        shapes: Sequence[Shape | None] = (known,) if known else inferred_shapes(node) or ()
        if not shapes and isinstance(node.op, Reshape):
            shapes = (completed(stored[0], node.inputs[0].type.elements),)
        for tensor, shape in zip(stored, shapes, strict=False):
            is_open = tensor.index in unsaid or (is_free(tensor) and fits(tensor, shape or ()))
            if is_open and shape is not None:
                self._tensors.complete(tensor.index, shape)
        open_ = [tensor for tensor in stored if self._tensors.shape_of(tensor.index) is None]
        if open_:
            raise operands.unsupported(
                f"the model computes the shape {open_[0].signature} of {brief(open_[0].name)!r}",
                "a shape that follows from a batch of 1",
                "convert the model with fixed input shapes, including a batch of 1",
            )
        return replace(operands, outputs=self._outputs_of(operator))

    def _outputs_of(self, operator: FileOperator) -> tuple[Tensor, ...]:
        tensors = (self._tensors.get(index) for index in operator.outputs)
        return tuple(tensor for tensor in tensors if tensor is not None)

    def _is_computable(self, tensor: Tensor) -> bool:
        return tensor.is_constant or tensor in self._computable


def _needed(
    graph: FileGraph,
    outputs: Sequence[int],
    updates: Mapping[int, ItemUpdate],
    always: Collection[int],
) -> list[FileOperator]:
    """Return operators that outputs and variables depend on, in file order.

    Those of `always` run subgraphs that assign variables, or end runs.

    Converters compute the shape for a RESHAPE from the batch size.  The batch is fixed here, so
    those operators feed nothing; leaving them out spares support for them.
    """
    needed = set(outputs)
    needed_operators: list[FileOperator] = []
    for operator in reversed(graph.operators):
        if operator.code in VARIABLE_OPTIONS:
            needed.update(operator.inputs[1:])
            continue
        if needed.isdisjoint(operator.outputs) and operator.index not in always:
            continue
        needed_operators.append(operator)
        update = updates.get(operator.index)
        if update is not None:
            needed.update((update.list, update.item, update.index))
            continue
        shapes = operator.code == BuiltinOperator.RESHAPE
        needed.update(operator.inputs[:1] if shapes else operator.inputs)
    return needed_operators[::-1]
