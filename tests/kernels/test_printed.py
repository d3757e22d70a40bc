"""Counts of printed bodies: an assembler makes as many bytes, and loops run as often as is said."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from microtir.kernels.common.printed import count
from microtir.support.code_templates import render
from microtir.tir import ir
from microtir.tir.function import NativeForm
from microtir.tir.visitor import children
from tests.support.kernel_cases import CONFIGS, emitted, found

COMPILER = ("arm-none-eabi-gcc", "-c", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard")


def kernel_calls(statement: ir.Stmt) -> Iterator[ir.KernelCall]:
    """Yield the calls of micro-kernels within a statement."""
    if isinstance(statement, ir.KernelCall):
        yield statement
    elif isinstance(statement, ir.For | ir.If | ir.Seq | ir.Let | ir.Allocate):
        for part in children(statement):
            yield from kernel_calls(part)  # type: ignore[arg-type]


def bodies() -> dict[str, str]:
    """Return what is printed for the kernels of random layers, by its name."""
    texts: dict[str, str] = {}
    kernels = (k for k in CONFIGS if "_dsp" in k or "_mve" in k)
    # What `.irp` repeats is not counted.
    for kernel in (k for k in kernels if "winograd" not in k):
        for _, operator in found(kernel, 6):
            for call in kernel_calls(emitted(operator, {}).body):
                native = call.meaning.kernel.native if call.meaning.kernel else None
                if native and call.template and native.form is NativeForm.ASSEMBLY:
                    texts[call.meaning.name] = render(call.template, **native.values)
    return {name: text for name, text in texts.items() if ".irp" not in text}


@pytest.mark.tools
def test_an_assembler_makes_as_many_bytes(tmp_path: Path) -> None:
    """Of every kernel in assembly, to the byte."""
    texts = bodies()
    sections = (f'.section .text.{name},"ax"\n{text}\n' for name, text in texts.items())
    (tmp_path / "a.s").write_text(".syntax unified\n.thumb\n" + "".join(sections))
    subprocess.run([*COMPILER, "a.s"], cwd=tmp_path, check=True)
    said = subprocess.run(
        ["arm-none-eabi-size", "-A", "a.o"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rows = (line.split() for line in said.splitlines() if line.startswith(".text."))
    made = {row[0].removeprefix(".text."): int(row[1]) for row in rows}
    assert len(texts) > 200
    assert {name: count(text).bytes for name, text in texts.items()} == {n: made[n] for n in texts}


NEST = """
mov r4, #0 /* in front */
1:
ldr r5, [r0]
2:
.rept 3
add r4, r4, r5
.endr
subs r5, r5, #1
bne 2b
subs r6, r6, #1
blt 3f
mov r8, r9
b 1b
3:
bx lr
"""


def test_loops_run_as_often_as_is_said() -> None:
    """Ten turns of the inner loop within three of the outer one, whose last ends in its middle."""
    found_ = count(NEST)
    assert found_.loops == ("bne 2b", "b 1b")
    turns = {"bne 2b": 10, "b 1b": 3}
    assert found_.instructions(turns) == 1 + 3 + 10 * (3 + 2) + 3 * 2 + 2 * 2 + 1
    assert found_.instructions({"bne 2b": 20, "b 1b": 6}, calls=2) == 2 * found_.instructions(turns)


def test_every_loop_has_its_turns() -> None:
    """A loop of which nothing is said is an error of the kernel."""
    with pytest.raises(AssertionError, match="bne 2b"):
        count(NEST).instructions({"b 1b": 3})
