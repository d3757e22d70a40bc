"""Operators of the user: every form, in every place, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target, custom, te
from microtir.dtype import DType
from microtir.errors import GraphError, MicrotirError, RunError, UnsupportedModelError, UsageError
from microtir.graph.ir import Array, Node, Quantization, TensorType
from microtir.graph.text import to_text
from microtir.host.samples import SampleBatch
from microtir.host.tolerance import RelativeTolerance
from microtir.host.verify import verify
from microtir.module.ir_module import IRModule
from microtir.operators import OperatorRecord
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.custom.definition import Custom
from microtir.rewrite import reference
from microtir.schedule import Schedule
from microtir.tir.ir import Buffer, IntImm, Load, PrimFunc, Store
from microtir.tir.text import parse_function
from microtir.writers.tflite import TfliteBuilder
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.pages import follow

INT8 = DType.INT8
IMAGE = TensorType((1, 4, 3, 2), INT8, Quantization((0.5,), (0,)))
MATRIX = TensorType((3, 4), DType.FLOAT32)

FLIP_C = """
static int8_t limited(int32_t value)
{
    return (int8_t)(value > 127 ? 127 : value < -128 ? -128 : value);
}

int32_t flip(const int8_t *x, const int8_t *offset, int8_t *y, uint8_t *scratch, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        scratch[i] = (uint8_t)(x[i] + 128);
    }
    for (int32_t i = 0; i < count; i++) {
        y[i] = limited(127 - (int32_t)scratch[i] + 1 + offset[i % 2]);
    }
    return x[0] == 99 ? 7 : 0;
}
"""


def flipped(_node: Node, x: Array, offset: Array) -> Array:
    """The offset of each channel less x, saturated."""
    return np.asarray(np.clip(offset - x.astype(int), -128, 127), np.int8)


OFFSET = np.array([0, -1], np.int8)


def flip_in_c(code: str = FLIP_C) -> OperatorRecord:
    """The C function above: a constant input, scratch and a status."""
    return custom.from_c(
        "Flip", flipped, function="flip", code=code, returns_status=True,
        scalars=lambda n: (n.output.type.elements,),
        scratch_bytes=lambda n: n.output.type.elements,
    )  # fmt: skip


def flip_in_te(schedule: Callable[[Schedule, te.Tensor], None] | None = None) -> OperatorRecord:
    """The same as a formula."""

    def compute(_node: Node, x: te.Tensor, offset: te.Tensor) -> te.Tensor:
        def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
            wide = te.cast(DType.INT32, offset[ch]) - te.cast(DType.INT32, x[n, row, col, ch])
            return te.cast(INT8, te.clamp(wide, -128, 127))

        return te.compute(x.shape, element, "y")

    return custom.from_te("Flip", compute, flipped, schedule=schedule)


FLIP_TIR = """
func any(x: int8[12, 2], offset: int8[2], y: int8[12, 2]):
  for i in range(0, 12):
    for ch in range(0, 2):
      y[i, ch] = cast(int8, min(max(cast(int32, offset[ch]) - cast(int32, x[i, ch]), -128), 127))
"""

FORMS: dict[str, Callable[[], OperatorRecord]] = {
    "te": flip_in_te,
    "te, scheduled": lambda: flip_in_te(lambda s, y: s.unroll(s.loop(y, "ch"))),
    "tir": lambda: custom.from_tir("Flip", parse_function(FLIP_TIR), flipped),
    "tir of a node": lambda: custom.from_tir("Flip", lambda _: parse_function(FLIP_TIR), flipped),
    "c": flip_in_c,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_computes_what_numpy_says(form: str) -> None:
    """Under sanitizers, on random inputs and a constant one."""
    custom.check(FORMS[form](), [IMAGE, OFFSET - 1], [IMAGE])


@pytest.mark.parametrize("form", ["te", "c"])
def test_a_difference_is_shown(form: str) -> None:
    """An operator that is not what its numpy function says is found, with the element."""
    wrong = replace(FORMS[form](), meaning=lambda _op, n, x, o: flipped(n, x, o) // 2)
    with pytest.raises(RunError, match="'Flip': sample 0: the C code computes -90 for 'y0' at"):
        custom.check(wrong, [IMAGE, OFFSET - 1], [IMAGE])


def test_sanitizers_watch_the_c_function() -> None:
    """A C function that writes behind its output is caught."""
    wrong = FLIP_C.replace("i < count", "i <= count")
    with pytest.raises(RunError, match="overflow"):
        custom.check(flip_in_c(wrong), [IMAGE, OFFSET], [IMAGE])


def in_the_middle(function: OperatorRecord) -> IRModule:
    """RELU, the operator, and a sum with what went in, so that its input lives on."""
    x, a, b, y = (tensor(name, IMAGE.shape, INT8, quant(0.5)) for name in "xaby")
    nodes = [
        node(Relu(), (x,), a),
        node(Custom(function), (a, constant("offset", OFFSET)), b),
        node(Add(), (a, b), y),
    ]
    return IRModule(graph=graph(nodes, [x], [y]))


def samples(module: IRModule) -> SampleBatch:
    """Some random inputs."""
    assert module.graph is not None
    generator = np.random.default_rng(5)
    return SampleBatch(tuple(
        {t.name: generator.integers(-128, 128, t.shape).astype(t.dtype.value)
         for t in module.graph.inputs}
        for _ in range(3)
    ))  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("goal", ["speed", "ram"])
def test_between_other_layers(form: str, goal: str) -> None:
    """Planned, placed and verified layer by layer, also where others stream."""
    module = in_the_middle(FORMS[form]())
    config = replace(CompilationConfig.from_target(Target("c")), optimize=goal)  # type: ignore[arg-type]
    seen: dict[str, object] = {}
    artifact = microtir.build(module, config, observe=seen.__setitem__)
    assert module.graph is not None
    given = samples(module)
    expected = SampleBatch(tuple(reference.execute(module.graph, dict(s)) for s in given.values))
    planned = seen["graph"]
    assert isinstance(planned, type(module.graph))
    result = verify(
        artifact, planned, given, expected, RelativeTolerance(0.0), every_layer=True, sanitize=True
    )
    assert result.equal and result.layers_checked


def test_a_failure_ends_the_run() -> None:
    """The status of a C function is not lost on its way to who called the model."""
    model = microtir.host.load(
        microtir.build(custom.as_model(flip_in_c(), [IMAGE, OFFSET], [IMAGE]))
    )
    x = np.zeros(IMAGE.shape, np.int8)
    assert np.array_equal(model.run({"x0": x})["y0"], flipped(None, x, OFFSET))  # type: ignore[arg-type]
    x[0, 0, 0, 0] = 99
    with pytest.raises(RunError, match="a C function outside the model reported a failure"):
        model.run({"x0": x})


def test_two_outputs_and_one_tensor_twice() -> None:
    """An input that is read twice is one parameter; outputs are as many as there are."""

    def compute(_node: Node, a: te.Tensor, b: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
        total = te.compute(a.shape, lambda i, j: a[i, j] + b[i, j], "total")
        return total, te.compute(a.shape, lambda i, j: a[i, j] * b[i, j], "product")

    both = custom.from_te("Both", compute, lambda _n, a, b: (a + b, a * b))
    custom.check(both, [MATRIX, MATRIX], [MATRIX, MATRIX])
    x, y, z = (tensor(name, MATRIX.shape) for name in "xyz")
    module = IRModule(graph=graph([node(Custom(both), (x, x), (y, z))], [x], [y, z]))
    given = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    got = microtir.host.load(microtir.build(module)).run({"x": given})
    assert np.array_equal(got["y"], given + given) and np.array_equal(got["z"], given * given)
    copied = PrimFunc(
        "copy", (a := Buffer("a", (12,), DType.FLOAT32), b := Buffer("b", (12,), DType.FLOAT32),
                 c := Buffer("c", (12,), DType.FLOAT32)),
        Store(c, (IntImm(0),), Load(b, (IntImm(0),))),
    )  # fmt: skip
    assert a is not b
    again = custom.from_tir("Copy", copied, lambda _n, a, _b: a)
    assert again.function is not None
    function = again.function.build(node(Custom(again), (x, x), y), "layer")
    assert function.params == (a, c)


def test_a_constant_result_is_folded() -> None:
    """All inputs constant: the numpy function computes the result when the model is compiled."""
    double = custom.from_te("Double", lambda _n, a: a, lambda _n, a: a + a)
    a = constant("a", np.array([[1.0, 2.0]], np.float32))
    x, b, y = tensor("x", (1, 2)), tensor("b", (1, 2)), tensor("y", (1, 2))
    nodes = [node(Custom(double), (a,), b), node(Add(), (x, b), y)]
    model = microtir.host.load(microtir.build(IRModule(graph=graph(nodes, [x], [y]))))
    assert model.run({"x": np.ones((1, 2), np.float32)})["y"].tolist() == [[3.0, 5.0]]


def custom_file(name: str = "Square", options: bytes = b"") -> bytes:
    """A TFLite model of one custom operator."""
    file = TfliteBuilder()
    x, y = file.tensor("x", (3, 4), "float32"), file.tensor("y", (3, 4), "float32")
    file.custom_operator(name, [x], [y], options)
    return file.build([x], [y])


def power(node: Node, x: te.Tensor) -> te.Tensor:
    """As often x as the options of the node say."""
    assert isinstance(node.op, Custom)
    times = node.op.options[0]

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        value = x[i, j]
        for _ in range(times - 1):
            value = value * x[i, j]
        return value

    return te.compute(node.output.shape, element, "y")


def test_custom_operator_of_a_file() -> None:
    """It is found by its name, and sees the options of the file."""
    third = custom.from_te("Power", power, lambda _n, x: x * x * x)
    module = microtir.frontend.from_tflite(custom_file("Power", b"\x03"), operators=[third])
    assert module.graph is not None
    assert "custom(%x) {function=Power, options=03}" in to_text(module.graph)
    artifact = microtir.build(module)
    assert "function Power, options of 1 bytes" in artifact.source("model.c")
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(microtir.host.load(artifact).run({"x": x})["y"], x * x * x)


def test_an_unknown_custom_operator_names_those_there_are() -> None:
    """A misspelt name gets the nearest one."""
    cube = custom.from_te("Sqare", power, lambda _n, x: x)
    with pytest.raises(UnsupportedModelError, match="did you mean 'Sqare'") as caught:
        microtir.frontend.from_tflite(custom_file(), operators=[cube])
    assert "'Sqare'" in str(caught.value)
    with pytest.raises(UnsupportedModelError, match="give the operator to from_tflite"):
        microtir.frontend.from_tflite(custom_file())
    with pytest.raises(UsageError, match="two operators are called 'Sqare'"):
        microtir.frontend.from_tflite(custom_file(), operators=[cube, cube])


def _too_small(_node: Node, x: te.Tensor) -> te.Tensor:
    return te.compute((2, 4), lambda i, j: x[i, j], "y")


REFUSED: dict[str, tuple[Callable[[], object], type[MicrotirError], str]] = {
    "shape of te": (
        lambda: custom.check(
            custom.from_te("Small", _too_small, lambda _n, x: x), [MATRIX], [MATRIX]
        ),
        UsageError,
        "the function of the operator 'Small' takes float32 (3, 4), float32 (2, 4)",
    ),
    "parameters of tir": (
        lambda: custom.check(
            custom.from_tir("Flip", parse_function(FLIP_TIR), flipped), [IMAGE], [IMAGE]
        ),
        UsageError,
        "the function of the operator 'Flip' has 3 parameters",
    ),
    "meaning": (
        lambda: custom.check(
            replace(flip_in_te(), meaning=lambda _op, _n, x, _o: x.sum()), [IMAGE, OFFSET], [IMAGE]
        ),
        GraphError,
        "the numpy function of 'Flip' returned int64 ()",
    ),
    "name of c": (
        lambda: custom.from_c("Flip", flipped, function="flip it"),
        UsageError,
        "'flip it' is not a C identifier",
    ),
    "file of c": (
        lambda: custom.from_c("Flip", flipped, function="flip", files=["nowhere/flip.c"]),
        UsageError,
        "nowhere/flip.c: cannot be read",
    ),
    "constant on an avr": (
        lambda: microtir.build(
            custom.as_model(flip_in_c(), [IMAGE, OFFSET], [IMAGE]), Target("c -mcpu=atmega2560")
        ),
        UsageError,
        "is passed by pointer, but an AVR cannot read its",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """What does not fit says what would."""
    call, kind, message = REFUSED[case]
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


def test_files_of_a_c_function(tmp_path: Path) -> None:
    """A definition in files of the user is part of the artifact, as it is."""
    (tmp_path / "flip.h").write_text("#include <stdint.h>\n#define COUNTED(n) (n)\n")
    head = (
        '#include "flip.h"\nint32_t flip(const int8_t *x, const int8_t *offset, int8_t *y, uint8_t '
    )
    head += "*scratch, int32_t count);\n"
    (tmp_path / "flip.c").write_text(head + FLIP_C.replace("i < count", "i < COUNTED(count)"))
    files = [tmp_path / "flip.h", tmp_path / "flip.c"]
    function = custom.from_c(
        "Flip", flipped, function="flip", files=files, returns_status=True,
        scalars=lambda n: (n.output.type.elements,),
        scratch_bytes=lambda n: n.output.type.elements,
    )  # fmt: skip
    custom.check(function, [IMAGE, OFFSET], [IMAGE], samples=2)
    artifact = microtir.build(custom.as_model(function, [IMAGE, OFFSET], [IMAGE]))
    assert artifact.source("flip.c") == files[1].read_text()


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/custom-operators.md does what it says, each operator in under 20 lines."""
    monkeypatch.chdir(tmp_path)
    assert follow("custom-operators.md", tmp_path) == ""


@pytest.mark.parametrize("form", ["te", "c"])
def test_one_operator_several_times(form: str) -> None:
    """Layers that are alike but for their constants may share a function, and keep these apart."""
    function = FORMS[form]()
    x, a, b, y = (tensor(name, IMAGE.shape, INT8, quant(0.5)) for name in "xaby")
    chain = zip((x, a, b), (OFFSET, OFFSET - 3, OFFSET), (a, b, y), strict=True)
    nodes = [
        node(Custom(function), (given, constant(f"offset_of_{to.name}", offset)), to)
        for given, offset, to in chain
    ]
    module = IRModule(graph=graph(nodes, [x], [y]))
    assert module.graph is not None
    config = replace(CompilationConfig.from_target(Target("c")), optimize="flash")  # type: ignore[arg-type]
    model = microtir.host.load(microtir.build(module, config))
    for sample in samples(module).values:
        expected = reference.execute(module.graph, dict(sample))
        assert np.array_equal(model.run(sample)["y"], expected["y"])
