"""IRModule: what every stage takes and gives, with its CompilationConfig attached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from microtir.config.compilation import CompilationConfig
from microtir.errors import ConfigError, UsageError, nearest
from microtir.graph.ir import Graph, SumRange, TensorType
from microtir.support.arguments import checked_arguments
from microtir.tir.ir import PrimFunc


class ConfigMissing(ConfigError):  # noqa: N818  # the name that requirement S2.5 gives it
    """A stage of the main flow was run on a module without a configuration."""


class PortKind(Enum):
    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the entry function: the model's name for it, its C name, its type.

    `offset` is its place in the workspace, in bytes of the pool of number `pool`, or None if the
    caller has other memory for it.
    `row_bytes` is the size of a row if functions of the caller hand it over row by row, else None.
    """

    kind: PortKind
    name: str
    c_name: str
    type: TensorType
    offset: int | None = None
    row_bytes: int | None = None
    pool: int = 0


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """At the calls of a step a buffer holds something, all of it in its bytes [low, high).

    A step of a nest is called many times: `first` and `last` are low and high at the first and
    the last of these calls, since a buffer may be filled or read row by row.
    """

    step: int
    low: int
    high: int
    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class BufferPlacement:
    """Where a workspace buffer lies and when it lives (steps of main, inclusive).

    `pool` counts the pools of the plan, `offset` the bytes of that pool. `kept` says which of its
    bytes are in use at which step, `at_peak` how many of them at the moment of the pool's peak:
    one that is filled or read row by row keeps less than its size.
    """

    name: str
    offset: int  # bytes
    size: int  # bytes
    first_step: int
    last_step: int
    kept: tuple[KeptBytes, ...] = ()
    at_peak: int = 0  # bytes
    pool: int = 0


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """What placement takes of a pool, in bytes; nothing where no buffer went there.

    `lower_bound` is the largest sum of its buffers that live at the same step, less what outputs
    may share with inputs: no placement of these in one pool is smaller. At `peak_step` they keep
    most bytes.
    """

    name: str
    size: int
    lower_bound: int
    alignment: int
    peak_step: int = 0


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Result of placement, all sizes in bytes.

    `pools` are those of the configuration, in its order; what is said of the workspace is about
    all of them together. `verified` is the verdict of the independent checker.
    """

    pools: tuple[PlannedPool, ...]
    placements: tuple[BufferPlacement, ...]
    verified: bool

    @property
    def workspace_size(self) -> int:
        return sum(pool.size for pool in self.pools)

    @property
    def lower_bound(self) -> int:
        return sum(pool.lower_bound for pool in self.pools)

    @property
    def alignment(self) -> int:
        return max(pool.alignment for pool in self.pools)

    @property
    def gap(self) -> int:
        return self.workspace_size - self.lower_bound


POOL_IDENTITY_BYTES = 4
"""At the start of constants that the application passes: a number of the code that reads them."""


@dataclass(frozen=True, slots=True)
class ConstantPlace:
    """The number of the pool that an array of constants lies in, and a byte of that."""

    pool: int
    offset: int


@dataclass(frozen=True, slots=True)
class PlannedConstants:
    """What arrays take of a constant pool, in bytes; nothing where none went there.

    Gaps of alignment count, and the identity of a pool that the application passes. A linker may
    leave other gaps between arrays of the code.
    """

    name: str
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class ConstantPlan:
    """The constant pools of the configuration, in its order, and places of arrays by C name."""

    pools: tuple[PlannedConstants, ...] = ()
    places: Mapping[str, ConstantPlace] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Alternative:
    """A kernel that a layer does not have, and why; no figures of one that cannot compute it."""

    kernel: str
    reason: str
    instructions: int | None = None
    cycles: int | None = None
    scratch_bytes: int | None = None
    code_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about a layer and why, and what was proven of it.

    `layer` is the operator's name in the model and `index` its position; `instructions` and
    `cycles` are those of all its calls, as estimated or measured before; `group` numbers what runs
    together, in the order of execution; `sums` bounds what accumulators hold.
    """

    layer: str
    index: int
    kernel: str
    reason: str
    instructions: int
    cycles: int
    scratch_bytes: int
    code_bytes: int
    is_measured: bool
    group: int
    by_rows: bool
    alternatives: tuple[Alternative, ...]
    sums: SumRange | None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Facts about a model that the header, the metadata and the reports state.

    `decisions` has an entry for every layer function, under its name. Where a model
    `shares_bodies`, layers that do the same are printed as calls of one function.
    """

    name: str
    ports: tuple[Port, ...]
    source_file: str
    source_sha256: str
    source_bytes: int
    memory: MemoryPlan
    decisions: Mapping[str, Decision] = field(default_factory=lambda: MappingProxyType({}))
    shares_bodies: bool = False

    @property
    def inputs(self) -> tuple[Port, ...]:
        return tuple(p for p in self.ports if p.kind is PortKind.INPUT)

    @property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(p for p in self.ports if p.kind is PortKind.OUTPUT)


@dataclass(frozen=True, slots=True, eq=False)
class IRModule:
    """A program on its way through the compiler.

    Before lowering `graph` or `functions` is set; after it `functions` holds PrimFuncs in the
    order in which they are printed, the entry last, and `model` the facts of a model.
    `constants` says which array lies in which constant pool.
    `attrs` are the user's own and survive every stage. Never changed in place.
    """

    graph: Graph | None = None
    functions: tuple[PrimFunc, ...] = ()
    config: CompilationConfig | None = None
    attrs: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    model: ModelInfo | None = None
    constants: ConstantPlan = field(default_factory=ConstantPlan)
    is_lowered: bool = False

    @checked_arguments
    def function(self, name: str) -> PrimFunc:
        """Return the PrimFunc called `name`; UsageError if there is none."""
        functions = {f.name: f for f in self.functions}
        if name not in functions:
            raise UsageError(
                f"the module has no function '{name}'",
                where="IRModule.function(name)",
                legal=", ".join(functions) or "none: the module is not lowered",
                fix=nearest(name, functions) or None,
            )
        return functions[name]

    @checked_arguments
    def require_config(self, stage: str) -> CompilationConfig:
        """Return the configuration, or ConfigMissing naming the stage that needs it."""
        if self.config is None:
            raise ConfigMissing(
                f"stage '{stage}' needs a CompilationConfig and the module has none",
                where="IRModule.config",
                fix="use mod.with_configuration(config), or build(mod, config)",
            )
        return self.config

    @checked_arguments
    def with_configuration(self, config: CompilationConfig) -> IRModule:
        """Return a new module with this configuration; the original is untouched."""
        return replace(self, config=config)

    @checked_arguments
    def with_attr(self, key: str, value: object) -> IRModule:
        """Return a new module with one more attribute; the original is untouched."""
        return replace(self, attrs=MappingProxyType({**self.attrs, key: value}))

    @checked_arguments
    def with_functions(self, functions: tuple[PrimFunc, ...]) -> IRModule:
        """Return a new module with other functions; everything else survives."""
        return replace(self, functions=functions)
