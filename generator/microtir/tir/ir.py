"""TIR: the loop-level IR. All nodes of the language, and nothing else.

Beside it: `tir.storage` (variables and buffers), `tir.extern` (C functions outside the program) and
`tir.function` (what a function says about itself).

Vocabulary
    Buffer      typed storage with a shape; identified by identity, not by name
    Var         an immutable integer: loop variable, scalar parameter or Let-bound value
    PrimFunc    one function: ordered parameters (buffers and integers) and a body
    workspace   the one planned block of RAM that holds every activation
    ring        a buffer whose outermost extent R is smaller than the number of logical rows;
                row y lives in slot floormod(y, R)

Arithmetic is exact: an integer result that does not fit its type is an error, never a wrap.
Indices are INT32 expressions, quasi-affine in loop variables and scalar parameters, or bounded
by the type of a loaded value (look-up tables).
Nodes are immutable; a rewrite builds new nodes and returns the same object where nothing changed.
`tir.build` has the constructors that fold constants; `tir.text`, `tir.verify` and
`tir.interpreter` give the language its form, its rules and its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from microtir.dtype import DType
from microtir.tir.extern import Device, ExternFunction, ExternSource, SourceKind
from microtir.tir.function import MicroKernel, Origin, PlaneRows, RowAccess, RowPort, RowRange
from microtir.tir.storage import Array, Buffer, Dim, Param, Scope, Var

__all__ = [
    "Allocate", "Array", "Binary", "BinaryOp", "Buffer", "BufferArgument", "BufferView", "Call",
    "Cast", "DType", "Device", "Dim", "Expr", "ExternCall", "ExternFunction", "ExternSource",
    "FloatImm", "For", "If", "IntImm", "Intrinsic", "Invoke", "KernelCall", "KernelContract", "Let",
    "Load", "LoopKind", "Origin", "Param", "PrimFunc", "Region", "RowAccess", "Scope", "Select",
    "Seq", "SourceKind", "Stmt", "Store", "Unary", "UnaryOp", "Var",
]  # fmt: skip


# --- expressions --------------------------------------------------------------------------------


class BinaryOp(Enum):
    """Operands have equal types; comparisons give BOOL, the rest the operands' type."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"  # floating point only
    FLOORDIV = "floordiv"  # rounds to minus infinity; divisor is a positive constant in indices
    FLOORMOD = "floormod"  # result has the sign of the divisor
    TRUNCDIV = "truncdiv"  # rounds to zero, as C does
    MIN = "min"
    MAX = "max"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"  # arithmetic: floor division by a power of two
    BIT_AND = "&"
    BIT_OR = "|"
    BIT_XOR = "^"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    AND = "and"  # BOOL operands, evaluated left to right and lazily
    OR = "or"

    is_comparison: bool
    is_bool: bool  # whether the result is BOOL

    def __init__(self, spelling: str) -> None:
        self.is_comparison = spelling in ("==", "!=", "<", "<=", ">", ">=")
        self.is_bool = self.is_comparison or spelling in ("and", "or")


class UnaryOp(Enum):
    NEG = "-"
    NOT = "not"  # BOOL operand


class Intrinsic(Enum):
    """Scalar functions of the language; `tir.intrinsics` holds signatures and exact meanings.

    The fixed-point ones are gemmlowp's and TFLite's definitions, on INT32 but where more is said.
    """

    SATURATING_ROUNDING_DOUBLING_HIGH_MUL = "saturating_rounding_doubling_high_mul"
    ROUNDING_DIVIDE_BY_POT = "rounding_divide_by_pot"  # (x, exponent): half away from zero
    MULTIPLY_BY_QUANTIZED_MULTIPLIER = "multiply_by_quantized_multiplier"  # (x, m, shift)
    # (x, m, shift): x is INT64, m has 15 bits; rounded once, ties up
    MULTIPLY_BY_REDUCED_MULTIPLIER = "multiply_by_reduced_multiplier"
    SATURATING_SHIFT_LEFT = "saturating_shift_left"  # (x, n): clamped to INT32
    COUNT_LEADING_ZEROS = "count_leading_zeros"  # UINT32 -> INT32; 32 for zero
    WRAPPING_ADD = "wrapping_add"  # these three take and give INT64, modulo 2^64
    WRAPPING_SUB = "wrapping_sub"
    WRAPPING_MUL = "wrapping_mul"
    EXP = "exp"  # the float functions take and give FLOAT32
    LOG = "log"
    SQRT = "sqrt"
    TANH = "tanh"
    SIN = "sin"
    COS = "cos"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"  # half away from zero, as C's roundf
    ROUND_HALF_TO_EVEN = "round_half_to_even"
    ROUND_SMALL = "round_small"  # the same of numbers below 2^22, by two sums
    ABS = "abs"
    POW = "pow"  # these take two FLOAT32, as C's functions do
    ATAN2 = "atan2"
    FMOD = "fmod"
    FLOOR_DIVIDE = "floor_divide"  # the quotient in double, rounded down
    FUSED_MULTIPLY_ADD = "fused_multiply_add"  # (a, b, c): a * b + c, rounded once, as C's fmaf
    FLOAT_OF_BITS = "float_of_bits"  # of an INT32
    BITS_OF_FLOAT = "bits_of_float"  # as an INT32
    # The forms of functions whose bits are the same everywhere (tir/float_functions.py).
    EXP_POLYNOMIAL = "exp_polynomial"
    EXP_FUSED = "exp_fused"
    TANH_POLYNOMIAL = "tanh_polynomial"
    TANH_FUSED = "tanh_fused"
    LOG_POLYNOMIAL = "log_polynomial"
    LOG_FUSED = "log_fused"
    SIN_POLYNOMIAL = "sin_polynomial"
    SIN_FUSED = "sin_fused"
    COS_POLYNOMIAL = "cos_polynomial"
    COS_FUSED = "cos_fused"
    ATAN2_POLYNOMIAL = "atan2_polynomial"
    ATAN2_FUSED = "atan2_fused"
    POW_BY_INTEGERS = "pow_by_integers"
    POSITIVE_PART = "positive_part"  # x where it is above zero, else 0.0, of NaN too
    # The last two give x itself; their values name functions in generated C.
    NO_FP_CONTRACT = "apart"  # rounded by itself: no multiply-add is fused of it
    COMPILER_BARRIER = "in_turn"  # an INT32: compilers read it no earlier than it is asked for


@dataclass(frozen=True, slots=True)
class IntImm:
    value: int
    dtype: DType = DType.INT32  # BOOL literals are IntImm 0 and 1


@dataclass(frozen=True, slots=True)
class FloatImm:
    value: float  # exactly representable in dtype
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class Binary:
    op: BinaryOp
    a: Expr
    b: Expr
    # Kept: to ask the operands, and theirs, at every level takes quadratic time.
    dtype: DType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType.BOOL if self.op.is_bool else self.a.dtype)


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnaryOp
    a: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Cast:
    """Value-preserving conversion; a value outside the target type is an error.

    FLOAT to integer truncates towards zero first.
    """

    dtype: DType
    value: Expr


@dataclass(frozen=True, slots=True)
class Select:
    """`then` or `otherwise`; only the chosen one is evaluated, so a guard protects its load."""

    condition: Expr
    then: Expr
    otherwise: Expr

    @property
    def dtype(self) -> DType:
        return self.then.dtype


@dataclass(frozen=True, slots=True)
class Load:
    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@dataclass(frozen=True, slots=True)
class Call:
    """Application of an intrinsic; `dtype` is that of its signature."""

    intrinsic: Intrinsic
    args: tuple[Expr, ...]
    dtype: DType


Expr: TypeAlias = Var | IntImm | FloatImm | Binary | Unary | Cast | Select | Load | Call


# --- statements ---------------------------------------------------------------------------------


class LoopKind(Enum):
    SERIAL = "serial"
    UNROLLED = "unrolled"  # replaced by copies of its body in `lower`; constant bounds
    VECTORIZED = "vectorized"  # independent iterations; serial where the target has no vectors


@dataclass(frozen=True, slots=True)
class Store:
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class For:
    """`for var in [start, stop)`; an empty range is legal and runs nothing."""

    var: Var
    start: Expr
    stop: Expr
    body: Stmt
    kind: LoopKind = LoopKind.SERIAL


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@dataclass(frozen=True, slots=True)
class Seq:
    statements: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """Names a value for the statements of `body`."""

    var: Var
    value: Expr
    body: Stmt


@dataclass(frozen=True, slots=True)
class Allocate:
    """Brings `buffer` (LOCAL or WORKSPACE, constant shape) to life for `body`; uninitialised."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True)
class BufferView:
    """A buffer argument: `buffer` from `byte_offset` on, seen as `shape` elements of `dtype`."""

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: DType
    byte_offset: int = 0


@dataclass(frozen=True, slots=True)
class Invoke:
    """Calls the PrimFunc named `function` of the same module; arguments in parameter order."""

    function: str
    args: tuple[BufferView | Expr, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """Elements `start .. start+extent` per axis of a buffer, over-read included."""

    buffer: Buffer
    start: tuple[Expr, ...]
    extent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelContract:
    """The promises of a micro-kernel: the facts that analysis uses instead of its body.

    Regions and preconditions speak about the parameters of the KernelCall's `meaning`.
    """

    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    alignment: int = 1
    scratch_bytes: int = 0
    stack_bytes: int = 0
    preconditions: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of the innermost register block.

    `meaning` is what the interpreter runs and what portable C is printed from. `template` names one
    of assembly or intrinsics, for targets that have it, which is given the values of the meaning's
    native body. Any write may come before any read.
    """

    meaning: PrimFunc
    args: tuple[BufferArgument | Expr, ...]
    contract: KernelContract
    template: str | None = None


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A buffer from the element at `indices` on, passed to a micro-kernel as a pointer."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ExternCall:
    """Calls a C function outside the program; arguments in parameter order."""

    function: ExternFunction
    args: tuple[BufferArgument | Expr, ...]


Stmt: TypeAlias = Store | For | If | Seq | Let | Allocate | Invoke | KernelCall | ExternCall


# --- functions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc:
    """A function. Buffers it never stores to are `const` in C; it returns nothing.

    It stands here because a KernelCall holds one; the types of what it says about itself are in
    `tir.function`.

    `row_range` are its last two integer parameters, if a call computes some rows only; `rows`
    declares for such a function what each parameter's rows are, and a parameter without a RowAccess
    may be read and written anywhere. `scratch` is a parameter whose contents mean nothing before
    and after a call; `pools` names the workspace pool of parameters that may lie in no other.
    `images` are those of a model's main: it computes one, and callers of the model pass so many,
    one behind the other.
    """

    name: str
    params: tuple[Param, ...]
    body: Stmt
    origin: Origin | None = None
    exported: bool = False  # callable from outside the generated file
    row_range: RowRange | None = None
    rows: Mapping[Buffer, RowAccess] = field(default_factory=lambda: MappingProxyType({}))
    scratch: Buffer | None = None
    row_port: RowPort | None = None
    plane_rows: PlaneRows | None = None  # of the output
    kernel: MicroKernel | None = None
    images: int = 1
    pools: Mapping[Buffer, str] = field(default_factory=lambda: MappingProxyType({}))
