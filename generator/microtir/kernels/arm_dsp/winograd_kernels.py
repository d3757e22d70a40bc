"""The micro-kernels of Winograd's convolutions for Arm's DSP extension.

Windows are copied as bytes, two in each element of scratch, whose other elements are transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from microtir import te
from microtir.dtype import DType
from microtir.kernels.arm_dsp.copying import copy_values
from microtir.kernels.common import micro_kernel, winograd
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.kernels.common.winograd import (
    COLUMNS,
    OUTPUTS,
    PAIR,
    PIXELS,
    POSITIONS,
    SIDE,
    TAPS,
    TILES,
    constants_of,
)
from microtir.schedule import KernelDescription
from microtir.tir import ir

IMMEDIATE = 4095  # largest offset of a load, and number that is added
_STRAIGHT, _TURN = 16, 8  # steps of a sum without a loop, and of a turn
_WORD = 4
_CONSTANTS = constants_of(PAIR)
_POSITION_BYTES = TILES * _WORD
_CHANNEL_BYTES = POSITIONS * _POSITION_BYTES  # of a pair of input channels


@made_once
def move(size: int) -> KernelDescription:
    """Move `size` bytes, two into each element, up to whole words; parameters: from, to."""
    source = ir.Buffer("source", (size,), DType.INT8)
    elements, whole = winograd.padded(size) // 2, size // 2
    target = ir.Buffer("target", (elements,), DType.INT16, alignment=4)

    def both(n: te.Expr) -> ir.Stmt:
        low, high = (te.cast(DType.INT32, load(source, n * 2 + k)) for k in range(2))
        return store(target, (n,), te.cast(DType.INT16, (high * 256) + (low & 0xFF)))

    parts = [loop("i", 0, whole, both)]
    if size % 2:
        last = te.cast(DType.INT32, load(source, size - 1)) & 0xFF
        parts.append(store(target, (whole,), te.cast(DType.INT16, last)))
    parts += [store(target, (n,), 0) for n in range(whole + size % 2, elements)]
    return micro_kernel.describe(
        f"move_bytes_{size}",
        (f"Copies {size} bytes, as words",),
        (source, target),
        (target,),
        seq(*parts),
        "kernels/copy.j2",
        copy_values(size, is_filled=True),
        stack_bytes=16,
    )


def is_far(channels: int) -> bool:
    """Return whether loads do not reach the last pixel of the windows from the first."""
    return (SIDE * COLUMNS - 1) * channels > IMMEDIATE


@made_once
def inputs(channels: int) -> KernelDescription:
    """Transform the inputs of four tiles.

    Args:
        channels: of a pixel, whole words of bytes.

    Returns:
        Parameters: windows (4 rows, 10 columns, channels), two bytes in each element; transforms
        (pairs of channels, 16 positions, 4 tiles, 2).
    """
    windows = ir.Buffer("windows", (SIDE, COLUMNS, channels // 2), DType.INT16, alignment=4)
    v = ir.Buffer("v", (channels // 2, POSITIONS, TILES, PAIR), DType.INT16, alignment=4)
    return micro_kernel.describe(
        f"winograd_inputs_{channels}",
        (f"Winograd: inputs of four tiles, {channels} channels",),
        (windows, v),
        (v,),
        winograd.input_meaning(windows, v),
        "kernels/winograd_inputs.j2",
        _input_values(channels),
        stack_bytes=40,
    )


def _input_values(channels: int) -> dict[str, object]:
    """Return what the template is given: for both halves of words the columns, left to right."""
    halves = [
        {
            "comment": f"/* Bytes {half} and {half + 2} of each word. */",
            "rotation": ", ror #8" * half,
            "columns": _Columns(channels, half * _CHANNEL_BYTES).all(),
        }
        for half in range(PAIR)
    ]
    return {"pixel_bytes": str(channels), "row_bytes": str(COLUMNS * channels), "halves": halves}


class _Columns:
    """The columns of four tiles: each is loaded once and used by one or two tiles.

    Twelve registers hold the first two columns of a tile and one that comes.  What a column is
    transformed to along itself takes its own registers and one that is free.

    Args:
        channels: of a pixel.
        first: bytes to the first transform.
    """

    def __init__(self, channels: int, first: int) -> None:
        self.channels, self.first = channels, first

    def all(self) -> list[dict[str, object]]:
        a, b, c = ["r2", "r3", "r4", "r5"], ["r7", "r8", "r9", "r10"], ["r8", "r11", "r12", "lr"]
        columns: list[dict[str, object]] = [
            {"loads": self._loads(0, a), "steps": _down(a, "r6")},
            {"loads": self._loads(1, b), "steps": _down(b, "r3")},
        ]
        a, b = ["r2", "r6", "r4", "r5"], ["r7", "r3", "r9", "r10"]
        for tile in range(TILES):
            d = [c[1], *a[1:]]
            third, fourth = (self._loads(tile * OUTPUTS + n, x) for n, x in ((2, c), (3, d)))
            columns.append({"loads": third, "steps": self._third(tile, a, b, c)})
            columns.append({"loads": fourth, "steps": self._fourth(tile, b, d)})
            # The third and the fourth column are the first two of the next tile.
            a, b, c = [c[0], a[0], *c[2:]], [d[0], b[0], *d[2:]], [d[1], *b[1:]]
        return columns

    def _loads(self, number: int, registers: Sequence[str]) -> list[dict[str, str]]:
        """Go down the even columns and up the odd ones, if loads do not reach all rows."""
        far, rows = is_far(self.channels), list(enumerate(registers))
        pitch = 0 if far else COLUMNS * self.channels
        if far and number % 2:
            rows.reverse()
        return [
            {
                "register": register,
                "offset": str(number * self.channels + row * pitch),
                "move": ("subw" if number % 2 else "addw") if far and n else "",
            }
            for n, (row, register) in enumerate(rows)
        ]

    def _place(self, tile: int, row: int, column: int) -> str:
        position = row * SIDE + column
        return str(self.first + position * _POSITION_BYTES + tile * _WORD)

    def _third(
        self, tile: int, a: Sequence[str], b: Sequence[str], c: Sequence[str]
    ) -> list[dict[str, str]]:
        """Transform the third column, which ends the first three positions of each row."""
        place = partial(self._place, tile)
        targets = [c[0], a[0], *c[2:]]  # a[0] is free when the second of these is computed
        ends = [
            _step("ssub16", a[row], a[row], targets[row], place(row, 0)) for row in (0, 3, 1, 2)
        ]
        first, last, second, third = _down(c, a[0])
        steps = [first, ends[0], last, ends[1], second, third, *ends[2:]]
        for row in range(SIDE):
            steps.append(_step("sadd16", a[1], b[row], targets[row], place(row, 1)))
            steps.append(_step("ssub16", a[2], targets[row], b[row], place(row, 2)))
        return steps

    def _fourth(self, tile: int, b: Sequence[str], d: Sequence[str]) -> list[dict[str, str]]:
        """Transform the fourth column, which ends the last position of each row."""
        targets = [d[0], b[0], *d[2:]]
        ends = [
            _step("ssub16", b[row], b[row], targets[row], self._place(tile, row, 3))
            for row in (0, 3, 1, 2)
        ]
        first, last, second, third = _down(d, b[0])
        return [first, ends[0], last, ends[1], second, third, *ends[2:]]


def _down(column: Sequence[str], free: str) -> list[dict[str, str]]:
    """Transform a column along itself: its second value goes to a register that is free."""
    a, b, c, d = column
    return [
        _step("ssub16", a, a, c),
        _step("ssub16", d, b, d),
        _step("sadd16", free, b, c),
        _step("ssub16", c, c, b),
    ]


@made_once
def weights(channels: int) -> KernelDescription:
    """Transform the weights of two output channels.

    Args:
        channels: of the inputs, whole words of bytes.

    Returns:
        Parameters: weights (2, 9 taps, channels), two bytes in each element, as
        `winograd.pairs_of_bytes` gives them; transforms as `products` reads them.
    """
    source = ir.Buffer("given", (PAIR, TAPS * TAPS, channels // 2), DType.INT16, alignment=4)
    u = ir.Buffer("u", (POSITIONS, channels // 2, PAIR, PAIR), DType.INT16, alignment=4)
    return micro_kernel.describe(
        f"winograd_weights_{channels}",
        (f"Winograd: weights of two output channels, {channels} input channels",),
        (source, u),
        (u,),
        winograd.weight_meaning(source, u),
        "kernels/winograd_weights.j2",
        _weight_values(channels),
        stack_bytes=44,
    )


def lie_far(channels: int) -> bool:
    """Return whether stores do not reach the last position of the weights from the first."""
    return (POSITIONS - 1) * channels * _WORD + PAIR * _WORD > IMMEDIATE


def _weight_values(channels: int) -> dict[str, object]:
    """Return what the template is given; rows of positions may lie further than stores reach."""
    pitch, quad = channels // 2 * PAIR * _WORD, PAIR * PAIR * _WORD
    row, is_far = SIDE * pitch, lie_far(channels)
    # In the order in which they are stored.
    rows = {
        "first": (0, "", 0), "last": (3 * row, "add", 3 * row),
        "second": (row, "sub", 2 * row), "third": (2 * row, "add", row),
    }  # fmt: skip
    places = ("first", "sum", "difference", "last")

    def stores(half: int, start: int, move: str, by: int) -> dict[str, str]:
        first = half * PAIR * _WORD + (0 if is_far else start)
        reached = {name: str(first + n * pitch) for n, name in enumerate(places)}
        return {"move": move if is_far else "", "by": str(by), **reached}

    halves = [
        {
            "comment": f"/* Bytes {half} and {half + 2} of each word. */",
            "rotation": ", ror #8" * half,
            "loads": [
                {"register": f"r{2 + tap}", "offset": str(tap * channels)}
                for tap in range(TAPS * TAPS)
            ],
            **{name: stores(half, *places) for name, places in rows.items()},
        }
        for half in range(PAIR)
    ]
    return {
        "channels": str(channels),
        "next_bytes": str((TAPS * TAPS - 1) * channels),
        "ends_bytes": str((TAPS * TAPS + 1) * channels),
        "quad_bytes": str(quad),
        "back_bytes": str(channels // QUAD * quad - _WORD),
        "return_bytes": str(2 * row) if is_far else "",
        "halves": halves,
    }


def _step(op: str, to: str, a: str, b: str, place: str = "") -> dict[str, str]:
    return {"op": op, "to": to, "a": a, "b": b, "place": place}


def _output_loads() -> list[dict[str, object]]:
    """Return how two channels of a tile become outputs.

    Registers r0 to r3 are those of the first row, the channels of a column beside each other, and
    r4 to r7 those of the second.
    """
    first, second = ["r0", "r1", "r2", "r3"], ["r4", "r5", "r6", "r7"]
    loads: list[dict[str, object]] = []

    def load(row: int, column: int, steps: list[dict[str, str]], registers: str = "r8, r9") -> None:
        behind = POSITIONS - 1 - (row * SIDE + column)
        place = str(behind * TILES * PAIR * _WORD)
        loads.append({"registers": registers, "place": place, "steps": steps})

    def change(ops: tuple[str, str], sums: Sequence[str]) -> list[dict[str, str]]:
        """Add to, or subtract from, the sums of both columns; an empty one leaves them."""
        pairs = zip((ops[0], ops[0], ops[1], ops[1]), sums, ("r8", "r9") * 2, strict=True)
        return [_step(op, to, to, x) for op, to, x in pairs if op]

    for row, (a, b, c, d) in ((1, first), (2, second)):
        load(row, 1, [], f"{a}, {b}")
        load(row, 2, [
            _step("sub", c, a, "r8"), _step("add", a, a, "r8"),
            _step("sub", d, b, "r9"), _step("add", b, b, "r9"),
        ])  # fmt: skip
        load(row, 0, change(("add", ""), (a, b, c, d)))
        load(row, 3, change(("", "sub"), (a, b, c, d)))
    inner = loads[-1]["steps"]
    assert isinstance(inner, list)
    for a, b in zip(first, second, strict=True):
        inner += [_step("add", a, a, b), _step("sub", b, a, f"{b}, lsl #1")]
    for row, sums, more, less in ((0, first, "add", "sub"), (3, second, "sub", "add")):
        load(row, 0, change((more, ""), sums))
        load(row, 1, change((more, more), sums))
        load(row, 2, change((more, less), sums))
        load(row, 3, change(("", less), sums))
    return loads


def turns_of(steps: int) -> tuple[int, int, int]:
    """Return the steps of a sum before its loop, the turns of the loop, and the steps of a turn."""
    if steps <= _STRAIGHT:
        return steps, 0, 0
    turns = (steps - 1) // _TURN
    return steps - turns * _TURN, turns, _TURN


@made_once
def products(channels: int, pairs: int, outputs: int, rescaling: Rescaling) -> KernelDescription:
    """Multiply the transforms of four tiles with weights, and make outputs of the sums.

    Args:
        channels: of the inputs, whole words of bytes.
        pairs: of output channels.
        outputs: channels of a pixel of the output.
        rescaling: of the sums.

    Returns:
        Parameters: transforms as `inputs` writes them; weights and constants as
        `winograd.arranged` and `winograd.constant_words` give them; two output rows (8 pixels,
        channels); how many of them are written: if the second is not, it is given as the first.
        Where pairs are some of more, the channel that they begin at follows, as constants say it.
    """
    steps = channels // 2
    v = ir.Buffer("v", (steps, POSITIONS, TILES, PAIR), DType.INT16, alignment=4)
    u = ir.Buffer("u", (pairs, POSITIONS, steps, PAIR, PAIR), DType.INT16, alignment=4)
    words = ir.Buffer("words", (pairs, _CONSTANTS), DType.INT32)
    first, second = (ir.Buffer(f"y{n}", (PIXELS, outputs), DType.INT8) for n in range(OUTPUTS))
    count = ir.Var("rows", low=1, high=OUTPUTS)
    before, turns, turn = turns_of(steps)
    is_part = pairs * PAIR < outputs
    channel = ir.Var("channel", low=0, high=outputs - PAIR)
    meaning = winograd.ProductMeaning(
        v, u, words, (first, second), te.as_expr(count, DType.INT32), rescaling,
        te.as_expr(channel, DType.INT32) if is_part else None,
    )  # fmt: skip
    described = micro_kernel.describe(
        f"winograd_{channels}x{pairs}_{outputs}_{rescaling.name}",
        (f"Winograd: products of four tiles, {channels} channels, by two channels per iteration",),
        (v, u, words, first, second),
        (first, second),
        meaning.whole(),
        "kernels/winograd_products.j2",
        {
            "rescaling": rescaling.values(),
            "straight": str(before - 1) if before > 1 else "",
            "turn": str(turn) if turns else "",
            "inputs_bytes": str(steps * _CHANNEL_BYTES),
            "constants_bytes": str(pairs * _CONSTANTS * _WORD),
            "pair_bytes": str(_CONSTANTS * _WORD),
            "channels": str(outputs),
            "channels_and_one": str(outputs + 1),
            "tile_bytes": str(OUTPUTS * outputs),
            "loads": _output_loads(),
        },
        stack_bytes=36 + 32 + 520,
        scalars=(count, channel) if is_part else (count,),
    )
    if not is_part:
        return described
    assert pairs == 1, "made for a turn"
    part = ((ir.IntImm(0), channel), (PIXELS, PAIR))
    writes = tuple(ir.Region(y, *part) for y in (first, second))
    return replace(described, contract=replace(described.contract, writes=writes))
