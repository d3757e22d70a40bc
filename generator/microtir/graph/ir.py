"""Graph IR: SSA nodes over typed tensors. All of the IR but for the operators (`operators/`).

Vocabulary
    Tensor      a value: produced once, by a node, by the caller (graph input) or constant
    Node        one operator applied to tensors
    row         outermost step of a tensor: for rank 4 (N, H, W, C) there are N*H rows of W*C
                elements, for rank 3 (N, W, C) N*W rows of C, for rank 2 (N, C) N rows of C
    real value  scale * (stored value - zero point)
    state       a value that lives from one run to the next
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.operator import Operator

Array: TypeAlias = npt.NDArray[Any]
OpT = TypeVar("OpT", bound=Operator)
OtherT = TypeVar("OtherT", bound=Operator)


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine quantisation. One entry for the whole tensor, or one per index of `axis`.

    Scales are float32 values held in Python floats, exactly as the model file stores them.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @property
    def is_per_channel(self) -> bool:
        return self.axis is not None

    @property
    def scale(self) -> float:
        assert len(self.scales) == 1
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        assert len(self.zero_points) == 1
        return self.zero_points[0]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Static shape, scalar type and, for quantised integers, the quantisation."""

    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None = None

    @property
    def outermost(self) -> int:
        """Return the first axis of more than one element; 0 if there is none."""
        return next((axis for axis, extent in enumerate(self.shape) if extent > 1), 0)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes

    @property
    def rows(self) -> int:
        """Number of rows; see the vocabulary of this module."""
        return math.prod(self.shape[: min(2, len(self.shape) - 1)]) if self.shape else 1

    @property
    def channels(self) -> int:
        """Return the extent of the last axis; a scalar is one channel."""
        return self.shape[-1] if self.shape else 1

    @property
    def row_elements(self) -> int:
        return self.elements // self.rows if self.rows else 0

    @property
    def row_bytes(self) -> int:
        return self.row_elements * self.dtype.bytes

    @property
    def quant(self) -> Quantization:
        """Return the quantisation; only for tensors that are known to have one."""
        assert self.quantization is not None
        return self.quantization

    @property
    def is_per_channel(self) -> bool:
        return self.quantization is not None and self.quantization.is_per_channel


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A value of the graph, identified by identity. `data` is set for constants only."""

    name: str
    type: TensorType
    data: Array | None = None

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def values(self) -> Array:
        """Return the stored values; only of tensors that are known to be constant."""
        assert self.data is not None
        return self.data

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """The place of a node in its model file; every error and comment about it names this."""

    file: str  # base name only, so that output does not depend on the folder
    index: int  # position of the operator in the file
    operator: str  # the file format's own name, e.g. "CONV_2D"
    macs: int = 0  # multiply-accumulates in the file, where a pass has removed some since
    macs_recomputed: int = 0  # of the node, those that another node computes, too
    subgraph: str = ""  # in which it has `position`; then `index` only tells it from all others
    position: int = 0
    images: int = 1  # the node computes one of them
    turns: int = 1  # of the loops around it, at most

    @property
    def times(self) -> int:
        """Return how often a run of the model computes the node, at most."""
        return self.images * self.turns

    def __str__(self) -> str:
        if self.subgraph:
            where = f"operator {self.position} of '{self.subgraph}'"
            return f"{self.file}: {where} {self.operator}"
        return f"{self.file}: operator {self.index} {self.operator}"


@dataclass(frozen=True, slots=True)
class SumRange:
    """Inclusive bounds of every sum that an integer kernel may hold on the way to a result."""

    low: int
    high: int

    @property
    def fits(self) -> bool:
        """Return whether INT32 accumulators hold all of them."""
        return DType.INT32.min <= self.low and self.high <= DType.INT32.max

    @property
    def bits(self) -> int:
        """Return the bits of the smallest two's complement number that holds them."""
        ends = self.low, self.high
        return max((end if end >= 0 else ~end).bit_length() for end in ends) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operator. Optional inputs that are absent at the end (a bias) are simply not there.

    `sums` is what analysis has proven about its sums, for the inputs that this graph gives it.
    """

    op: Operator
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    name: str
    source: SourceLocation
    sums: SumRange | None = None

    @property
    def output(self) -> Tensor:
        """Return the only output."""
        assert len(self.outputs) == 1
        return self.outputs[0]

    def attributes(self, kind: type[OpT], *others: type[OtherT]) -> OpT | OtherT:
        """Return the operator, which is known to be of one of these kinds."""
        assert isinstance(self.op, (kind, *others))
        return cast("OpT | OtherT", self.op)

    @property
    def activations(self) -> tuple[Tensor, ...]:
        """Return inputs that are not constant, as often as they are read."""
        return tuple(t for t in self.inputs if not t.is_constant)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A variable that keeps its value from one run to the next.

    Args:
        before: the value that a run begins with: an input of the graph that no caller gives.
        after: the value that it leaves: an output of the graph that no caller takes, in the memory
            of `before`.
        initial: the value that the first run begins with.
        turns: how many such values there are; runs take them in turn.
    """

    before: Tensor
    after: Tensor
    initial: Array
    turns: int = 1

    @property
    def name(self) -> str:
        return self.before.name

    @property
    def type(self) -> TensorType:
        return self.before.type


@dataclass(frozen=True, slots=True)
class CountedResult:
    """An output of which data say how many rows are in use: the first ones.

    Args:
        name: of the output.
        axis: which counts the rows.
        count: the name of the output that says how many there are, int32 of shape (1,).
    """

    name: str
    axis: int
    count: str


@dataclass(frozen=True, slots=True)
class NamedResult:
    """An output whose values are places in a list of names: the labels of classes, say.

    Args:
        name: of the output.
        names: none of which is there twice.
    """

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StreamedLayer:
    """A layer of a model that is streamed, and what a run computes of it.

    Args:
        node: of the whole window.
        rows: along time of its output; 1 if it has none.
        computed: of these rows, those that a run computes.
        macs: multiply-accumulates of the whole window.
        macs_computed: those of a run.
        is_padded: whether it pads along time, so that rows near that are computed anew.
    """

    node: Node
    rows: int
    computed: int
    macs: int
    macs_computed: int
    is_padded: bool


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The facts about a graph that is streamed: each run is given the newest frames of a window.

    Args:
        whole: the graph of the window.
        input: its argument whose rows are frames.
        axis: of that argument.
        hop: the frames of a run.
        layers: of `whole`, those with multiply-accumulates.
    """

    whole: Graph
    input: Tensor
    axis: int
    hop: int
    layers: tuple[StreamedLayer, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes in an order in which every tensor is produced before it is used.

    Inputs and outputs are those of one run: beside the caller's `arguments` and `results` they hold
    what each of the `states` is before and after it.  `input_ranges` bounds the stored values of
    inputs, inclusive, where the user declared some.

    Of several `images` the graph is what is done with one: callers give and take all of them, one
    behind the other along the first axes, or along `image_axes`, by the names of arguments and
    results, where axes of one element stand before these.

    `aliases` are pairs of an argument's or result's name and another name that users may call it
    by; the last one of a port is the name of its tensor in the model file.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    source_sha256: str = ""  # of the model file, hex; empty for graphs made in Python
    source_bytes: int = 0
    quantised_sha256: str = ""  # of the integers that were made of the file; hex
    input_ranges: tuple[tuple[Tensor, tuple[int, int]], ...] = ()
    states: tuple[State, ...] = ()
    images: int = 1
    image_axes: tuple[tuple[str, int], ...] = ()
    stream: Stream | None = None  # where a run is given the newest frames of a window
    counted: tuple[CountedResult, ...] = ()
    named: tuple[NamedResult, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()

    def port_name(self, name: str) -> str:
        """Return the own name of the argument or result that a user calls by a name or an alias.

        A name that no port has is returned as it is.
        """
        if name in {port.name for port in (*self.arguments, *self.results)}:
            return name
        return next((own for own, alias in self.aliases if alias == name), name)

    def file_name(self, name: str) -> str:
        """Return what a model file calls the tensor of an argument or result."""
        return next((alias for own, alias in reversed(self.aliases) if own == name), name)

    def aliases_of(self, port: Tensor) -> tuple[str, ...]:
        """Return the other names of an argument or result."""
        return tuple(alias for name, alias in self.aliases if name == port.name)

    def type_of_all(self, tensor: Tensor) -> TensorType:
        """Return the type of an argument or result as callers have it, with all images."""
        if self.images == 1:
            return tensor.type
        extents = list(tensor.shape)
        extents[dict(self.image_axes).get(tensor.name, 0)] *= self.images
        return replace(tensor.type, shape=tuple(extents))

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """Return the inputs that a caller gives."""
        states = {state.before for state in self.states}
        return tuple(tensor for tensor in self.inputs if tensor not in states)

    @property
    def results(self) -> tuple[Tensor, ...]:
        """Return the outputs that a caller takes."""
        states = {state.after for state in self.states}
        return tuple(tensor for tensor in self.outputs if tensor not in states)

    def producers(self) -> dict[Tensor, Node]:
        return {t: node for node in self.nodes for t in node.outputs}

    def consumers(self) -> dict[Tensor, tuple[Node, ...]]:
        """Return consumers of every tensor in node order.

        A node that reads it twice counts once.
        """
        consumers: dict[Tensor, list[Node]] = {}
        for node in self.nodes:
            for tensor in dict.fromkeys(node.inputs):
                consumers.setdefault(tensor, []).append(node)
        return {tensor: tuple(nodes) for tensor, nodes in consumers.items()}

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors, inputs first, then in order of first appearance."""
        seen = dict.fromkeys(self.inputs)
        for node in self.nodes:
            seen.update(dict.fromkeys(node.inputs))
            seen.update(dict.fromkeys(node.outputs))
        return tuple(seen)
