"""Defines the facts of a report as plain frozen values; sizes and offsets are bytes.

Vocabulary
    step    a call that main makes, counted in program order; a streaming group makes its calls
            once per row, and each still counts as one step
    layer   an operator that is left after the graph passes, with its number in the model file
    span    consecutive steps at which a buffer keeps the same bytes
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from microtir.artifact import Footprint
from microtir.quantise.summary import Summary
from microtir.support.notebook import facts_html

FINISH = "f"
"""Suffix of the layer's number in the label of a step that finishes a layer."""

NO_NUMBER = "-"
"""The number of a layer that the model file does not have."""


class BufferKind(Enum):
    """The purpose of a buffer; the value is what reports print."""

    ACTIVATION = "activation"
    RING = "ring"  # line buffer: fewer row slots than the tensor has rows
    SCRATCH = "scratch"  # of one kernel, for one call
    SUMS = "sums"  # accumulators of a reduction that streams
    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class LiveSpan:
    """The bytes [low, high) of its pool that a buffer keeps at the steps first to last, inclusive.

    Where the step is a nest of its own, `begin` and `end` are low and high at its first and its
    last call; elsewhere they are low and high.
    """

    first: int
    last: int
    low: int
    high: int
    begin: tuple[int, int]
    end: tuple[int, int]

    @property
    def is_steady(self) -> bool:
        """Return whether it is the same bytes all the time."""
        return self.begin == self.end == (self.low, self.high)


@dataclass(frozen=True, slots=True)
class ReportedBuffer:
    """A placed buffer. `content` is the tensor in it, or what else it holds.

    It lives from `first_step` to `last_step`; `written` and `used` are the first step that writes
    it and the last one that is given it. In a nest those are fewer, since the nest repeats them.
    """

    name: str
    kind: BufferKind
    content: str
    offset: int
    size: int
    first_step: int
    last_step: int
    written: int
    used: int
    spans: tuple[LiveSpan, ...]
    at_peak: int


@dataclass(frozen=True, slots=True)
class ReportedPool:
    """A memory that buffers are placed in. No placement is smaller than `lower_bound`."""

    name: str
    size: int
    lower_bound: int
    alignment: int
    is_verified: bool
    peak_step: int
    buffers: tuple[ReportedBuffer, ...]

    @property
    def gap(self) -> int:
        return self.size - self.lower_bound


@dataclass(frozen=True, slots=True)
class ReportedPort:
    """An input or output; the steps are those that read or write it."""

    name: str
    kind: BufferKind
    type: str
    bytes: int
    first_step: int
    last_step: int
    is_in_workspace: bool
    is_by_rows: bool = False  # functions of the caller hand over its rows


@dataclass(frozen=True, slots=True)
class ReportedState:
    """A value that the model keeps from one run to the next."""

    name: str
    type: str
    bytes: int


@dataclass(frozen=True, slots=True)
class MainCall:
    """A call of main; `label` is its layer's number, with `f` where it finishes the layer."""

    number: int
    label: str
    function: str
    operator: str
    layer: str  # name in the model


@dataclass(frozen=True, slots=True)
class Stream:
    """The steps first to last, which run row by row, as a nest of loops."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ReportedKernel:
    """The kernel that a layer has, or another one, and what was for or against it.

    `instructions` and `cycles` are what planning expects, None where it cannot compute the layer.
    """

    name: str
    reason: str
    instructions: int | None
    cycles: int | None


@dataclass(frozen=True, slots=True)
class Excess:
    """The bytes that a layer takes beyond a limit, by itself."""

    option: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ReportedLayer:
    """An operator; one that is a view of its input has no code.

    `choice` says why it has its kernel, `alternatives` why it has no other. `instructions` and
    `cycles` come from a profile. `exceeds` has the limits that it breaks,
    `own_loop` why no other loop computes an elementwise operator that one other reads.
    `rounds_rows` says that rows of floats become int8 while the model runs.
    """

    number: str
    name: str
    operator: str
    kernel: str
    inputs: tuple[str, ...]  # shapes
    outputs: tuple[str, ...]
    macs: int
    macs_executed: int
    macs_recomputed: int  # of those executed, what another layer does, too
    weight_bytes: int
    bytes_in: int
    bytes_out: int
    is_streamed: bool
    has_code: bool = True
    choice: ReportedKernel | None = None
    alternatives: tuple[ReportedKernel, ...] = ()
    instructions: int | None = None
    cycles: int | None = None
    exceeds: tuple[Excess, ...] = ()
    own_loop: str = ""
    rounds_rows: bool = False


@dataclass(frozen=True, slots=True)
class ReportedConstant:
    """An array of weights or a table, and the layers that read it."""

    name: str
    layers: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ReportedLimit:
    """The bytes that an option or a memory allows, and those that are used.

    `largest` is the part that takes most of a memory, with its bytes.
    """

    option: str
    what: str
    allowed: int
    used: int
    largest: str = ""

    @property
    def free(self) -> int:
        """Return the bytes that are left; less than 0 if the limit is exceeded."""
        return self.allowed - self.used


@dataclass(frozen=True, slots=True)
class ReportedProfile:
    """The figures that a profile measured on a board.

    `elsewhere` is work outside the layers: name, instructions and estimated cycles.  Beside the
    pushes of a model that is streamed stands a run of the `whole` window.
    """

    board: str
    compiler: str
    instructions: int
    cycles: int
    flash: tuple[tuple[str, int], ...]
    ram: tuple[tuple[str, int], ...]
    elsewhere: tuple[tuple[str, int, int], ...]
    whole: WholeRun | None = None


@dataclass(frozen=True, slots=True)
class PushedLayer:
    """A layer of a whole window, and what a push computes of it.

    `rows` are those of its output along time, of which a push computes some.  One that is padded
    has rows near the padding, which are computed anew with every push.
    """

    number: str
    name: str
    operator: str
    rows: int
    computed: int
    macs: int
    macs_computed: int
    is_padded: bool


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run of a whole window: instructions, and bytes of RAM without the stack.

    The instructions are what a profile measured, or what planning expects.
    """

    instructions: int
    ram: int
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class ReportedPushes:
    """The facts about a run of a streamed model, beside those of a run of the whole window."""

    input: str
    frames: int
    window: int
    layers: tuple[PushedLayer, ...]
    whole: WholeRun

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of a whole window."""
        return sum(layer.macs for layer in self.layers)

    @property
    def macs_computed(self) -> int:
        return sum(layer.macs_computed for layer in self.layers)


@dataclass(frozen=True, slots=True)
class ReportedConstantPool:
    """A pool of constants: arrays of the code if `is_internal`, in a section if it has one."""

    name: str
    size: int
    section: str
    is_internal: bool


@dataclass(frozen=True, slots=True)
class Report:
    """All facts of a report on one compiled model.

    `least` is the workspace at `--optimize ram-least`, `tried` what other options came to where a
    limit is exceeded, `declined` what would save memory and cost too much. `code_is_compiled` tells
    the bytes of a compiler from an estimate. A float model that was quantised on the way has the
    digest of its integers, and what they cost. Of several `images`, which are computed one by one,
    work is that of all, and memory that of one.
    """

    generator: str
    model: str
    file: str
    sha256: str
    model_bytes: int
    optimize: str
    targets: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    pools: tuple[ReportedPool, ...]
    ports: tuple[ReportedPort, ...]
    ram: Footprint
    steps: tuple[MainCall, ...]
    streams: tuple[Stream, ...]
    layers: tuple[ReportedLayer, ...]
    constants: tuple[ReportedConstant, ...]  # largest first
    weights_bytes: int
    code_bytes: int
    limits: tuple[ReportedLimit, ...]
    least: int
    profile: ReportedProfile | None
    constant_pools: tuple[ReportedConstantPool, ...] = ()
    code_is_compiled: bool = False
    tried: tuple[str, ...] = ()
    states: tuple[ReportedState, ...] = ()
    images: int = 1
    pushes: ReportedPushes | None = None
    declined: str = ""
    quantised_sha256: str = ""
    quantisation: Summary | None = None

    def layer_of(self, step: int) -> str:
        """Return a step as people call it: the number and operator of its layer."""
        layer_step = self.steps[step]
        finish = "end of " if layer_step.label.endswith(FINISH) else ""
        return f"{finish}layer {layer_step.label.rstrip(FINISH)} {layer_step.operator}"

    @property
    def fits(self) -> bool:
        return all(limit.free >= 0 for limit in self.limits)

    @property
    def workspace(self) -> int:
        return sum(pool.size for pool in self.pools)

    def to_dict(self) -> dict[str, Any]:
        """Return the same facts as JSON holds them; those of integers where there are some."""
        facts = asdict(replace(self, quantisation=None), dict_factory=_plain)
        del facts["quantisation"]
        if self.quantisation is not None:
            facts["quantisation"] = self.quantisation.to_dict()
        return facts

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: what the model takes, and whether that fits."""
        about = "" if self.code_is_compiled else "about "
        shown = [
            *((f"pool {p.name}", f"{p.size:,} bytes of RAM, at least {p.lower_bound:,}")
              for p in self.pools),
            ("weights", f"{self.weights_bytes:,} bytes of flash"),
            ("code", f"{about}{self.code_bytes:,} bytes of flash"),
            ("layers", f"{len(self.layers)}"),
            *((limit.option, f"{limit.used:,} of {limit.allowed:,} bytes"
               + ("" if limit.free >= 0 else ": exceeded")) for limit in self.limits),
        ]  # fmt: skip
        return facts_html(f"{self.file or self.model}, {', '.join(self.targets)}", shown)


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value.value if isinstance(value, Enum) else value for key, value in items}
