"""Counting from machine code of RV32: what each instruction computes, counters, calls, tables."""

from __future__ import annotations

import pytest

from microtir.profiling.disassembly import parse
from microtir.profiling.measure import Region
from microtir.profiling.riscv import RV32
from microtir.profiling.static_count import Path, UncountableError, Walk

CALLER = """
00000080 <start>:
  80:\tauipc\tgp,0x20000
  84:\taddi\tgp,gp,-128 # 20000000 <__global_pointer$>
00000100 <run_m>:
 100:\tc.addi\tsp,-16
 102:\tc.swsp\tra,12(sp)
 104:\tjal\tra,110 <m_run>
 108:\tc.lwsp\tra,12(sp)
 10a:\tc.addi16sp\tsp,16
 10c:\tc.jr\tra
00000110 <m_run>:
"""
# The result in a3 is compared with a4: one instruction less if they are equal.
COMPARED = """
 110:\tlui\ta0,{0}
 114:\taddi\ta0,a0,{1}
 118:\tlui\ta1,{2}
 11c:\taddi\ta1,a1,{3}
 120:\tlui\ta4,{4}
 124:\taddi\ta4,a4,{5}
 128:\t{6}
 12c:\tbeq\ta3,a4,132 <m_run+0x22>
 130:\tc.nop
 132:\tc.jr\tra
"""
RESULTS = [
    ("add", 0xFFFFFFFF, 3, 2),
    ("sub", 2, 3, 0xFFFFFFFF),
    ("and", 12, 10, 8),
    ("or", 12, 10, 14),
    ("xor", 12, 10, 6),
    ("andn", 12, 10, 4),
    ("sll", 3, 33, 6),
    ("srl", 0x80000000, 31, 1),
    ("sra", 0x80000000, 31, 0xFFFFFFFF),
    ("slt", 0xFFFFFFFF, 0, 1),
    ("slt", 0, 0x80000000, 0),
    ("slt", 0x7FFFFFFF, 0x80000000, 0),
    ("sltu", 0xFFFFFFFF, 0, 0),
    ("sltu", 0, 0xFFFFFFFF, 1),
    ("mul", 0xFFFFFFFF, 5, 0xFFFFFFFB),
    ("mulh", 0xFFFFFFFF, 5, 0xFFFFFFFF),
    ("mulhu", 0xFFFFFFFF, 5, 4),
    ("div", 0xFFFFFFF9, 2, 0xFFFFFFFD),  # -7 / 2 is -3
    ("div", 7, 0xFFFFFFFE, 0xFFFFFFFD),
    ("div", 0x80000000, 0xFFFFFFFF, 0x80000000),
    ("div", 7, 0, 0xFFFFFFFF),
    ("divu", 0xFFFFFFF9, 2, 0x7FFFFFFC),
    ("divu", 7, 0, 0xFFFFFFFF),
    ("rem", 0xFFFFFFF9, 2, 0xFFFFFFFF),
    ("rem", 7, 0xFFFFFFFE, 1),
    ("rem", 7, 0, 7),
    ("remu", 0xFFFFFFF9, 4, 1),
    ("remu", 7, 0, 7),
    ("min", 0xFFFFFFFF, 3, 0xFFFFFFFF),
    ("minu", 0xFFFFFFFF, 3, 3),
    ("max", 0xFFFFFFFF, 3, 3),
    ("maxu", 0xFFFFFFFF, 3, 0xFFFFFFFF),
    ("addi", 7, -9, 0xFFFFFFFE),
    ("sltiu", 7, -1, 1),
    ("slti", 7, -1, 0),
    ("srai", 0x80000000, 0x4, 0xF8000000),
]
# A stored byte and half word are loaded with and without sign; then 7 turns of a loop.
STORED = """
 110:\tc.addi\tsp,-16
 112:\tc.li\ta0,-7
 114:\tc.swsp\ta0,4(sp)
 116:\tlb\ta1,4(sp)
 11a:\tlbu\ta2,4(sp)
 11e:\tlhu\ta3,4(sp)
 122:\tlh\ta4,4(sp)
 126:\tc.sub\ta3,a2
 128:\tc.sub\ta4,a1
 12a:\tsub\ta5,a3,a4
 12e:\taddi\tzero,a5,9
 132:\tlui\ta4,0x10
 136:\taddi\ta4,a4,-256
 13a:\taddi\ta2,zero,5
 13e:\tbeq\ta5,a4,144 <m_run+0x34>
 142:\tc.nop
 144:\tc.addi\ta2,-1
 146:\tc.bnez\ta2,144 <m_run+0x34>
 148:\tc.addi16sp\tsp,16
 14a:\tc.jr\tra
"""
# A pointer that begins at the global pointer ends at an address that code computes.
GLOBAL = """
 110:\taddi\ta0,gp,-16
 114:\tauipc\ta1,0x20000
 118:\taddi\ta1,a1,-276
 11c:\tsh\tzero,0(a0)
 120:\tc.addi\ta0,2
 122:\tbne\ta0,a1,11c <m_run+0xc>
 126:\tc.jr\tra
"""
# A jump through a table of constants, and a tail call whose function returns to the caller.
TABLE = """
 110:\tlui\ta0,0x1
 114:\tc.lw\ta0,4(a0)
 116:\tc.jr\ta0
 118:\tc.nop
 11a:\tjal\tzero,120 <f>
 11e:\tc.nop
00000120 <f>:
 120:\tauipc\tt1,0x0
 124:\tjalr\tt1,12(t1)
 128:\tc.jr\tra
 12a:\tc.nop
 12c:\tc.jr\tt1
"""
BRANCH = """
 110:\tc.lw\ta0,0(a0)
 112:\tblt\ta0,zero,118 <m_run+0x8>
 116:\tc.li\ta0,0
 118:\tc.jr\tra
"""
ON_DATA = """
 110:\tc.lw\ta0,0(a0)
 112:\tc.addi\ta0,-1
 114:\tc.bnez\ta0,112 <m_run+0x2>
 116:\tc.jr\tra
"""


def walked(code: str) -> tuple[Path, set[int]]:
    """Count the instructions of `m_run`."""
    program = parse(CALLER + code + " 1f0:\tc.nop\n")
    walk = Walk(RV32, program, [Region("m_run", None, 0x110, max(program))])
    return walk.count(0x100, [(0x1000, bytes(4) + (0x11A).to_bytes(4, "little"))]), walk.branches


def halves(value: int) -> tuple[str, str]:
    """Return the operands of LUI and ADDI that make a value."""
    low = (value & 0xFFF ^ 0x800) - 0x800
    return hex((value - low) >> 12 & 0xFFFFF), str(low)


@pytest.mark.parametrize(("name", "a", "b", "result"), RESULTS)
def test_results(name: str, a: int, b: int, result: int) -> None:
    """Each instruction computes what the manual says, and not the next number."""
    last = str(b) if name in ("addi", "slti", "sltiu", "srai") else "a1"
    for wanted, count in ((result, 9), (result + 1 & 0xFFFFFFFF, 10)):
        texts = (*halves(a), *halves(b), *halves(wanted), f"{name}\ta3,a0,{last}")
        path, branches = walked(COMPARED.format(*texts))
        assert (path.counts["m_run"], path.least) == (count, count)
        assert not branches


@pytest.mark.parametrize(
    ("code", "count"),
    [
        (STORED, 15 + 5 * 2 + 2),
        (STORED.replace("zero,5", "zero,6"), 15 + 6 * 2 + 2),
        (GLOBAL, 3 + 8 * 3 + 1),
        (TABLE, 4 + 2 + 2),
    ],
)
def test_known_values_are_followed(code: str, count: int) -> None:
    """The stack, the global pointer, tables of constants and calls by other registers are exact."""
    path, branches = walked(code)
    assert (dict(path.counts), path.least) == ({"m_run": count}, count)
    assert not branches


@pytest.mark.parametrize("name", ["blt", "bge", "bltu", "bgeu", "beq", "bne"])
def test_branches_on_data(name: str) -> None:
    """Both sides of a branch on data are followed, and the branch is named."""
    path, branches = walked(BRANCH.replace("blt", name))
    assert (path.counts["m_run"], path.least, branches) == (4, 3, {0x112})


def test_a_loop_on_data_is_refused() -> None:
    """The number of turns is unknown."""
    with pytest.raises(UncountableError, match="the turns of a loop depend on data") as caught:
        walked(ON_DATA)
    assert caught.value.where == "114"
