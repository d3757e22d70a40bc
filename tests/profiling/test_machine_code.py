"""Reading machine code: instructions, their cycles, frames on the stack, the linker's map."""

from __future__ import annotations

import pytest

from microtir.config import Target
from microtir.instruction_sets import instruction_set
from microtir.instruction_sets.arm import Arm
from microtir.instruction_sets.avr import Avr
from microtir.instruction_sets.costs import Kind
from microtir.instruction_sets.riscv import RiscV
from microtir.profiling.cycles import block_cycles, estimate
from microtir.profiling.disassembly import Instruction, parse
from microtir.profiling.link_map import LinkedSizes, Piece, model_sizes, parse_map
from microtir.profiling.measure import BlockCost
from microtir.profiling.stack_bound import StackBound, pushed, stack_bound

ARM = """
00000000 <outer>:
   0:\tpush\t{r4, lr}
   2:\tldr.w\tr3, [r3, #3464]\t@ 0xd88
   6:\tbl\t10 <inner>
   a:\tcmp\tr4, #5
   c:\tbne.n\t2 <outer+0x2>
   e:\tpop\t{r4, pc}
  0e:\t.word\t0x12345678
00000010 <inner>:
  10:\tstmdb\tsp!, {r4, r5, r6, r7, r8, r9, sl, fp, lr}
  14:\tsub\tsp, #24
  16:\tvpush\t{d8-d9}
  18:\tvpop\t{d8-d9}
  1a:\tadd\tsp, #24
  1c:\tldmia.w\tsp!, {r4, r5, r6, r7, r8, r9, sl, fp, pc}
"""
RISCV = """
80000068 <outer>:
80000068:\tadd\tsp,sp,-16
8000006a:\tsw\tra,12(sp)
8000006c:\tjal\t80000080 <inner>
80000070:\tlw\tra,12(sp) # 80005a50 <x>
80000072:\tadd\tsp,sp,16
80000074:\tret
80000080 <inner>:
80000080:\tadd\tsp,sp,-48
80000082:\tjalr\ta5
80000084:\tadd\tsp,sp,48
80000086:\tj\t80000068 <outer>
"""
AVR = """
00000100 <outer>:
 100:\tpush\tr28
 102:\tpush\tr29
 104:\tcall\t0x200\t; 0x200 <inner>
 108:\tret
00000200 <inner>:
 200:\tpush\tr2
 202:\tret
"""


def code(*lines: str) -> list[Instruction]:
    """Instructions from "mnemonic operands"."""
    words = [line.split(" ", 1) for line in lines]
    return [
        Instruction(2 * n, word[0], word[1] if len(word) > 1 else "", "f", None)
        for n, word in enumerate(words)
    ]


def cycles(cpu: str, *lines: str) -> int:
    """Cycles of instructions on a CPU."""
    target = Target(f"c -m{'arch' if cpu.startswith('rv') else 'cpu'}={cpu}")
    machine = instruction_set(target.family)
    costs = machine.cpu_costs(target.core)
    assert costs is not None
    return block_cycles(code(*lines), costs, machine)


def test_disassembly() -> None:
    """Addresses, operands without remarks, and functions that are called; data is left out."""
    found = parse(ARM)
    assert list(found) == [0, 2, 6, 10, 12, 14, 16, 20, 22, 24, 26, 28]
    assert found[2] == Instruction(2, "ldr.w", "r3, [r3, #3464]", "outer", None)
    assert found[6].target == "inner"
    assert found[12].target is None  # it stays in the function
    riscv = parse(RISCV)[0x80000070]
    assert (riscv.operands, riscv.function) == ("ra,12(sp)", "outer")
    assert parse(AVR)[0x104].target == "inner"


@pytest.mark.parametrize(
    ("mnemonic", "kind"),
    [
        ("ldr.w", Kind.LOAD),
        ("ldrsb.w", Kind.LOAD),
        ("strb", Kind.STORE),
        ("ldmia.w", Kind.LOAD_MANY),
        ("strd", Kind.STORE_MANY),
        ("push", Kind.STORE_MANY),
        ("smlad", Kind.MULTIPLY_ADD),
        ("smull", Kind.MULTIPLY_LONG),
        ("mul.w", Kind.MULTIPLY),
        ("udiv", Kind.DIVIDE),
        ("bne.n", Kind.BRANCH),
        ("cbnz", Kind.BRANCH),
        ("bl", Kind.CALL),
        ("bx", Kind.JUMP),
        ("bic.w", Kind.PLAIN),
        ("bfi", Kind.PLAIN),
        ("sxtb16", Kind.PLAIN),
        ("ssat", Kind.PLAIN),
        ("le", Kind.LOOP),
        ("vldr", Kind.LOAD),
        ("vldrb.s16", Kind.VECTOR_MEMORY),
        ("vstrw.32", Kind.VECTOR_MEMORY),
        ("vmladava.s8", Kind.VECTOR),
        ("vfma.f32", Kind.FLOAT_MULTIPLY_ADD),
        ("vmla.f32", Kind.FLOAT_MULTIPLY_ADD),
        ("vadd.f32", Kind.FLOAT),
        ("vdiv.f32", Kind.FLOAT_DIVIDE),
        ("vpush", Kind.STORE_MANY),
    ],
)
def test_kinds_of_arm(mnemonic: str, kind: Kind) -> None:
    """Instructions that cost the same are one kind."""
    assert Arm().kind_of(code(mnemonic)[0].mnemonic) is kind


@pytest.mark.parametrize(
    ("mnemonic", "kind"),
    [("lw", Kind.LOAD), ("sb", Kind.STORE), ("mulh", Kind.MULTIPLY_LONG), ("li", Kind.PLAIN),
     ("sll", Kind.PLAIN), ("beqz", Kind.BRANCH), ("jal", Kind.CALL), ("ret", Kind.JUMP),
     ("remu", Kind.DIVIDE), ("sltu", Kind.PLAIN), ("lui", Kind.PLAIN)],
)  # fmt: skip
def test_kinds_of_riscv(mnemonic: str, kind: Kind) -> None:
    """The same for RISC-V, whose names overlap with Arm's."""
    assert RiscV().kind_of(code(mnemonic)[0].mnemonic) is kind


def test_cycles_of_blocks() -> None:
    """Sums by the tables: of the manuals for M0, M3 and M4, of the assumptions for the others."""
    loads = ("ldr r0, [r1]", "ldr r2, [r1, #4]", "str r0, [r3]", "adds r0, #1")
    assert cycles("cortex-m0", *loads) == 2 + 2 + 2 + 1
    assert cycles("cortex-m4", *loads) == 2 + 1 + 1 + 1
    assert cycles("cortex-m3", "mla r0, r1, r2, r3", "ldmia r0!, {r4-r7}") == 2 + 5
    assert cycles("cortex-m4", "smlad r0, r1, r2, r3", "vpush {d8-d9}") == 1 + 5
    assert cycles("cortex-m33", "ldr r0, [r1]", "adds r2, r0, #1") == 1 + 1 + 1
    assert cycles("rv32imc", "lw a0,0(a1)", "mul a2,a0,a3", "sub a2,a2,a4") == 2 + 3 + 1


def test_two_instructions_at_once() -> None:
    """A Cortex-M7 pairs neighbours that need nothing of each other, two at most."""
    independent = ("adds r0, r1, #1", "adds r2, r3, #1", "adds r4, r5, #1", "adds r6, r7, #1")
    assert cycles("cortex-m7", *independent) == 2
    assert cycles("cortex-m7", "adds r0, r1, #1", "adds r2, r0, #1") == 2
    assert cycles("cortex-m7", "str r0, [r1]", "str r2, [r1, #4]") == 2


def test_vectors_overlap() -> None:
    """A Cortex-M55 starts a load under the arithmetic before it, and its loop end is free."""
    both = ("vldrb.s8 q0, [r0]", "vmladava.s8 r2, q0, q1")
    assert cycles("cortex-m55", *both) == 3
    assert cycles("cortex-m55", *both, "le lr, 0") == 3


def test_estimate_counts_taken_branches() -> None:
    """A block costs its cycles for each execution, and more each time it ends in a jump."""
    costs = Arm().cpu_costs(Target("c -mcpu=cortex-m4").core)
    assert costs is not None
    program = {i.address: i for i in code("ldr r0, [r1]", "bne.n 0")}
    blocks = [BlockCost("f", 0, 4, 2, executions=10, taken=9), BlockCost("g", 0, 2, 1, 3, 3)]
    assert estimate(blocks, program, costs, Arm()) == {"f": 10 * 3 + 9 * 2, "g": 3 * 2 + 6}


def test_no_table() -> None:
    """A CPU without a table has none, instead of a wrong one."""
    assert Avr().cpu_costs(Target("c -mcpu=atmega2560").core) is None


def test_frames_in_machine_code() -> None:
    """What instructions push counts together as far as it is there at once."""
    arm = parse(ARM).values()
    assert pushed([i for i in arm if i.function == "outer"], Arm()) == 8
    assert pushed([i for i in arm if i.function == "inner"], Arm()) == 36 + 24 + 16
    riscv = parse(RISCV).values()
    assert pushed([i for i in riscv if i.function == "inner"], RiscV()) == 48


def test_stack_bound() -> None:
    """Frames add up along calls; the compiler's frame counts where it is larger."""
    assert stack_bound("outer", parse(ARM), {}, Arm(), 0) == StackBound(8 + 76, ())
    larger = {"inner": 200, "outer": 4}
    assert stack_bound("outer", parse(ARM), larger, Arm(), 0) == StackBound(208, ())
    assert stack_bound("outer", parse(AVR), {}, Avr(), 3).bytes == 2 + 3 + 1 + 3
    # gcc's frames on AVR have the return address in them.
    assert stack_bound("outer", parse(AVR), {"outer": 9}, Avr(), 3).bytes == 9 + 1 + 3


def test_stack_without_a_bound() -> None:
    """Recursion and calls through pointers are said, not hidden."""
    bound = stack_bound("outer", parse(RISCV), {}, RiscV(), 0)
    assert bound.unknown == ("outer calls itself", "inner calls through a pointer")


MAP = """
Discarded input sections

 .text.gone     0x00000000       0x40 build/model/m/m.o

Linker script and memory map

.text           0x00000000     0x1000
 *(.text .text.*)
 .text.first    0x00000000       0x20 build/model/m/m.o
 .text.a_name_that_is_too_long_for_its_column
                0x00000020      0x100 build/model/m/m.o
                0x00000020                symbol
 .text          0x00000120       0x10 /usr/lib/libc.a(memcpy.o)
 .text          0x00000130        0x8 build/src/main.o

.rodata         0x00001000      0x200
 .rodata.w      0x00001000      0x1f0 build/model/m/m_weights.o
 .rodata.str1.1
                0x000011f0        0x8 build/model/m/m.o
                                  0xc (size before relaxing)

.data           0x20000000        0x4 load address 0x00001200
 .data.v        0x20000000        0x4 build/model/m/m.o

.bss            0x20000004       0x20
 .bss.workspace
                0x20000004       0x20 build/src/models.o
 COMMON         0x20000024        0x8 /usr/lib/libm.a(w.o)

.debug_info     0x00000000      0x100
 .debug_info    0x00000000      0x100 build/model/m/m.o
"""


def test_link_map() -> None:
    """Pieces that were placed, with the size that they have in the end."""
    pieces = parse_map(MAP)
    assert [(p.output, p.size) for p in pieces if p.object == "build/model/m/m.o"] == [
        (".text", 0x20),
        (".text", 0x100),
        (".rodata", 8),
        (".data", 4),
    ]
    assert pieces[-1] == Piece(".bss", 8, "/usr/lib/libm.a(w.o)", "COMMON")


def test_sizes_of_a_model() -> None:
    """Neither the application nor what the empty program has of the libraries is the model's."""
    pieces = parse_map(MAP)
    code_bytes, memcpy, libm = 0x20 + 0x100 + 8 + 4, 0x10, 8
    assert model_sizes(pieces, ()) == LinkedSizes(code_bytes + memcpy, 0x1F0, 4 + libm)
    empty = (Piece(".text", 0x10, "/usr/lib/libc.a(memcpy.o)"),)
    assert model_sizes(pieces, empty) == LinkedSizes(code_bytes, 0x1F0, 4 + libm)


def test_weights_are_what_files_of_weights_hold() -> None:
    """Those of the code, and those that a run is given; not the runtime that opens the latter."""
    objects = ("m/m_weights.o", "m/m_parameters.o", "m/m.o", "runtime/src/parameters.o")
    pieces = [Piece(".rodata", 4, f"build/model/{name}") for name in objects]
    assert [piece.is_weights for piece in pieces] == [True, True, False, False]


def test_parts_of_a_routine_that_jump_to_each_other_are_a_loop() -> None:
    """As in the division of AVR's libgcc; where one of them is called, it is recursion."""
    text = (
        "\n00000100 <outer>:\n 100:\tcall\t0x200\t; 0x200 <divide>\n 104:\tret\n"
        "00000200 <divide>:\n 200:\trjmp\t0x300\t; 0x300 <entry>\n"
        "00000300 <entry>:\n 300:\tbrne\t0x200\t; 0x200 <divide>\n 302:\tret\n"
    )
    assert stack_bound("outer", parse(text), {}, Avr(), 3) == StackBound(9, ())
    again = text.replace("brne", "call")
    assert stack_bound("outer", parse(again), {}, Avr(), 3).unknown == ("divide calls itself",)
