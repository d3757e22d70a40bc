"""Micro-kernels that move bytes, and set elements."""

from __future__ import annotations

from microtir.lowering.dsp.code import load, loop, store
from microtir.lowering.dsp.micro_kernel import describe, repeated
from microtir.lowering.made_once import made_once
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_BLOCK = 16  # bytes that the copy moves at a time
_BLOCKS_PER_TURN = 4


@made_once
def copy(size: int) -> KernelDescription:
    """Moves `size` bytes; parameters: from, to."""
    source = ir.Buffer("source", (size,), DType.INT8)
    target = ir.Buffer("target", (size,), DType.INT8)
    blocks, words = size // _BLOCK, size % _BLOCK // 4
    return describe(
        f"copy_{size}",
        (f"Copies {size} bytes",),
        (source, target),
        (target,),
        loop("i", 0, size, lambda i: store(target, (i,), load(source, i))),
        "kernels/copy.j2",
        {
            **repeated(blocks, _BLOCKS_PER_TURN),
            "loop_bytes": str(blocks * _BLOCK),
            "words": str(words) if words else "",
            "bytes": str(size % 4) if size % 4 else "",
        },
        stack_bytes=16,
    )


@made_once
def fill(size: int, value: int, dtype: DType) -> KernelDescription:
    """Sets `size` elements to `value`; parameter: to.  The compiler knows how."""
    target = ir.Buffer("target", (size,), dtype)
    return describe(
        f"fill_{size}_{dtype.value}_{value}".replace("-", "m"),
        (f"Sets {size} elements to {value}",),
        (target,),
        (target,),
        loop("i", 0, size, lambda i: store(target, (i,), value)),
        None,
        {},
        stack_bytes=0,
    )
