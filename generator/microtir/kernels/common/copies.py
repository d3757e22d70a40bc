"""Meanings of the micro-kernels that move bytes and set elements."""

from __future__ import annotations

from collections.abc import Mapping

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.common.micro_kernel import describe
from microtir.kernels.common.statements import each, load, loop, store
from microtir.rewrite.facts.moves import Axis
from microtir.schedule import KernelDescription
from microtir.tir import ir


def copying(
    name: str,
    size: int,
    template: str,
    values: Mapping[str, object],
    stack_bytes: int,
    needs: Feature,
    dtype: DType = DType.INT8,
) -> KernelDescription:
    """Describe a kernel that moves `size` elements; parameters: from, to."""
    source = ir.Buffer("source", (size,), dtype)
    target = ir.Buffer("target", (size,), dtype)
    wide, what = ("", "bytes") if dtype is DType.INT8 else (str(dtype.bits), "elements")
    return describe(
        f"{name}{wide}_{size}",
        (f"Copies {size} {what}",),
        (source, target),
        (target,),
        loop("i", 0, size, lambda i: store(target, (i,), load(source, i))),
        template,
        values,
        stack_bytes,
        needs,
    )


def filling(
    size: int,
    value: int,
    dtype: DType,
    template: str | None,
    values: Mapping[str, object],
    stack_bytes: int,
    needs: Feature,
) -> KernelDescription:
    """Describe a kernel that sets `size` elements to `value`; parameter: to."""
    target = ir.Buffer("target", (size,), dtype)
    return describe(
        f"fill_{size}_{dtype.value}_{value}".replace("-", "m"),
        (f"Sets {size} elements to {value}",),
        (target,),
        (target,),
        loop("i", 0, size, lambda i: store(target, (i,), value)),
        template,
        values,
        stack_bytes,
        needs,
    )


def copying_runs(
    name: str,
    run: Axis,
    size: int,
    dtype: DType,
    template: str,
    values: Mapping[str, object],
    stack_bytes: int,
    needs: Feature,
) -> KernelDescription:
    """Describe a kernel that moves runs of `size` elements; parameters: the first one, its place.

    Args:
        name: begins that of the kernel.
        run: how many runs there are, and how many elements they are apart.
        size: elements of a run.
        dtype: of an element.
        template: of the native body.
        values: what it is given.
        stack_bytes: that it takes.
        needs: what it takes of a CPU.
    """
    source = ir.Buffer("source", ((run.extent - 1) * run.source + size,), dtype)
    target = ir.Buffer("target", ((run.extent - 1) * run.target + size,), dtype)

    def copied(number: te.Expr, i: te.Expr) -> ir.Stmt:
        value = load(source, number * run.source + i)
        return store(target, (number * run.target + i,), value)

    return describe(
        f"{name}{run.extent}_{size}_{dtype.value}_{run.source}_{run.target}",
        (f"Copies {run.extent} runs of {size} elements",),
        (source, target),
        (target,),
        loop("run", 0, run.extent, lambda number: each("i", size, lambda i: copied(number, i))),
        template,
        values,
        stack_bytes,
        needs,
    )
