"""Defines what a certificate holds; the order of the fields is that of the text.

[docs/trust.md](../../../docs/trust.md) explains them. `certcheck.py`, which reads the text, shares
no line with this module.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir.profiling.static_count import StaticCount

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class FileDigest:
    """A file by name, size in bytes and SHA-256."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PortFacts:
    """An input or output: the C member, and the place in a pool where the caller has no memory."""

    kind: str
    member: str
    dtype: str
    bytes: int
    pool: str | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class BufferFacts:
    """A buffer of the workspace, in bytes; it lives from the first call to the last, inclusive."""

    name: str
    pool: str
    offset: int
    bytes: int
    first_call: int
    last_call: int


@dataclass(frozen=True, slots=True)
class ConstantFacts:
    """An array of weights or of a table, by its C name."""

    name: str
    dtype: str
    elements: int
    alignment: int


@dataclass(frozen=True, slots=True)
class ArgumentFacts:
    """An argument of a call: a buffer from a byte on, which is read or written, or a number."""

    parameter: str
    buffer: str | None
    offset: int
    reads: bool
    writes: bool
    value: str | None


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call of a layer, in the order of main's text; `loops` are those around it, outermost first.

    A loop is `variable in [start, stop)`.
    """

    function: str
    loops: tuple[str, ...]
    arguments: tuple[ArgumentFacts, ...]


@dataclass(frozen=True, slots=True)
class ParameterFacts:
    """A parameter: elements of a pointer (null where a parameter says how many), or a range."""

    name: str
    dtype: str
    elements: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """The least and the greatest element of a buffer that expressions reach, and what proves it.

    `kind` is "read", "write" or "pass": then a function that is called reaches them. `times` is the
    number of expressions of the function that do so.
    """

    buffer: str
    kind: str
    least: int
    greatest: int
    times: int
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """The index of expressions that access a buffer, counted row-major, in the words of loops.

    Those of arrays of any size, in loops with computed ends, below conditions, and with remainders,
    quotients, minima or maxima. `within` are the loops and conditions around, outermost first.
    """

    buffer: str
    kind: str
    index: str
    within: tuple[str, ...]
    times: int


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """A loop: its variable lies in [low, stop)."""

    variable: str
    low: int
    stop: int


@dataclass(frozen=True, slots=True)
class AccumulatorFacts:
    """The range of every sum of a layer, and the bits that it adds in."""

    bits: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A C function: a layer, or a kernel that layers call."""

    name: str
    parameters: tuple[ParameterFacts, ...]
    loops: tuple[LoopFacts, ...]
    accesses: tuple[AccessFacts, ...]
    indices: tuple[IndexFacts, ...]
    accumulator: AccumulatorFacts | None


@dataclass(frozen=True, slots=True)
class VectorFacts:
    """A run: the seed of the inputs, and the SHA-256 of each output of integers by its member.

    A run of a model with states follows the one before it; the first begins with a new state.
    """

    seed: int
    outputs: dict[str, str]


@dataclass(frozen=True, slots=True)
class TimeFacts:
    """Dependence of the instructions of a function on data, and the causes in words."""

    function: str
    time: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InstructionFacts:
    """Instructions of a run as an emulator counted them, in all and of each layer.

    The first of `by_function` is the run function. `machine_code` has the least and the most of any
    input, or says why they are not known.
    """

    board: str
    compiler: str
    flags: tuple[str, ...]
    instructions: int
    by_function: dict[str, int]
    machine_code: StaticCount

    @property
    def range(self) -> tuple[int, int] | None:
        """Return the least and the most of any input, None if there is a problem."""
        known = self.machine_code
        return None if known.problem else (known.least, known.instructions)


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """A pool of the workspace, in bytes."""

    name: str
    bytes: int
    alignment: int


@dataclass(frozen=True, slots=True)
class StackFacts:
    """Bytes of stack of one run at most: optimised, with kernels in C, and not optimised."""

    bytes: int
    bytes_in_c: int
    bytes_unoptimised: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """Everything that is claimed of one compiled model.

    That integers of the functions in `trusted_arithmetic` fit their types rests on more than
    intervals.
    """

    format_version: int
    generator: str
    module_name: str
    model: FileDigest
    configuration_sha256: str
    files: tuple[FileDigest, ...]
    pools: tuple[PoolFacts, ...]
    ports: tuple[PortFacts, ...]
    states: tuple[PortFacts, ...]
    buffers: tuple[BufferFacts, ...]
    constants: tuple[ConstantFacts, ...]
    calls: tuple[CallFacts, ...]
    functions: tuple[FunctionFacts, ...]
    trusted_arithmetic: tuple[str, ...]
    stack: StackFacts
    vectors: tuple[VectorFacts, ...]
    timing: tuple[TimeFacts, ...]
    instructions: InstructionFacts | None
