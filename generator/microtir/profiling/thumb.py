"""Translates Thumb instructions into Python that computes known values (`known_values`).

Only what addresses and counters need is computed. All else that an instruction writes, as the
results of vectors, is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from microtir.profiling.disassembly import Instruction
from microtir.profiling.known_values import MASK
from microtir.profiling.steps import JUMP_TARGET, Machine, Step, with_opposites

_FLOATS = 16  # the first of 32 registers s0 to s31, where compilers keep other registers
# Flags, where a result stands for N and Z, and elements of loops over vectors.
_N, _C, _V, _LANES = (f"r[{number}]" for number in range(48, 52))

_NAMED = {"sl": 10, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15}
_SUMS = {  # what is added
    "add": ("{a}", "{b}", "0"),
    "adc": ("{a}", "{b}", _C),
    "sub": ("{a}", "({b} ^ M)", "1"),
    "sbc": ("{a}", "({b} ^ M)", _C),
    "rsb": ("({a} ^ M)", "{b}", "1"),
}
_SHIFTS = {
    "lsl": "({a} << ({b} & 0xFF) & M)",
    "lsr": "({a} >> ({b} & 0xFF))",
    "asr": "(({a} - ({a} >> 31 << 32)) >> ({b} & 0xFF) & M)",
    "ror": "(({a} << 32 | {a}) >> ({b} & 31) & M)",
}
_OUT = {  # the bit that a shift moves into the carry
    "lsl": "{a} << {b} >> 32 & 1",
    "lsr": "{a} << 1 >> {b} & 1",
    "asr": "({a} - ({a} >> 31 << 32)) * 2 >> {b} & 1",
}
_OF_ONE = {
    "mov": "{b}",
    "mvn": "{b} ^ M",
    "uxtb": "{b} & 0xFF",
    "uxth": "{b} & 0xFFFF",
    "sxtb": "({b} & 0xFF ^ 0x80) - 0x80 & M",
    "sxth": "({b} & 0xFFFF ^ 0x8000) - 0x8000 & M",
}
_FORMS = {
    **{name: f"{a} + {b} + {c} & M" for name, (a, b, c) in _SUMS.items()},
    **_SHIFTS,
    **_OF_ONE,
    "and": "{a} & {b}",
    "orr": "{a} | {b}",
    "eor": "{a} ^ {b}",
    "bic": "{a} & ~{b}",
    "orn": "({a} | ~{b}) & M",
    "mul": "{a} * {b} & M",
    "movt": "{a} & 0xFFFF | {b} << 16",
    "mla": "{a} * {b} + {c} & M",
    "mls": "{c} - {a} * {b} & M",
    "ubfx": "{a} >> {b} & (1 << {c}) - 1",
    "udiv": "({b} and {a} // {b})",  # by zero it is zero
}
_COMPARES = {"cmp": "sub", "cmn": "add", "tst": "and", "teq": "eor"}
_ALIASES = {"neg": "rsb", "movw": "mov", "addw": "add", "subw": "sub", "vmov": "mov"}
_IS_PAIR = re.compile(r"v[id]w?dup|[us]m[lu]l|[us]ml[as]l|umaal|(asr|ls[lr]|[su]q?r?sh[lr])l")

_ZERO = "({} - 1 >> 40 & 1)"
_PAIRS = {
    "eq ne": _ZERO.format(_N),
    "cs cc": _C,
    "mi pl": f"{_N} >> 31",
    "vs vc": _V,
    "hi ls": f"({_C} & 1 - {_ZERO.format(_N)})",
    "lt ge": f"({_N} >> 31 ^ {_V})",
    "le gt": f"({_N} >> 31 ^ {_V} | {_ZERO.format(_N)})",
}
_CONDITIONS = with_opposites(_PAIRS)


def conditions(mnemonic: str, operands: str) -> list[str]:
    """Return the conditions that an IT instruction puts on those behind it."""
    names = list(_CONDITIONS)
    first = names.index(operands)
    return [names[first if letter == "t" else first ^ 1] for letter in mnemonic[1:]]


def _translate(instruction: Instruction, end: int, condition: str) -> Step:
    """Return what an instruction does, before an address, under a condition of IT or none."""
    head, _, tail = instruction.mnemonic.partition(".")
    head = head.removesuffix(condition)
    texts = _split(instruction.operands)
    here = instruction.address
    step = _jump(here, head, texts, tail, end) or _data(here, head, texts)
    if not step.leaves:
        return Step(first=_perhaps(step.does, condition))
    return replace(step, condition=_CONDITIONS[condition]) if condition else step


def _perhaps(does: tuple[str, ...], condition: str) -> tuple[str, ...]:
    """Return statements that may not be executed: what they change is unknown if that is."""
    if not condition or not does:
        return does
    inner = (f"    {line}" for line in does)
    test = (f"c = {_CONDITIONS[condition]}", "b = v.copy() if c is U else None", "if c:")
    return (*test, *inner, "if b: v.join(b)")


# --- operands ---------------------------------------------------------------------------------


def _split(operands: str) -> list[str]:
    """Return operands apart; those in brackets and braces are one."""
    return [text.strip() for text in re.findall(r"(?:\[[^]]*\]|\{[^}]*\}|[^,])+", operands)]


def _registers(text: str) -> list[int]:
    """Return the registers of a list; one of 64 bits is two of 32, one of 128 is four."""
    numbers: list[int] = []
    for name, kind, first, last in re.findall(
        r"\b(?:(sl|fp|ip|sp|lr|pc)|([rsdq])(\d+)(?:-[sdq](\d+))?)\b", text
    ):
        width = {"d": 2, "q": 4}.get(kind, 1)
        places = range(int(first or 0) * width, (int(last or first or 0) + 1) * width)
        start = 0 if kind == "r" else _FLOATS
        numbers += [_NAMED[name]] if name else [start + p for p in places if p < 32]
    return numbers


def _value(text: str, here: int, shift: str = "") -> str:
    """Return a constant or a register, which may be shifted, as an expression."""
    if text.startswith("#"):
        return str(int(text[1:], 0) & MASK) if re.fullmatch(r"#-?(0x)?[\da-f]+", text) else "U"
    if not (numbers := _registers(text)):
        return "U"
    value = str(here + 4) if text == "pc" else f"r[{numbers[0]}]"
    if not shift:
        return value
    kind, _, places = shift.partition(" #")
    return _SHIFTS[kind].format(a=value, b=places) if kind in _SHIFTS else "U"


# --- what does not jump -----------------------------------------------------------------------


def _data(here: int, head: str, texts: list[str]) -> Step:
    """Return what an instruction does that does not jump."""
    if not texts or head in ("it", "nop", "pld", "dsb", "isb", "dmb", "bkpt"):
        return Step()
    return (
        _computing(here, head, texts.copy())
        or _memory(here, head, texts)
        or _other(here, head, texts)
    )


def _computing(here: int, head: str, texts: list[str]) -> Step | None:
    """Return what an instruction that computes does, None for others."""
    known = {*_FORMS, *_ALIASES}
    is_compare = head in _COMPARES
    sets = is_compare or (head not in known and head[-1:] == "s" and head[:-1] in known)
    name = _COMPARES.get(head) or (head[:-1] if sets else head)
    if name not in known:
        return None
    if name == "vmov" and (
        [len(_registers(text)) for text in texts] != [1, 1] or "[" in str(texts)
    ):
        return None
    shift = texts.pop() if re.match(r"(lsl|lsr|asr|ror) #|rrx", texts[-1]) else ""
    texts += ["#0"] if name == "neg" else []
    name = _ALIASES.get(name, name)
    target = _registers(texts[0])[0]
    operands = texts if is_compare or name in _OF_ONE else texts[1:]
    if len(texts) == 2:
        operands = texts
    # An address is relative to a whole word.
    place = here & ~3 if operands[-1].startswith("#") else here
    values = [*(_value(text, place) for text in operands[:-1]), _value(operands[-1], here, shift)]
    a, b, c = (*values, "")[:3]
    write = () if is_compare else (f"r[{target}] = {_FORMS[name].format(a=a, b=b, c=c)}",)
    if not sets:
        return Step(does=write)
    if name in _SUMS:
        first, second, carry = (form.format(a=a, b=b) for form in _SUMS[name])
        flags = (
            f"t = {first} + {second} + {carry}",
            f"{_N} = t & M",
            f"{_C} = t >> 32",
            f"{_V} = (({first} ^ t) & ({second} ^ t)) >> 31 & 1",
        )
        return Step(does=(*flags, *write))
    kind, _, places = shift.partition(" #") if shift else (name, "", b)
    moved = _value(operands[-1], here) if shift else a
    out = _OUT.get(kind, "U").format(a=moved, b=places) if places.isdigit() else "U"
    carries = (f"{_C} = {out}",) if shift or name in _SHIFTS else ()
    return Step(does=(f"{_N} = {_FORMS[name].format(a=a, b=b)}", *carries, *write))


def _address(texts: Sequence[str], here: int) -> tuple[str, tuple[str, ...]]:
    """Return the address of an access, and what that does to the register that has it."""
    inside = _split(texts[0].rstrip("!").strip("[]"))
    base = _value(inside[0], here & ~3)
    offset = _value(inside[1], here, "".join(inside[2:])) if len(inside) > 1 else "0"
    place = f"{base} + {offset} & M"
    if texts[0].endswith("!"):
        return place, (f"{base} = {place}",)
    return place, tuple(f"{base} = {base} + {_value(by, here)} & M" for by in texts[1:2])


def _memory(here: int, head: str, texts: list[str]) -> Step | None:
    """Return what a load or a store of registers does, None for other instructions."""
    match = re.fullmatch(r"v?(?:(ldr|str)(s?)([bhd]?)|(ldm|stm|push|pop)(ia|db)?)", head)
    at = next((i for i, text in enumerate(texts) if text[0] in "[{"), len(texts))
    if match is None or texts[0][0] == "q" or at == len(texts):
        return None
    size = {"b": 1, "h": 2}.get(match[3], 4)
    numbers = [n for text in (texts[:at] if match[1] else texts[at:]) for n in _registers(text)]
    if match[1]:
        place, update = _address(texts[at:], here)
    else:
        base = _value(texts[0].rstrip("!"), 0) if at else "r[13]"
        moved, writes = 4 * len(numbers), not at or texts[0].endswith("!")
        is_down = match[4] == "push" or match[5] == "db"
        place = f"{base} - {moved} & M" if is_down else base
        update = (f"{base} = t" if is_down else f"{base} = t + {moved} & M",) * writes
    if match[1] == "str" or match[4] in ("stm", "push"):
        stores = (f"v.store(t + {4 * i}, {size}, r[{n}])" for i, n in enumerate(numbers))
        return Step(does=(f"t = {place}", *stores, *update))
    loads = [f"r[{n}] = v.load(t + {4 * i}, {size})" for i, n in enumerate(numbers)]
    sign = 1 << 8 * size - 1
    signs = (f"r[{n}] = (r[{n}] ^ {sign}) - {sign} & M" for n in numbers if match[2])
    return Step(does=(f"t = {place}", *update, *loads, *signs))


def _other(here: int, head: str, texts: list[str]) -> Step:
    """Return what any other instruction does: what it writes is unknown, but for long products."""
    if head == "umull":
        low, high, a, b = (_value(text, here) for text in texts)
        return Step(does=(f"t = {a} * {b}", f"{low} = t & M", f"{high} = t >> 32"))
    at = next((i for i, text in enumerate(texts) if text.startswith("[")), len(texts))
    lines: list[str] = []
    if texts[at:]:
        place, update = _address(texts[at:], here)
        if head.startswith("vst"):
            lines += [f"t = {place}", "for i in range(0, 64, 4): v.store(t + i, 4, U)"]
        lines += update
    count = 0 if head.startswith(("vst", "vct", "vms")) else 2 if _IS_PAIR.match(head) else 1
    if head.startswith("v") and texts[0][0] not in "dqs":
        count *= 2
    written = texts[: min(count, at)]
    lines += [f"r[{n}] = U" for text in written for n in _registers(text.split("[")[0])]
    flags = [f"{flag} = U" for flag in (_N, _C, _V) if head == "vmrs"]
    return Step(does=(*lines, *flags))


# --- what jumps -------------------------------------------------------------------------------


def _jump(here: int, head: str, texts: list[str], tail: str, end: int) -> Step | None:
    """Return what an instruction does that jumps, None for others."""
    match = JUMP_TARGET.search(", ".join(texts))
    target = int(match[1], 16) if match else None
    first = _value(texts[0], here) if texts else "U"
    link = (f"r[14] = {end | 1}",)
    if head == "b" or (head[:1] == "b" and head[1:] in _CONDITIONS):
        return Step((), (), _CONDITIONS.get(head[1:], ""), str(target), target)
    if head == "bl":
        return Step((), link, "", str(target), target, is_call=True)
    if head in ("bx", "blx"):
        is_call = head == "blx"
        return Step((), (f"t = {first}", *link * is_call), "", "t & ~1", is_call=is_call)
    if head in ("cbz", "cbnz"):
        test = ("1 - " if head == "cbnz" else "") + _ZERO.format(first)
        return Step((), (), test, str(target), target)
    if head in ("tbb", "tbh"):
        size = 1 if head == "tbb" else 2
        place = f"{here + 4} + r[{_registers(texts[0])[1]}] * {size}"
        return Step(leaves=f"{here + 4} + v.load({place}, {size}) * 2")
    if head in ("le", "letp"):
        turns = _LANES if head == "letp" else "1"
        condition = f"{turns} - r[14] >> 40 & 1"
        return Step((), (f"r[14] = r[14] - {turns}",), condition, str(target), target)
    if head in ("dls", "wls", "dlstp", "wlstp"):
        count, lanes = _value(texts[1], 0), 128 // int(tail) if tail.isdigit() else "U"
        does = (f"{_LANES} = {lanes}", f"r[14] = {count}")
        return (
            Step(does, (), _ZERO.format(count), str(target), target) if target else Step((), does)
        )
    names = _registers(texts[-1]) if head.startswith(("pop", "ldm")) else []
    if 15 in names or (texts[:1] == ["pc"] and head in ("mov", "ldr")):
        return Step((), _data(here, head, texts).does, "", "r[15] & ~1")
    return None


THUMB = Machine(52, 13, 14, _translate)
