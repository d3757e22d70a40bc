"""Give each activation a quantisation: its own, one that several share, or a fixed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, Tensor
from microtir.operators import record_of
from microtir.operators.arithmetic.definition import Maximum, Minimum
from microtir.operators.common.quantization import Scales
from microtir.operators.recurrent.definition import Lstm
from microtir.quantise import recurrent
from microtir.quantise.forms import IntegerForm, scales_of
from microtir.quantise.memories import of_one_memory
from microtir.quantise.options import Calibration
from microtir.quantise.ranges import Range, affine


class Stored(NamedTuple):
    """An activation of the float graph, in integers of a type."""

    tensor: Tensor
    dtype: DType


@dataclass(slots=True)
class SharedScales:
    """The activations in integers, in groups of one quantisation each.

    `fixed` has the quantisations that operators fix, by a member that stands for its group.  A
    group with a member in `symmetric` has the zero point 0, one in `powers_of_two` such a scale.
    """

    parents: dict[Stored, Stored] = field(default_factory=dict)
    fixed: dict[Stored, Quantization] = field(default_factory=dict)
    constants: dict[Stored, list[Tensor]] = field(default_factory=dict)
    symmetric: set[Stored] = field(default_factory=set)
    powers_of_two: set[Stored] = field(default_factory=set)

    def root(self, one: Stored) -> Stored:
        """Return the member that stands for a group."""
        while (parent := self.parents.get(one, one)) != one:
            one = parent
        self.parents.setdefault(one, one)
        return one

    def join(self, one: Stored, other: Stored) -> None:
        """Make one group of two, at most one of which is fixed, or both as the same."""
        first, second = self.root(one), self.root(other)
        if first == second:
            return
        self.parents[second] = first
        if second in self.fixed:
            self.fixed[first] = self.fixed.pop(second)
        self.constants.setdefault(first, []).extend(self.constants.pop(second, []))

    def fixed_as(self, one: Stored) -> Quantization | None:
        """Return the quantisation that an operator fixes for a group."""
        return self.fixed.get(self.root(one))

    def groups(self) -> Mapping[Stored, tuple[Stored, ...]]:
        """Return the members of each group by the one that stands for it."""
        members: dict[Stored, list[Stored]] = {}
        for one in self.parents:
            members.setdefault(self.root(one), []).append(one)
        return {root: tuple(group) for root, group in members.items()}


def shared_scales(
    graph: Graph, forms: Mapping[Node, IntegerForm], mixed: frozenset[Tensor]
) -> SharedScales:
    """Return which activations share a quantisation, as their operators ask for it.

    Nodes come in their order, so that what is fixed is known where it is read: of several inputs
    of which one is fixed, the others share theirs, and the fixed one is requantised for the node.
    So is a fixed value that a `mixed` memory of a branch or a loop stores beside other values.
    """
    shared = SharedScales()
    for node in graph.nodes:
        form = forms.get(node)
        if form is None:
            continue
        inputs, outputs = _data(node.inputs, form.inputs), _data(node.outputs, form.outputs)
        for one in (*inputs, *outputs):
            shared.root(one)
        fixed = record_of(node.op).definition.quantization.fixed
        for one in outputs:
            quant = fixed.get((form.inputs[0], one.dtype))
            if quant is not None:
                shared.fixed[shared.root(one)] = quant
        scales = scales_of(node)
        if scales in (Scales.ONE, Scales.ONE_OF_INPUTS):
            if not mixed.isdisjoint(node.outputs):
                inputs = tuple(one for one in inputs if shared.fixed_as(one) is None)
            _join(shared, node, scales, inputs, outputs)
        if isinstance(node.op, Lstm):
            _join_memories(shared, node, form)
        for first, *others in of_one_memory(node):
            dtype = dict(zip((*node.inputs, *node.outputs), (*form.inputs, *form.outputs),
                             strict=True))[first]  # fmt: skip
            for other in others if dtype.is_int else ():
                shared.join(Stored(first, dtype), Stored(other, dtype))
    for state in graph.states:
        for dtype in (DType.INT8, DType.INT16):
            before, after = Stored(state.before, dtype), Stored(state.after, dtype)
            both = {before, after} <= shared.parents.keys()
            if both and shared.fixed_as(before) is shared.fixed_as(after) is None:
                shared.join(before, after)
    return shared


def _join(
    shared: SharedScales,
    node: Node,
    scales: Scales,
    inputs: tuple[Stored, ...],
    outputs: tuple[Stored, ...],
) -> None:
    """Make one group of the tensors of a node that has one scale."""
    constants = [t for t in node.inputs if t.is_constant and t.dtype is DType.FLOAT32]
    are_alike = len({shared.fixed_as(one) for one in inputs}) == 1 and not constants
    free = inputs if are_alike else [o for o in inputs if shared.fixed_as(o) is None]
    members = [*free, *(outputs if scales is Scales.ONE else ())]
    if not members:
        return
    for one in members[1:]:
        shared.join(members[0], one)
    if isinstance(node.op, Minimum | Maximum):
        return  # what a bound lets through is in the range; a bound beyond that is its end
    shared.constants.setdefault(shared.root(members[0]), []).extend(constants)


def _join_memories(shared: SharedScales, node: Node, form: IntegerForm) -> None:
    """Give the hidden states of an LSTM one quantisation, and its cells another."""
    hidden, cell = memories_of(node, form)
    for tensor, dtype in zip(node.outputs[1:], form.outputs[1:], strict=True):
        shared.join(hidden if tensor is node.outputs[1] else cell, Stored(tensor, dtype))
    shared.powers_of_two.add(shared.root(cell))
    if node.inputs[recurrent.HIDDEN].is_constant:
        shared.symmetric.add(shared.root(hidden))
    else:
        shared.join(hidden, Stored(node.inputs[recurrent.HIDDEN], hidden.dtype))


def memories_of(node: Node, form: IntegerForm) -> tuple[Stored, Stored]:
    """Return whose quantisations the hidden state of an LSTM and its cells have."""
    cell = Stored(node.inputs[recurrent.CELL], form.inputs[recurrent.CELL])
    return Stored(node.outputs[0], form.outputs[0]), cell


def _data(tensors: tuple[Tensor, ...], types: tuple[DType, ...]) -> tuple[Stored, ...]:
    pairs = zip(tensors, types, strict=True)
    return tuple(
        Stored(t, d) for t, d in pairs
        if t.dtype is DType.FLOAT32 and d.is_int and not t.is_constant
    )  # fmt: skip


def scale_of_inputs(shared: SharedScales, node: Node, form: IntegerForm) -> Stored | None:
    """Return whose quantisation all inputs of a node have; None if each has its own."""
    scales = scales_of(node)
    outputs = _data(node.outputs, form.outputs)
    if scales is Scales.ONE and outputs:
        return outputs[0]
    if scales in (Scales.ONE, Scales.ONE_OF_INPUTS):
        inputs = _data(node.inputs, form.inputs)
        free = [one for one in inputs if shared.fixed_as(one) is None]
        return next(iter((*free, *inputs)), None)
    return None


def quantisations(
    shared: SharedScales, range_of: Callable[[Stored], Range]
) -> tuple[Mapping[Stored, Quantization], Mapping[Stored, Calibration]]:
    """Return the quantisation of each activation in integers, and the calibrations of their ranges.

    Args:
        shared: which have one.
        range_of: gives the range of an activation by itself.
    """
    quants: dict[Stored, Quantization] = {}
    calibrations: dict[Stored, Calibration] = {}
    for root, members in shared.groups().items():
        quant = shared.fixed.get(root)
        if quant is None:
            chosen = {one: range_of(one) for one in members}
            calibrations.update((one, r.calibration) for one, r in chosen.items())
            ends = [*((r.low, r.high) for r in chosen.values()), *_extremes(shared.constants, root)]
            low, high = min(low for low, _ in ends), max(high for _, high in ends)
            if any(r.is_floored for r in chosen.values()):
                low = min(r.low for r in chosen.values())
            if shared.symmetric.intersection(members):
                high = max(high, -low)
                low = high * root.dtype.min / root.dtype.max  # one more than above the zero point
            quant = affine(low, high, root.dtype)
            if shared.powers_of_two.intersection(members):
                quant = recurrent.power_of_two(quant)
        quants.update(dict.fromkeys(members, quant))
    return quants, calibrations


def _extremes(
    constants: Mapping[Stored, list[Tensor]], root: Stored
) -> Iterator[tuple[float, float]]:
    for tensor in constants.get(root, ()):
        yield float(tensor.values.min()), float(tensor.values.max())
