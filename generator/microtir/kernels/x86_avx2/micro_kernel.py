"""Descriptions of the micro-kernels of this folder, and their constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.common import micro_kernel
from microtir.schedule import KernelDescription
from microtir.tir import function, ir

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
    return micro_kernel.describe(
        name, (about,), params, (written,), body, template, values, stack_bytes, Feature.VECTOR,
        form=function.NativeForm.INTRINSICS,
    )  # fmt: skip


def constant(name: str, data: npt.NDArray[np.generic]) -> ir.Buffer:
    """Return a constant array."""
    values = np.ascontiguousarray(data)
    values.setflags(write=False)
    dtype = DType(values.dtype.name)
    return ir.Buffer(name, values.shape, dtype, ir.Scope.CONSTANT, values)
