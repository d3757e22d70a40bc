"""Defines what `metadata.json` holds: facts about a compiled program for other tools.

The compiler makes them once (`codegen.description`) and everybody in the process reads them. Their
text is written here, and read and checked in `artifact.reader`; the order of the fields is that of
the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from microtir.codegen import typed
from microtir.support.json_text import indented, plain

METADATA_FILE = "metadata.json"
METADATA_VERSION = 2


@dataclass(frozen=True, slots=True)
class QuantizationData:
    """The quantisation of a whole tensor: real value = scale * (stored value - zero point)."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class ChannelQuantizationData:
    """The scale and zero point of each index of an axis of a tensor."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: typed.Natural


@dataclass(frozen=True, slots=True)
class PortData:
    """An input or output: `name` in the model, `member` of the C struct.

    `offset` is its place in the workspace pool `pool`, in bytes; both are null if the caller has
    other memory for it.
    `row_bytes` is the size of a row where functions of the caller hand it over row by row.
    `names` are what the values of an output are places in, and `aliases` other names by which users
    know it; the text has neither where it is empty.
    The text has `channel_quantization` where there are several scales; `quantization` is null then.
    """

    kind: typed.Text
    name: typed.Text
    member: typed.Identifier
    shape: tuple[typed.Extent, ...]
    dtype: typed.ElementType
    bytes: typed.Size
    offset: typed.Size | None
    pool: typed.PoolName | None
    row_bytes: typed.Size | None
    quantization: QuantizationData | None
    names: tuple[typed.Text, ...] = ()
    aliases: tuple[typed.Text, ...] = ()
    channel_quantization: ChannelQuantizationData | None = None


@dataclass(frozen=True, slots=True)
class StateMemberData:
    """A value that outlives a run: `name` in the model, `member` of the C struct at `offset`."""

    name: typed.Text
    member: typed.Identifier
    shape: tuple[typed.Extent, ...]
    dtype: typed.ElementType
    bytes: typed.Size
    offset: typed.Size
    alignment: typed.Alignment
    quantization: QuantizationData | None


@dataclass(frozen=True, slots=True)
class StateData:
    """The struct of what a model keeps from one run to the next, in bytes.

    It is saved as `saved_size` bytes: two numbers of 32 bits, the version of this form and the
    `identity` of the model, then the values of the members without gaps.  With the option
    `fault_checks` the version is another, and the identity is combined with a checksum of the
    values.  Only a model of the same identity takes them back.
    """

    size: typed.Size
    alignment: typed.Alignment
    saved_size: typed.Size
    identity: typed.Hexadecimal
    members: tuple[StateMemberData, ...]


@dataclass(frozen=True, slots=True)
class AccumulatorData:
    """The proven range of a layer's sums: each lies in [low, high], in whatever order it is made.

    `bits` is the width that it adds in, 32 wherever that holds them; `spare_bits` of these stay
    unused.
    """

    bits: typed.Natural
    spare_bits: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class AlternativeData:
    """A kernel that a layer does not have; no figures where it cannot compute the layer."""

    kernel: typed.Text
    reason: typed.Text
    instructions: typed.Natural | None
    cycles: typed.Natural | None
    scratch_bytes: typed.Natural | None
    code_bytes: typed.Natural | None


@dataclass(frozen=True, slots=True)
class ChoiceData:
    """The kernel that a layer has and why; `instructions` and `cycles` are of all its calls.

    They are an estimate, or what tuning records say (`measured`).  Operators of one `group` run
    together, row by row if `by_rows`.
    """

    kernel: typed.Text
    reason: typed.Text
    instructions: typed.Natural
    cycles: typed.Natural
    scratch_bytes: typed.Natural
    code_bytes: typed.Natural
    measured: bool
    group: int
    by_rows: bool
    alternatives: tuple[AlternativeData, ...]


@dataclass(frozen=True, slots=True)
class PlanesData:
    """The place of an image in a row of planes (channels, columns), and the type of its values."""

    channels: typed.Natural
    before: typed.Natural
    width: typed.Natural
    dtype: typed.ElementType


@dataclass(frozen=True, slots=True)
class OutputData:
    """A tensor that a layer writes: `rows` slots of `row_elements`; row y is in slot y % rows.

    A row is (W, C) unless `planes` says otherwise.
    """

    dtype: typed.ElementType
    rows: typed.Natural
    row_elements: typed.Natural
    planes: PlanesData | None


@dataclass(frozen=True, slots=True)
class LayerData:
    """A function that computes a layer; `index` is the operator's position in the model file.

    An operator may have two functions; the one that leaves sums for the other has no outputs.
    `externs` are the C functions outside the program that it calls.
    `facts` are lines about its tensors: shape, type, quantisation. `weights_bytes` counts the
    constants that no layer before it reads, `scratch_bytes` the memory that lasts for one call.
    `lines` are the first and the last of the function in the C file that is named after the module.
    `macs_recomputed` of those executed are done by another function, too.
    `accumulator` is null where a layer adds no integers, or a third-party library does. `choice` is
    that of the operator, at the first of its functions: what they take is said once.
    """

    name: typed.Text
    operator: typed.Text
    index: int
    function: typed.Identifier
    macs: typed.Natural
    macs_executed: typed.Natural
    macs_recomputed: typed.Natural
    takes_row_range: bool
    outputs: tuple[OutputData, ...]
    facts: tuple[typed.Text, ...]
    weights_bytes: typed.Size
    scratch_bytes: typed.Size
    externs: tuple[typed.Identifier, ...]
    lines: tuple[typed.Natural, ...]
    accumulator: AccumulatorData | None
    choice: ChoiceData | None


@dataclass(frozen=True, slots=True)
class KernelData:
    """A micro-kernel, and the functions of the layers that call it, themselves or through others.

    `lines` are the first and the last of its definition in the C file that is named after the
    module; several definitions, for compilers or CPUs, follow each other.
    """

    function: typed.Identifier
    lines: tuple[typed.Natural, ...]
    layers: tuple[typed.Identifier, ...]


@dataclass(frozen=True, slots=True)
class ConstantPoolData:
    """A pool of constants, in bytes, gaps of alignment included; `limit` is null if it has none.

    It is a section of arrays of the code if `is_internal`; else the run function takes a pointer to
    it, in the order of the pools behind those of the workspace, and `file` holds what must lie
    there: null where that is nothing.
    """

    name: typed.PoolName
    size: typed.Size
    alignment: typed.Alignment
    limit: typed.Natural | None
    section: typed.SectionName
    is_internal: bool
    file: typed.FileName | None
    identity: typed.Hexadecimal | None


@dataclass(frozen=True, slots=True)
class PoolData:
    """A workspace pool, in bytes; `limit` is null if it has none.

    `is_internal` if it is an array of the generated code, else the run function takes a pointer to
    it, in the order of the pools.
    """

    name: typed.PoolName
    size: typed.Size
    lower_bound: typed.Size
    alignment: typed.Alignment
    limit: typed.Natural | None
    is_internal: bool
    section: typed.SectionName


@dataclass(frozen=True, slots=True)
class PlacementData:
    """The place of a buffer: `offset` counts the bytes of its pool."""

    name: typed.Text
    pool: typed.PoolName
    offset: typed.Size
    size: typed.Size
    first_step: int
    last_step: int


@dataclass(frozen=True, slots=True)
class MemoryData:
    """The workspace of a model, in bytes; `verified` is the verdict of the independent checker.

    Sizes and bounds of the workspace are sums over its pools.
    """

    workspace_size: typed.Size
    lower_bound: typed.Size
    gap: int
    alignment: typed.Alignment
    verified: bool
    pools: tuple[PoolData, ...]
    placements: tuple[PlacementData, ...]


@dataclass(frozen=True, slots=True)
class FrameData:
    """A function of the deepest chain of calls and the bytes of stack that count for it."""

    function: typed.Text
    bytes: typed.Natural


@dataclass(frozen=True, slots=True)
class StackData:
    """The stack of one call: an upper bound, in bytes, for what GCC and Clang make.

    `bytes` is for -O1, -O2 and -Os with micro-kernels in assembly, if there are some; `frames` is
    the deepest chain of calls then, the entry first, libraries last.  `bytes_in_c` has their twins
    in C instead, and `bytes_unoptimised` is for -O0.
    """

    bytes: typed.Natural
    frames: tuple[FrameData, ...]
    bytes_in_c: typed.Natural
    bytes_unoptimised: typed.Natural


@dataclass(frozen=True, slots=True)
class ModelData:
    """The model file that a program was compiled from, and the integers that were made of it.

    The text does not name the digest of integers where a file is compiled as it is.
    """

    name: typed.Text
    file: typed.Text
    sha256: typed.Hexadecimal
    bytes: typed.Natural
    quantised_sha256: typed.Hexadecimal | None = None


@dataclass(frozen=True, slots=True)
class ParameterFileData:
    """The file of constants: `identity` is that of the code that reads it."""

    file: typed.FileName
    bytes: typed.Size
    alignment: typed.Alignment
    identity: typed.Hexadecimal


@dataclass(frozen=True, slots=True)
class ParameterData:
    """A parameter of a user's function; a dimension is a number or the name of a parameter."""

    name: typed.Text
    kind: typed.Text
    dtype: typed.ElementType
    shape: tuple[typed.Extent | typed.Text, ...]
    is_written: bool
    alignment: typed.Alignment
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class FunctionData:
    """A function of a user's program.

    It `takes_parameters` if constants come last: the file of them, or the pools that are passed.
    """

    name: typed.Text
    function: typed.Identifier
    parameters: tuple[ParameterData, ...]
    takes_parameters: bool


@dataclass(frozen=True, slots=True)
class Metadata:
    """All facts about the generated sources; no time and no path of the machine.

    A model that keeps nothing between runs has no `state`, and its text does not name it. Of a
    model that computes several `images` one by one, layers and memory are those of one, and the
    multiply-accumulates of all; the text does not name a single one.
    """

    metadata_version: int
    generator: typed.Text
    module_name: typed.ModuleName
    config: Mapping[str, object]
    weights_bytes: typed.Size
    code_bytes_estimate: typed.Natural
    constant_pools: tuple[ConstantPoolData, ...]
    model: ModelData | None
    ports: tuple[PortData, ...]
    layers: tuple[LayerData, ...]
    kernels: tuple[KernelData, ...]
    memory: MemoryData | None
    stack: StackData
    functions: tuple[FunctionData, ...]
    parameters: ParameterFileData | None
    devices: tuple[typed.Identifier, ...]
    files: tuple[typed.FilePath, ...]
    state: StateData | None = None
    images: typed.Natural = 1

    @property
    def text(self) -> str:
        return indented(self.as_json()) + "\n"

    def as_json(self) -> dict[str, object]:
        """Return the facts as values of JSON, for a file that holds them among others."""
        facts = plain(self)
        assert isinstance(facts, dict)
        if self.model is not None and self.model.quantised_sha256 is None:
            del facts["model"]["quantised_sha256"]
        if self.state is None:
            del facts["state"]
        if self.images == 1:
            del facts["images"]
        for port in facts["ports"]:
            for key in ("names", "aliases", "channel_quantization"):
                if not port[key]:
                    del port[key]
        return facts
