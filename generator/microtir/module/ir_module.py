"""IRModule: what every stage takes and gives, with its CompilationConfig attached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from microtir.config.compilation import CompilationConfig
from microtir.errors import ConfigError, UsageError, nearest
from microtir.graph.ir import Array, Graph, TensorType
from microtir.module.program import Program
from microtir.plan.decisions import Decision
from microtir.support.arguments import checked_arguments
from microtir.tir.ir import PrimFunc
from microtir.tir.memory_plan import ConstantPlan, MemoryPlan


class ConfigMissing(ConfigError):  # noqa: N818  # the name that requirement S2.5 gives it
    """A stage of the main flow was run on a module without a configuration."""


class PortKind(Enum):
    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class SeenRange:
    """The values of an input that calibration saw, inclusive: stored ones, or floats."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RowsInUse:
    """The rows of an output that are in use, the first along an axis: another output counts them.

    `count` is the C name of that output.
    """

    axis: int
    count: str


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the entry function: the model's name for it, its C name, its type.

    `offset` is its place in the workspace, in bytes of the pool of number `pool`, or None if the
    caller has other memory for it.
    `row_bytes` is the size of a row if functions of the caller hand it over row by row, else None.
    `seen` are the values of an input that a run does not count, where it counts the others.
    `in_use` is there for an output of which data say how many rows there are.
    `names` are what the values of an output are places in; empty where they are numbers.
    `aliases` are other names by which users know it, as that of its tensor in the model file.
    """

    kind: PortKind
    name: str
    c_name: str
    type: TensorType
    offset: int | None = None
    row_bytes: int | None = None
    pool: int = 0
    seen: SeenRange | None = None
    in_use: RowsInUse | None = None
    names: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class StatePort:
    """A value that a model keeps from one run to the next: a member of the struct that callers own.

    `alignment` is what its address is a multiple of, in bytes.  The `initial` value of a model that
    was read from an archive is None: the code of the archive has it.  Of several values that runs
    take in `turns` the type is that of all of them; a counter says whose turn it is.
    """

    name: str
    c_name: str
    type: TensorType
    initial: Array | None
    alignment: int
    turns: int = 1
    is_counter: bool = False


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """Frames that a run of a streamed model is given: so many of the window of an input.

    They follow each other along an axis of it.
    """

    input: str
    axis: int
    frames: int
    window: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Facts about a model that the header, the metadata and the reports state.

    `decisions` has an entry for every layer, under the name of its first function.
    """

    name: str
    ports: tuple[Port, ...]
    source_file: str
    source_sha256: str
    source_bytes: int
    memory: MemoryPlan
    decisions: Mapping[str, Decision] = field(default_factory=lambda: MappingProxyType({}))
    states: tuple[StatePort, ...] = ()
    stream: StreamInfo | None = None
    quantised_sha256: str = ""  # of the integers that were made of a file of floats

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
    order in which they are printed, the entry last.  Of a model `program` is everything that was
    decided, and `model` what its interface says; one that was read from an archive has no program.
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
    program: Program | None = None

    def __post_init__(self) -> None:
        """Refuse what is no program: a mapping of functions, for example.

        Raises:
            UsageError: names the field.
        """
        if not isinstance(self.graph, Graph | None):
            raise UsageError(
                f"'graph' got an object of type {type(self.graph).__name__}",
                where="IRModule(graph)",
                legal="what a frontend gives; functions are given as IRModule(functions=(f, ...))",
            )
        if not all(isinstance(function, PrimFunc) for function in self.functions):
            raise UsageError(
                "'functions' holds something that is not a PrimFunc",
                where="IRModule(functions)",
                legal="PrimFuncs, as te.create_prim_func gives them",
            )

    @checked_arguments
    def function(self, name: str) -> PrimFunc:
        """Return the PrimFunc called `name`; UsageError if there is none."""
        function = next((f for f in self.functions if f.name == name), None)
        if function is None:
            functions = [f.name for f in self.functions]
            raise UsageError(
                f"the module has no function '{name}'",
                where="IRModule.function(name)",
                legal=", ".join(functions) or "none: the module is not lowered",
                fix=nearest(name, functions) or None,
            )
        return function

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
    def require_program(self, stage: str) -> Program:
        """Return the compiled model, or UsageError naming what needs it."""
        if self.program is None:
            raise UsageError(
                "the module holds no compiled model",
                where=stage,
                legal="the result of `lower` for a graph",
            )
        return self.program

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
