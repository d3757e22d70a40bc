"""Constants of an AVR: kept in flash, read by macros, plain arrays for every other compiler."""

from __future__ import annotations

import numpy as np
import pytest

from microtir import codegen, host
from microtir.config import CompilationConfig
from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.module.ir_module import IRModule
from microtir.tir.ir import (
    Buffer,
    BufferArgument,
    Expr,
    IntImm,
    KernelCall,
    KernelContract,
    Load,
    PrimFunc,
    Region,
    Scope,
    Store,
)
from tests.support.programs import artifact_of, config, loop

AVR = "c -mcpu=atmega2560"
TYPES = (
    DType.BOOL, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32,
    DType.INT64, DType.FLOAT32,
)  # fmt: skip


def _avr_config(name: str = "small") -> CompilationConfig:
    return CompilationConfig(targets=AVR, module_name=name)


def _values(dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Extremes of a type and values between them."""
    if dtype is DType.BOOL:
        return np.array([True, False, True])
    if dtype.is_float:
        return np.array([-1.5, 0.0, 3.25e10], dtype.value)
    return np.array([dtype.min, 1, dtype.max], dtype.value)


def _constant(dtype: DType) -> Buffer:
    values = _values(dtype)
    return Buffer(f"table_{dtype.value}", values.shape, dtype, Scope.CONSTANT, data=values)


def _copies(given: CompilationConfig) -> IRModule:
    """One function per type that copies a constant to its output."""
    functions = []
    for dtype in TYPES:
        table, out = _constant(dtype), Buffer("out", (3,), dtype)
        body = loop("i", 3, lambda i, t=table, o=out: Store(o, (i,), Load(t, (i,))))  # type: ignore[misc]
        functions.append(PrimFunc(f"copy_{dtype.value}", (out,), body, exported=True))
    return IRModule(functions=tuple(functions), config=given, is_lowered=True)


def _text(module: IRModule, suffix: str) -> str:
    return next(f.text for f in codegen.emit(module).sources if f.path.endswith(suffix))


def test_reads_are_macros_only_on_avr() -> None:
    """An AVR's constants are read by macros and placed in flash; others are plain arrays."""
    avr, plain = _copies(_avr_config()), _copies(config())
    assert "out[i] = SMALL_READ_INT8(small_copy_int8_table_int8, i);" in _text(avr, "small.c")
    assert "out[i] = small_copy_int8_table_int8[i];" in _text(plain, "small.c")
    assert "table_int8[3] SMALL_FLASH;" in _text(avr, "small_weights.h")
    assert "table_int8[3] SMALL_FLASH = {" in _text(avr, "small_weights.c")
    for suffix in ("small.c", "small_weights.h", "small_weights.c"):
        assert "FLASH" not in _text(plain, suffix)


def test_avr_code_runs_on_the_host() -> None:
    """What was generated for an AVR computes the same on the host: values of every type."""
    loaded = host.load(artifact_of(_copies(_avr_config())))
    for dtype in TYPES:
        out = np.zeros(3, dtype.value)
        loaded[f"copy_{dtype.value}"](out)
        assert np.array_equal(out, _values(dtype)), dtype


def test_array_that_is_too_large() -> None:
    """An array over 32767 bytes is refused with its size: avr-gcc could not compile it."""
    for size in (32767, 32768):
        table = Buffer("t", (size,), DType.INT8, Scope.CONSTANT, data=np.zeros(size, np.int8))
        out = Buffer("out", (1,), DType.INT8)
        body = Store(out, (IntImm(0),), Load(table, (IntImm(0),)))
        function = PrimFunc("f", (out,), body, exported=True)
        module = IRModule(functions=(function,), config=_avr_config(), is_lowered=True)
        if size == 32767:
            assert "small_f_t[32767]" in _text(module, "small_weights.h")
            continue
        with pytest.raises(UsageError, match="constant of 32768 bytes") as caught:
            codegen.emit(module)
        assert caught.value.where == "f"


def test_double_constants() -> None:
    """Constants of 64-bit floats are refused: an AVR's double has 32 bits."""
    table = Buffer("t", (2,), DType.FLOAT64, Scope.CONSTANT, data=np.zeros(2))
    out = Buffer("out", (2,), DType.FLOAT64)
    body = loop("i", 2, lambda i: Store(out, (i,), Load(table, (i,))))
    function = PrimFunc("f", (out,), body, exported=True)
    module = IRModule(functions=(function,), config=_avr_config(), is_lowered=True)
    with pytest.raises(UsageError, match="64-bit floats are not supported"):
        codegen.emit(module)


def test_constant_passed_by_pointer() -> None:
    """A micro-kernel that takes a constant by pointer is refused on an AVR, and only there."""
    source, out = Buffer("source", (3,), DType.INT8), Buffer("out", (3,), DType.INT8)
    first: tuple[Expr, ...] = (IntImm(0),)
    meaning = PrimFunc("kernel", (source, out), Store(out, first, Load(source, first)))
    table = _constant(DType.INT8)
    result = Buffer("result", (3,), DType.INT8)
    call = KernelCall(
        meaning,
        (BufferArgument(table, first), BufferArgument(result, first)),
        KernelContract((Region(source, first, (1,)),), (Region(out, first, (1,)),)),
    )
    function = PrimFunc("f", (result,), call, exported=True)

    def module(given: CompilationConfig) -> IRModule:
        return IRModule(functions=(function,), config=given, is_lowered=True)

    assert "small_kernel(small_f_table_int8, result);" in _text(module(config()), "small.c")
    with pytest.raises(UsageError, match="'table_int8' is passed by pointer"):
        codegen.emit(module(_avr_config()))
