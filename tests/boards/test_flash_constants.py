"""Constants in an AVR's flash, read on emulated parts with and without 64 KB of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.device.emulate import emulator_command, run_program
from microtir.dtype import DType
from microtir.module.ir_module import IRModule
from microtir.tir.build import add, cast
from microtir.tir.ir import Buffer, IntImm, Load, PrimFunc, Scope, Store, Var
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
#include <string.h>
#include "table.h"
/* Leaves the function with `number` unless element `index` has these bytes. */
#define CHECK(number, type, index, ...) do { \\
        static const uint8_t bytes[] = {__VA_ARGS__}; \\
        type value; \\
        if (table_get##number(&value, index) != TABLE_OK || \\
                sizeof value != sizeof bytes || memcmp(&value, bytes, sizeof bytes) != 0) { \\
            return number; \\
        } \\
    } while (0)
static uint8_t failed(void)
{
    CHECKS
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


def _failed(board_name: str, checks: list[str], functions: list[PrimFunc], folder: Path) -> int:
    """Return the number of the function that failed on the board, 0 if none did."""
    board = load_board(board_name)
    config = CompilationConfig(targets=board.target, module_name="table")
    module = IRModule(functions=tuple(functions), config=config, is_lowered=True)
    for source in artifact_of(module).sources:
        (folder / source.path).write_text(source.text)
    (folder / "main.c").write_text(MAIN.replace("CHECKS", "\n    ".join(checks)))
    flags = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    command = [board.toolchain.compiler, *board.toolchain.flags, *flags, "-o", "program.elf"]
    subprocess.run([*command, "main.c", "table.c", "table_weights.c"], cwd=folder, check=True)
    return run_program(emulator_command(board, folder / "program.elf"), timeout=60).status


def _check(number: int, dtype: DType, index: int, value: np.generic) -> str:
    c_type = "float" if dtype.is_float else f"{dtype.value}_t"
    return f"CHECK({number}, {c_type}, {index}, {', '.join(map(str, value.tobytes()))});"


def _constant(name: str, data: npt.NDArray[np.generic], dtype: DType) -> Buffer:
    return Buffer(name, data.shape, dtype, Scope.CONSTANT, data=data)


@pytest.mark.parametrize("board", ["uno", "atmega2560"])
def test_every_type(board: str, tmp_path: Path) -> None:
    """Elements of every type are read back as they are, extremes included."""
    functions, checks = [], []
    for number, (dtype, values) in enumerate(VALUES, start=1):
        data = np.array(values, dtype.value)
        i, out = Var("i", low=0, high=2), Buffer("out", (1,), dtype)
        body = Store(out, (IntImm(0),), Load(_constant("t", data, dtype), (i,)))
        functions.append(PrimFunc(f"get{number}", (out, i), body, exported=True))
        checks += [_check(number, dtype, index, value) for index, value in enumerate(data)]
    assert _failed(board, checks, functions, tmp_path) == 0
    wrong = [*checks, _check(8, DType.FLOAT32, 0, np.float32(-1.25))]
    assert _failed(board, wrong, functions, tmp_path) == 8


def test_beyond_64_kilobytes(tmp_path: Path) -> None:
    """Constants of 90 KB are read right to the last of them."""
    i, out = Var("i", low=0, high=29999), Buffer("out", (1,), DType.INT32)
    rng = np.random.default_rng(0)
    data = [rng.integers(-128, 128, 30000).astype(np.int8) for _ in range(3)]
    tables = [_constant(f"t{k}", values, DType.INT8) for k, values in enumerate(data)]
    a, b, c = (cast(DType.INT32, Load(table, (i,))) for table in tables)
    body = Store(out, (IntImm(0),), add(add(a, b), c))
    checks = [
        _check(1, DType.INT32, index, np.int32(sum(int(values[index]) for values in data)))
        for index in (0, 1, 2767, 2768, 5535, 5536, 14999, 29998, 29999)
    ]
    function = PrimFunc("get1", (out, i), body, exported=True)
    assert _failed("atmega2560", checks, [function], tmp_path) == 0
