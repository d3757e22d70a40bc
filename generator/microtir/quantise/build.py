"""Build the graph of integers, operator by operator, and conversions where types meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, State, Tensor, TensorType
from microtir.operators import record_of
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.movement.definition import Pad
from microtir.operators.recurrent.definition import Lstm
from microtir.quantise import constants, recurrent
from microtir.quantise.forms import IntegerForm
from microtir.quantise.options import Calibration, PortType, QuantiseOptions, Width
from microtir.quantise.ranges import real_range
from microtir.quantise.scales import SharedScales, Stored, memories_of, scale_of_inputs

_UNSIGNED_OFFSET = 128  # from a zero point of int8 to the same of uint8
_WEIGHT_BITS = {Width.INT8: 8, Width.INT16: 8, Width.WEIGHTS4: 4}


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Decisions that come before the graph of integers is built.

    Args:
        graph: of floats.
        forms: of the nodes that have one; the others stay in floats.
        shared: which activations share a quantisation.
        quants: the quantisation of each activation in integers.
        calibrations: those that chose the ranges of activations, but for fixed ones.
        options: which say what ports are.
    """

    graph: Graph
    forms: Mapping[Node, IntegerForm]
    shared: SharedScales
    quants: Mapping[Stored, Quantization]
    calibrations: Mapping[Stored, Calibration]
    options: QuantiseOptions

    def integer_type(self, one: Stored) -> TensorType:
        """Return the type of an activation in integers."""
        return TensorType(one.tensor.shape, one.dtype, self.quants[one])

    def wanted(self, node: Node) -> list[TensorType]:
        """Return the types in which a node reads its inputs; those of constants are its own."""
        form = self.forms.get(node)
        if form is None:
            return [tensor.type for tensor in node.inputs]
        one_scale = scale_of_inputs(self.shared, node, form)
        types = []
        for tensor, dtype in zip(node.inputs, form.inputs, strict=True):
            if tensor.dtype is not DType.FLOAT32 or tensor.is_constant or dtype.is_float:
                types.append(tensor.type)
            elif one_scale is None:
                types.append(self.integer_type(Stored(tensor, dtype)))
            else:
                types.append(TensorType(tensor.shape, dtype, self.quants[one_scale]))
        return types

    def computed(self, node: Node) -> list[TensorType]:
        """Return the types in which a node gives its outputs."""
        form = self.forms.get(node)
        if form is None:
            return [tensor.type for tensor in node.outputs]
        pairs = zip(node.outputs, form.outputs, strict=True)
        return [
            self.integer_type(Stored(tensor, dtype))
            if tensor.dtype is DType.FLOAT32 and dtype.is_int
            else tensor.type
            for tensor, dtype in pairs
        ]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """The graph of integers.

    Args:
        graph: with the names of the float graph at its ports.
        nodes: what a node of the float graph became.
        tensors: what an activation of the float graph became where it is computed.
    """

    graph: Graph
    nodes: Mapping[Node, Node]
    tensors: Mapping[Tensor, Tensor]


def built(plan: Plan) -> Built:
    """Return the graph of integers that was planned."""
    builder = _Builder(plan)
    inputs = [builder.input(tensor) for tensor in plan.graph.inputs]
    for node in plan.graph.nodes:
        builder.add(node)
    outputs = [builder.output(tensor) for tensor in plan.graph.outputs]
    states = tuple(builder.state(state) for state in plan.graph.states)
    renamed = dict(zip(plan.graph.inputs, inputs, strict=True))
    ranges = tuple(
        (renamed[tensor], ends)
        for tensor, ends in plan.graph.input_ranges
        if renamed[tensor].type == tensor.type
    )
    graph = replace(
        plan.graph, inputs=tuple(inputs), outputs=tuple(outputs), nodes=tuple(builder.nodes),
        states=states, input_ranges=ranges,
    )  # fmt: skip
    return Built(graph, builder.replaced, builder.computed)


class _Builder:
    """The nodes so far, and each tensor in the types in which it is there."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.nodes: list[Node] = []
        self.replaced: dict[Node, Node] = {}
        self.computed: dict[Tensor, Tensor] = {}
        self._versions: dict[tuple[Tensor, TensorType], Tensor] = {}
        self._constants: dict[str, list[Tensor]] = {}
        graph = plan.graph
        self._names = {t.name for t in (*graph.tensors(), *graph.outputs)}
        self._node_names = {node.name for node in graph.nodes}
        self._uses = _uses(plan)
        self._port_types = {
            **{t: self._input_type(t) for t in graph.inputs},
            **{t: self._output_type(t) for t in graph.outputs},
        }
        for state in graph.states:  # a state has one type before and after a run
            self._port_types[state.before] = self._port_types[state.after]

    # --- ports ------------------------------------------------------------------------------------

    def input(self, tensor: Tensor) -> Tensor:
        """Add an input of the graph, and what others read of it."""
        port = Tensor(tensor.name, self._port_types[tensor])
        self._enter(tensor, port)
        return port

    def output(self, tensor: Tensor) -> Tensor:
        """Return an output of the graph."""
        return self._versions[tensor, self._port_types[tensor]]

    def state(self, state: State) -> State:
        """Return a state in the type of its ports."""
        type_ = self._port_types[state.before]
        before = self._versions[state.before, type_]
        initial = state.initial
        if type_.dtype is not state.type.dtype:
            real = Tensor(state.name, state.type, state.initial)
            stored = constants.quantised_constant(real, type_.dtype, type_.quant)
            initial = stored.values
        return replace(state, before=before, after=self.output(state.after), initial=initial)

    def _input_type(self, tensor: Tensor) -> TensorType:
        uses = self._uses.get(tensor, [])
        return self._port_type(tensor, uses[0] if uses else tensor.type, self._plan.options.inputs)

    def _output_type(self, tensor: Tensor) -> TensorType:
        producers = self._plan.graph.producers()
        types = dict(zip(producers[tensor].outputs, self._plan.computed(producers[tensor]),
                         strict=True))  # fmt: skip
        is_state = any(tensor is state.after for state in self._plan.graph.states)
        wanted = PortType.LAYER if is_state else self._plan.options.outputs
        return self._port_type(tensor, types[tensor], wanted)

    def _port_type(self, tensor: Tensor, inner: TensorType, wanted: PortType) -> TensorType:
        """Return the type of a port of real numbers, whose inner type is that of its layer."""
        if tensor.dtype is not DType.FLOAT32 or wanted is PortType.LAYER:
            return inner
        quant = self._plan.quants.get(Stored(tensor, DType.INT8))
        if wanted is PortType.FLOAT or quant is None:
            return tensor.type
        if wanted is PortType.UINT8:
            zero_points = (quant.zero_point + _UNSIGNED_OFFSET,)
            quant = replace(quant, zero_points=zero_points)
            return TensorType(tensor.shape, DType.UINT8, quant)
        return TensorType(tensor.shape, DType.INT8, quant)

    # --- nodes ------------------------------------------------------------------------------------

    def add(self, node: Node) -> None:
        """Add what stands for a node of the float graph."""
        form, wanted = self._plan.forms.get(node), self._plan.wanted(node)
        inputs = [
            tensor if tensor.is_constant else self._versions[tensor, type_]
            for tensor, type_ in zip(node.inputs, wanted, strict=True)
        ]
        op = node.op
        if form is not None:
            inputs = self._with_stored_constants(node, form, inputs)
            if isinstance(op, Pad):
                op = _stored_pad(op, inputs[0].type)
        computed = [
            self._new(tensor, type_)
            for tensor, type_ in zip(node.outputs, self._plan.computed(node), strict=True)
        ]
        inputs = [self._shared(tensor) if tensor.is_constant else tensor for tensor in inputs]
        added = replace(node, op=op, inputs=tuple(inputs), outputs=tuple(computed))
        self.nodes.append(added)
        self.replaced[node] = added
        for tensor, version in zip(node.outputs, computed, strict=True):
            self._enter(tensor, version)

    def _with_stored_constants(
        self, node: Node, form: IntegerForm, inputs: list[Tensor]
    ) -> list[Tensor]:
        axis = record_of(node.op).definition.quantization.weight_axis
        if axis is not None and node.inputs[1].is_constant:
            return [inputs[0], *self._weights_and_bias(node, form, axis, inputs[0].type.quant)]
        if isinstance(node.op, Lstm):
            hidden, cell = (self._plan.quants[one] for one in memories_of(node, form))
            return recurrent.stored_inputs(node, inputs, form.inputs, hidden, cell)
        one_scale = scale_of_inputs(self._plan.shared, node, form)
        shared = None if one_scale is None else self._plan.quants[one_scale]
        if isinstance(node.op, Add | Mul) and form.outputs[0].is_int:
            output = self._plan.quants[Stored(node.output, form.outputs[0])]
            ends = real_range(output, form.outputs[0])
            inputs = [constants.within_reach(t, node.op, inputs, ends) for t in inputs]
        return [
            constants.quantised_constant(tensor, dtype, shared)
            if tensor.is_constant and tensor.dtype is DType.FLOAT32
            else tensor
            for tensor, dtype in zip(inputs, form.inputs, strict=True)
        ]

    def _weights_and_bias(
        self, node: Node, form: IntegerForm, axis: int, quant: Quantization
    ) -> Iterator[Tensor]:
        """Yield the weights of a layer in integers, and its bias if it has one."""
        weights, rest, bits = node.inputs[1], node.inputs[2:], _WEIGHT_BITS[form.width]
        bias = constants.real_values(rest[0]) if rest else None
        values = constants.real_values(weights)
        scales = constants.weight_scales(values, axis, bits, bias, quant.scale)
        yield constants.quantised_weights(weights, axis, bits, scales)
        for tensor in rest:
            yield constants.quantised_bias(tensor, form.inputs[2], quant.scale, scales)

    def _shared(self, tensor: Tensor) -> Tensor:
        """Return a constant under a name of its own, or the same one that is there already."""
        others = self._constants.setdefault(tensor.name, [])
        for other in others:
            if other.type == tensor.type and np.array_equal(other.values, tensor.values):
                return other
        if others:
            tensor = replace(tensor, name=_free(tensor.name, self._names))
        self._constants[others[0].name if others else tensor.name].append(tensor)
        return tensor

    # --- versions of a tensor ---------------------------------------------------------------------

    def _enter(self, tensor: Tensor, computed: Tensor) -> None:
        """Add the other versions of a tensor that are read, where it is computed.

        Not where they are read: that may be in a branch that does not run.
        """
        self.computed[tensor] = computed
        self._versions[tensor, computed.type] = computed
        wanted = [*self._uses.get(tensor, ()), *self._output_uses(tensor)]
        for type_ in dict.fromkeys(wanted):
            if (tensor, type_) not in self._versions:
                self._versions[tensor, type_] = self._converted(tensor, computed, type_)

    def _output_uses(self, tensor: Tensor) -> list[TensorType]:
        return [self._port_types[tensor]] if tensor in self._plan.graph.outputs else []

    def _converted(self, tensor: Tensor, source: Tensor, type_: TensorType) -> Tensor:
        """Return a version of a tensor in another type, by way of floats if there is no other."""
        op = Quantize() if type_.dtype.is_int else Dequantize()
        rule = record_of(op).definition.types
        if not rule.accepts((source.dtype,), (type_.dtype,)):
            source = self._versions.get((tensor, tensor.type)) or self._converted(
                tensor, source, tensor.type
            )
            self._versions[tensor, tensor.type] = source
        target = self._new(tensor, type_)
        where = self._source(tensor)
        name = _free(f"{target.name}/{op.name}", self._node_names)
        self.nodes.append(Node(op, (source,), (target,), name, where))
        return target

    def _new(self, tensor: Tensor, type_: TensorType) -> Tensor:
        """Return a tensor of a type; a port has the name of the float tensor, others their type."""
        may_have_it = type_ in (self._port_types.get(tensor, type_), tensor.type)
        if may_have_it and all(v.name != tensor.name for v in self._named(tensor)):
            return Tensor(tensor.name, type_)
        return Tensor(_free(f"{tensor.name}_{type_.dtype.value}", self._names), type_)

    def _named(self, tensor: Tensor) -> list[Tensor]:
        return [v for (one, _), v in self._versions.items() if one is tensor]

    def _source(self, tensor: Tensor) -> SourceLocation:
        """Return the place of the node that computes a tensor, or of the first that reads it."""
        graph = self._plan.graph
        nodes = (n for n in graph.nodes if tensor in n.outputs or tensor in n.inputs)
        return next(nodes, graph.nodes[0]).source


def _uses(plan: Plan) -> dict[Tensor, list[TensorType]]:
    """Return the types in which each activation is read."""
    uses: dict[Tensor, list[TensorType]] = {}
    for node in plan.graph.nodes:
        for tensor, type_ in zip(node.inputs, plan.wanted(node), strict=True):
            if not tensor.is_constant:
                uses.setdefault(tensor, []).append(type_)
    return uses


def _stored_pad(op: Pad, type_: TensorType) -> Pad:
    """Return a padding whose value is stored as the input is."""
    quant, dtype = type_.quant, type_.dtype
    real = min(max(op.value / quant.scale, float(dtype.min * 2)), float(dtype.max * 2))
    stored = min(max(round(real) + quant.zero_point, dtype.min), dtype.max)
    return replace(op, value=float(stored))


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not taken; it is from now on."""
    number, result = 2, name
    while result in taken:
        result, number = f"{name}_{number}", number + 1
    taken.add(result)
    return result
