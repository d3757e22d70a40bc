"""The text of statements: declarations, loops, branches, calls."""

from __future__ import annotations

from microtir.codegen.interface.entry import exported_entry
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.functions import function_text, signature
from microtir.codegen.program import make_program
from microtir.dtype import DType
from microtir.module.ir_module import IRModule
from microtir.tir.build import add, cast, mul, seq
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    Buffer,
    BufferArgument,
    BufferView,
    FloatImm,
    For,
    If,
    IntImm,
    Invoke,
    KernelCall,
    KernelContract,
    Let,
    Load,
    Param,
    PrimFunc,
    Scope,
    Stmt,
    Store,
    Var,
)
from tests.support.programs import config, loop

I8, I32 = DType.INT8, DType.INT32
X = Buffer("x", (8,), I8)
Y = Buffer("y", (8,), I32)
N = Var("n", low=0, high=8)


def _body(body: Stmt, *params: Param, others: tuple[PrimFunc, ...] = ()) -> str:
    function = PrimFunc("f", params or (X, Y, N), body, exported=True)
    module = IRModule(functions=(*others, function), config=config(), is_lowered=True)
    text = function_text(make_program(module), function, Requirements(set()))
    return "\n".join(line.removeprefix("    ") for line in text.body.splitlines())


def _at(index: int) -> tuple[IntImm]:
    return (IntImm(index),)


def _local(name: str, *shape: int, dtype: DType = I32, alignment: int = 1) -> Buffer:
    return Buffer(name, shape, dtype, Scope.LOCAL, alignment=alignment)


def _copy(i: Var) -> Stmt:
    return Store(Y, (i,), cast(I32, Load(X, (i,))))


def test_loop() -> None:
    """A loop keeps its variable's name and counts in the variable's type."""
    assert _body(loop("i", N, _copy)) == (
        "for (int32_t i = 0; i < n; i++) {\n    y[i] = (int32_t)x[i];\n}"
    )


def test_bound_that_the_body_may_change_is_evaluated_once() -> None:
    """TIR evaluates the end of a loop before the loop; C would do so in every round."""
    body = loop("i", Load(Y, _at(0)), lambda i: Store(Y, _at(0), i))
    assert _body(body) == (
        "(void)x;\n(void)n;\n"
        "const int32_t i_stop = y[0];\n"
        "for (int32_t i = 0; i < i_stop; i++) {\n    y[0] = i;\n}"
    )


def test_sibling_loops_share_a_name_and_nested_ones_do_not() -> None:
    """Nothing is hidden: -Wshadow would object."""
    nested = loop("i", 2, lambda a: loop("i", 4, lambda b: Store(Y, (add(mul(a, 4), b),), b)))
    text = _body(seq(nested, loop("i", 8, _copy)))
    assert "for (int32_t i_2 = 0; i_2 < 4; i_2++) {" in text
    assert text.count("for (int32_t i = 0;") == 2


def test_scalar_is_declared_with_its_first_value() -> None:
    """A mutable scalar is initialised where it is declared and updated by compound assignment."""
    acc = _local("acc")
    update = Store(acc, (), add(Load(acc, ()), cast(I32, Load(X, _at(1)))))
    shrink = Store(acc, (), Binary(BinaryOp.ADD, Load(acc, ()), IntImm(-3)))
    double = Store(acc, (), mul(Load(acc, ()), 2))
    body = seq(Store(acc, (), IntImm(5)), update, shrink, double, Store(Y, _at(0), Load(acc, ())))
    assert _body(Allocate(acc, body)).splitlines()[1:] == [
        "int32_t acc = 5;",
        "acc += (int32_t)x[1];",
        "acc -= 3;",
        "acc *= 2;",
        "y[0] = acc;",
    ]


def test_scalar_that_is_not_stored_first_is_declared_alone() -> None:
    """Where the first value comes later, the declaration has none."""
    acc = _local("acc")
    body = seq(loop("i", 8, _copy), Store(acc, (), IntImm(1)), Store(Y, _at(0), Load(acc, ())))
    assert _body(Allocate(acc, body)).splitlines()[1] == "int32_t acc;"


def test_narrow_update_is_an_assignment_with_a_cast() -> None:
    """`y += 1` on an 8-bit element converts implicitly and warns; the cast is written out."""
    out = Buffer("out", (2,), I8)
    body = Store(out, _at(0), add(Load(out, _at(0)), IntImm(1, I8)))
    assert _body(body, out) == "out[0] = (int8_t)(out[0] + 1);"


def test_float_update() -> None:
    """Floating-point sums are updated in place, negative constants are subtracted."""
    out = Buffer("out", (2,), DType.FLOAT32)
    body = Store(out, _at(0), Binary(BinaryOp.ADD, Load(out, _at(0)), FloatImm(-0.5)))
    assert _body(body, out) == "out[0] -= 0.5f;"


def test_let_and_unused_names() -> None:
    """A Let is a constant; what nobody reads is marked, so that no compiler warns."""
    used, unused = Var("used"), Var("unused")
    body = Let(used, IntImm(1), Let(unused, IntImm(2), Store(Y, _at(0), used)))
    assert _body(body).splitlines() == [
        "(void)x;",
        "(void)n;",
        "const int32_t used = 1;",
        "const int32_t unused = 2;",
        "(void)unused;",
        "y[0] = used;",
    ]


def test_narrow_let_is_cast() -> None:
    """The value of an 8-bit Let is computed as int and cast back."""
    var = Var("v", I8)
    body = Let(var, add(Load(X, _at(0)), IntImm(1, I8)), Store(Y, _at(0), cast(I32, var)))
    assert "const int8_t v = (int8_t)(x[0] + 1);" in _body(body)


def test_local_array_is_flat_and_aligned() -> None:
    """A local array has one dimension and the alignment that its kernel asked for."""
    tile = _local("tile", 2, 4, alignment=8)
    inside = Store(tile, _at(1) + _at(2), IntImm(7))
    body = Allocate(tile, seq(inside, Store(Y, _at(0), Load(tile, _at(1) + _at(2)))))
    assert _body(body).splitlines()[-3:] == [
        "SMALL_ALIGNED(8) int32_t tile[8];",
        "tile[6] = 7;",
        "y[0] = tile[6];",
    ]


def test_branches_form_a_chain() -> None:
    """An if in the else of another one continues the chain instead of nesting."""

    def put(value: int) -> Store:
        return Store(Y, _at(0), IntImm(value))

    first = Binary(BinaryOp.LT, N, IntImm(2))
    second = Binary(BinaryOp.LT, N, IntImm(5))
    assert _body(If(first, put(1), If(second, put(2), put(3)))).splitlines()[1:] == [
        "if (n < 2) {",
        "    y[0] = 1;",
        "} else if (n < 5) {",
        "    y[0] = 2;",
        "} else {",
        "    y[0] = 3;",
        "}",
    ]


def test_empty_loop_is_left_out() -> None:
    """A loop that does nothing is not printed, and leaves no unused name behind."""
    empty = For(Var("i"), IntImm(0), IntImm(3), seq())
    assert _body(seq(empty, loop("i", N, _copy))).startswith("for (int32_t i = 0; i < n; i++)")


def test_pointers_are_const_unless_written_through() -> None:
    """A parameter is const if neither the function nor anything it calls stores to it."""
    source, target = Buffer("source", (8,), I8), Buffer("target", (8,), I8)
    inner = PrimFunc(
        "inner",
        (source, target),
        loop("i", 8, lambda i: Store(target, (i,), Load(source, (i,)))),
    )
    out = Buffer("out", (8,), I8)
    views = (BufferView(X, (8,), I8), BufferView(out, (8,), I8))
    outer = PrimFunc("outer", (X, out), Invoke("inner", views), exported=True)
    module = IRModule(functions=(inner, outer), config=config(), is_lowered=True)
    program = make_program(module)
    assert function_text(program, outer, Requirements(set())).signature == (
        "static void small_outer_body(const int8_t *x, int8_t *out)"
    )
    assert exported_entry(program, outer, Requirements(set())).signature == (
        "int32_t small_outer(const int8_t *x, int8_t *out)"
    )


def test_views_of_other_types() -> None:
    """A view of a byte buffer becomes a pointer of its type, const where it is only read."""
    block = Buffer("block", (64,), DType.UINT8)
    words, out = Buffer("words", (4,), I32), Buffer("out", (4,), I32)
    inner = PrimFunc(
        "inner", (words, out), loop("i", 4, lambda i: Store(out, (i,), Load(words, (i,))))
    )
    views = (BufferView(block, (4,), I32, 16), BufferView(Y, (4,), I32, 8))
    assert _body(Invoke("inner", views), block, Y, others=(inner,)) == (
        "small_inner((const int32_t *)(const void *)(block + 16), &y[2]);"
    )


def test_kernel_call_prints_its_meaning() -> None:
    """A micro-kernel is a static function, called with pointers to elements."""
    a, b = Buffer("a", (2,), I8), Buffer("b", (2,), I32)
    copy_pair = loop("k", 2, lambda k: Store(b, (k,), cast(I32, Load(a, (k,)))))
    kernel = PrimFunc("copy_pair", (a, b), copy_pair)
    contract = KernelContract(reads=(), writes=())

    def call(i: Var) -> Stmt:
        start = (mul(i, 2),)
        args = (BufferArgument(X, start), BufferArgument(Y, start))
        return KernelCall(kernel, args, contract)

    function = PrimFunc("f", (X, Y), loop("i", 4, call), exported=True)
    module = IRModule(functions=(function,), config=config(), is_lowered=True)
    program = make_program(module)
    assert program.functions == (kernel, function)
    assert "small_copy_pair(&x[i * 2], &y[i * 2]);" in (
        function_text(program, function, Requirements(set())).body
    )
    assert function_text(program, kernel, Requirements(set())).signature == (
        "static void small_copy_pair(const int8_t *a, int32_t *restrict b)"
    )


def test_long_signatures_break_between_parameters() -> None:
    """A signature that is too wide has its parameters on lines of their own."""
    parameters = [f"const int8_t *parameter_number_{n}" for n in range(6)]
    lines = signature("int32_t function", parameters)
    assert lines[0] == "int32_t function("
    assert all(len(line) <= 100 for line in lines)
    assert " ".join(line.strip() for line in lines[1:]) == ", ".join(parameters) + ")"
