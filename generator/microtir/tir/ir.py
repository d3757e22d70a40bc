"""TIR: the loop-level IR. All nodes of the language, and nothing else.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy.typing as npt

from microtir.tir.dtype import DType

__all__ = [
    "Allocate", "Binary", "BinaryOp", "Buffer", "BufferArgument", "BufferView", "Call", "Cast",
    "DType", "Device", "Dim", "Expr", "ExternCall", "ExternFunction", "ExternSource", "FloatImm",
    "For", "If", "IntImm", "Intrinsic", "Invoke", "KernelCall", "KernelContract", "Let", "Load",
    "LoopKind", "Origin", "Param", "PrimFunc", "Region", "RowAccess", "Scope", "Select", "Seq",
    "SourceKind", "Stmt", "Store", "Unary", "UnaryOp", "Var",
]  # fmt: skip

Array: TypeAlias = npt.NDArray[Any]


# --- storage ------------------------------------------------------------------------------------


class Scope(Enum):
    """Where a buffer lives, and so who allocates it."""

    PARAMETER = "parameter"  # passed in by the caller
    CONSTANT = "constant"  # weights and tables: `data` is set, lands in flash
    WORKSPACE = "workspace"  # placed by memory planning; only in the executor's main
    LOCAL = "local"  # registers or a small stack array of one function


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """An immutable integer. Two Vars are the same only if they are the same object.

    `low` and `high` (inclusive) are the declared range of a scalar parameter; callers are
    checked against it. Loop variables and Let-bound values have none: their range follows
    from the code.
    """

    name: str
    dtype: DType = DType.INT32
    low: int | None = None
    high: int | None = None


Dim: TypeAlias = "int | Var"


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Row-major storage of `shape` elements; a rank-0 LOCAL buffer is a mutable scalar."""

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    scope: Scope = Scope.PARAMETER
    data: Array | None = None
    alignment: int = 1  # bytes, guaranteed to the kernel that reads it


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

    The fixed-point ones are gemmlowp's and TFLite's definitions, on INT32.
    """

    SATURATING_ROUNDING_DOUBLING_HIGH_MUL = "saturating_rounding_doubling_high_mul"
    ROUNDING_DIVIDE_BY_POT = "rounding_divide_by_pot"  # (x, exponent): half away from zero
    MULTIPLY_BY_QUANTIZED_MULTIPLIER = "multiply_by_quantized_multiplier"  # (x, m, shift)
    SATURATING_SHIFT_LEFT = "saturating_shift_left"  # (x, n): clamped to INT32
    COUNT_LEADING_ZEROS = "count_leading_zeros"  # UINT32 -> INT32; 32 for zero
    EXP = "exp"  # the float functions take and give FLOAT32
    LOG = "log"
    SQRT = "sqrt"
    TANH = "tanh"
    FLOOR = "floor"
    ROUND = "round"  # half away from zero, as C's roundf
    ABS = "abs"
    APART = "apart"  # x itself, rounded: compilers do not join it with what is done to it next
    IN_TURN = "in_turn"  # x itself, an INT32: compilers read it no earlier than it is asked for


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
    """What a micro-kernel promises: the facts that analysis uses instead of its body.

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

    `meaning` is a PrimFunc: what the interpreter runs and what portable C is printed from; its
    attribute "about" is a comment. `assembly` names a template for targets that have it, which is
    given the attribute "assembly" of the meaning. Any write may come before any read.
    """

    meaning: PrimFunc
    args: tuple[BufferArgument | Expr, ...]
    contract: KernelContract
    assembly: str | None = None


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A buffer from the element at `indices` on, passed to a micro-kernel as a pointer."""

    buffer: Buffer
    indices: tuple[Expr, ...]


class SourceKind(Enum):
    """How much of a C file the text of an ExternSource is."""

    FILE = "file"  # all of it
    DEFINITION = "definition"  # of the function; its prototype is printed before
    BODY = "body"  # of the function; the signature has the names of its parameters


@dataclass(frozen=True, slots=True)
class ExternSource:
    """A C file that a program with an ExternFunction is compiled with.

    `path` is relative to the generated sources. Parts that are not whole files share a file if
    they have the same path; `includes` are the headers, in the quotes of C, that they need.
    """

    path: str
    text: str
    kind: SourceKind = SourceKind.FILE
    includes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator whose driver and state are the application's.

    `name` is a C identifier. The others are C functions ``int32_t f(void *context)``, 0 for
    success: the entry function of a model activates the device before a run and deactivates it
    after; what is called on it opens and closes it.
    """

    name: str
    activate: str
    open: str
    close: str
    deactivate: str


@dataclass(frozen=True, slots=True, eq=False)
class ExternFunction:
    """A C function outside the program, and what analysis takes for granted about it.

    It may read all of the buffers `reads` and writes all of the buffers `writes`, any write before
    any read; both are parameters. With `returns_status` it returns an int32_t, 0 for success, and
    who calls it fails as it does. `meaning` is what the interpreter runs: it is given an array for
    each buffer and an int for each Var, in their order, and stores into the arrays. With a `device`
    its last parameter in C is the application's state of it, and its status reaches the
    application.
    """

    name: str  # its C identifier
    params: tuple[Param, ...]
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    meaning: Callable[..., None] | None = None
    returns_status: bool = False
    stack_bytes: int = 0  # of its variables and of what it calls, beyond what any call takes
    sources: tuple[ExternSource, ...] = ()
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class ExternCall:
    """Calls a C function outside the program; arguments in parameter order."""

    function: ExternFunction
    args: tuple[BufferArgument | Expr, ...]


Stmt: TypeAlias = Store | For | If | Seq | Let | Allocate | Invoke | KernelCall | ExternCall


# --- functions ----------------------------------------------------------------------------------

Param: TypeAlias = Buffer | Var


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a function comes from: printed as its comment, used by reports and errors.

    `facts` are finished lines such as ``input   1x49x10x1 int8, scale 0.58, zero point 83``.
    """

    operator: str  # e.g. "CONV_2D"
    node: str  # name in the model file
    index: int  # position in the model file
    facts: tuple[str, ...] = ()
    macs: int = 0  # of the operator in the model file
    macs_executed: int = 0  # what graph passes have left of them
    macs_recomputed: int = 0  # of those executed, what another function does, too
    is_partial: bool = False  # what it writes is no tensor of the model: another function finishes


@dataclass(frozen=True, slots=True)
class RowAccess:
    """Rows of a buffer that a call for the rows [y0, y1) reads or writes.

    They are [y0*stride + offset, (y1-1)*stride + offset + extent), cut to [0, height); row r lies
    in slot floormod(r, R) of a buffer whose outermost extent is R.  Where a call `adds` to rows,
    it writes a part of them and leaves what else they hold.
    """

    stride: int
    offset: int
    extent: int
    height: int
    adds: bool = False


PLANES = "planes"
"""Attribute of a function whose output is rows of planes: columns before the image, its width, and
the type of its values."""

KEPT_APART = "kept_apart"
"""Attribute of a micro-kernel that fills the registers: it stays a function of its own in C."""

SHARED = "shared"
"""Attribute of a kernel that several layers are: its buffers may lie over each other, as theirs."""


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc:
    """A function. Buffers it never stores to are `const` in C; it returns nothing.

    `rows` declares, for a function whose last parameters are the row range y0 and y1, what each
    parameter's rows are; a parameter without a RowAccess may be read and written anywhere.
    `scratch` is a parameter whose contents mean nothing before and after a call.
    """

    name: str
    params: tuple[Param, ...]
    body: Stmt
    origin: Origin | None = None
    exported: bool = False  # callable from outside the generated file
    attrs: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    rows: Mapping[Buffer, RowAccess] = field(default_factory=lambda: MappingProxyType({}))
    scratch: Buffer | None = None
