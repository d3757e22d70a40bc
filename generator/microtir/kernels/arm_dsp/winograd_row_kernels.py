"""The micro-kernels of Winograd's convolutions along rows for Arm's DSP extension.

Rows are copied as bytes, two in each element of scratch, whose other elements are transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.kernels.common import micro_kernel, winograd_rows
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.winograd import OUTPUTS, PAIR, TAPS, constants_of
from microtir.kernels.common.winograd_rows import POSITIONS
from microtir.schedule import KernelDescription
from microtir.tir import ir

_WORD = 4
_SUMS = 8  # that stay in registers
_MOST_TURN = 24  # steps of a sum that follow each other


@dataclass(frozen=True, slots=True)
class Block:
    """The tiles beside each other that are computed at once, and the output channels of a turn."""

    tiles: int

    @property
    def at_once(self) -> int:
        """Return the output channels of a turn."""
        return _SUMS // self.tiles

    @property
    def pixels(self) -> int:
        return self.tiles * OUTPUTS

    @property
    def columns(self) -> int:
        return self.pixels + TAPS - 1

    @property
    def position_bytes(self) -> int:
        """Return the bytes of a position of a pair of input channels."""
        return self.tiles * _WORD

    @property
    def step_bytes(self) -> int:
        """Return the bytes of all positions of a pair of input channels."""
        return POSITIONS * self.position_bytes


@made_once
def row_inputs(channels: int, block: Block) -> KernelDescription:
    """Transform a row behind the tiles of a block.

    Args:
        channels: of a pixel, whole words of bytes.
        block: how many tiles there are.

    Returns:
        Parameters: row (columns, channels), two bytes in each element; transforms (pairs of
        channels, 4 positions, tiles, 2).
    """
    row = ir.Buffer("row", (block.columns, channels // 2), DType.INT16, alignment=4)
    shape = channels // 2, POSITIONS, block.tiles, PAIR
    v = ir.Buffer("v", shape, DType.INT16, alignment=4)
    return micro_kernel.describe(
        f"winograd_row{block.tiles}_{channels}",
        (f"Winograd: a row of {block.tiles} tiles, {channels} channels",),
        (row, v),
        (v,),
        winograd_rows.row_meaning(row, v),
        "kernels/winograd_row_inputs.j2",
        {
            "pixel_bytes": str(channels),
            "parts": _row_parts(channels, block),
            "quad_bytes": str(PAIR * block.step_bytes),
        },
        stack_bytes=32,
    )


def _row_parts(channels: int, block: Block) -> list[dict[str, object]]:
    """Return loads and steps, two columns at a time.

    Eight registers hold four columns: the two that are left of a tile, and two that come, which
    are the first ones of the next tile.
    """

    def columns(first: int, registers: Sequence[str]) -> list[dict[str, str]]:
        halves = (registers[:PAIR], registers[PAIR:])
        return [
            {"even": even, "odd": odd, "offset": str((first + n) * channels)}
            for n, (even, odd) in enumerate(halves)
        ]

    def steps(tile: int, half: int, a: str, b: str, c: str, d: str) -> list[dict[str, str]]:
        free, first = "r12", half * block.step_bytes + tile * _WORD
        all_steps = (
            ("sadd16", free, b, c),
            ("ssub16", free, c, b),
            ("ssub16", a, a, c),
            ("ssub16", b, d, b),
        )
        return [
            {"op": op, "to": to, "a": x, "b": y, "place": str(first + at * block.position_bytes)}
            for at, (op, to, x, y) in enumerate(all_steps)
        ]

    held, coming = [f"r{n}" for n in range(3, 7)], [f"r{n}" for n in range(7, 11)]
    parts: list[dict[str, object]] = [{"columns": columns(0, held), "steps": []}]
    for tile in range(block.tiles):
        both = [
            step
            for half in range(PAIR)
            for step in steps(tile, half, *held[half::PAIR], *coming[half::PAIR])
        ]
        parts.append({"columns": columns((tile + 1) * OUTPUTS, coming), "steps": both})
        held, coming = coming, held
    return parts


def turn_of(steps: int) -> int:
    """Return the steps of a sum that follow each other: all, or those of a turn of a loop."""
    return max(n for n in range(1, _MOST_TURN + 1) if steps % n == 0)


@made_once
def row_products(steps: int, block: Block, outputs: int, rescaling: Rescaling) -> KernelDescription:
    """Multiply the transforms of the tiles of a row with weights, and make outputs of the sums.

    Args:
        steps: of a sum: pairs of input channels, of three rows.
        block: how many tiles and channels are computed at once.
        outputs: channels of a pixel of the output.
        rescaling: of the sums.

    Returns:
        Parameters: transforms of three rows as `row_inputs` writes them; weights and constants as
        `winograd.arranged` and `winograd.constant_words` give them; outputs (pixels, channels).
    """
    at_once = block.at_once
    turns, turn = -(-outputs // at_once), turn_of(steps)
    v = ir.Buffer("v", (steps, POSITIONS, block.tiles, PAIR), DType.INT16, alignment=4)
    u = ir.Buffer("u", (turns, POSITIONS, steps, at_once, PAIR), DType.INT16, alignment=4)
    words = ir.Buffer("words", (turns, constants_of(at_once)), DType.INT32)
    y = ir.Buffer("y", (block.pixels, outputs), DType.INT8)
    inputs_bytes, turn_bytes = steps * block.step_bytes, constants_of(at_once) * _WORD
    return micro_kernel.describe(
        f"winograd_rows{block.tiles}_{steps}_{outputs}_{rescaling.name}",
        (f"Winograd: products of {block.tiles} tiles of a row, {steps} steps",),
        (v, u, words, y),
        (y,),
        winograd_rows.RowMeaning(v, u, words, y, rescaling).whole(),
        "kernels/winograd_row_products.j2",
        {
            "rescaling": rescaling.values(),
            "turn": str(turn),
            "loops": turn < steps,
            "inputs_bytes": str(inputs_bytes),
            "position_bytes": str(block.position_bytes),
            "inputs_bytes_but_one": str(inputs_bytes - block.position_bytes),
            "constants_bytes": str(turns * turn_bytes),
            "turn_bytes": str(turn_bytes),
            "channels": str(outputs),
            "place": str(turn_bytes - _WORD),
            "loads": _loads(block),
            "sums": [f"r{n}" for n in range(_SUMS)],
            "pairs": [
                {"first": f"r{n}", "second": f"r{n + 1}", "place": str(n * _WORD)}
                for n in range(0, _SUMS, PAIR)
            ],
            "outputs": [
                [
                    {
                        "sum": f"r{tile * at_once + number}",
                        "offset": str(tile * OUTPUTS * outputs + number),
                    }
                    for tile in range(block.tiles)
                ]
                for number in range(at_once)
            ],
        },
        stack_bytes=100,
    )


def _loads(block: Block) -> list[dict[str, object]]:
    """Return how the words of a step are loaded, two at a time, and which products each ends.

    Two of one operand stay, and of the other those behind come first: the last load goes on.
    """
    weights, inputs = ("r8", "r9"), ("r10", "r11")
    w = {
        "registers": ", ".join(weights),
        "at": "r12",
        "behind": "8",
        "bytes": str(block.at_once * _WORD),
    }
    x = {"registers": ", ".join(inputs), "at": "lr", "behind": "8", "bytes": str(block.step_bytes)}
    is_wide = block.tiles > PAIR
    first, split = (w, x) if is_wide else (x, w)

    def products(second: bool) -> list[dict[str, str]]:
        tiles = range(PAIR) if not is_wide else range(PAIR * second, PAIR * second + PAIR)
        numbers = range(PAIR) if is_wide else range(PAIR * second, PAIR * second + PAIR)
        return [
            {
                "sum": f"r{tile * block.at_once + number}",
                "input": inputs[tile % PAIR],
                "weight": weights[number % PAIR],
            }
            for tile in tiles
            for number in numbers
        ]

    return [
        {**first, "behind": "", "products": []},
        {**split, "products": products(True)},
        {**split, "behind": "", "products": products(False)},
    ]
