"""Counting from machine code: loops with counters, branches on data, loops on data."""

from __future__ import annotations

import pytest

from microtir.profiling.disassembly import parse
from microtir.profiling.measure import Region
from microtir.profiling.static_count import Path, UncountableError, Walk
from microtir.profiling.thumb import THUMB

CALLER = """
00000100 <run_m>:
 100:\tpush\t{r3, lr}
 102:\tbl\t110 <m_run>
 106:\tpop\t{r3, pc}
 108:\tnop
00000110 <m_run>:
"""
SPILLED = """
 110:\tpush\t{r4, lr}
 112:\tsub\tsp, #8
 114:\tmovs\tr3, #10
 116:\tstr\tr3, [sp, #4]
 118:\tldr\tr3, [sp, #4]
 11a:\tsubs\tr3, #1
 11c:\tstr\tr3, [sp, #4]
 11e:\tbne.n\t118 <m_run+0x8>
 120:\tadd\tsp, #8
 122:\tpop\t{r4, pc}
 124:\tnop
"""
# A pointer up to a limit, in steps of 3 words.
POINTER = """
 110:\tldr\tr0, [pc, #12]
 112:\tadd.w\tr1, r0, r2, lsl #2
 116:\tldmia\tr0!, {r2, r3, r4}
 118:\tcmp\tr0, r1
 11a:\tbcc.n\t116 <m_run+0x6>
 11c:\tbx\tlr
 11e:\tnop
"""
LOW_OVERHEAD = """
 110:\tpush\t{r4, lr}
 112:\tmovs\tr3, #5
 114:\tdls\tlr, r3
 118:\tvldrw.u32\tq0, [r1], #16
 11c:\tle\tlr, 118 <m_run+0x8>
 120:\tmovs\tr3, #33
 122:\tdlstp.8\tlr, r3
 126:\tvldrb.u8\tq0, [r1], #16
 12a:\tletp\tlr, 126 <m_run+0x16>
 12e:\tpop\t{r4, pc}
 130:\tnop
"""
# Where the input is not negative, two instructions more; each of 3 turns has its own jump back.
BRANCH = """
 110:\tmovs\tr3, #3
 112:\tldr\tr2, [r0, r3]
 114:\tcmp\tr2, #0
 116:\tbge.n\t11e <m_run+0xe>
 118:\tsubs\tr3, #1
 11a:\tbne.n\t112 <m_run+0x2>
 11c:\tbx\tlr
 11e:\tadds\tr2, #1
 120:\tstr\tr2, [r0, r3]
 122:\tsubs\tr3, #1
 124:\tbne.n\t112 <m_run+0x2>
 126:\tbx\tlr
 128:\tnop
"""
# A quotient of a constant, zero for a division by zero, is the number of turns.
QUOTIENT = """
 110:\tmovs\tr3, #13
 112:\tmovs\tr2, #3
 114:\tudiv\tr3, r3, r2
 118:\tmovs\tr2, #0
 11a:\tudiv\tr2, r3, r2
 11e:\tadds\tr2, #1
 120:\tcmp\tr2, r3
 122:\tbne.n\t11e <m_run+0xe>
 124:\tbx\tlr
 126:\tnop
"""
# Conditional instructions count whether or not they act.
CHOICE = """
 110:\tldr\tr0, [r0, #0]
 112:\tmovs\tr3, #4
 114:\tcmp\tr0, #7
 116:\tite\tge
 118:\tmovge\tr0, #7
 11a:\taddlt\tr0, #1
 11c:\tcmp\tr3, #4
 11e:\tit\tne
 120:\tbxne\tlr
 122:\tbx\tlr
 124:\tnop
"""
ON_DATA = """
 110:\tldr\tr0, [r0, #0]
 112:\tsubs\tr0, #1
 114:\tbne.n\t112 <m_run+0x2>
 116:\tbx\tlr
 118:\tnop
"""
# A pointer to code that the input has.
THROUGH_DATA = """
 110:\tldr\tr0, [r0, #0]
 112:\tbx\tr0
 114:\tnop
"""


def walked(code: str) -> tuple[Path, set[int]]:
    """Count the instructions of `m_run`."""
    program = parse(CALLER + code)
    last = max(program)
    walk = Walk(THUMB, program, [Region("m_run", None, 0x110, last)])
    limits = (0x2000_0000).to_bytes(4, "little")
    return walk.count(0x100, [(0x120, limits)]), walk.branches


@pytest.mark.parametrize(
    ("code", "count"),
    [
        (SPILLED, 4 + 10 * 4 + 2),
        (POINTER.replace("r2, lsl #2", "#96"), 2 + 8 * 3 + 1),
        (LOW_OVERHEAD, 3 + 5 * 2 + 2 + 3 * 2 + 1),
        (CHOICE, 10),
        (QUOTIENT, 5 + 4 * 3 + 1),
    ],
)
def test_loops_are_counted(code: str, count: int) -> None:
    """Counters in registers and on the stack, pointers, hardware loops: the count is exact."""
    path, branches = walked(code)
    assert (dict(path.counts), path.least) == ({"m_run": count}, count)
    assert not branches


def test_another_bound_is_noticed() -> None:
    """A program whose loop turns once more has another count."""
    path, _ = walked(SPILLED.replace("#10", "#11"))
    assert path.counts["m_run"] == 4 + 11 * 4 + 2


def test_both_sides_are_followed() -> None:
    """A branch on data is named; the longer side of each turn counts, and the shorter as least."""
    path, branches = walked(BRANCH)
    assert branches == {0x116}
    assert path.counts["m_run"] == 1 + 3 * 7 + 1
    assert path.least == 1 + 3 * 5 + 1


@pytest.mark.parametrize(
    ("code", "what", "address"),
    [
        (ON_DATA, "the turns of a loop depend on data", 0x114),
        (THROUGH_DATA, "a jump depends on data", 0x112),
        (POINTER, "the turns of a loop depend on data", 0x11A),
        ("\n 110:\tb.n\t200 <away>\n 112:\tnop\n", "there is no code where a jump leads", 0x200),
    ],
)
def test_what_cannot_be_followed_is_refused(code: str, what: str, address: int) -> None:
    """A loop without a bound and a jump to an unknown address are refused, with the place."""
    with pytest.raises(UncountableError, match=what) as caught:
        walked(code)
    assert caught.value.where == f"{address:x}"
