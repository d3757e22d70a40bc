"""Micro-kernels that move bytes, and set elements."""

from __future__ import annotations

from microtir import te
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe, repeated
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_WORD = 4  # bytes
_BLOCK = 16  # bytes that the copy moves at a time
_BLOCKS_PER_TURN = 4


@made_once
def copy(size: int) -> KernelDescription:
    """Move `size` bytes; parameters: from, to."""
    source = ir.Buffer("source", (size,), DType.INT8)
    target = ir.Buffer("target", (size,), DType.INT8)
    return describe(
        f"copy_{size}",
        (f"Copies {size} bytes",),
        (source, target),
        (target,),
        loop("i", 0, size, lambda i: store(target, (i,), load(source, i))),
        "kernels/copy.j2",
        _values(size),
        stack_bytes=16,
    )


@made_once
def spread(size: int, every: int) -> KernelDescription:
    """Move whole words, `size` bytes, to every so many words; parameters: from, to."""
    words = size // _WORD
    source = ir.Buffer("source", (size,), DType.INT8)
    target = ir.Buffer("target", (every * (size - _WORD) + _WORD,), DType.INT8)

    def word(number: te.Expr) -> ir.Stmt:
        place = number * (every * _WORD)
        bytes_ = (
            store(target, (place + n,), load(source, number * _WORD + n)) for n in range(_WORD)
        )
        return seq(*bytes_)

    return describe(
        f"spread{every}_{size}",
        (f"Copies {size} bytes, the words to every {every} words",),
        (source, target),
        (target,),
        loop("word", 0, words, word),
        "kernels/copy.j2",
        _values(size, every),
        stack_bytes=16,
    )


def _values(size: int, every: int = 1) -> dict[str, object]:
    """Return what the template is given: one word into `every` so many is written."""
    blocks, words = size // _BLOCK, size % _BLOCK // _WORD
    return {
        **repeated(blocks, _BLOCKS_PER_TURN),
        "loop_bytes": str(blocks * _BLOCK),
        "words": str(words) if words else "",
        "bytes": str(size % _WORD) if size % _WORD else "",
        "places": {
            name: str(every * _WORD * number)
            for number, name in enumerate(("second", "third", "fourth", "next"), 1)
        },
    }


@made_once
def fill(size: int, value: int, dtype: DType) -> KernelDescription:
    """Set `size` elements to `value`; parameter: to.  The compiler knows how."""
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


@made_once
def fill_spread(size: int, every: int, value: int) -> KernelDescription:
    """Set whole words, `size` bytes, every so many words; parameter: to."""
    target = ir.Buffer("target", (every * (size - _WORD) + _WORD,), DType.INT8)

    def word(number: te.Expr) -> ir.Stmt:
        # Side by side, so that compilers see a word.
        place = number * (every * _WORD)
        return seq(*(store(target, (place + n,), value) for n in range(_WORD)))

    return describe(
        f"fill{every}_{size}_{value}".replace("-", "m"),
        (f"Sets {size} bytes to {value}, the words of every {every} words",),
        (target,),
        (target,),
        loop("word", 0, size // _WORD, word),
        None,
        {},
        stack_bytes=0,
    )
