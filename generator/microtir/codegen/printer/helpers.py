"""Lists the small C functions that printed expressions call, and what each of them needs.

Their text lies in `templates/c/helpers/`, one file each; a generated file holds only those that
it uses.  They are static, so that two models in one program never collide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.codegen.printer.c_types import C_TYPES, float_literal
from microtir.dtype import DType
from microtir.tir import float_functions
from microtir.tir.ir import Intrinsic

MATH_FUNCTIONS: Mapping[Intrinsic, str] = MappingProxyType({
    Intrinsic.EXP: "expf",
    Intrinsic.LOG: "logf",
    Intrinsic.SQRT: "sqrtf",
    Intrinsic.TANH: "tanhf",
    Intrinsic.SIN: "sinf",
    Intrinsic.COS: "cosf",
    Intrinsic.FLOOR: "floorf",
    Intrinsic.CEIL: "ceilf",
    Intrinsic.ROUND: "roundf",
    Intrinsic.ABS: "fabsf",
    Intrinsic.POW: "powf",
    Intrinsic.ATAN2: "atan2f",
    Intrinsic.FMOD: "fmodf",
})  # fmt: skip

MATH_HELPERS = frozenset({Intrinsic.ROUND_HALF_TO_EVEN, Intrinsic.FLOOR_DIVIDE})
"""Helpers that call functions of <math.h>."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A helper function: its name, its template, the C type it is for, the helpers it calls."""

    name: str
    template: str
    c_type: str
    needs: tuple[str, ...] = ()
    low: str = ""  # lowest value of an integer type
    top_bit: str = ""  # position of its highest bit
    symbol: str = ""  # the operator of C that it applies
    power: str = ""  # the helper of powers that it calls
    step: str = ""  # the helper that adds to a product
    first: str = ""  # coefficient of its polynomial, that of the highest power
    coefficients: tuple[str, ...] = ()  # the others


_SUFFIXES: Mapping[DType, str] = MappingProxyType({
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.UINT64: "u64",
    DType.UINT32: "u32",
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
})  # fmt: skip
_SIGNED = (DType.INT32, DType.INT64)
_TYPED: Mapping[str, tuple[DType, ...]] = MappingProxyType({
    "min": tuple(_SUFFIXES),
    "max": tuple(_SUFFIXES),
    "floor_div": _SIGNED,
    "floor_mod": _SIGNED,
    "shift_right": _SIGNED,
    "shift_left": _SIGNED,
})  # fmt: skip
_FIXED_POINT: Mapping[Intrinsic, tuple[str, ...]] = MappingProxyType({
    Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL: ("shift_right_i64",),
    Intrinsic.ROUNDING_DIVIDE_BY_POT: ("shift_right_i32",),
    Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER: (
        Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL.value,
        Intrinsic.ROUNDING_DIVIDE_BY_POT.value,
    ),
    Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER: ("shift_right_i64",),
    Intrinsic.SATURATING_SHIFT_LEFT: (),
    Intrinsic.COUNT_LEADING_ZEROS: (),
})  # fmt: skip

_WRAPPING: Mapping[Intrinsic, str] = MappingProxyType({
    Intrinsic.WRAPPING_ADD: "+",
    Intrinsic.WRAPPING_SUB: "-",
    Intrinsic.WRAPPING_MUL: "*",
})  # fmt: skip

_OF_ONE_TYPE: Mapping[Intrinsic, DType] = MappingProxyType({
    Intrinsic.FLOOR_DIVIDE: DType.FLOAT32,
    Intrinsic.FUSED_MULTIPLY_ADD: DType.FLOAT32,
    Intrinsic.ROUND_HALF_TO_EVEN: DType.FLOAT32,
    Intrinsic.NO_FP_CONTRACT: DType.FLOAT32,
    Intrinsic.POSITIVE_PART: DType.FLOAT32,
    Intrinsic.ROUND_SMALL: DType.FLOAT32,
    Intrinsic.FLOAT_OF_BITS: DType.FLOAT32,
    Intrinsic.BITS_OF_FLOAT: DType.INT32,
    Intrinsic.COMPILER_BARRIER: DType.INT32,
})  # fmt: skip
_APART = (Intrinsic.NO_FP_CONTRACT.value,)
_CALLED: Mapping[Intrinsic, tuple[str, ...]] = MappingProxyType({Intrinsic.ROUND_SMALL: _APART})


_MULTIPLY_ADD = "multiply_add"
NUMBERS: Mapping[str, str] = MappingProxyType({
    name.lower(): float_literal(getattr(float_functions, name), DType.FLOAT32)
    for name in (
        "LOG2_E", "LN2_HIGH", "LN2_LOW", "SHIFTER", "NEAR", "HIGHEST", "LOWEST", "SMALL",
    )
})  # fmt: skip
"""Literals of what the forms of float functions are made of."""


def _own(of: Intrinsic, fuses: bool) -> Helper:
    """Return the form of a float function whose steps fuse, or do not."""
    exp, tanh = (float_functions.OWN[f, fuses].value for f in (Intrinsic.EXP, Intrinsic.TANH))
    step = Intrinsic.FUSED_MULTIPLY_ADD.value if fuses else _MULTIPLY_ADD
    is_exp = of is Intrinsic.EXP
    numbers = float_functions.EXP if is_exp else float_functions.TANH
    first, *others = (float_literal(number, DType.FLOAT32) for number in numbers)
    return Helper(
        exp if is_exp else tanh,
        f"c/helpers/{of.value}.c.j2",
        C_TYPES[DType.FLOAT32],
        (step, *_APART) if is_exp else (step, exp),
        power=exp,
        step=step,
        first=first,
        coefficients=tuple(others),
    )


_WIDE = tuple(dtype for dtype in DType if dtype.bytes > 1)


def misalignment_test(dtype: DType) -> str:
    """Return the helper that tells whether an address is none for elements of a type."""
    return f"is_misaligned_{C_TYPES[dtype].removesuffix('_t')}"


def typed_name(operation: str, dtype: DType) -> str:
    """Name of the helper of an operation for a type; 8- and 16-bit types use that for INT32."""
    return f"{operation}_{_SUFFIXES.get(dtype, 'i32')}"


def _table() -> dict[str, Helper]:
    """Return all helpers, each after those that it needs."""
    helpers = [
        Helper(
            typed_name(operation, dtype),
            f"c/helpers/{operation}.c.j2",
            C_TYPES[dtype],
            low="" if dtype.is_float else f"INT{dtype.bits}_MIN",
            top_bit=str(dtype.bits - 1),
        )
        for operation, dtypes in _TYPED.items()
        for dtype in dtypes
    ]
    helpers += [
        Helper(intrinsic.value, f"c/helpers/{intrinsic.value}.c.j2", "int32_t", needs)
        for intrinsic, needs in _FIXED_POINT.items()
    ]
    helpers += [
        Helper(intrinsic.value, "c/helpers/wrapping.c.j2", C_TYPES[DType.INT64], symbol=symbol)
        for intrinsic, symbol in _WRAPPING.items()
    ]
    helpers += [
        Helper(
            intrinsic.value,
            f"c/helpers/{intrinsic.value}.c.j2",
            C_TYPES[dtype],
            _CALLED.get(intrinsic, ()),
        )
        for intrinsic, dtype in _OF_ONE_TYPE.items()
    ]
    helpers += [
        Helper(_MULTIPLY_ADD, "c/helpers/multiply_add.c.j2", C_TYPES[DType.FLOAT32], _APART)
    ]
    helpers += [_own(of, fuses) for of, fuses in float_functions.OWN]
    helpers += [
        Helper(misalignment_test(dtype), "c/helpers/is_misaligned.c.j2", C_TYPES[dtype])
        for dtype in _WIDE
    ]
    return {helper.name: helper for helper in helpers}


_HELPERS: Mapping[str, Helper] = MappingProxyType(_table())
HELPER_NAMES = frozenset(_HELPERS)


def with_dependencies(names: Iterable[str]) -> tuple[Helper, ...]:
    """Return the named helpers and all that they call, each after those that it needs."""
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        wanted.add(name)
        pending += _HELPERS[name].needs
    return tuple(helper for name, helper in _HELPERS.items() if name in wanted)
