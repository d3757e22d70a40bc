"""Collects what printing one file needs: its functions, their C names, what they write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from microtir.codegen.printer.constants import (
    FILE_HEADER,
    ConstantArray,
    named_arrays,
    one_after_another,
)
from microtir.codegen.printer.names import UniqueNames
from microtir.codegen.unseen import unseen_counter
from microtir.config import CompilationConfig
from microtir.config.enums import CallingConvention, FaultChecks
from microtir.errors import UsageError
from microtir.measure import ConstantData, Functions, constants_of
from microtir.module.ir_module import IRModule, ModelInfo, StatePort
from microtir.support.names import macro_name
from microtir.tir import ir
from microtir.tir.analysis.masks import data_variables
from microtir.tir.function import RowPort
from microtir.tir.printer import extern_functions
from microtir.tir.visitor import buffers_read, buffers_written, calls_of, walk_statements

EXTERN_STATUS = "ERROR_EXTERN"
"""End of the macro of the status of a program in which an extern failed."""

STATE_STATUS = "ERROR_STATE"
"""End of the macro of the status of a program that was given another model's state, or none."""

WEIGHTS_STATUS = "ERROR_WEIGHTS"
"""End of the macro of the status of a program whose weights are damaged."""

TENSOR_STATUS = "ERROR_TENSOR"
"""End of the macro of the status of a program in which a tensor changed between two layers."""

CANARY_STATUS = "ERROR_CANARY"
"""End of the macro of the status of a program whose workspace was written beyond its ends."""

CHECK_FUNCTIONS = ("check_weights", "checksum", "is_damaged", "saved_sum", "state_sum")
"""Names of the functions that notice damaged memory, after that of the program."""

CANARY_FUNCTIONS = ("canaries_changed", "set_canaries")

PARAMETERS_STATUS = "ERROR_PARAMETERS"
"""End of the macro of the status of a program that was given other parameters than its own."""


@dataclass(frozen=True, slots=True)
class GivenConstants:
    """Constants that a run is given, as the last argument of the functions that read them.

    They are bytes of a file, or lie in pools: then `members` are pointers in a struct, by number.
    """

    name: str
    type: str
    members: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def parameter(self) -> str:
        return f"{self.type} *{self.name}"

    def holding(self, array: ConstantArray) -> str:
        """Return a pointer to the bytes among which an array is."""
        return self.name if array.pool is None else f"{self.name}->{self.members[array.pool]}"


@dataclass(frozen=True, eq=False)
class CProgram:
    """A lowered module as it is printed: what printing one function must know about the others.

    It has no slots: what all functions ask of it alike is worked out once and kept.

    Args:
        module: the lowered module.
        config: its configuration.
        functions: those of the module and the meanings of its micro-kernels, callees first.
        names: C name of each function's body.
        constants: every constant array of the file, shared ones once.
        arrays: the array that holds the data of a CONSTANT buffer.
        written: the parameters that a function stores to, itself or through a callee.
        assembly: template of the assembly of each micro-kernel that has one.
        externs: the C functions that these call and do not define.
        fallible: the functions that return a status, because they call an extern that does.
        readers: the functions that read constants that a run is given, themselves or through a
            callee.
        device_users: the functions that use a device, themselves or through a callee.
        kernels: the functions that are micro-kernels.
        guard: counts the elements of inputs that calibration did not see, where a run does so.
    """

    module: IRModule
    config: CompilationConfig
    functions: tuple[ir.PrimFunc, ...]
    names: Mapping[ir.PrimFunc, str]
    constants: tuple[ConstantArray, ...]
    arrays: Mapping[ir.Buffer, ConstantArray]
    written: Mapping[ir.PrimFunc, frozenset[ir.Buffer]]
    assembly: Mapping[ir.PrimFunc, str]
    externs: tuple[ir.ExternFunction, ...] = ()
    fallible: frozenset[ir.PrimFunc] = frozenset()
    readers: frozenset[ir.PrimFunc] = frozenset()
    device_users: frozenset[ir.PrimFunc] = frozenset()
    kernels: frozenset[ir.PrimFunc] = frozenset()
    guard: ir.PrimFunc | None = None

    @cached_property
    def data(self) -> frozenset[ir.Var]:
        """Return the variables that hold data in any call."""
        return data_variables(self.functions)

    @property
    def name(self) -> str:
        """Start of every C identifier and file name."""
        return self.config.module_name

    @property
    def macro(self) -> str:
        """Start of every macro."""
        return macro_name(self.name)

    @property
    def model(self) -> ModelInfo | None:
        return self.module.model

    @property
    def states(self) -> tuple[StatePort, ...]:
        """Return what a model keeps from one run to the next."""
        return self.model.states if self.model else ()

    @property
    def entry(self) -> ir.PrimFunc:
        return self.module.functions[-1]

    @property
    def layers(self) -> tuple[ir.PrimFunc, ...]:
        """Return the functions of a model that compute a layer, in printing order."""
        return self.module.functions[:-1] if self.model else ()

    @property
    def has_steps(self) -> bool:
        """Return whether an application may run the model step by step."""
        return self.model is not None and self.config.executor.steps

    @property
    def has_count(self) -> bool:
        """Return whether a run is told how many entries of its batch there are."""
        return self.model is not None and self.config.executor.batch_count

    @property
    def exported(self) -> tuple[ir.PrimFunc, ...]:
        """Return the functions that a user's program offers; a model has its entry instead."""
        return () if self.model else tuple(f for f in self.module.functions if f.exported)

    @property
    def is_packed(self) -> bool:
        """Return whether the entry functions take packed arguments."""
        return self.config.entry_calling_convention() is CallingConvention.PACKED

    @property
    def is_graph(self) -> bool:
        return self.model is not None and self.config.is_graph()

    @property
    def has_external_params(self) -> bool:
        """Return whether constants are in a file of their own, which run functions are given."""
        return not self.config.should_link_params()

    @property
    def given_pools(self) -> Mapping[int, str]:
        """Return C names of the constant pools that a run is given, by number; no empty one."""
        used = {array.pool for array in self.constants if array.offset is not None}
        pools = enumerate(self.config.constant_pools)
        return {number: pool.c_name for number, pool in pools if number in used}

    @property
    def given_constants(self) -> GivenConstants:
        """Return how functions get the constants that are no arrays of the code."""
        if self.has_external_params:
            return GivenConstants("parameters", "const uint8_t")
        return GivenConstants("constants", f"const struct {self.name}_constants", self.given_pools)

    def takes_constants(self, function: ir.PrimFunc) -> bool:
        """Return whether a function has one more argument, constants that a run is given."""
        return function in self.readers

    @property
    def devices(self) -> tuple[ir.Device, ...]:
        """Return the accelerators that the program uses, in the order of their names."""
        used = {extern.device for extern in self.externs if extern.device is not None}
        return tuple(sorted(used, key=lambda device: device.name))

    def takes_devices(self, function: ir.PrimFunc) -> bool:
        """Return whether a function has one more argument, the application's devices."""
        return function in self.device_users

    @cached_property
    def array_names(self) -> Mapping[ir.Buffer, str]:
        """Return the C name of the array that holds the data of each CONSTANT buffer."""
        return {buffer: array.name for buffer, array in self.arrays.items()}

    @cached_property
    def file_names(self) -> frozenset[str]:
        """Return identifiers with file scope, which no local name may hide."""
        exported = [f"{f.name}{end}" for f in self.exported for end in ("", "_unpacked")]
        public = ("run", "run_packed", "run_unpacked", "status_text", "module", *exported)
        public += (
            "step",
            "step_activated",
            "run_activated",
            "run_unpacked_activated",
            "run_observed_activated",
        )
        return frozenset(
            (
                *(("parameters",) if self.has_external_params else ()),
                *(("constants", "given_constants") if self.given_pools else ()),
                *(("devices",) if self.devices else ()),
                *(("count",) if self.has_count else ()),
                *(("guard",) if self.guard else ()),
                *self.names.values(),
                *(array.name for array in self.constants),
                *(extern.name for extern in self.externs),
                *(f"{self.name}_{name}" for name in public),
            )
        )

    def tensors_written(self, layer: ir.PrimFunc) -> tuple[ir.Buffer, ...]:
        """Return parameters through which a layer writes tensors of the model.

        Not scratch, not sums.
        """
        if layer.origin is not None and layer.origin.is_partial:
            return ()
        if layer.row_port is RowPort.OUTPUT:
            return ()  # the application has taken the rows
        buffers = (p for p in layer.params if isinstance(p, ir.Buffer) and p is not layer.scratch)
        return tuple(b for b in buffers if b in self.written[layer])

    @cached_property
    def _by_name(self) -> Mapping[str, ir.PrimFunc]:
        return {function.name: function for function in self.module.functions}

    def callee(self, name: str) -> ir.PrimFunc:
        return self._by_name[name]

    def views(self, invoke: ir.Invoke) -> Iterator[tuple[ir.Param, ir.BufferView]]:
        """Yield the views that a call is given, each with the parameter that takes it."""
        callee = self.callee(invoke.function)
        for parameter, argument in zip(callee.params, invoke.args, strict=True):
            if isinstance(argument, ir.BufferView):
                yield parameter, argument


def make_program(module: IRModule) -> CProgram:
    """Collect functions and constants of a lowered module and give them C names."""
    config = module.require_config("codegen")
    collected = Functions.of(module.functions, is_model=module.model is not None)
    everything, originals, functions = collected.everything, collected.originals, collected.distinct
    externs = _externs(everything)
    _check_devices(module, externs)
    unique = UniqueNames(extern.name for extern in externs)
    prefix = config.module_name
    # The entry functions take the plain names, so their bodies come last in the choice of names.
    checks = CHECK_FUNCTIONS if config.fault_checks is not FaultChecks.NONE else ()
    canaries = CANARY_FUNCTIONS if config.canaries else ()
    for exported in ("run", "status_text", *checks, *canaries):
        unique.fresh(f"{prefix}_{exported}")
    public = {f for f in module.functions if f.exported and module.model is None}
    names = {f: unique.fresh(f"{prefix}_{f.name}{'_body' * (f in public)}") for f in functions}
    names |= {f: names[originals[f]] for f in everything}
    guard = unseen_counter(module.model) if module.model else None
    if guard is not None:
        functions = (*functions, guard)
        names[guard] = unique.fresh(f"{prefix}_{guard.name}")
    data = constants_of(functions, config.constant_alignment())
    arrays = _placed(named_arrays(data, prefix, unique), module)
    holders = {buffer: array for known, array in arrays.items() for buffer in known.buffers}
    passed = {buffer for buffer, array in holders.items() if array.offset is not None}
    return CProgram(
        module,
        config,
        functions,
        MappingProxyType(names),
        tuple(arrays.values()),
        MappingProxyType(holders),
        MappingProxyType(_written(module, (*everything, *functions))),
        collected.assembly,
        externs,
        fallible=_with_callers(
            module, everything, lambda f: any(e.returns_status for e in extern_functions((f,)))
        ),
        # What `originals` has another function for is printed as that one.
        readers=_with_callers(
            module, everything, lambda f: any(b in passed for b in buffers_read(originals[f]))
        ),
        device_users=_with_callers(
            module, everything, lambda f: any(e.device for e in extern_functions((f,)))
        ),
        kernels=frozenset(functions) - {*module.functions, guard},
        guard=guard,
    )


def _placed(
    arrays: Mapping[ConstantData, ConstantArray], module: IRModule
) -> dict[ConstantData, ConstantArray]:
    """Yield arrays with their places in the file of parameters, or in their pools."""
    config = module.require_config("codegen")
    if not config.should_link_params():
        return dict(zip(arrays, one_after_another(arrays.values(), FILE_HEADER), strict=True))
    placed = dict(arrays)
    for known, array in arrays.items():
        place = module.constants.places.get(known.buffers[0])
        if place is not None:
            pool = config.constant_pools[place.pool].pool_info_properties
            placed[known] = replace(
                array,
                pool=place.pool,
                offset=None if pool.is_internal else place.offset,
                alignment=max(array.alignment, pool.byte_alignment),
            )
    return placed


def _externs(functions: tuple[ir.PrimFunc, ...]) -> tuple[ir.ExternFunction, ...]:
    """Return one of each name; those of two layers may be two objects that say the same.

    Raises:
        UsageError: they do not.
    """
    externs: dict[str, ir.ExternFunction] = {}
    for extern in extern_functions(functions):
        known = externs.setdefault(extern.name, extern)
        if _interface(known) != _interface(extern):
            raise UsageError(
                f"two C functions are called '{extern.name}'",
                where="codegen",
                legal="the same parameter types and sources for each use of a name",
                fix="give one of them another name",
            )
    return tuple(externs.values())


def _interface(extern: ir.ExternFunction) -> tuple[object, ...]:
    params = tuple((type(p), p.dtype, p in extern.writes) for p in extern.params)
    return params, extern.returns_status, extern.sources, extern.device


def _with_callers(
    module: IRModule, functions: tuple[ir.PrimFunc, ...], concerns: Callable[[ir.PrimFunc], bool]
) -> frozenset[ir.PrimFunc]:
    """Return the functions that something concerns, themselves or through a callee.

    Args:
        module: whose functions are invoked by name.
        functions: of the program, callees first.
        concerns: whether it concerns a function itself.
    """
    by_name = {f.name: f for f in module.functions}
    concerned: set[ir.PrimFunc] = set()
    for function in functions:
        callees = (
            by_name[call.function] if isinstance(call, ir.Invoke) else call.meaning
            for call in calls_of(function)
            if isinstance(call, ir.Invoke | ir.KernelCall)
        )
        if concerns(function) or any(callee in concerned for callee in callees):
            concerned.add(function)
    return frozenset(concerned)


def _check_devices(module: IRModule, externs: Sequence[ir.ExternFunction]) -> None:
    """Refuse devices that the program cannot have.

    Raises:
        UsageError: the program is no model, and so has no entry that activates a device; or two
            devices of one name have different functions.
    """
    devices: dict[str, ir.Device] = {}
    for extern in externs:
        if extern.device is not None:
            known = devices.setdefault(extern.device.name, extern.device)
            _check_device(module, extern, known)


def _check_device(module: IRModule, extern: ir.ExternFunction, known: ir.Device) -> None:
    where = f"the C function '{extern.name}'"
    if module.model is None:
        raise UsageError(
            f"the function uses the device '{known.name}', but the program is not a model",
            where=where,
            legal="devices only in models, because the entry function of a model activates them",
            fix="activate the device in the C function itself",
        )
    if extern.device != known:
        raise UsageError(
            f"two different devices have the name '{known.name}'",
            where=where,
            fix="give one of them another name",
        )


def _written(
    module: IRModule, functions: tuple[ir.PrimFunc, ...]
) -> dict[ir.PrimFunc, frozenset[ir.Buffer]]:
    by_name = {f.name: f for f in module.functions}
    written: dict[ir.PrimFunc, frozenset[ir.Buffer]] = {}

    def buffers(function: ir.PrimFunc) -> Iterator[ir.Buffer]:
        for node in walk_statements(function):
            match node:
                case ir.Store(buffer):
                    yield buffer
                case ir.Invoke(name, args):
                    yield from through(by_name[name], args)
                case ir.KernelCall(meaning, args):
                    yield from through(meaning, args)
                case ir.ExternCall():
                    yield from buffers_written(node)
                case _:
                    pass

    def through(callee: ir.PrimFunc, args: tuple[object, ...]) -> Iterator[ir.Buffer]:
        for parameter, argument in zip(callee.params, args, strict=True):
            if parameter in of(callee) and isinstance(argument, ir.BufferView | ir.BufferArgument):
                yield argument.buffer

    def of(function: ir.PrimFunc) -> frozenset[ir.Buffer]:
        if function not in written:
            written[function] = frozenset(buffers(function))
        return written[function]

    for function in functions:
        of(function)
    return written
