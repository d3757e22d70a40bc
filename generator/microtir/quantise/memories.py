"""Give values that loops and branches hand on one type each: they have one memory."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators import record_of
from microtir.operators.control.definition import Control, PutItem, aliases
from microtir.operators.state.definition import Assign
from microtir.quantise.forms import ACTIVATIONS, IntegerForm
from microtir.quantise.options import QuantiseOptions, Width


def of_one_memory(node: Node) -> Iterator[tuple[Tensor, ...]]:
    """Yield the real numbers that have one memory by an operator of control, as groups."""
    groups: Iterator[tuple[Tensor, ...]] = iter(())
    if isinstance(node.op, PutItem):
        groups = iter([(node.inputs[0], node.output)])
    elif isinstance(node.op, Control):
        groups = aliases(node)
    return (group for group in groups if group[0].dtype is DType.FLOAT32)


@dataclass(slots=True, eq=False)
class _Memory:
    """A memory of a loop or a branch: the tensors that have it, and who gives it values."""

    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    sources: list[Tensor] = field(default_factory=list)


class Memories:
    """The memories of loops and branches in a graph of floats."""

    def __init__(self, graph: Graph) -> None:
        self._of: dict[Tensor, _Memory] = {}
        self._producers = graph.producers()
        for node in graph.nodes:
            for group in of_one_memory(node):
                self._join(group)
        memories = {id(memory): memory for memory in self._of.values()}
        self._memories = tuple(memories.values())
        for node in graph.nodes:
            self._enter(node)

    def holds(self, node: Node) -> bool:
        """Return whether a node hands on what a memory holds, or stores into one."""
        is_assign = isinstance(node.op, Assign) and node.output in self._of
        return is_assign or isinstance(node.op, Control | PutItem)

    @property
    def mixed(self) -> frozenset[Tensor]:
        """Return the tensors of memories that store other values than those of a fixed scale."""
        return frozenset(
            tensor
            for memory in self._memories
            if any(not (t.is_constant or self._is_fixed(t)) for t in memory.sources)
            for tensor in memory.tensors
        )

    def _is_fixed(self, tensor: Tensor) -> bool:
        """Return whether an operator fixes the scale of what it stores."""
        producer = self._producers.get(tensor)
        return producer is not None and bool(record_of(producer.op).definition.quantization.fixed)

    def forms(
        self,
        forms: Mapping[Node, IntegerForm],
        options: QuantiseOptions,
        refused: Container[Node],
    ) -> dict[Node, IntegerForm]:
        """Return the forms of the nodes that hand on memories of integers.

        A memory has integers if all that is stored in it has, of the widest type among these.

        Args:
            forms: of the other nodes.
            options: which say what a memory has that nothing else decides.
            refused: nodes whose memories stay in floats.
        """
        types: dict[int, DType] = {}
        for memory in self._memories:
            is_refused = any(node in refused for node in memory.nodes)
            types[id(memory)] = DType.FLOAT32 if is_refused else self._stored(memory, forms)
        is_settled = False
        while not is_settled:
            is_settled = True
            for memory in self._memories:
                known = types[id(memory)]
                others = [types[id(self._of[t])] for t in memory.sources if t in self._of]
                wanted = _wider([known, *others])
                if wanted is not known:
                    types[id(memory)], is_settled = wanted, False
        default = ACTIVATIONS.get(options.width, DType.FLOAT32)
        nodes = dict.fromkeys(node for memory in self._memories for node in memory.nodes)
        chosen = {id_: default if t is DType.BOOL else t for id_, t in types.items()}
        built = {node: self._form(node, chosen) for node in nodes}
        return {node: form for node, form in built.items() if form is not None}

    def _join(self, group: tuple[Tensor, ...]) -> None:
        merged = _Memory()
        for tensor in group:
            old = self._of.get(tensor)
            merged.tensors += [tensor] if old is None else old.tensors
        merged.tensors = list(dict.fromkeys(merged.tensors))
        self._of.update(dict.fromkeys(merged.tensors, merged))

    def _enter(self, node: Node) -> None:
        """Note what a node stores, and in which memories it has a part."""
        own = [self._of[t] for t in (*node.inputs, *node.outputs) if t in self._of]
        if self.holds(node):
            for memory in own:
                memory.nodes.append(node)
        if isinstance(node.op, Assign) and own:
            self._of.get(node.output, own[0]).sources.append(node.inputs[0])
        elif isinstance(node.op, PutItem) and own:
            own[0].sources.append(node.inputs[1])
        elif not self.holds(node):
            for tensor in node.outputs:
                if tensor in self._of:
                    self._of[tensor].sources.append(tensor)

    def _stored(self, memory: _Memory, forms: Mapping[Node, IntegerForm]) -> DType:
        """Return the type of what nodes of other kinds store; BOOL where there is none."""
        if any(tensor.is_constant for tensor in memory.tensors):
            return DType.FLOAT32
        types = [DType.BOOL]
        for tensor in memory.sources:
            producer = self._producers.get(tensor)
            if producer is not None and not self.holds(producer):
                form = forms.get(producer)
                place = producer.outputs.index(tensor)
                types.append(DType.FLOAT32 if form is None else form.outputs[place])
        return _wider(types)

    def _form(self, node: Node, types: Mapping[int, DType]) -> IntegerForm | None:
        def stored(tensor: Tensor) -> DType:
            if tensor.dtype is not DType.FLOAT32:
                return tensor.dtype
            memory = self._of.get(tensor) or self._of[node.outputs[0]]
            return types[id(memory)]

        inputs, outputs = (tuple(map(stored, side)) for side in (node.inputs, node.outputs))
        of_reals = {
            dtype
            for tensor, dtype in zip(node.outputs, outputs, strict=True)
            if tensor.dtype is DType.FLOAT32
        }
        if of_reals <= {DType.FLOAT32}:
            return None
        width = Width.INT16 if DType.INT16 in of_reals else Width.INT8
        return IntegerForm(width, inputs, outputs)


_BY_WIDTH = (DType.BOOL, DType.INT8, DType.INT16, DType.FLOAT32)


def _wider(types: list[DType]) -> DType:
    """Return the widest of some types: floats stay floats, and BOOL stands for none."""
    return max(types, key=_BY_WIDTH.index)
