"""Counts of printed bodies: an assembler makes as many bytes, and loops run as often as is said."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from microtir.dtype import DType
from microtir.kernels import candidates
from microtir.kernels.arm_dsp.outputs import borders
from microtir.measure.printed import count
from microtir.plan.ir import Planes, PlannedOperator
from microtir.support import resources
from microtir.support.code_templates import render
from microtir.tir import ir
from microtir.tir.function import NativeBody, NativeForm
from microtir.tir.visitor import walk
from tests.support import dsp_cases, kernel_cases
from tests.support.lstm_cases import gated
from tests.support.moving_cases import moving
from tests.support.operator_cases import generate
from tests.support.resize_cases import resized
from tests.support.svdf_cases import remembering

COMPILER = ("arm-none-eabi-gcc", "-c", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard")
# What other templates take in.
PARTS = {
    "depthwise_tap", "finish_s16", "gemm_outputs", "requantise", "sigmoid_lines", "mve/move",
    "mve/requantise",
}  # fmt: skip
_WHOLE = (
    kernel_cases.WHOLE_POOLS
    | kernel_cases.REDUCTIONS
    | kernel_cases.ELEMENTWISE
    | kernel_cases.FLOAT_EDGES
    | kernel_cases.COLUMNS
    | kernel_cases.BLOCKS
    | kernel_cases.DENSE
)
_WHOLE |= kernel_cases.ARITHMETIC
ON_CORES = [name for name in kernel_cases.CONFIGS | _WHOLE if "_dsp" in name or "_mve" in name]
OTHERS = (
    "fully_connected", "whole_depthwise", "global_average", "matmul", "matmul_of_int16",
    "transposed",
)  # fmt: skip


def layers() -> Iterator[PlannedOperator]:
    """Yield random layers with each kernel of Arm's instruction sets."""
    for name in ON_CORES:
        yield from (operator for _, operator in kernel_cases.found(name, 12))
    nodes = [getattr(dsp_cases, name)(seed).graph.nodes[0] for name in OTHERS for seed in range(4)]
    nodes += [
        dsp_cases.in_int16(seed, dsp_cases.fully_connected(seed)).graph.nodes[0]
        for seed in range(4)
    ]
    wide = (dsp_cases.with_wide_weights(seed, dsp_cases.convolution(seed)) for seed in range(8))
    nodes += [case.graph.nodes[0] for case in wide]
    nodes += [
        make(seed).graph.nodes[0]
        for make in (moving, remembering, gated, resized)
        for seed in range(18)
    ]
    for dtype in ("int8", "int16"):
        nodes.append(generate("UNIDIRECTIONAL_SEQUENCE_LSTM", 300, dtype).graph().nodes[0])
    nodes.append(generate("SVDF", 300, "int8").graph().nodes[0])
    for node in nodes:
        for config in (kernel_cases.M4, kernel_cases.M55):
            yield from (PlannedOperator(node, c) for c in candidates(node, config) if c.is_plain)


def bodies() -> dict[tuple[str, str], str]:
    """Return what is printed for these layers, by template and name."""
    texts: dict[tuple[str, str], str] = {}
    for operator in layers():
        for call in walk(kernel_cases.emitted(operator, {}).body):
            if isinstance(call, ir.KernelCall) and call.template:
                native = native_of(call.meaning)
                if native.form is NativeForm.ASSEMBLY:
                    text = render(call.template, **native.values)
                    texts[call.template, call.meaning.name] = text
    planes = borders(Planes(2, 12), 3, 7, 5, DType.INT8)
    assert planes.assembly is not None
    texts[planes.assembly, ""] = render(planes.assembly, **native_of(planes.meaning).values)
    return texts


def native_of(meaning: ir.PrimFunc) -> NativeBody:
    """Return the native body of a micro-kernel that has one."""
    assert meaning.kernel is not None and meaning.kernel.native is not None
    return meaning.kernel.native


@pytest.mark.tools
def test_an_assembler_makes_as_many_bytes(tmp_path: Path) -> None:
    """Random bodies of every template of assembly, to the byte."""
    texts = bodies()
    folder = resources.templates() / "kernels"
    templates = {str(f.relative_to(folder).with_suffix("")) for f in folder.rglob("*.j2")}
    found = {t.removeprefix("kernels/").removesuffix(".j2") for t, _ in texts}
    assert found == {t for t in templates if not t.startswith("vector/")} - PARTS
    # In a string of C a backslash is doubled.
    plain = {f"body{n}": text.replace("\\\\", "\\") for n, text in enumerate(texts.values())}
    sections = (f'.section .text.{name},"ax"\n{text}\n' for name, text in plain.items())
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
    counted = [count(text).bytes for text in texts.values()]
    assert dict(zip(texts, counted, strict=True)) == dict(
        zip(texts, (made[name] for name in plain), strict=True)
    )


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
