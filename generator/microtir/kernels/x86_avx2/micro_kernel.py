"""How the micro-kernels of this folder are described and called."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from microtir.config.features import Feature
from microtir.schedule import KernelDescription
from microtir.te import Expr
from microtir.tir import ir
from microtir.tir.dtype import DType
from microtir.tir.function import MicroKernel, NativeBody, NativeForm

LANES = 8  # int32 sums of a vector
QUAD = 4  # bytes of one lane that VPDPBUSD multiplies and adds


def describe(
    name: str,
    about: str,
    params: tuple[ir.Buffer, ...],
    written: ir.Buffer,
    body: ir.Stmt,
    template: str,
    values: Mapping[str, object],
    stack_bytes: int,
) -> KernelDescription:
    """Describe a micro-kernel that reads all parameters but `written`, and writes all of that.

    Args:
        name: says what it is specialised for.
        about: its comment.
        params: pointers, each spanning what the kernel reaches from it.
        written: one of the parameters.
        body: the meaning.
        template: of the body in intrinsics, below templates/.
        values: what the template is given: finished text and lists of it.
        stack_bytes: of the body in intrinsics and of what it calls.
    """
    given = MappingProxyType(dict(values))
    native = NativeBody(NativeForm.INTRINSICS, Feature.VECTOR, given)
    meaning = ir.PrimFunc(name, params, body, kernel=MicroKernel((about,), native=native))
    contract = ir.KernelContract(
        reads=tuple(_all_of(p) for p in params if p is not written),
        writes=(_all_of(written),),
        stack_bytes=stack_bytes,
    )
    return KernelDescription(meaning, contract, template)


def _all_of(buffer: ir.Buffer) -> ir.Region:
    extents = tuple(d for d in buffer.shape if isinstance(d, int))
    return ir.Region(buffer, (ir.IntImm(0),) * len(extents), extents)


def call(kernel: KernelDescription, *args: ir.BufferArgument | Expr) -> ir.KernelCall:
    """Return a call with arguments in the order of the kernel's parameters."""
    plain = tuple(a.node if isinstance(a, Expr) else a for a in args)
    return ir.KernelCall(kernel.meaning, plain, kernel.contract, kernel.assembly)


def constant(name: str, data: npt.NDArray[np.generic]) -> ir.Buffer:
    """Return a constant array."""
    values = np.ascontiguousarray(data)
    values.setflags(write=False)
    dtype = DType(values.dtype.name)
    return ir.Buffer(name, values.shape, dtype, ir.Scope.CONSTANT, values)
