"""Moving bytes, and setting elements, by words; columns of images that move as they are."""

from __future__ import annotations

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import copies, micro_kernel
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.measure.printed import printed
from microtir.operators.movement.definition import StridedSlice
from microtir.operators.movement.formula import slices_within_rows
from microtir.operators.streaming.definition import PlaceColumns
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_WORD = 4  # bytes
_BLOCK = 16  # bytes that the copy moves at a time
_BLOCKS_PER_TURN = 4
_CALL = 20  # instructions for a row, beside those that move its bytes


@made_once
def copy(size: int, dtype: DType = DType.INT8) -> KernelDescription:
    """Move `size` elements; parameters: from, to."""
    values = copy_values(size * dtype.bytes)
    return copies.copying("copy", size, "kernels/copy.j2", values, 16, Feature.DSP, dtype)


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

    return micro_kernel.describe(
        f"spread{every}_{size}",
        (f"Copies {size} bytes, the words to every {every} words",),
        (source, target),
        (target,),
        loop("word", 0, words, word),
        "kernels/copy.j2",
        copy_values(size, every),
        stack_bytes=16,
    )


def copied(size: int, dtype: DType = DType.INT8) -> int:
    """Return the instructions of `copy` for so many elements."""
    values = copy_values(size * dtype.bytes)
    turns = size * dtype.bytes // _BLOCK // int(str(values["repeats"] or 1))
    return printed("kernels/copy.j2", values).instructions({"bne 1b": turns})


def copy_values(size: int, every: int = 1, *, is_filled: bool = False) -> dict[str, object]:
    """Return what the template is given.

    Args:
        size: bytes that are read.
        every: words of the target into one of which is written.
        is_filled: whether the last word is written whole, with zeros behind the last bytes.
    """
    blocks, words = size // _BLOCK, size % _BLOCK // _WORD
    behind = str(size % _WORD) if size % _WORD else ""
    return {
        **micro_kernel.repeated(blocks, _BLOCKS_PER_TURN),
        "loop_bytes": str(blocks * _BLOCK),
        "words": str(words) if words else "",
        "bytes": "" if is_filled else behind,
        "filled": behind if is_filled else "",
        "places": {
            name: str(every * _WORD * number)
            for number, name in enumerate(("second", "third", "fourth", "next"), 1)
        },
    }


@made_once
def fill(size: int, value: int, dtype: DType) -> KernelDescription:
    """Set `size` elements to `value`; parameter: to.  The compiler knows how."""
    return copies.filling(size, value, dtype, None, {}, 0, Feature.DSP)


@made_once
def fill_spread(size: int, every: int, value: int) -> KernelDescription:
    """Set whole words, `size` bytes, every so many words; parameter: to."""
    target = ir.Buffer("target", (every * (size - _WORD) + _WORD,), DType.INT8)

    def word(number: te.Expr) -> ir.Stmt:
        # Side by side, so that compilers see a word.
        place = number * (every * _WORD)
        return seq(*(store(target, (place + n,), value) for n in range(_WORD)))

    return micro_kernel.describe(
        f"fill{every}_{size}_{value}".replace("-", "m"),
        (f"Sets {size} bytes to {value}, the words of every {every} words",),
        (target,),
        (target,),
        loop("word", 0, size // _WORD, word),
        None,
        {},
        stack_bytes=0,
    )


class CopyWords(Kernel):
    """One run of bytes for each row, words at a time: slices within rows, bands that are joined."""

    name = "copy_s8_1x4_dsp"
    operators = (StridedSlice, PlaceColumns)
    needs = Feature.DSP

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against one run of bytes for each row."""
        if node.output.dtype is not DType.INT8:
            return Refusal.TYPES
        if isinstance(node.op, PlaceColumns):
            return None
        op, channels = node.attributes(StridedSlice), node.inputs[0].shape[-1]
        is_run = slices_within_rows(node) and op.strides[2:] == (1, 1) and op.extent[3] == channels
        return None if is_run else Refusal.ROWS

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions: two for each word, and what a row needs."""
        type_ = node.output.type
        return type_.elements // 2 + _CALL * type_.rows

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Copy a run of bytes for each row."""
        op, x = layer.node.op, layer.input_rows(0)
        if isinstance(op, PlaceColumns):
            source, column, width = 0, op.column, op.width
        else:
            assert isinstance(op, StridedSlice)
            source, column, width = op.begin[2], 0, None
        y = layer.output_rows(width)
        kernel = copy(layer.node.output.type.row_elements)
        body = loop(
            "row", layer.y0, layer.y1,
            lambda row: micro_kernel.call(kernel, x.at(row, source, 0), y.at(row, column, 0)),
        )  # fmt: skip
        return layer.function(name, None, body)
