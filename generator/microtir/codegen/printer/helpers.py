"""Lists the small C functions that printed expressions call, and what each of them needs.

Their text lies in `templates/c/helpers/`, one file each; a generated file holds only those that
it uses.  They are static, so that two models in one program never collide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from microtir.codegen.printer.c_types import C_TYPES, float_literal
from microtir.dtype import DType
from microtir.tir import float_functions, float_power
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
    suffix: str = ""  # ends the names of helpers for the same type
    symbol: str = ""  # the operator of C that it applies
    step: str = ""  # the helper that adds to a product
    form: str = ""  # the end of the names of helpers with such steps, or a form of its text
    is_shared: bool = False  # compilers must not copy it to where it is called


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
    "sign_mask": _SIGNED,
    "less_mask": _SIGNED,
    "masked_min": _SIGNED,
    "masked_max": _SIGNED,
    "masked_near_min": _SIGNED,
    "masked_near_max": _SIGNED,
    "masked_select": _SIGNED,
    "masked_truncdiv": _SIGNED,
    "masked_shift_left": _SIGNED,
})  # fmt: skip
_NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "sign_mask": ("shift_right",),
    "less_mask": ("sign_mask",),
    "masked_min": ("less_mask",),
    "masked_max": ("less_mask",),
    "masked_near_min": ("sign_mask",),
    "masked_near_max": ("sign_mask",),
    "masked_truncdiv": ("sign_mask", "shift_right"),
    "masked_shift_left": ("shift_left",),
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
_DOUBLING = Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL.value
LONG_PRODUCT, UPPER_WORD = "long_product", "upper_word"
_MASKED_FIXED_POINT: Mapping[Intrinsic, tuple[str, ...]] = MappingProxyType({
    Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL: (
        LONG_PRODUCT, "shift_right_i64", "sign_mask_i32",
    ),
    Intrinsic.ROUNDING_DIVIDE_BY_POT: ("shift_right_i32", "sign_mask_i32"),
    Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER: (
        f"masked_{Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL.value}",
        f"masked_{Intrinsic.ROUNDING_DIVIDE_BY_POT.value}",
    ),
    Intrinsic.COUNT_LEADING_ZEROS: ("sign_mask_i32",),
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


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Literals of a polynomial: that of the highest power, and the others."""

    first: str
    others: tuple[str, ...]


def _coefficients(literals: Iterable[str]) -> Coefficients:
    first, *others = literals
    return Coefficients(first, tuple(others))


def _word(number: int) -> str:
    return f"0x{number:08X}u"


def _float(number: float) -> str:
    return float_literal(number, DType.FLOAT32)


def _bits(number: float) -> str:
    return _word(int(np.float32(number).view(np.uint32)))


_MULTIPLY_ADD = "multiply_add"
NUMBERS: Mapping[str, str | tuple[str, ...] | Coefficients] = MappingProxyType({
    **{
        name.lower(): _float(getattr(float_functions, name))
        for name in (
            "LOG2_E", "LN2_HIGH", "LN2_LOW", "SHIFTER", "NEAR", "HIGHEST", "LOWEST", "SMALL",
            "TWO_BY_PI", "QUARTER_HIGH", "QUARTER_MIDDLE", "QUARTER_LOW", "QUARTER",
            "QUARTER_REST", "HALF", "HALF_REST",
        )
    },
    **{
        name: _coefficients(map(_float, numbers))
        for name, numbers in float_functions.POLYNOMIALS.items()
    },
    **{
        f"{name.lower()}_bits": _bits(getattr(float_functions, name))
        for name in ("TINY", "FAR", "LEAST_REST")
    },
    "digits": tuple(map(_word, float_functions.DIGITS)),
    "quarter_digits": _word(float_functions.QUARTER_DIGITS),
    "factors": tuple(map(str, float_power.FACTORS)),
    "logarithms": tuple(f"UINT64_C(0x{number:016X})" for number in float_power.LOGARITHMS),
    "log2": _coefficients(f"{number}u" for number in float_power.LOG2),
    "exp2": _coefficients(f"{number}u" for number in float_power.EXP2),
    "least_rest": _word(float_power.LEAST_REST),
})  # fmt: skip
"""Literals of what the forms of float functions are made of."""

_ZEROS = Intrinsic.COUNT_LEADING_ZEROS.value
_TURNED, _BESIDE, _POWER = "turned", "beside_quarters", "power_of_size"
_BUILT_ON: Mapping[Intrinsic, str] = MappingProxyType({
    Intrinsic.TANH: Intrinsic.EXP.value, Intrinsic.SIN: _TURNED, Intrinsic.COS: _TURNED,
})  # fmt: skip


def _stepped(of: str, fuses: bool, *needs: str, on: str | None = None) -> Helper:
    """Return a form of a function whose steps fuse, or do not; `on` is one that it calls."""
    form = "fused" if fuses else "polynomial"
    step = Intrinsic.FUSED_MULTIPLY_ADD.value if fuses else _MULTIPLY_ADD
    calls = () if on is None else (f"{on}_{form}",)
    return Helper(
        f"{of}_{form}",
        f"c/helpers/{of}.c.j2",
        C_TYPES[DType.FLOAT32],
        (step, *_APART, *calls, *needs),
        step=step,
        form=form,
    )


def _float_helpers() -> Iterator[Helper]:
    """Yield the forms of float functions and what they call."""
    f32 = C_TYPES[DType.FLOAT32]
    yield Helper(_MULTIPLY_ADD, f"c/helpers/{_MULTIPLY_ADD}.c.j2", f32, _APART)
    yield Helper(_BESIDE, f"c/helpers/{_BESIDE}.c.j2", f32, (_ZEROS,))
    yield from (_stepped(_TURNED, fuses, _BESIDE) for fuses in (False, True))
    yield Helper(_POWER, f"c/helpers/{_POWER}.c.j2", f32, (_ZEROS,))
    pow_ = Intrinsic.POW_BY_INTEGERS.value
    yield Helper(pow_, f"c/helpers/{Intrinsic.POW.value}.c.j2", f32, (_POWER,))
    yield from (
        _stepped(of.value, fuses, on=_BUILT_ON.get(of))
        for of, fuses in float_functions.OWN
        if of is not Intrinsic.POW
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
            tuple(typed_name(needed, dtype) for needed in _NEEDED.get(operation, ())),
            low="" if dtype.is_float else f"INT{dtype.bits}_MIN",
            top_bit=str(dtype.bits - 1),
            suffix=_SUFFIXES[dtype],
        )
        for operation, dtypes in _TYPED.items()
        for dtype in dtypes
    ]
    helpers += [
        Helper(name, f"c/helpers/{name}.c.j2", "int32_t", ("shift_right_i32",))
        for name in (LONG_PRODUCT, UPPER_WORD)
    ]
    helpers += [
        Helper(intrinsic.value, f"c/helpers/{intrinsic.value}.c.j2", "int32_t", needs)
        for intrinsic, needs in _FIXED_POINT.items()
    ]
    helpers += [
        Helper(f"masked_{of.value}", f"c/helpers/masked_{of.value}.c.j2", "int32_t", needs)
        for of, needs in _MASKED_FIXED_POINT.items()
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
    helpers += _float_helpers()
    helpers += [
        Helper(misalignment_test(dtype), "c/helpers/is_misaligned.c.j2", C_TYPES[dtype])
        for dtype in _WIDE
    ]
    return {helper.name: helper for helper in helpers}


HELPERS: Mapping[str, Helper] = MappingProxyType(_table())
HELPER_NAMES = frozenset(HELPERS)


def _with_parts(*, shared: bool) -> Mapping[str, Helper]:
    """Return all helpers, with those that make a product of 64 bits of four parts."""
    needs = ("shift_right_i32",)
    parted = (HELPERS[_DOUBLING], HELPERS[UPPER_WORD])
    forms = {h.name: replace(h, needs=needs, form="parts", is_shared=shared) for h in parted}
    return MappingProxyType({**HELPERS, **forms})


IN_PARTS, SHARED_PARTS = _with_parts(shared=False), _with_parts(shared=True)
"""Helpers for CPUs without long products: copied to where they are called, and not."""


def with_dependencies(
    names: Iterable[str], helpers: Mapping[str, Helper] = HELPERS
) -> tuple[Helper, ...]:
    """Return the named helpers and all that they call, each after those that it needs."""
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        wanted.add(name)
        pending += helpers[name].needs
    return tuple(helper for name, helper in helpers.items() if name in wanted)
