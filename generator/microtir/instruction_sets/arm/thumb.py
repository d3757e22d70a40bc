"""Sizes of Thumb-2 instructions as an assembler encodes them: in the shortest way there is.

Source: Arm v7-M Architecture Reference Manual, A5.2, 16-bit encodings; whatever they do not cover
takes a second half-word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType

NARROW, WIDE = 2, 4

_LOW = re.compile(r"r[0-7]")
_MEMORY = re.compile(r"\[(\w+)(?:, #(\d+))?\]")
_INDEXED = re.compile(r"\[r[0-7], r[0-7]\]")
_BRANCH = re.compile(r"b(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)?")
_ALWAYS = re.compile(r"it[te]{0,3}|nop|bx|blx")
# Behind a comma that is neither within brackets nor within braces another operand begins.
_COMMA = re.compile(r",\s*(?![^\[{]*[\]}])")


def code_bytes(lines: Sequence[tuple[str, int]], targets: Mapping[int, int]) -> int:
    """Return the bytes of a text.

    Args:
        lines: instructions, each with how many times it is printed, one after the other.
        targets: of branches, by the numbers of their lines: that of the line where they lead.
    """
    within = list(_within_it(text for text, _ in lines))
    sizes = [
        times * encoded_bytes(text, in_it=in_it)
        for (text, times), in_it in zip(lines, within, strict=True)
    ]
    places = list(accumulate(sizes, initial=0))
    # Those of a branch follow from how far it reaches.
    for number, target in targets.items():
        sizes[number] = encoded_bytes(lines[number][0], places[target] - places[number])
    return sum(sizes)


def _within_it(instructions: Iterable[str]) -> Iterator[bool]:
    """Yield for each instruction whether an IT in front of it makes it conditional."""
    left = 0
    for instruction in instructions:
        yield left > 0
        name = instruction.split()[0]
        left = len(name) - 1 if name.startswith("it") else max(left - 1, 0)


def encoded_bytes(instruction: str, distance: int = 0, *, in_it: bool = False) -> int:
    """Return the bytes of an instruction.

    Args:
        instruction: a line in unified syntax, such as `ldr r0, [sp, #4]`.
        distance: bytes from a branch to its label.
        in_it: it stands behind an IT, where short forms leave the flags alone.
    """
    name, _, rest = instruction.partition(" ")
    operands = _COMMA.split(rest.strip())
    if name.endswith(".w"):
        return WIDE
    if _BRANCH.fullmatch(name):
        reach = 1 << (11 if name == "b" else 8)
        return NARROW if -reach <= distance - 4 < reach else WIDE
    if in_it:
        name = name[:-2]
    sets_flags = not in_it and name.endswith("s") and name not in _FORMS
    fits = _FORMS.get(name[:-1] if sets_flags else name)
    is_narrow = fits(operands, sets_flags or in_it) if fits else _ALWAYS.fullmatch(name)
    return NARROW if is_narrow else WIDE


def _are_low(*registers: str) -> bool:
    return all(_LOW.fullmatch(register) for register in registers)


def _is_number(operand: str, largest: int, step: int = 1) -> bool:
    number = operand.removeprefix("#")
    return operand != number and number.isdigit() and int(number) in range(0, largest + 1, step)


def _list_with(more: str) -> Callable[[Sequence[str], bool], bool]:
    """Return the form of PUSH or POP, which also take one register that is not low."""

    def fits(operands: Sequence[str], _short: bool) -> bool:
        return all(_are_low(*part.split("-")) or part == more for part in _parts(operands[0]))

    return fits


def _parts(listed: str) -> list[str]:
    return [part.strip() for part in listed.strip("{}").split(",")]


def _many(operands: Sequence[str], _short: bool) -> bool:
    base, listed = operands
    registers = (register for part in _parts(listed) for register in part.split("-"))
    return base.endswith("!") and _are_low(base[:-1], *registers)


def _access(size: int) -> Callable[[Sequence[str], bool], bool]:
    """Return the form of loads and stores of so many bytes: an offset of five bits, scaled."""

    def fits(operands: Sequence[str], _short: bool) -> bool:
        if _INDEXED.fullmatch(operands[1]):
            return len(operands) == 2 and _are_low(operands[0])
        memory = _MEMORY.fullmatch(operands[1])
        if memory is None or len(operands) > 2 or not _are_low(operands[0]):
            return False
        base, offset = memory[1], f"#{memory[2] or 0}"
        if base == "sp":
            return size == 4 and _is_number(offset, 1020, 4)
        return _are_low(base) and _is_number(offset, 31 * size, size)

    return fits


def _move(operands: Sequence[str], short: bool) -> bool:
    if operands[1].startswith("#"):
        return short and _are_low(operands[0]) and _is_number(operands[1], 255)
    return len(operands) == 2


def _add(operands: Sequence[str], short: bool) -> bool:
    target, *others = operands if len(operands) > 2 else (operands[0], *operands)
    if others[0] == "sp" and len(others) == 2 and others[1].startswith("#"):
        largest = 508 if target == "sp" else 1020
        return (target == "sp" or _are_low(target)) and _is_number(others[1], largest, 4)
    if not others[-1].startswith("#") and len(others) == 2 and target in others and not short:
        return True
    return short and _three(target, others)


def _subtract(operands: Sequence[str], short: bool) -> bool:
    target, *others = operands if len(operands) > 2 else (operands[0], *operands)
    if target == others[0] == "sp":
        return len(others) == 2 and _is_number(others[1], 508, 4)
    return short and _three(target, others)


def _three(target: str, others: Sequence[str]) -> bool:
    """Tell whether flags are set by low registers, or a low one and a small number."""
    if len(others) != 2 or not _are_low(target, others[0]):
        return False
    largest = 255 if target == others[0] else 7
    return _are_low(others[1]) or _is_number(others[1], largest)


def _compare(operands: Sequence[str], _short: bool) -> bool:
    first, second, *shift = operands
    if second.startswith("#"):
        return _are_low(first) and _is_number(second, 255)
    return not shift


def _shift(operands: Sequence[str], short: bool) -> bool:
    target, *others = operands
    if _is_number(others[-1], 31):
        return short and _are_low(target, others[0])
    return short and _two(operands, short)


def _two(operands: Sequence[str], short: bool) -> bool:
    return short and operands[0] in operands[1:] and _are_low(*operands)


def _extend(operands: Sequence[str], _short: bool) -> bool:
    return len(operands) == 2 and _are_low(*operands)


_FORMS: Mapping[str, Callable[[Sequence[str], bool], bool]] = MappingProxyType({
    "push": _list_with("lr"), "pop": _list_with("pc"), "ldm": _many, "stm": _many,
    "ldr": _access(4), "str": _access(4), "ldrh": _access(2), "strh": _access(2),
    "ldrb": _access(1), "strb": _access(1), "mov": _move, "add": _add, "sub": _subtract,
    "cmp": _compare, "lsl": _shift, "lsr": _shift, "asr": _shift,
    **dict.fromkeys(("and", "orr", "eor", "bic", "mul"), _two),
    **dict.fromkeys(("sxtb", "sxth", "uxtb", "uxth"), _extend),
})  # fmt: skip
"""Tests of operands for the 16-bit encoding, by mnemonic.

The second argument tells whether flags are set, or the instruction stands behind an IT.
"""
