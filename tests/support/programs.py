"""Small lowered modules, written by hand, that codegen, artifact and host are tested with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir import codegen
from microtir.artifact import Artifact
from microtir.config import CompilationConfig
from microtir.dtype import DType
from microtir.graph.ir import Quantization, TensorType
from microtir.module.ir_module import IRModule, ModelInfo, Port, PortKind
from microtir.tir.build import add, cast, maximum, minimum, mul, seq
from microtir.tir.function import LayerName, RowRange
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    Call,
    Expr,
    For,
    IntImm,
    Intrinsic,
    Invoke,
    Let,
    Load,
    Origin,
    PrimFunc,
    Scope,
    Stmt,
    Store,
    Var,
)
from microtir.tir.memory_plan import BufferPlacement, MemoryPlan, PlannedPool

DENSE_WEIGHTS = np.array([[3, -2, 1], [-7, 5, 100]], np.int8)
DENSE_BIAS = np.array([100000, -5], np.int32)
ROWS = 4


def config(name: str = "small", **options: object) -> CompilationConfig:
    """Return a configuration for plain C."""
    return CompilationConfig(targets="c", module_name=name, **options)  # type: ignore[arg-type]


def loop(name: str, stop: int | Expr, body: Callable[[Var], Stmt], start: int | Expr = 0) -> For:
    """Return a loop whose body is made from its variable."""
    var = Var(name)
    first = IntImm(start) if isinstance(start, int) else start
    last = IntImm(stop) if isinstance(stop, int) else stop
    return For(var, first, last, body(var))


def dense_layer() -> PrimFunc:
    """Write a quantised dense layer over rows of three elements, for a range of rows."""
    x = Buffer("x", (ROWS, 3), DType.INT8)
    y = Buffer("y", (ROWS, 2), DType.INT8)
    weights = Buffer("weights", (2, 3), DType.INT8, Scope.CONSTANT, DENSE_WEIGHTS)
    bias = Buffer("bias", (2,), DType.INT32, Scope.CONSTANT, DENSE_BIAS)
    y0, y1 = Var("y0", low=0, high=ROWS), Var("y1", low=0, high=ROWS)

    def element(row: Var, channel: Var) -> Stmt:
        acc, scaled = Buffer("acc", (), DType.INT32, Scope.LOCAL), Var("scaled")

        def accumulate(k: Var) -> Stmt:
            product = mul(
                add(cast(DType.INT32, Load(x, (row, k))), 128),
                cast(DType.INT32, Load(weights, (channel, k))),
            )
            return Store(acc, (), add(Load(acc, ()), product))

        args = (Load(acc, ()), IntImm(1518500250), IntImm(-9))
        requantized = Call(Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, args, DType.INT32)
        clamped = minimum(maximum(add(scaled, -128), -128), 127)
        return Allocate(
            acc,
            seq(
                Store(acc, (), Load(bias, (channel,))),
                loop("k", 3, accumulate),
                Let(scaled, requantized, Store(y, (row, channel), cast(DType.INT8, clamped))),
            ),
        )

    body = loop(
        "row", y1, lambda row: loop("channel", 2, lambda channel: element(row, channel)), y0
    )
    origin = Origin(
        "FULLY_CONNECTED",
        "net/dense*/MatMul",  # the end of a comment, which the printer must defuse
        0,
        ("input   4x3 int8, scale 0.5, zero point -128", "output  4x2 int8, scale 0.25"),
        24,
        24,
        name=LayerName("layer0", "fully_connected"),
    )
    params = (x, y, y0, y1)
    return PrimFunc(str(origin.name), params, body, origin, row_range=RowRange(y0, y1))


def relu_layer() -> PrimFunc:
    """Write a ReLU element by element, on a whole tensor."""
    x, y = Buffer("x", (ROWS * 2,), DType.INT8), Buffer("y", (ROWS * 2,), DType.INT8)
    body = loop(
        "i", ROWS * 2, lambda i: Store(y, (i,), maximum(Load(x, (i,)), IntImm(-20, DType.INT8)))
    )
    origin = Origin("RELU", "net/relu", 1, name=LayerName("layer1", "relu"))
    return PrimFunc(str(origin.name), (x, y), body, origin)


def model_module(given: CompilationConfig | None = None, *, rows_at_once: int = ROWS) -> IRModule:
    """Make a model of a dense layer and a ReLU, its intermediate tensor in the workspace.

    Args:
        given: the configuration.
        rows_at_once: rows that one call of the dense layer computes.
    """
    dense, relu = dense_layer(), relu_layer()
    x = Buffer("image", (ROWS, 3), DType.INT8)
    y = Buffer("scores", (ROWS, 2), DType.INT8)
    workspace = Buffer("workspace", (24,), DType.UINT8, alignment=8)
    whole = BufferView(x, (ROWS, 3), DType.INT8)
    middle = BufferView(workspace, (ROWS, 2), DType.INT8, 16)
    calls = [
        Invoke(dense.name, (whole, middle, IntImm(first), IntImm(first + rows_at_once)))
        for first in range(0, ROWS, rows_at_once)
    ]
    flat = BufferView(workspace, (ROWS * 2,), DType.INT8, 16)
    calls.append(Invoke(relu.name, (flat, BufferView(y, (ROWS * 2,), DType.INT8))))
    main = PrimFunc("main", (x, y, workspace), seq(*calls), exported=True)
    half = Quantization((0.5,), (-128,))
    quarter = Quantization((0.25,), (3,))
    ports = (
        Port(PortKind.INPUT, "serving/image:0", "image", TensorType((ROWS, 3), DType.INT8, half)),
        Port(PortKind.OUTPUT, "scores", "scores", TensorType((ROWS, 2), DType.INT8, quarter)),
    )
    placement = BufferPlacement("activation_0", 16, 8, 0, len(calls) - 1)
    memory = MemoryPlan((PlannedPool("workspace", 24, 8, 8),), (placement,), True)
    model = ModelInfo("net", ports, "net.tflite", "ab" * 32, 1234, memory)
    return IRModule(
        functions=(dense, relu, main), config=given or config(), model=model, is_lowered=True
    )


def matmul_module(given: CompilationConfig | None = None) -> IRModule:
    """Make a user's program: c[n, 3] = a[n, 4] x b[4, 3] in float32, n from 1 to 8."""
    n = Var("n", low=1, high=8)
    a = Buffer("a", (n, 4), DType.FLOAT32)
    b = Buffer("b", (4, 3), DType.FLOAT32)
    c = Buffer("c", (n, 3), DType.FLOAT32)

    def element(i: Var, j: Var) -> Stmt:
        return seq(
            Store(c, (i, j), _zero()),
            loop(
                "k",
                4,
                lambda k: Store(
                    c, (i, j), add(Load(c, (i, j)), mul(Load(a, (i, k)), Load(b, (k, j))))
                ),
            ),
        )

    body = loop("i", n, lambda i: loop("j", 3, lambda j: element(i, j)))
    function = PrimFunc("matmul", (a, b, c, n), body, exported=True)
    return IRModule(functions=(function,), config=given or config("algebra"), is_lowered=True)


def _zero() -> Expr:
    return cast(DType.FLOAT32, IntImm(0))


def artifact_of(module: IRModule) -> Artifact:
    """Return what `build` would make of a lowered module."""
    printed = codegen.emit(module)
    return Artifact(module, printed.sources, printed.metadata)


def image() -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """Return an input of the model."""
    return np.array([[-128, 0, 127], [1, 2, 3], [-5, 6, -7], [100, -100, 50]], np.int8)
