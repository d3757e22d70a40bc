"""The function of a layer that calls a library."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.dtype import DType
from microtir.external.interface import Code, Hooks, Library, Match
from microtir.external.meaning import evaluated
from microtir.graph.ir import Array
from microtir.tir import ir
from microtir.tir.extern import CTemplate

_ALIGNMENT = 8


def call_of(match: Match, code: Code, library: Library, name: str, prefix: str) -> ir.PrimFunc:
    """Emit a layer function whose body is one call; its parameters are those that main passes."""
    inputs = [
        ir.Buffer("x" if len(match.inputs) == 1 else f"x{i}", t.shape, t.dtype)
        for i, t in enumerate(match.inputs)
    ]
    output = ir.Buffer("y", match.output.shape, match.output.dtype)
    constants = [
        ir.Buffer(
            key, data.shape, DType(data.dtype.name), ir.Scope.CONSTANT, np.ascontiguousarray(data)
        )
        for key, data in code.constants.items()
    ]
    size = code.scratch_bytes
    scratch = [ir.Buffer("scratch", (size,), DType.UINT8, alignment=_ALIGNMENT)] if size else []
    tensors = (*inputs, output, *constants, *scratch)
    params = tuple(ir.Buffer(b.name, b.shape, b.dtype) for b in tensors)
    stem = library.name.replace("-", "_")
    written = len(inputs)
    extern = ir.ExternFunction(
        f"{prefix}_{stem}_{name}",
        params,
        reads=(*params[:written], *params[written + 1 : written + 1 + len(constants)]),
        writes=(params[written], *params[len(params) - len(scratch) :]),
        meaning=_meaning(match),
        returns_status=True,
        stack_bytes=code.stack_bytes,
        sources=(
            ir.ExternSource(
                f"{prefix}_{stem}.c",
                call_body(code.body, library.device, library.hooks),
                ir.SourceKind.BODY,
                code.includes,
            ),
            *code.sources,
        ),
        device=library.device,
    )
    call = ir.ExternCall(
        extern, tuple(ir.BufferArgument(b, (ir.IntImm(0),) * len(b.shape)) for b in tensors)
    )
    return ir.PrimFunc(
        name, (*inputs, output, *scratch), call, scratch=scratch[0] if scratch else None
    )


def call_body(
    body: str | CTemplate, device: ir.Device | None, hooks: Hooks | None = None
) -> CTemplate:
    """Return the function's statements: the call, between waking a device and releasing it."""
    around = device or hooks
    values = {
        "body": body.strip("\n") if isinstance(body, str) else body,
        "open": around.open if around else "",
        "close": around.close if around else "",
        "parameter": "void *context" if device else "void",
        "argument": "device" if device else "",
    }
    return CTemplate("external/call.c.j2", values)


def _meaning(match: Match) -> Callable[..., None]:
    """Return what the interpreter runs instead of the library."""

    def run(*arrays: Array) -> None:
        count = len(match.inputs)
        arrays[count][...] = evaluated(match, arrays[:count])

    return run
