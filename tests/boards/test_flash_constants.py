"""Constants in an AVR's flash, read on emulated parts with and without 64 KB of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from microtir.config import CompilationConfig
from microtir.ir_module import IRModule
from microtir.project import load_board
from microtir.project.emulate import emulator_command, run_program
from microtir.tir.build import add, cast
from microtir.tir.dtype import DType
from microtir.tir.ir import Buffer, Expr, IntImm, Load, PrimFunc, Scope, Store, Var
from tests.support.programs import artifact_of

VALUES = (
    (DType.INT8, [-128, 1, 127]),
    (DType.UINT8, [0, 200, 255]),
    (DType.INT16, [-32768, 2, 32767]),
    (DType.UINT16, [0, 40000, 65535]),
    (DType.INT32, [-(2**31), 3, 2**31 - 1]),
    (DType.UINT32, [0, 3 * 10**9, 2**32 - 1]),
    (DType.INT64, [-(2**63), 5 * 10**12, 2**63 - 1]),
    (DType.FLOAT32, [-1.5, 0.0, 3.25e10]),
)
MAIN = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include "table.h"
static uint8_t failed(void)
{
%s
    return 0;
}
int main(void)
{
    GPIOR0 = failed();
    cli();
    SMCR = (1u << SM1) | (1u << SE);
    sleep_cpu();
    return 0;
}
"""


def _run(board_name: str, module: IRModule, checks: str, folder: Path) -> int:
    """The number of the first check that failed on the board, 0 if all are true."""
    board = load_board(board_name)
    for source in artifact_of(module).sources:
        (folder / source.path).write_text(source.text)
    (folder / "main.c").write_text(MAIN % checks)
    program = folder / "program.elf"
    flags = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    command = [board.toolchain.compiler, *board.toolchain.flags, *flags, "-o", str(program)]
    sources = [str(folder / name) for name in ("main.c", "table.c", "table_weights.c")]
    subprocess.run([*command, *sources], check=True)
    return run_program(emulator_command(board, program), timeout=60).status


def _module(board_name: str, *functions: PrimFunc) -> IRModule:
    config = CompilationConfig(targets=load_board(board_name).target, module_name="table")
    return IRModule(functions=functions, config=config, is_lowered=True)


def _element(table: Buffer, name: str) -> PrimFunc:
    """A function that copies element i of a constant to its output."""
    i, out = Var("i", low=0, high=2), Buffer("out", (1,), table.dtype)
    return PrimFunc(name, (out, i), Store(out, (IntImm(0),), Load(table, (i,))), exported=True)


@pytest.mark.parametrize("board", ["uno", "atmega2560"])
def test_every_type(board: str, tmp_path: Path) -> None:
    """Elements of every type are read back as they are, extremes included."""
    functions, checks = [], []
    for number, (dtype, values) in enumerate(VALUES, start=1):
        data = np.array(values, dtype.value)
        table = Buffer("t", (3,), dtype, Scope.CONSTANT, data=data)
        functions.append(_element(table, f"get{number}"))
        c_type = "float" if dtype.is_float else f"{dtype.value}_t"
        same = " || ".join(
            f"table_get{number}(&v, {i}) != TABLE_OK || memcmp(&v, w + {i}, sizeof v) != 0"
            for i in range(3)
        )
        octets = ", ".join(map(str, data.tobytes()))
        checks += [
            f"    {{ {c_type} v; static const uint8_t b[] = {{{octets}}};",
            f"      {c_type} w[3]; memcpy(w, b, sizeof w);",
            f"      if ({same}) return {number}; }}",
        ]
    text = "\n".join(checks)
    main = "#include <string.h>\n"
    module = _module(board, *functions)
    folder = tmp_path
    (folder / "checks.h").write_text(main)
    assert _run(board, module, text, folder) == 0
