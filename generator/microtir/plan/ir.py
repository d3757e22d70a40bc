"""Plan IR: what planning decides and lowering obeys.

Vocabulary
    candidate   one way to compute an operator: a kernel with the layouts it reads and writes
    layout      how the rows of a tensor lie in memory; belongs to the edge, not to the operator
    ring        a layout with fewer row slots than the tensor has rows
    group       consecutive operators that run together; one operator alone is a group, too
    nest        how a group runs row by row: each row of a step first asks for the rows it needs
    storage     the tensor whose memory another tensor shares (a reshape is a view)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from microtir.config import CompilationConfig
from microtir.config.enums import Measure, Optimize
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.operators.common.rows import RowWindow
from microtir.tir.dtype import DType


class LayoutKind(Enum):
    """Order and type of the elements inside one row; the row itself is always outermost."""

    NHWC = "nhwc"  # (W, C): the order of model inputs and outputs
    PLANES16 = "planes16"  # (C, columns) of int16, as `Planes` says
    PLANES8 = "planes8"  # the same as it is stored elsewhere, in int8


@dataclass(frozen=True, slots=True)
class Planes:
    """A row as planes, one for each channel.

    A plane is `before` elements of border, those of the image, and border again up to `columns`;
    the border holds the zero point.
    """

    before: int
    columns: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Row y of a tensor lies in slot floormod(y, rows).

    `rows` equals the tensor's number of rows for a whole tensor and the window for a ring;
    `planes` is there where the kind asks for it.
    """

    kind: LayoutKind
    rows: int
    planes: Planes | None = None

    @staticmethod
    def whole(type_: TensorType) -> Layout:
        """The plain layout of model inputs and outputs."""
        return Layout(LayoutKind.NHWC, type_.rows)

    def dtype(self, type_: TensorType) -> DType:
        """What the elements of a tensor of `type_` are in this layout."""
        return DType.INT16 if self.kind is LayoutKind.PLANES16 else type_.dtype

    @property
    def alignment(self) -> int:
        """Bytes that its address is a multiple of, if its elements do not ask for more."""
        return 4 if self.kind is LayoutKind.PLANES16 else 1

    def row_shape(self, type_: TensorType) -> tuple[int, int]:
        """(W, C), or (C, columns) for planes."""
        channels = type_.channels
        if self.planes is None:
            return type_.row_elements // max(channels, 1), channels
        return channels, self.planes.columns

    def row_bytes(self, type_: TensorType) -> int:
        """Bytes of one row of a tensor of `type_`."""
        return math.prod(self.row_shape(type_)) * self.dtype(type_).bytes

    def bytes(self, type_: TensorType) -> int:
        """Bytes that a tensor of `type_` takes in this layout."""
        return self.rows * self.row_bytes(type_)


class Kernel(Enum):
    """Families of kernels; the value is what metadata and `profile --explain` print."""

    DIRECT = "direct"  # naive loop nest, clipped at the borders
    GEMM = "gemm"  # patches of 4 pixels times packed weights
    GEMM_COMPACT = "gemm_compact"  # the same with less code
    GEMM_APART = "gemm_apart"  # words are loaded one by one: fewer cycles, more instructions
    GEMM_COMPACT_APART = "gemm_compact_apart"  # the same with less code
    GEMM_BYTES = "gemm_bytes"  # the input as it is, or two windows of bytes, times packed weights
    GEMM_BYTES_SINGLE = "gemm_bytes_single"  # the same with one window in scratch
    GEMM_NARROW = "gemm_narrow"  # sums of up to 8 values, weights of a channel in registers
    GEMM_WINDOWS = "gemm_windows"  # windows are read where they lie, in rows that are widened
    DENSE_PAIRS = "dense_pairs"  # eight outputs a pass, two for each packed weight
    DEPTHWISE_WORDS = "depthwise_words"  # four channels a word, two pixels at a time
    DEPTHWISE_ROWS = "depthwise_rows"  # the same from rows where they lie, without scratch
    DEPTHWISE_PLANES = "depthwise_planes"  # 3x3, two columns a word, rows split into channels
    ADD_SHIFTED = "add_shifted"  # the operand with the larger scale is shifted, not multiplied
    ADD_PORTABLE = "add_portable"  # the same in plain C
    DEPTHWISE_SINGLE = "depthwise_single"  # one pixel at a time, with half the code
    GEMM_VECTORS = "gemm_vectors"  # two pixels by four channels, sixteen products an instruction
    BLOCKED = "blocked"  # a block of sums in registers, in plain C
    BLOCKED_COMPACT = "blocked_compact"  # the same with less code
    BLOCKED_WIDE = "blocked_wide"  # twice the sums, for CPUs with 32 registers
    BLOCKED_APART = "blocked_apart"  # products and sums of floats are instructions of their own
    DEPTHWISE_BLOCKED = "depthwise_blocked"  # blocks of depthwise convolutions
    DEPTHWISE_WIDE = "depthwise_wide"  # the same for CPUs with 32 registers
    DEPTHWISE_APART = "depthwise_apart"  # the same, with products and sums apart
    DEPTHWISE_VECTORS = "depthwise_vectors"  # sixteen channels at a time, a row a call
    ADD_VECTORS = "add_vectors"  # as ADD_SHIFTED, four elements at a time
    POOL_WORDS = "pool_words"  # four channels of a run of pixels at a time
    POOL_VECTORS = "pool_vectors"  # all channels of a run of pixels at a time
    GEMM_PANELS = "gemm_panels"  # pixels times weights of eight channels, for wide vectors
    GEMM_PANELS_WINDOWS = "gemm_panels_windows"  # the same with one row's window in scratch
    DEPTHWISE_LANES = "depthwise_lanes"  # sixteen channels of a vector, two taps a product
    DEPTHWISE_LANES_WINDOWS = "depthwise_lanes_windows"  # the same with one row's window
    POOL_LANES = "pool_lanes"  # a sum for each channel, channels innermost
    ADD_LANES = "add_lanes"  # eight sums of a vector
    TABLE = "table"  # 256-entry look-up
    VIEW = "view"  # no code: the output is the input's memory
    COPY = "copy"  # elements move, nothing is computed
    COPY_WORDS = "copy_words"  # the same for a run of bytes in each row, words at a time
    CUSTOM = "custom"  # an operator of the user, computed by a function of the user
    ACCUMULATE = "accumulate"  # input rows go into accumulators; a second function finishes
    ACCUMULATE_WORDS = "accumulate_words"  # the same, four channels at a time
    ACCUMULATE_VECTORS = "accumulate_vectors"  # the same by vectors


class Refusal(Enum):
    """Why a kernel is not offered for an operator; the value is what metadata say of the kernel."""

    TYPES = "computes other types"
    WEIGHTS = "needs constant weights"
    IMAGES = "takes one image at a time"
    OPERATOR = "computes another operator"
    MIXES_CHANNELS = "sums over all input channels"
    MULTIPLIER = "takes one output per input channel"
    FEW_CHANNELS = "needs more channels"
    SIZES = "its instructions do not reach that far"
    FORM = "weights or factors do not fit its packed form"
    SUMS = "sums are not proven to fit 32 bits"
    SHAPES = "takes two activations of one shape"
    SCALES = "scales do not fit its sequence"
    WINDOWS = "takes other windows"
    ROWS = "needs output rows that are those of the input"
    CLAMP = "knows no upper clamp"
    NO_TABLE = "no table of 256 entries holds the function"
    TABLE = "a table of 256 entries holds the function"


@dataclass(frozen=True, slots=True)
class Alone:
    """What differs where a kernel runs alone, so that all rows of its input and output are there.

    Rows follow each other then.  `cost` is that of all calls, each for the same number of rows.
    """

    cost: int
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute an operator, described without emitting any TIR.

    `windows` holds, per non-constant input, the rows that one output row needs; None means that
    the kernel computes its whole output in one call. A kernel with accumulators counts rows of its
    input instead: it adds rows [y0, y1) to `accumulator_bytes` of them, which a second function
    turns into the output. `cost` is an estimate in instructions of one call for all
    rows, `row_cost` of a call for each row, `pair_cost` of one for two rows; `cycles` is one of
    the call for all rows, and calls for fewer take as many more as they take instructions. A kernel
    that reads planes says how they lie; one that writes some takes them as their reader wants them.
    """

    kernel: Kernel
    input_layouts: tuple[LayoutKind, ...]
    output_layouts: tuple[LayoutKind, ...]
    windows: tuple[RowWindow, ...] | None
    scratch_bytes: int
    weight_bytes: int
    cost: int
    accumulator_bytes: int = 0
    code_bytes: int = 0  # beyond a direct kernel's, though other layers may share them
    row_cost: int = 0
    pair_cost: int = 0
    cycles: int = 0
    alone: tuple[Alone, ...] = ()  # in one call, in calls for one row, for two; or no difference
    call_rows: int = 0  # of a call, if it is made for calls of so few
    is_measured: bool = False  # the costs are those of tuning records
    planes: Planes | None = None  # of its input

    @property
    def name(self) -> str:
        """Tells it from the other candidates of a node: its kernel, and layouts but NHWC."""
        kinds = (("from", self.input_layouts), ("to", self.output_layouts))
        named = [(way, kind) for way, given in kinds for kind in given]
        layouts = (f" {way} {kind.value}" for way, kind in named if kind is not LayoutKind.NHWC)
        return self.kernel.value + "".join(layouts)

    @property
    def is_plain(self) -> bool:
        """Whether all that it reads and writes is NHWC."""
        return all(k is LayoutKind.NHWC for k in (*self.input_layouts, *self.output_layouts))

    @property
    def takes_row_range(self) -> bool:
        return self.windows is not None

    def running_alone(self, together: int) -> Candidate:
        """The candidate where no other operator runs with it.

        Args:
            together: rows of a call, 1 or 2; 0 for all of them.
        """
        if not self.alone:
            return self
        whole, rows, pairs = self.alone
        return replace(
            self,
            scratch_bytes=self.alone[together].scratch_bytes,
            cost=whole.cost,
            row_cost=rows.cost,
            pair_cost=pairs.cost,
            cycles=self.cycles * whole.cost // max(self.cost, 1),
            call_rows=together,
        )

    def estimate(self, measure: Measure, together: int = 0) -> int:
        """What it costs by calls for 1 or 2 rows each, or by one for all of them (0)."""
        by_calls = (self.cost, self.row_cost, self.pair_cost)[together]
        instructions = max(by_calls, self.cost)
        if measure is Measure.INSTRUCTIONS:
            return instructions
        return self.cycles * instructions // max(self.cost, 1)

    @property
    def flash_bytes(self) -> int:
        """What it takes where no other layer shares anything of it."""
        return self.weight_bytes + self.code_bytes

    @property
    def accumulates(self) -> bool:
        return self.accumulator_bytes > 0


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator with the kernel chosen for it."""

    node: Node
    candidate: Candidate

    @property
    def rows(self) -> int:
        """How many rows its row range counts: of the output, or of what is accumulated."""
        if self.candidate.accumulates:
            return self.inputs[0].type.rows
        return self.node.outputs[0].type.rows

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Inputs that are not constant, each once."""
        return tuple(dict.fromkeys(self.node.activations))

    def window(self, tensor: Tensor) -> RowWindow:
        """Rows of an input behind one row of the row range.

        Raises:
            KeyError: not an input, or the kernel takes no row range.
        """
        return dict(zip(self.node.activations, self.candidate.windows or (), strict=False))[tensor]


@dataclass(frozen=True, slots=True)
class Feed:
    """What a step asks for before it computes row y: rows of `tensor` up to the window's end.

    Rows that an earlier row of the step has asked for are there already.
    """

    tensor: Tensor
    window: RowWindow
    step: Step


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a nest and, per input that the nest produces at its demand, a feed.

    A call computes `together` rows, or those that are left of what was asked for.
    """

    operator: PlannedOperator
    feeds: tuple[Feed, ...] = ()
    together: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that run together.

    Without a nest it is one operator in one call. With one, the nest's step runs row by row; the
    tensors that stay inside the group have ring layouts. A nest of one operator may run
    `backward`, from its last row to its first: its output then lies over the end of a dying
    input instead of its beginning.
    """

    operators: tuple[PlannedOperator, ...]
    nest: Step | None = None
    backward: bool = False


# More than all instructions of a model: where size is the goal, speed only breaks ties.  Times the
# bytes of a model that is still no overflow of 64 bits.
ANY_SPEED = 1 << 36


@dataclass(frozen=True, slots=True)
class PlanConstraints:
    """What a plan is asked for: what to rank kernels by, prices, and limits.

    Args:
        goal: what counts.
        measure: what speed is counted in.
        ram: bytes of workspace to keep to; where no plan does, the one with the least is taken.
        kernel_bytes: bytes of flash that kernels may take, each for itself, or None: a byte then
            gets the lowest price, above `byte_price`, with which they do.
        byte_price: what a byte of flash is charged.  ANY_SPEED asks for the least flash of all,
            whatever the goal.
        refused: kernels of nodes that are not taken, since they go too deep.
        raised: kernels of nodes whose bytes are not charged, since the budget has room for them.
    """

    goal: Optimize = Optimize.BALANCED
    measure: Measure = Measure.INSTRUCTIONS
    ram: int | None = None
    kernel_bytes: int | None = None
    byte_price: int = 0
    refused: frozenset[tuple[Node, Kernel]] = frozenset()
    raised: frozenset[tuple[Node, Kernel]] = frozenset()

    @staticmethod
    def of(config: CompilationConfig) -> PlanConstraints:
        """Return what a configuration asks for at first: its goal, and its limit on RAM."""
        return PlanConstraints(config.optimize, config.measure, config.workspace_limit())

    @property
    def ranking(self) -> Optimize:
        """The goal that kernels are ranked by."""
        return self.ranking_of(self.goal)

    def ranking_of(self, goal: Optimize) -> Optimize:
        """Return what kernels are ranked by where `goal` is wanted."""
        return Optimize.FLASH if self.byte_price >= ANY_SPEED else goal


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Every decision about a graph.

    `layouts` has an entry for each tensor that is not constant; `storage` maps a tensor to the
    tensor in whose memory it lives, itself unless it is a view. `least` is the smallest
    limit, in bytes, that planning knows a plan for, where it was asked to work that out, and
    `size` the one that it keeps to. `offered` holds what there was to choose from, `constraints`
    what was asked for.
    """

    graph: Graph
    groups: tuple[Group, ...]
    layouts: Mapping[Tensor, Layout]
    storage: Mapping[Tensor, Tensor]
    least: int = 0
    size: int | None = None
    offered: Mapping[Node, tuple[Candidate, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    constraints: PlanConstraints = PlanConstraints()

    @property
    def operators(self) -> tuple[PlannedOperator, ...]:
        return tuple(op for group in self.groups for op in group.operators)

    @property
    def kernel_bytes(self) -> int:
        """Bytes of flash of all kernels, each for itself."""
        return sum(op.candidate.flash_bytes for op in self.operators)
