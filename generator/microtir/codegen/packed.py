"""The packed interface: wrappers that unpack arguments, check them and call the C interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.codegen import header
from microtir.codegen.c_types import C_TYPES, integer_literal
from microtir.codegen.entry import exported_name
from microtir.codegen.environment import render
from microtir.codegen.names import ScopedNames
from microtir.codegen.program import Program
from microtir.codegen.source_file import SourceFile
from microtir.ir_module import ModelInfo, PortKind
from microtir.tir.dtype import DType
from microtir.tir.ir import Buffer, Param, PrimFunc, Var

RUNTIME_VERSION = 1  # MICROTIR_RUNTIME_VERSION of runtime_crt/include/microtir/runtime.h

_LOCALS = ("args", "kinds", "count", "result", "result_kind", "resource", "status", "inputs",
           "outputs", "workspace")  # fmt: skip
_ELEMENTS: Mapping[DType, str] = MappingProxyType({
    DType.BOOL: "BOOL",
    **dict.fromkeys((DType.INT8, DType.INT16, DType.INT32, DType.INT64), "SIGNED"),
    **dict.fromkeys((DType.UINT8, DType.UINT16, DType.UINT32), "UNSIGNED"),
    **dict.fromkeys((DType.FLOAT32, DType.FLOAT64), "FLOAT"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor argument.

    `shape` is the text of its extents, empty for rank 0; `storage` that of the array's class.
    """

    name: str
    index: int
    dtype: str
    rank: int
    shape: str
    storage: str
    alignment: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """An integer argument."""

    name: str
    index: int
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A packed function. `call` are the lines that follow once every argument is unpacked."""

    name: str
    registered: str
    comment: str
    count: int
    scalars: tuple[Scalar, ...]
    tensors: tuple[Argument, ...]
    workspace: str  # index of the workspace argument; empty if there is none
    call: tuple[str, ...]


def packed_files(program: Program, fingerprint: str) -> tuple[SourceFile, ...]:
    """Header and source of the packed interface, and the system library."""
    model = program.model
    wrappers = (
        (_model_wrapper(program, model),)
        if model
        else tuple(_function_wrapper(program, f) for f in program.exported)
    )
    titles = [
        ("packed.h", "the packed interface"),
        ("packed.c", "the packed interface"),
        ("system_lib.c", "the system library"),
    ]
    generated = [
        SourceFile(
            f"{program.name}_{suffix}",
            render(
                f"c/{suffix}.j2",
                comment=header.file_comment(program, f"{program.name}_{suffix}: {title}"),
                name=program.name,
                macro=program.macro,
                fingerprint=fingerprint,
                runtime_version=RUNTIME_VERSION,
                wrappers=wrappers,
                function_count=len(wrappers),
            ),
        )
        for suffix, title in titles
    ]
    return tuple(generated)


def _model_wrapper(program: Program, model: ModelInfo) -> Wrapper:
    names = _names(program, len(program.entry.params))
    tensors = []
    for index, (port, parameter) in enumerate(zip(model.ports, program.entry.params, strict=False)):
        assert isinstance(parameter, Buffer)
        extents = [str(extent) for extent in port.type.shape]
        name = names.reserve(port.c_name)
        tensors.append(_argument(name, index, parameter, extents))
    members = {
        kind: ", ".join(
            t.name for t, port in zip(tensors, model.ports, strict=True) if port.kind is kind
        )
        for kind in PortKind
    }
    call = [
        *(
            f"const struct {program.name}_{kind.value}s {kind.value}s = {{{members[kind] or '0'}}};"
            for kind in PortKind
        ),
        f"return {program.name}_run(&inputs, &outputs, workspace);",
    ]
    return Wrapper(
        f"{program.name}_run_packed",
        f"{program.name}_run",
        "Arguments: the inputs, the outputs, and the workspace as a uint8 tensor",
        len(tensors) + 1,
        (),
        tuple(tensors),
        str(len(tensors)),
        tuple(call),
    )


def _function_wrapper(program: Program, function: PrimFunc) -> Wrapper:
    names = _names(program, len(function.params))
    defined = {p: names.define(p) for p in function.params}
    scalars, tensors = [], []
    for index, parameter in enumerate(function.params):
        if isinstance(parameter, Var):
            scalars.append(_scalar(parameter, defined[parameter], index))
        else:
            extents = [
                f"(int32_t){defined[d]}" if isinstance(d, Var) else str(d) for d in parameter.shape
            ]
            tensors.append(_argument(defined[parameter], index, parameter, extents))
    arguments = ", ".join(_call_argument(p, defined[p]) for p in function.params)
    public = exported_name(program, function)
    return Wrapper(
        f"{public}_packed",
        public,
        "Arguments: those of the function in their order, tensors and integers",
        len(function.params),
        tuple(scalars),
        tuple(tensors),
        "",
        (f"return {public}({arguments});",),
    )


def _names(program: Program, count: int) -> ScopedNames:
    """Names of a wrapper's variables; each tensor has a shape and a type of its number."""
    numbered = [f"{stem}_{index}" for stem in ("shape", "type") for index in range(count)]
    return ScopedNames((*program.file_names, *_LOCALS, *numbered))


def _call_argument(parameter: Param, name: str) -> str:
    return f"({C_TYPES[parameter.dtype]}){name}" if isinstance(parameter, Var) else name


def _scalar(parameter: Var, name: str, index: int) -> Scalar:
    low = parameter.dtype.min if parameter.low is None else parameter.low
    high = parameter.dtype.max if parameter.high is None else parameter.high
    return Scalar(
        name, index, integer_literal(low, DType.INT64), integer_literal(high, DType.INT64)
    )


def _argument(name: str, index: int, buffer: Buffer, extents: list[str]) -> Argument:
    element = f"{{MICROTIR_ELEMENT_{_ELEMENTS[buffer.dtype]}, {buffer.dtype.bits}}}"
    alignment = max(buffer.alignment, buffer.dtype.bytes)
    is_constant = all(isinstance(extent, int) for extent in buffer.shape)
    storage = "static const" if is_constant else "const"
    return Argument(name, index, element, len(extents), ", ".join(extents), storage, alignment)
