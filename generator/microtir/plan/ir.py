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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from microtir.config.enums import Measure, Optimize
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.operators.common.rows import RowWindow


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
        """Return the plain layout of model inputs and outputs."""
        return Layout(LayoutKind.NHWC, type_.rows)

    def dtype(self, type_: TensorType) -> DType:
        """Return what the elements of a tensor of `type_` are in this layout."""
        return DType.INT16 if self.kind is LayoutKind.PLANES16 else type_.dtype

    @property
    def alignment(self) -> int:
        """Return bytes that its address is a multiple of, if its elements do not ask for more."""
        return 4 if self.kind is LayoutKind.PLANES16 else 1

    def row_shape(self, type_: TensorType) -> tuple[int, int]:
        """Return (W, C), or (C, columns) for planes."""
        channels = type_.channels
        if self.planes is None:
            return type_.row_elements // max(channels, 1), channels
        return channels, self.planes.columns

    def row_bytes(self, type_: TensorType) -> int:
        return math.prod(self.row_shape(type_)) * self.dtype(type_).bytes

    def bytes(self, type_: TensorType) -> int:
        return self.rows * self.row_bytes(type_)


class Refusal(Enum):
    """The reason that a kernel is not offered for an operator; metadata give the value."""

    TYPES = "computes other types"
    WEIGHTS = "needs constant weights"
    IMAGES = "takes one image at a time"
    SEVERAL = "takes several images"
    SINGLE = "takes several rows, or one whose last word is not whole"
    ONE_ROW = "takes more than one row"
    OPERATOR = "computes another operator"
    MIXES_CHANNELS = "sums over all input channels"
    MULTIPLIER = "takes one output per input channel"
    FEW_CHANNELS = "needs more channels"
    SIZES = "the layer is too large for the ranges of its instructions"
    FORM = "weights or factors do not fit its packed form"
    SUMS = "sums are not proven to fit 32 bits"
    RESCALING = "rescales sums in fixed point"
    SHAPES = "takes two activations of one shape"
    SCALES = "scales do not fit its sequence"
    WINDOWS = "takes other windows"
    ROWS = "needs output rows equal to the input rows"
    CLAMP = "supports no upper clamp"
    PLANES = "makes pixels of 2 to 4 planes"
    NO_TABLE = "no table of 256 entries holds the function"
    TABLE = "a table of 256 entries holds the function"


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that compute the rows of an operator.

    `rows` are those of each call, 1 or 2; 0 stands for all of them in one call.  Where an operator
    stands `alone`, no other runs with it: all rows of its tensors are there, one after the other.
    Within a group they may lie in rings.
    """

    rows: int = 0
    alone: bool = False

    @property
    def number(self) -> int:
        """Return its place in `CALLS`."""
        return 3 * self.alone + self.rows


IN_ONE_CALL = Calls()
CALLS = tuple(Calls(rows, alone) for alone in (False, True) for rows in range(3))


@dataclass(frozen=True, slots=True)
class Cost:
    """The estimated cost of an operator, all of its calls together."""

    instructions: int
    cycles: int = 0
    told: float = 100  # percent of it that people are told, beside those of the CPU

    def of(self, measure: Measure) -> int:
        return self.instructions if measure is Measure.INSTRUCTIONS else self.cycles


def spread(instructions: int, cycles: int, by_calls: Callable[[Calls], int]) -> tuple[Cost, ...]:
    """Return the cost of each of `CALLS`, which take as many more cycles as instructions.

    Args:
        instructions: of one call for all rows within a group; calls for fewer rows take no fewer.
        cycles: of that call.
        by_calls: gives the instructions of other calls.
    """
    costs: list[Cost] = []
    for alone in (False, True):
        whole = by_calls(Calls(0, alone))
        of_whole = cycles * whole // max(instructions, 1)
        for rows in range(3):
            taken = max(by_calls(Calls(rows, alone)), whole)
            costs.append(Cost(taken, of_whole * taken // max(whole, 1)))
    return tuple(costs)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory that a kernel takes beside its operands and constants, in bytes.

    `code_bytes` count from those of a direct kernel; other layers may share them.
    """

    scratch_bytes: int = 0
    accumulator_bytes: int = 0
    code_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute an operator, described without emitting any TIR.

    `kernel` is the name of a kernel, by which planning and metadata know it.  `windows` holds, per
    non-constant input, the rows that one output row needs; None means that the kernel computes its
    whole output in one call. A kernel with accumulators counts rows of its input instead: it adds
    rows [y0, y1) to `accumulator_bytes` of them, which a second function turns into the output.
    `costs` and `scratch` are by `CALLS`, or a single entry where calls make no difference. A kernel
    that reads planes says how they lie; one that writes some takes them as their reader wants them.
    """

    kernel: str
    input_layouts: tuple[LayoutKind, ...]
    output_layouts: tuple[LayoutKind, ...]
    windows: tuple[RowWindow, ...] | None
    weight_bytes: int
    costs: tuple[Cost, ...]
    scratch: tuple[int, ...] = (0,)
    accumulator_bytes: int = 0
    code_bytes: int = 0  # beyond a direct kernel's, though other layers may share them
    is_view: bool = False  # no code: the output is the input's memory
    in_place: bool = False  # its output may overwrite an input of equal type
    calls: Calls = IN_ONE_CALL  # those that it is taken for
    is_measured: bool = False  # the costs are those of tuning records
    planes: Planes | None = None  # of its input

    @property
    def name(self) -> str:
        """Tell it from the other candidates of a node: its kernel, and layouts but NHWC."""
        kinds = (("from", self.input_layouts), ("to", self.output_layouts))
        named = [(way, kind) for way, names in kinds for kind in names]
        layouts = (f" {way} {kind.value}" for way, kind in named if kind is not LayoutKind.NHWC)
        return self.kernel + "".join(layouts)

    @property
    def is_plain(self) -> bool:
        """Return whether all that it reads and writes is NHWC."""
        return all(k is LayoutKind.NHWC for k in (*self.input_layouts, *self.output_layouts))

    @property
    def takes_row_range(self) -> bool:
        return self.windows is not None

    def cost(self, calls: Calls = IN_ONE_CALL) -> Cost:
        """Return what it takes where it is called so."""
        return self.costs[calls.number if len(self.costs) > 1 else 0]

    @property
    def scratch_bytes(self) -> int:
        """Return the bytes of scratch for the calls that it is taken for."""
        return self.scratch_for(self.calls)

    def scratch_for(self, calls: Calls) -> int:
        """Return the bytes of scratch that it needs where it is called so."""
        return self.scratch[calls.number if len(self.scratch) > 1 else 0]

    @property
    def gains_by_pairs(self) -> bool:
        """Return whether calls for two rows take fewer instructions than calls for one."""
        one, two = (self.cost(Calls(rows, self.calls.alone)) for rows in (1, 2))
        return two.instructions < one.instructions

    def running_alone(self, rows_per_call: int) -> Candidate:
        """Return the candidate where no other operator runs with it.

        Args:
            rows_per_call: rows of a call, 1 or 2; 0 for all of them.
        """
        return self.called(Calls(rows_per_call, alone=True))

    def called(self, calls: Calls) -> Candidate:
        return self if calls == self.calls else replace(self, calls=calls)

    def estimate(self, measure: Measure, rows_per_call: int = 0) -> int:
        """Return what it costs by calls for 1 or 2 rows each, or by one for all of them (0)."""
        return self.cost(Calls(rows_per_call, self.calls.alone)).of(measure)

    @property
    def flash_bytes(self) -> int:
        """Return what it takes where no other layer shares anything of it."""
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
        """Return how many rows its row range counts: of the output, or of what is accumulated."""
        if self.candidate.accumulates:
            return self.inputs[0].type.rows
        return self.node.outputs[0].type.rows

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return inputs that are not constant, each once."""
        return tuple(dict.fromkeys(self.node.activations))

    def window(self, tensor: Tensor) -> RowWindow:
        """Return rows of an input behind one row of the row range.

        Raises:
            KeyError: not an input, or the kernel takes no row range.
        """
        return dict(zip(self.node.activations, self.candidate.windows or (), strict=False))[tensor]


@dataclass(frozen=True, slots=True)
class Feed:
    """A request of a step before it computes row y: rows of `tensor` up to the window's end.

    Rows that an earlier row of the step has asked for are there already.
    """

    tensor: Tensor
    window: RowWindow
    step: Step


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a nest and, per input that the nest produces at its demand, a feed.

    A call computes `rows_per_call` rows, or those that are left of what was asked for.
    """

    operator: PlannedOperator
    feeds: tuple[Feed, ...] = ()
    rows_per_call: int = 1


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
    """The constraints on a plan: the goal that ranks kernels, prices, and limits.

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
        code_price: what the goal charges for a byte of code; None: what it does where a network
            is large enough.
    """

    goal: Optimize = Optimize.BALANCED
    measure: Measure = Measure.INSTRUCTIONS
    ram: int | None = None
    kernel_bytes: int | None = None
    byte_price: int = 0
    refused: frozenset[tuple[Node, str]] = frozenset()
    raised: frozenset[tuple[Node, str]] = frozenset()
    code_price: int | None = None

    @property
    def ranking(self) -> Optimize:
        return self.ranking_of(self.goal)

    def ranking_of(self, goal: Optimize) -> Optimize:
        """Return what kernels are ranked by where `goal` is wanted."""
        return Optimize.FLASH if self.byte_price >= ANY_SPEED else goal


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Every decision about a graph.

    `layouts` has an entry for each tensor that is not constant; `storage` maps a tensor to the
    tensor in whose memory it lives, itself unless it is a view, and `offsets` to the byte there
    that it begins at, where that is not the first. `bytes` is what the workspace
    takes as far as planning knows: overlaps count by rows, and gaps between buffers not at all.
    `least` is the smallest limit, in bytes, that planning knows a plan for, where it was asked to
    work that out, and `size` the one that it keeps to. `offered` holds what there was to choose
    from, `constraints` what was asked for.
    """

    graph: Graph
    groups: tuple[Group, ...]
    layouts: Mapping[Tensor, Layout]
    storage: Mapping[Tensor, Tensor]
    bytes: int = 0
    least: int = 0
    size: int | None = None
    offered: Mapping[Node, tuple[Candidate, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    constraints: PlanConstraints = PlanConstraints()
    offsets: Mapping[Tensor, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def operators(self) -> tuple[PlannedOperator, ...]:
        return tuple(op for group in self.groups for op in group.operators)

    def decides_as(self, other: Plan) -> bool:
        """Return whether another plan gives the same program, whatever it was asked for."""
        mine, others = ((p.graph, p.groups, p.layouts, p.storage, p.offsets) for p in (self, other))
        return mine == others

    @property
    def kernel_bytes(self) -> int:
        """Return the bytes of flash of all kernels, each for itself."""
        return sum(op.candidate.flash_bytes for op in self.operators)
