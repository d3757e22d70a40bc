"""The structural rules of TIR, as a table: `RULES`, at the end.

A rule has a name that the error states, a sentence for the documentation, and a check that
yields one sentence per violation.  `tir.verify` applies them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from microtir.dtype import DType
from microtir.support.names import is_identifier
from microtir.tir import arithmetic, ir
from microtir.tir.initialised import uninitialised_reads
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.printer import stmt_text
from microtir.tir.visitor import invokes_of


@dataclass(slots=True)
class Context:
    """The context of a node: the definitions around it, and the functions of the module.

    `vars` and `buffers` are those whose scope holds the node; `defined` is every object defined
    so far in the function.  `functions` is None where a function is verified by itself.
    """

    func: ir.PrimFunc
    functions: Mapping[str, ir.PrimFunc] | None
    vars: set[ir.Var] = field(default_factory=set)
    buffers: set[ir.Buffer] = field(default_factory=set)
    defined: set[ir.Var | ir.Buffer] = field(default_factory=set)


Check: TypeAlias = Callable[[Any, Context], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `check` yields a sentence per violation at a node of one of the types `nodes`."""

    name: str
    description: str
    nodes: tuple[type, ...]
    check: Check


# --- expressions --------------------------------------------------------------------------------

_INTEGER_OPS = frozenset({
    ir.BinaryOp.FLOORDIV, ir.BinaryOp.FLOORMOD, ir.BinaryOp.TRUNCDIV, ir.BinaryOp.SHIFT_LEFT,
    ir.BinaryOp.SHIFT_RIGHT, ir.BinaryOp.BIT_AND, ir.BinaryOp.BIT_OR, ir.BinaryOp.BIT_XOR,
})  # fmt: skip


def _literal_fits(node: ir.IntImm | ir.FloatImm, _: Context) -> Iterator[str]:
    if isinstance(node, ir.FloatImm):
        if not node.dtype.is_float:
            yield f"a fraction has the type {node.dtype.value}"
        elif arithmetic.round_float(node.value, node.dtype) != node.value == node.value:
            yield f"{node.value!r} is not a value of {node.dtype.value}"
    elif node.dtype.is_float:
        yield f"an integer literal has the type {node.dtype.value}"
    elif not arithmetic.fits(node.value, node.dtype):
        yield f"{node.value} is not a value of {node.dtype.value}"


def _operand_types(node: ir.Binary, _: Context) -> Iterator[str]:
    if node.a.dtype is not node.b.dtype:
        a, b = node.a.dtype.value, node.b.dtype.value
        yield f"the operands of '{node.op.value}' have the types {a} and {b}"


def _operator_types(node: ir.Binary | ir.Unary, _: Context) -> Iterator[str]:
    if not _operator_accepts(node.op, node.a.dtype):
        yield f"'{node.op.value}' is not defined on {node.a.dtype.value}"


def _operator_accepts(op: ir.BinaryOp | ir.UnaryOp, dtype: DType) -> bool:
    if op in (ir.BinaryOp.AND, ir.BinaryOp.OR, ir.UnaryOp.NOT):
        return dtype is DType.BOOL
    if op in (ir.BinaryOp.EQ, ir.BinaryOp.NE):
        return True
    if op is ir.UnaryOp.NEG:
        return dtype.is_float or dtype.is_signed
    if op is ir.BinaryOp.DIV:
        return dtype.is_float
    return dtype.is_int if op in _INTEGER_OPS else dtype is not DType.BOOL


def _cast_types(node: ir.Cast, _: Context) -> Iterator[str]:
    if DType.BOOL in (node.dtype, node.value.dtype) and (
        node.dtype.is_float or node.value.dtype.is_float
    ):
        yield f"{node.value.dtype.value} is cast to {node.dtype.value}"


def _condition_is_bool(node: ir.Select | ir.If, _: Context) -> Iterator[str]:
    if node.condition.dtype is not DType.BOOL:
        yield f"the condition is {node.condition.dtype.value}"


def _branch_types(node: ir.Select, _: Context) -> Iterator[str]:
    if node.then.dtype is not node.otherwise.dtype:
        yield f"the branches are of {node.then.dtype.value} and {node.otherwise.dtype.value}"


def _call_signature(node: ir.Call, _: Context) -> Iterator[str]:
    signature = SIGNATURES[node.intrinsic]
    dtypes = tuple(a.dtype for a in node.args)
    if (dtypes, node.dtype) != (signature.parameters, signature.result):
        wanted = ", ".join(d.value for d in signature.parameters)
        yield f"{node.intrinsic.value} is ({wanted}) -> {signature.result.value}"


# --- accesses -----------------------------------------------------------------------------------


def _index_type(node: ir.Load | ir.Store | ir.BufferArgument, _: Context) -> Iterator[str]:
    for axis, index in enumerate(node.indices):
        if index.dtype is not DType.INT32:
            yield f"index {axis} of '{node.buffer.name}' is {index.dtype.value}"


def _index_rank(node: ir.Load | ir.Store | ir.BufferArgument, _: Context) -> Iterator[str]:
    count, rank = len(node.indices), len(node.buffer.shape)
    if count != rank:
        yield f"'{node.buffer.name}' has {rank} axes and {count} indices"


def _store_type(node: ir.Store, _: Context) -> Iterator[str]:
    if node.value.dtype is not node.buffer.dtype:
        yield f"a {node.value.dtype.value} is stored to '{node.buffer.name}'"


def _store_target(node: ir.Store, _: Context) -> Iterator[str]:
    if node.buffer.scope is ir.Scope.CONSTANT:
        yield f"the constant '{node.buffer.name}' is written"


def _variable_scope(node: ir.Var, context: Context) -> Iterator[str]:
    if node not in context.vars:
        yield f"the variable '{node.name}' is not defined here"


def _buffer_scope(
    node: ir.Load | ir.Store | ir.BufferArgument | ir.BufferView, context: Context
) -> Iterator[str]:
    if node.buffer not in context.buffers and node.buffer.scope is not ir.Scope.CONSTANT:
        yield f"the buffer '{node.buffer.name}' is not alive here"


def _constant_data(
    node: ir.Load | ir.Store | ir.BufferArgument | ir.BufferView, _: Context
) -> Iterator[str]:
    buffer = node.buffer
    if (buffer.data is not None) != (buffer.scope is ir.Scope.CONSTANT):
        yield f"'{buffer.name}' is {buffer.scope.value} and has {_data_text(buffer)}"
    elif buffer.data is not None and (
        buffer.data.shape != buffer.shape or buffer.data.dtype.name != buffer.dtype.value
    ):
        yield f"'{buffer.name}' has data of another shape or type: {_data_text(buffer)}"


def _data_text(buffer: ir.Buffer) -> str:
    return "no data" if buffer.data is None else f"data {buffer.data.dtype}{buffer.data.shape}"


# --- definitions --------------------------------------------------------------------------------


def _single_definition(node: ir.For | ir.Let | ir.Allocate, context: Context) -> Iterator[str]:
    item = node.buffer if isinstance(node, ir.Allocate) else node.var
    if item in context.defined:
        yield f"'{item.name}' is defined a second time"


def _loop_types(node: ir.For, _: Context) -> Iterator[str]:
    types = {node.var.dtype, node.start.dtype, node.stop.dtype}
    if len(types) > 1 or not node.var.dtype.is_int:
        names = (node.var.dtype, node.start.dtype, node.stop.dtype)
        yield f"variable, start and stop are {', '.join(d.value for d in names)}"


def _unrolled_bounds(node: ir.For, _: Context) -> Iterator[str]:
    constant = isinstance(node.start, ir.IntImm) and isinstance(node.stop, ir.IntImm)
    if node.kind is ir.LoopKind.UNROLLED and not constant:
        yield f"the bounds of the unrolled loop '{node.var.name}' are not literals"


def _let_type(node: ir.Let, _: Context) -> Iterator[str]:
    if node.var.dtype is not node.value.dtype:
        yield f"'{node.var.name}' is {node.var.dtype.value}, but its value {node.value.dtype.value}"


def _allocation(node: ir.Allocate, _: Context) -> Iterator[str]:
    buffer = node.buffer
    if buffer.scope not in (ir.Scope.LOCAL, ir.Scope.WORKSPACE):
        yield f"'{buffer.name}' is allocated and has the scope {buffer.scope.value}"
    if not all(isinstance(d, int) and d > 0 for d in buffer.shape):
        yield f"'{buffer.name}' is allocated and its shape is not constant and positive"
    if not _is_power_of_two(buffer.alignment):
        yield f"'{buffer.name}' has the alignment {buffer.alignment}"


def _parameters(func: ir.PrimFunc, _: Context) -> Iterator[str]:
    if len(set(func.params)) != len(func.params):
        yield "a parameter is listed twice"
    for param in func.params:
        if isinstance(param, ir.Var):
            low = param.dtype.min if param.low is None else param.low
            high = param.dtype.max if param.high is None else param.high
            if low > high:
                yield f"the range [{low}, {high}] of '{param.name}' is empty"
            continue
        if param.scope is not ir.Scope.PARAMETER:
            yield f"the parameter '{param.name}' has the scope {param.scope.value}"
        if not _is_power_of_two(param.alignment):
            yield f"'{param.name}' has the alignment {param.alignment}"
        for dim in param.shape:
            if isinstance(dim, int):
                if dim < 0:
                    yield f"an extent of '{param.name}' is {dim}"
            elif dim not in func.params or dim.low is None or dim.low < 0:
                yield f"the extent '{dim.name}' of '{param.name}' is not a parameter with low >= 0"


def _roles(func: ir.PrimFunc, _: Context) -> Iterator[str]:
    if func.row_range is not None:
        start, stop = func.row_range.start, func.row_range.stop
        if [p for p in func.params if isinstance(p, ir.Var)][-2:] != [start, stop]:
            yield f"the row range '{start.name}', '{stop.name}' is not at the end of the parameters"
    for buffer in (*func.rows, *filter(None, (func.scratch,))):
        if buffer not in func.params:
            yield f"'{buffer.name}' is not a parameter"


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


# --- calls --------------------------------------------------------------------------------------


def _view_bounds(node: ir.BufferView, _: Context) -> Iterator[str]:
    size = node.dtype.bytes
    if node.byte_offset < 0 or node.byte_offset % size:
        yield f"byte offset {node.byte_offset} is misaligned for {node.dtype.value}"
    end = node.byte_offset + math.prod(node.shape) * size
    if all(isinstance(d, int) for d in node.buffer.shape):
        available = _elements(node.buffer) * node.buffer.dtype.bytes
        if end > available:
            yield f"the view ends at byte {end}, but '{node.buffer.name}' ends at byte {available}"


def _elements(buffer: ir.Buffer) -> int:
    return math.prod(d for d in buffer.shape if isinstance(d, int))


def _invoke_arguments(node: ir.Invoke, context: Context) -> Iterator[str]:
    if context.functions is None:
        return
    callee = context.functions.get(node.function)
    if callee is None:
        yield f"there is no function '{node.function}'"
    elif len(callee.params) != len(node.args):
        yield f"{len(node.args)} arguments for {len(callee.params)} parameters"
    else:
        for param, arg in zip(callee.params, node.args, strict=True):
            yield from _invoke_argument(param, arg)


def _invoke_argument(param: ir.Param, arg: ir.BufferView | ir.Expr) -> Iterator[str]:
    if isinstance(param, ir.Var) or not isinstance(arg, ir.BufferView):
        if isinstance(param, ir.Buffer) or isinstance(arg, ir.BufferView):
            yield f"'{param.name}' is given the wrong kind of argument"
        elif param.dtype is not arg.dtype:
            yield f"'{param.name}' is {param.dtype.value}, its argument {arg.dtype.value}"
        return
    if param.dtype is not arg.dtype:
        yield f"'{param.name}' is {param.dtype.value}, its argument {arg.dtype.value}"
    constant = all(isinstance(d, int) for d in param.shape)
    if constant and _elements(param) != math.prod(arg.shape):
        count = math.prod(arg.shape)
        yield f"'{param.name}' has {_elements(param)} elements, but its argument has {count}"
    needed = max(param.alignment, param.dtype.bytes)
    base = max(arg.buffer.alignment, arg.buffer.dtype.bytes)
    if base % needed or arg.byte_offset % needed:
        yield (
            f"'{param.name}' needs an alignment of {needed} bytes, its argument has offset"
            f" {arg.byte_offset} in a buffer aligned to {base}"
        )


def _kernel_arguments(node: ir.KernelCall, _: Context) -> Iterator[str]:
    yield from _pointer_arguments(node.meaning.params, node.args)


def _extern_arguments(node: ir.ExternCall, _: Context) -> Iterator[str]:
    yield from _pointer_arguments(node.function.params, node.args)


def _pointer_arguments(
    params: tuple[ir.Param, ...], args: tuple[ir.BufferArgument | ir.Expr, ...]
) -> Iterator[str]:
    if len(params) != len(args):
        yield f"{len(args)} arguments for {len(params)} parameters"
        return
    for param, arg in zip(params, args, strict=True):
        if isinstance(param, ir.Buffer) != isinstance(arg, ir.BufferArgument):
            yield f"'{param.name}' is given the wrong kind of argument"
            continue
        dtype = arg.buffer.dtype if isinstance(arg, ir.BufferArgument) else arg.dtype
        if param.dtype is not dtype:
            yield f"'{param.name}' is {param.dtype.value}, its argument {dtype.value}"


def _kernel_contract(node: ir.KernelCall, _: Context) -> Iterator[str]:
    contract, params = node.contract, node.meaning.params
    for region in (*contract.reads, *contract.writes):
        yield from _region(region, params)
    constant = {
        param
        for param, arg in zip(params, node.args, strict=False)
        if isinstance(arg, ir.BufferArgument) and arg.buffer.scope is ir.Scope.CONSTANT
    }
    for region in contract.writes:
        if region.buffer in constant:
            yield f"the kernel writes a constant through '{region.buffer.name}'"
    if not _is_power_of_two(contract.alignment):
        yield f"the alignment is {contract.alignment}"
    for condition in contract.preconditions:
        if condition.dtype is not DType.BOOL:
            yield f"a precondition is {condition.dtype.value}"


def _extern_function(node: ir.ExternCall, _: Context) -> Iterator[str]:
    function = node.function
    if not is_identifier(function.name):
        yield f"'{function.name}' is not a C identifier"
    for buffer in (*function.reads, *function.writes):
        if buffer not in function.params:
            yield f"'{buffer.name}' is not one of its parameters"
    for param, arg in zip(function.params, node.args, strict=False):
        constant = isinstance(arg, ir.BufferArgument) and arg.buffer.scope is ir.Scope.CONSTANT
        if constant and param in function.writes:
            yield f"it writes a constant through '{param.name}'"


def _region(region: ir.Region, params: tuple[ir.Param, ...]) -> Iterator[str]:
    if region.buffer not in params:
        yield f"the region of '{region.buffer.name}' does not belong to a parameter"
    elif not len(region.start) == len(region.extent) == len(region.buffer.shape):
        yield f"the region of '{region.buffer.name}' has another rank than the buffer"


# --- whole functions ----------------------------------------------------------------------------


def _initialised(func: ir.PrimFunc, _: Context) -> Iterator[str]:
    for buffer, statement in uninitialised_reads(func):
        line = stmt_text(statement).splitlines()[0]
        yield f"'{buffer.name}' may be read before it is written in: {line}"


def _recursion(func: ir.PrimFunc, context: Context) -> Iterator[str]:
    functions = context.functions or {}
    pending, seen = [func.name], set[str]()
    while pending:
        current = functions.get(pending.pop())
        for node in invokes_of(current) if current else ():
            if node.function == func.name:
                yield f"'{func.name}' reaches itself"
                return
            if node.function not in seen:
                seen.add(node.function)
                pending.append(node.function)


# --- the table ----------------------------------------------------------------------------------

_ACCESSES = (ir.Load, ir.Store, ir.BufferArgument)
_USES = (ir.Load, ir.Store, ir.BufferArgument, ir.BufferView)

RULES: tuple[Rule, ...] = (
    Rule("parameters", "Parameters are distinct; buffers have the scope PARAMETER, an alignment "
         "that is a power of two, and extents that are constants or integer parameters of at "
         "least 0; declared ranges are not empty.", (ir.PrimFunc,), _parameters),
    Rule("roles", "A row range is the last two integer parameters, scratch and buffers with rows "
         "are parameters.", (ir.PrimFunc,), _roles),
    Rule("single-definition", "A Var or Buffer is defined once in a function.",
         (ir.For, ir.Let, ir.Allocate), _single_definition),
    Rule("variable-scope", "A Var is used inside the loop, Let or function that defines it.",
         (ir.Var,), _variable_scope),
    Rule("buffer-scope", "A buffer is a constant or a parameter, or it is allocated around its "
         "use.", _USES, _buffer_scope),
    Rule("constant-data", "A constant has data of its own shape and type; other buffers have "
         "none.", _USES, _constant_data),
    Rule("allocation", "An allocated buffer is LOCAL or WORKSPACE, with a constant positive shape "
         "and an alignment that is a power of two.", (ir.Allocate,), _allocation),
    Rule("literal-fits", "A literal is a value of its type.", (ir.IntImm, ir.FloatImm),
         _literal_fits),
    Rule("operand-types", "Both operands of an operator have the same type.", (ir.Binary,),
         _operand_types),
    Rule("operator-types", "An operator is applied to a type that it is defined on.",
         (ir.Binary, ir.Unary), _operator_types),
    Rule("cast-types", "Booleans are cast to and from integers only.", (ir.Cast,), _cast_types),
    Rule("condition-is-bool", "Conditions are boolean.", (ir.Select, ir.If), _condition_is_bool),
    Rule("branch-types", "Both branches of a Select have the same type.", (ir.Select,),
         _branch_types),
    Rule("call-signature", "Arguments and result of an intrinsic have the types of its signature.",
         (ir.Call,), _call_signature),
    Rule("index-type", "Indices are INT32.", _ACCESSES, _index_type),
    Rule("index-rank", "An access has one index per axis.", _ACCESSES, _index_rank),
    Rule("store-type", "A stored value has the type of the buffer.", (ir.Store,), _store_type),
    Rule("store-target", "Constants are not written.", (ir.Store,), _store_target),
    Rule("loop-types", "Variable, start and stop of a loop have one integer type.", (ir.For,),
         _loop_types),
    Rule("unrolled-bounds", "The bounds of an unrolled loop are literals.", (ir.For,),
         _unrolled_bounds),
    Rule("let-type", "A Let's Var has the type of its value.", (ir.Let,), _let_type),
    Rule("view-bounds", "A BufferView lies inside its buffer, aligned to its element size.",
         (ir.BufferView,), _view_bounds),
    Rule("invoke-arguments", "An Invoke names a function of the module and gives arguments of the "
         "kinds, types, sizes and alignments of its parameters.", (ir.Invoke,),
         _invoke_arguments),
    Rule("kernel-arguments", "A KernelCall gives arguments of the kinds and types of the kernel's "
         "parameters.", (ir.KernelCall,), _kernel_arguments),
    Rule("kernel-contract", "A contract names the kernel's parameters and writes no "
         "constant.", (ir.KernelCall,), _kernel_contract),
    Rule("extern-arguments", "An ExternCall gives arguments of the kinds and types of the "
         "function's parameters.", (ir.ExternCall,), _extern_arguments),
    Rule("extern-function", "An ExternFunction has the name of a C function, reads and writes its "
         "own parameters, and writes no constant.", (ir.ExternCall,), _extern_function),
    Rule("initialised", "A LOCAL scalar is written on every path before it is read, a LOCAL array "
         "on some path.", (ir.PrimFunc,), _initialised),
    Rule("recursion", "No function reaches itself.", (ir.PrimFunc,), _recursion),
)  # fmt: skip
