"""Translates instructions of RV32 into Python that computes known values (`known_values`).

Only integers are computed: the base, products, compressed forms and what compilers use of Zbb. All
else that an instruction writes is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from microtir.profiling.disassembly import Instruction
from microtir.profiling.known_values import MASK
from microtir.profiling.steps import JUMP_TARGET, Machine, Step, with_opposites

_REGISTERS = re.findall(r"\w+", "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7")
_REGISTERS += [*(f"s{number}" for number in range(2, 12)), "t3", "t4", "t5", "t6"]
_LESS = "({} - {} >> 40 & 1)"
_A, _B = (f"(({of} ^ 1 << 31) - (1 << 31))" for of in ("{a}", "{b}"))  # with their signs
_UNSIGNED = "({a} // {b} if {b} else M)"
_SIGNS = "(1 - ({a} >> 31) * 2) * (1 - ({b} >> 31) * 2)"
_SIGNED = f"({_SIGNS} * ({_A} * {_B} * {_SIGNS} // ({_B} * {_B})) if {{b}} else M)"
_RESULTS = {
    "mv": "{b}",
    "li": "{b}",
    "lui": "{b} << 12 & M",
    "auipc": "{here} + ({b} << 12) & M",
    "add": "{a} + {b} & M",
    "sub": "{a} - {b} & M",
    "and": "{a} & {b}",
    "or": "{a} | {b}",
    "xor": "{a} ^ {b}",
    "sll": "{a} << ({b} & 31) & M",
    "srl": "{a} >> ({b} & 31)",
    "sra": f"{_A} >> ({{b}} & 31) & M",
    "slt": _LESS.format(_A, _B),
    "sltu": _LESS.format("{a}", "{b}"),
    "mul": "{a} * {b} & M",
    "mulh": f"{_A} * {_B} >> 32 & M",
    "mulhu": "{a} * {b} >> 32",
    "andn": "{a} & ~{b}",
    "sext.b": "({b} & 0xFF ^ 0x80) - 0x80 & M",
    "sext.h": "({b} & 0xFFFF ^ 0x8000) - 0x8000 & M",
    "zext.h": "{b} & 0xFFFF",
    "div": f"{_SIGNED} & M",
    "divu": _UNSIGNED,
    "rem": f"{_A} - {_SIGNED} * {_B} & M",
    "remu": f"{{a}} - {_UNSIGNED} * {{b}} & M",
}
for _name, _is_less in (("min", "slt"), ("minu", "sltu")):  # extension Zbb
    _RESULTS[_name] = f"{{b}} + ({{a}} - {{b}}) * {_RESULTS[_is_less]}"
    _RESULTS[_name.replace("in", "ax")] = f"{{a}} + ({{b}} - {{a}}) * {_RESULTS[_is_less]}"
_IMMEDIATE = {f"{n}i": n for n in ("add", "and", "or", "xor", "sll", "srl", "sra", "slt")}
_IMMEDIATE["sltiu"] = "sltu"
_CONDITIONS = with_opposites(
    {
        "beq bne": "(({a} ^ {b}) - 1 >> 40 & 1)",
        "blt bge": _RESULTS["slt"],
        "bltu bgeu": _RESULTS["sltu"],
    }
)
_MEMORY = re.compile(r"([ls])([bhw])(u?)(?:sp)?")
_BYTES = {"b": 1, "h": 2, "w": 4}
_PLACE = re.compile(r"(-?\d+)?\((\w+)\)")


def _fixed(program: Iterable[Instruction]) -> dict[int, int]:
    """Return `zero` and the global pointer, which start-up code sets first."""
    first = [i for i in program if i.operands.startswith("gp,")][:2]
    if [i.mnemonic for i in first] != ["auipc", "addi"]:
        return {0: 0}
    high, low = (int(i.operands.split(",")[-1], 0) for i in first)
    return {0: 0, 3: first[0].address + (high << 12) + low & MASK}


def _value(text: str) -> str:
    """Return a constant or a register as an expression."""
    if text in _REGISTERS:
        return f"r[{_REGISTERS.index(text)}]"
    return str(int(text, 0) & MASK) if re.fullmatch(r"-?(0x)?[\da-f]+", text) else "U"


def _write(register: str, value: str) -> tuple[str, ...]:
    """Return a register's new value; that of `zero` never changes."""
    return (f"{_value(register)} = {value}",) if register in _REGISTERS[1:] else ()


def _translate(instruction: Instruction, end: int, _condition: str) -> Step:
    """Return what an instruction does."""
    name = instruction.mnemonic.removeprefix("c.")
    texts = instruction.operands.split(",") if instruction.operands else []
    if name in ("j", "jal", "jr", "jalr") or name.removesuffix("z") in _CONDITIONS:
        return _jump(name, texts, end)
    name = re.sub("(4|16)spn?$", "", name)
    name = _IMMEDIATE.get(name, name)
    if name in _RESULTS:
        a, b = (_value(text) for text in (*texts, *texts)[-2:])
        value = _RESULTS[name].format(a=a, b=b, here=instruction.address)
        return Step(_write(texts[0], value))
    if texts and (match := _MEMORY.fullmatch(name)) and (at := _PLACE.fullmatch(texts[1])):
        size, place = _BYTES[match[2]], f"{_value(at[2])} + {at[1] or 0} & M"
        if match[1] == "s":
            return Step((f"v.store({place}, {size}, {_value(texts[0])})",))
        sign = 0 if match[3] else 1 << 8 * size - 1
        return Step(_write(texts[0], f"(v.load({place}, {size}) ^ {sign}) - {sign} & M"))
    return Step(_write(texts[0], "U") if texts else ())


def _jump(name: str, texts: list[str], end: int) -> Step:
    """Return what an instruction does that jumps."""
    match = JUMP_TARGET.search(texts[-1])
    target = int(match[1], 16) if match and texts[-1] not in _REGISTERS else None
    if name.startswith("b"):
        a, b = (_value(text) for text in (*texts[:-1], "zero")[:2])
        condition = _CONDITIONS[name.removesuffix("z")].format(a=a, b=b)
        return Step((), (), condition, str(target), target)
    link = "ra" if name in ("jal", "jalr") and len(texts) == 1 else texts[0]
    is_call = name.startswith("jal") and link != "zero"
    does = _write(link, str(end)) if is_call else ()
    if target is not None:
        return Step((), does, "", str(target), target, is_call)
    at = _PLACE.fullmatch(texts[-1])
    first = f"t = {_value(at[2])} + {at[1] or 0}" if at else f"t = {_value(texts[-1])}"
    return Step((), (first, *does), "", "t & ~1 & M", None, is_call)


RV32 = Machine(32, 2, 1, _translate, _fixed, ("-M", "no-aliases"))
