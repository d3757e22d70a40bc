"""Blocks of float32: four pixels by four channels, or one pixel by up to 24.

An element of a pixel stays in a general register and is multiplied with four weights at a time;
VFMA rounds once, as the fused products of the twin do, in the same order.  Of a single pixel all
channels of a turn meet an element before the next one.  Vectors take and give 0 in place of what
is below the normal numbers, where a twin does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve import copying
from microtir.kernels.c_blocks import convolution, dense, matmul
from microtir.kernels.c_blocks.finish import Activate
from microtir.kernels.c_blocks.kernels import Block, BlockSize
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.runs import turns_of
from microtir.measure.printed import Printed, printed
from microtir.operators.common.attributes import Activation
from microtir.operators.matmul.definition import BatchMatmul
from microtir.plan.ir import Refusal
from microtir.schedule import KernelDescription
from microtir.tir import function

LANES = 4
_TEMPLATE = "kernels/mve/product_f32.j2"
_AT_ONCE = 4  # elements of a pixel that are loaded by one instruction
_STRAIGHT = 4  # steps that are printed without a loop
WORD = 4  # bytes
OFFSET = 508  # the largest of a load or store of a vector
_ADDED = 4095  # what ADDW adds
LARGEST = 0xFFFF  # what MOVW loads
_STACK = 36 + 64 + 12


class FloatVectors:
    """Helium's code for blocks of float32."""

    def attached(self, twin: KernelDescription, size: BlockSize) -> KernelDescription:
        values = _values(size)
        native = function.NativeBody(function.NativeForm.ASSEMBLY, Feature.MVE_FLOAT, values)
        kernel = twin.meaning.kernel
        assert kernel is not None
        return replace(
            twin,
            meaning=replace(twin.meaning, kernel=replace(kernel, native=native)),
            contract=replace(twin.contract, stack_bytes=_STACK),
            assembly=_TEMPLATE,
        )

    def instructions(self, size: BlockSize) -> int:
        runs, groups = size.runs, size.spread.groups
        turns = groups * len(turns_of(size.channels, size.block.channels))
        return _printed(size).instructions({
            "bne.w 6b": groups, "bne.w 1b": turns, "bne 2b": turns * runs.rows,
            "bne 3b": turns * runs.rows * runs.parts,
            "le lr, 4b": turns * runs.rows * runs.parts * (runs.length // _AT_ONCE),
        })  # fmt: skip

    def code_bytes(self, size: BlockSize) -> int:
        return _printed(size).bytes

    def copy(self, size: int, dtype: DType) -> KernelDescription:
        return copying.copy(size, dtype)

    def copied(self, size: int, dtype: DType) -> int:
        return copying.copied(size, dtype)


def _printed(size: BlockSize) -> Printed:
    return printed(_TEMPLATE, _values(size))


@dataclass(frozen=True, slots=True)
class _Registers:
    """The sums of a block, pixel by pixel, and where elements and weights are."""

    pixels: int
    vectors: int

    @property
    def sums(self) -> list[str]:
        return [f"q{n}" for n in range(self.pixels * self.vectors)]

    @property
    def places(self) -> list[str]:
        """Return the registers that point to the elements of pixels."""
        return [f"r{n}" for n in range(self.pixels)]

    def load(self, place: str, count: int) -> str:
        """Return what loads elements of a pixel into r4 and those behind it."""
        if count == 1:
            return f"ldr r4, [{place}], #4"
        return f"ldm {place}!, {{{', '.join(f'r{4 + n}' for n in range(count))}}}"

    def step(self, count: int, row: int) -> dict[str, object]:
        """Return the products of so many elements; `row`: bytes between rows of a matrix, or 0."""
        if self.vectors == 1:
            of_elements = [_far_load(f"q{4 + n}", n * row, row) for n in range(count)]
            products = [
                [
                    {"weights": (), "sum": total, "operands": f"q{4 + n}, r{4 + n}"}
                    for n in range(count)
                ]
                for total in self.sums
            ]
            loads = [line for lines in of_elements for line in lines]
            advance = add("r8", "r8", count * row) if _is_near(row) else ()
        else:
            loads, advance = [], ()
            products = [[
                {"weights": (f"vldrw.32 q{6 + v % 2}, [r8], #16",), "sum": total,
                 "operands": f"q{6 + v % 2}, r{4 + n}"}
                for n in range(count) for v, total in enumerate(self.sums)
            ]]  # fmt: skip
        pixels = [
            {"load": self.load(place, count), "products": some}
            for place, some in zip(self.places, products, strict=True)
        ]
        return {"weights": loads, "pixels": pixels, "advance": advance}


def _is_near(row: int) -> bool:
    """Return whether a load reaches as many rows of a matrix as there are elements of a step."""
    return _AT_ONCE * row <= OFFSET


def _far_load(register: str, offset: int, row: int) -> Iterator[str]:
    """Yield what loads the weights of an element: packed ones, or those of a row of a matrix."""
    if not row:
        yield f"vldrw.32 {register}, [r8], #16"
    elif _is_near(row):
        yield f"vldrw.32 {register}, [r8, #{offset}]" if offset else f"vldrw.32 {register}, [r8]"
    else:
        yield f"vldrw.32 {register}, [r8]"
        yield f"addw r8, r8, #{row}"


def add(to: str, register: str, number: int, spare: str = "r4") -> tuple[str, ...]:
    """Return what adds a number of bytes; a spare register may be lost."""
    if number == 0 and to == register:
        return ()
    if abs(number) <= _ADDED:
        return (f"{'addw' if number >= 0 else 'subw'} {to}, {register}, #{abs(number)}",)
    bits = number & 0xFFFFFFFF
    loads = f"movw {spare}, #{bits & LARGEST}", f"movt {spare}, #{bits >> 16}"
    return (*loads, f"add {to}, {register}, {spare}")


def _values(size: BlockSize) -> Mapping[str, object]:
    block, runs, spread, finish = size.block, size.runs, size.spread, size.finish
    registers = _Registers(block.pixels, block.channels // LANES)
    sums, pixels = registers.sums, block.pixels
    vectors, distance = registers.vectors, size.distance * WORD
    row = size.columns.step * WORD if size.columns else 0
    steps, rest = divmod(runs.length, _AT_ONCE)
    reaches = (pixels - 1) * distance <= OFFSET
    left = size.channels % block.channels
    begin = [add(f"r{n}", f"r{n - 1}", runs.pixel_step * WORD) for n in range(1, pixels)]
    of_part = (runs.part_step - runs.length) * WORD
    of_row = runs.row_step - (runs.parts - 1) * runs.part_step - runs.length
    of_row -= (runs.part_step - runs.length) if runs.parts > 1 else 0
    has_loops = runs.rows > 1 or runs.parts > 1 or spread.groups > 1
    jump = 16 - runs.length * row if row else 0
    return {
        "saved": "d8-d15" if vectors == 1 or vectors > 4 else "d12-d15",
        "stack": "12" if has_loops else "",
        "has_table": finish.words > 0,
        "groups": _if_several(spread.groups),
        "turns": str(len(turns_of(size.channels, block.channels))),
        "begin": [line for lines in begin for line in lines],
        "sums": sums,
        "firsts": sums[:vectors],
        "copies": [(total, sums[0]) for total in sums[1:]] if vectors == 1 else [],
        "rows": _if_several(runs.rows),
        "parts": _if_several(runs.parts),
        "steps": str(steps or ""),
        "loops": steps > _STRAIGHT,
        "whole": registers.step(_AT_ONCE, row),
        "rest": registers.step(rest, row) if rest else "",
        "part_jump": jumps(pixels, of_part),
        "row_jump": jumps(pixels, of_row * WORD),
        "ends": ends_of(finish.activation) if isinstance(finish, Activate) else [],
        "distance": "" if reaches else str(distance),
        "behind": sums[1:] if vectors == 1 else [],
        "placed": [(q, str(n * distance)) for n, q in enumerate(sums) if n and vectors == 1],
        "weights_jump": add("r8", "r8", jump),
        "back": str((block.channels - left) * WORD) if left else "",
        "is_matrix": row > 0,
        "group_jump": add("r12", "r12", runs.length * WORD),
    }


def jumps(pixels: int, number: int, spare: str = "r4") -> list[str]:
    """Return what adds a number of bytes to the pointers of pixels."""
    return [line for n in range(pixels) for line in add(f"r{n}", f"r{n}", number, spare)]


def _if_several(count: int) -> str:
    return str(count) if count > 1 else ""


def ends_of(activation: Activation) -> list[tuple[str, str, str, str]]:
    """Return the clamps: instruction, register, and the halves of what is in it."""
    ends = []
    names = ("vmaxnm", "q6"), ("vminnm", "q7")
    for end, name in zip(activation.real_range, names, strict=True):
        if math.isfinite(end):
            low, high = np.array([end], np.float32).view(np.uint16)
            ends.append((*name, str(low) if end else "", str(high)))
    return ends


# --- the kernels ----------------------------------------------------------------------------------

_NATIVE = FloatVectors()
_FORM = convolution.Form(
    convolution.COMPACT.integers, Block(4, LANES, turn=2, native=_NATIVE), unrolled=4
)
_CYCLES = 150


def size_refusal(*distances: int) -> Refusal | None:
    """Refuse elements that are too far apart."""
    return Refusal.SIZES if max(distances) * WORD > LARGEST else None


class FloatConvolution(convolution.Convolution):
    """Blocks of four pixels by four channels."""

    needs = Feature.MVE_FLOAT

    def __init__(self, name: str) -> None:
        super().__init__(name, _FORM, _CYCLES, dtype=DType.FLOAT32)
        self.needs = Feature.MVE_FLOAT

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: few channels, distances that are too large."""
        reason = super().reject(node)
        if reason is not None:
            return reason
        groups, channels = convolution.groups_of(node), node.output.shape[-1]
        if channels // groups < LANES:
            return Refusal.FEW_CHANNELS
        geometry = Geometry.of(node).of_all_groups
        most = max(geometry.direct_step, geometry.copied_step, geometry.pixel_stride)
        return size_refusal(most, 4 * channels)


class FloatDense(dense.Dense):
    """Blocks of one row by up to 24 outputs."""

    def __init__(self, name: str) -> None:
        form = dense.Form(native=_NATIVE)
        super().__init__(name, form, _CYCLES, dtype=DType.FLOAT32)
        self.needs = Feature.MVE_FLOAT

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: few outputs, or distances that are too large."""
        reason = super().reject(node)
        if reason is None and node.inputs[1].shape[0] < LANES:
            return Refusal.FEW_CHANNELS
        return reason or size_refusal(*node.inputs[1].shape)


class FloatMatmul(matmul.Matmul):
    """Blocks of four rows by four columns, both where they lie."""

    def __init__(self, name: str) -> None:
        super().__init__(name, _FORM, _CYCLES, dtype=DType.FLOAT32)
        self.needs = Feature.MVE_FLOAT

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: few columns, or operands that do not lie row by row."""
        reason, op = super().reject(node), node.attributes(BatchMatmul)
        if reason is None and (op.adj_x or op.adj_y):
            return Refusal.FORM
        if reason is None and node.output.shape[-1] < LANES:
            return Refusal.FEW_CHANNELS
        return reason or size_refusal(*(4 * t.shape[-1] for t in (*node.inputs, node.output)))
