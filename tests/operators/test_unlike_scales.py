"""Integers whose output has another scale or zero point: what each reference makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from microtir.config.enums import Numerics
from microtir.errors import MicrotirError, UnsupportedModelError
from microtir.frontend import from_tflite
from microtir.frontend.tflite_subgraphs import IfOptions, WhileOptions
from microtir.graph.ir import Graph
from microtir.operators.activations.tflite import LeakyReluOptions
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import FusedOptions, Padding
from microtir.operators.division.definition import may_shift_far
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.unary.definition import may_leave_float32
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.requests.numerics import ChooseNumerics
from microtir.rewrite.requests.unlike_scales import stored_as_is
from microtir.rewrite.verify import verify
from microtir.writers.tflite import TfliteBuilder
from tests.execute.cases import compare, compile_case
from tests.support.batch import load_batch
from tests.support.c_compilers import STRICT
from tests.support.command import Command
from tests.support.litert import run_litert
from tests.support.operator_cases import OPERATORS
from tests.support.seeds import seeds
from tests.support.sketch import Array, Case, Quant
from tests.support.stateful import handle, initialised
from tests.support.tflm import run_tflm, run_tflm_steps
from tests.support.unlike_chains import unlike_chain
from tests.support.unlike_sketch import NARROW, unlike_case

CLAMPS = ("RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "ABS")

# Types that LiteRT's kernels do not take.
_LACKING = {("RELU_N1_TO_1", np.int16), ("ABS", np.uint8)}

# Ratios of scales that make halves of results: the last bit of a multiplier decides there.
RATIOS = (1.3, 0.5, 0.7, 2.5, 1.0)


def clamp(operator: str, dtype: npt.DTypeLike, given: Quant, made: Quant) -> tuple[bytes, Array]:
    """Return a model of a clamp, and an input that holds all values of 8 bits."""
    builder, info = TfliteBuilder(), np.iinfo(dtype)
    values = np.linspace(info.min, info.max, 256).round().astype(dtype)
    x = builder.tensor("x", (256,), dtype, None, [given.scale], [given.zero_point])
    y = builder.tensor("y", (256,), dtype, None, [made.scale], [made.zero_point])
    options = LeakyReluOptions(0.3) if operator == "LEAKY_RELU" else None
    builder.operator(Code[operator], [x], [y], options)
    return builder.build([x], [y]), values


def read(model: bytes, numerics: Numerics) -> Graph:
    """Return a model with the layers of a reference."""
    graph = from_tflite(model).graph
    assert graph is not None
    graph = ChooseNumerics(numerics)(graph)
    verify(graph)
    return graph


def result(model: bytes, x: Array, numerics: Numerics) -> Array:
    """Return what a model makes of its input."""
    (made,) = execute(read(model, numerics), {"x": x}).values()
    return made


def _quants(dtype: npt.DTypeLike) -> list[tuple[Quant, Quant]]:
    """Draw pairs of quantisations of all ratios, three of each."""
    info, rng = np.iinfo(dtype), np.random.default_rng(32)
    zeros = (0, 1) if info.bits > 8 else (info.min, info.max)
    return [
        (
            Quant(float(np.float32(scale)), int(rng.integers(*zeros))),
            Quant(float(np.float32(scale / ratio)), int(rng.integers(*zeros))),
        )
        for ratio in RATIOS
        for scale in (0.02, 1 / 30, float(2.0 ** rng.uniform(-6, -3)))
    ]


def test_relu6_of_uint8_rescales() -> None:
    """A real 1.0 was given back as the stored integer that it came as: 3.48."""
    model, _ = clamp("RELU6", np.uint8, Quant(0.05, 128), Quant(6 / 255, 0))
    x = np.full(256, 28, np.uint8)
    x[:8] = (28, 128, 129, 148, 168, 208, 228, 255)
    made = result(model, x, Numerics.TFLM)[:8]
    np.testing.assert_array_equal(made, (0, 0, 2, 43, 85, 170, 213, 255))


@pytest.mark.tools
@pytest.mark.parametrize("operator", CLAMPS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_clamps_rescale_as_their_references(operator: str, dtype: type[np.generic]) -> None:
    """LiteRT's results with its numerics and for uint8; tflite-micro's where it has a kernel."""
    of_micro = dtype is not np.uint8 and operator != "RELU_N1_TO_1"
    for given, made in _quants(dtype):
        model, x = clamp(operator, dtype, given, made)
        if (operator, dtype) in _LACKING:
            continue  # neither has one
        (of_litert,) = run_litert(model, x)
        np.testing.assert_array_equal(result(model, x, Numerics.TFLITE_REF), of_litert)
        expected = run_tflm(model, x)[0] if of_micro else of_litert
        np.testing.assert_array_equal(result(model, x, Numerics.TFLM), expected)


def test_a_clamp_that_copies_is_told() -> None:
    """tflite-micro's RELU6 of int8 copies; LiteRT's does not, and neither do those of uint8."""
    model, _ = clamp("RELU6", np.int8, Quant(0.05, 0), Quant(6 / 255, -128))
    (told,) = stored_as_is(read(model, Numerics.TFLM))
    assert told.what == (
        "it copies integers stored with scale 0.0500000007 and zero point 0"
        " as such with scale 0.0235294122 and zero point -128"
    )
    assert told.fix.command == "--numerics tflite_ref rescales, as LiteRT does"
    assert not stored_as_is(read(model, Numerics.TFLITE_REF))
    older, _ = clamp("RELU6", np.uint8, Quant(0.05, 128), Quant(6 / 255, 0))
    assert not stored_as_is(read(older, Numerics.TFLM))


# What a reference takes and this compiler refuses.
_TYPES_NOT_READ = {
    ("DIV", "int16"),  # is, but for quotients of scales that the recipe draws
    *((operator, dtype) for operator in ("LOGICAL_AND", "LOGICAL_OR") for dtype in NARROW),
}

# tflite-micro's GREATER of int16 compares neither stored integers nor reals; LiteRT's counts.
_OF_LITERT = {("GREATER", "int16")}

# Kernels of LiteRT that round otherwise than tflite-micro's, with one scale and with two.
_LITERT_ROUNDS = {("SUM", "int8"), ("SUM", "int16"), ("RSQRT", "int16")}


def ran(run: Callable[[], list[Array]]) -> list[Array] | None:
    """Return what an oracle computes; None where it refuses the model."""
    try:
        return run()
    except (RuntimeError, ValueError):
        return None


def computed(case: Case, numerics: Numerics) -> list[Array] | None:
    """Return what the graph of a case computes; None where a diagnostic refuses it."""
    try:
        graph = ChooseNumerics(numerics)(case.graph())
    except MicrotirError:
        return None
    verify(graph)
    return list(execute(graph, case.named_inputs()).values())


def _beyond(case: Case) -> npt.NDArray[np.bool_]:
    """Return which elements of EXP are too large for the C of LiteRT: integers made of infinities.

    A table for int8 is made through int32.  One for int16 is made in float32, and its line meets
    the middle of the next one.
    """
    (node,) = case.graph().nodes
    (x,) = case.inputs
    given, made = node.inputs[0].type.quant, node.output.type.quant
    if x.dtype == np.int16:
        x, limit = np.minimum((x.astype(np.int32) | 127) + 129, 32768), 2.0**128
    else:
        limit = 2.0**31 - 256
    with np.errstate(over="ignore"):
        real = np.exp((x.astype(np.float64) - given.zero_point) * given.scale)
    return np.asarray(np.maximum(real, real / made.scale) >= limit)


def _quotients_left_open(case: Case) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return where a reference's DIV is its processor's, and where of a quotient below 0.5.

    The former are the latter and what is divided by 0, which has a result here and in no reference.
    """
    (node,) = case.graph().nodes
    given = case.named_inputs()
    x, y = (
        (np.asarray(given.get(t.name, t.data)) - np.float64(t.type.quant.zero_point))
        * t.type.quant.scale
        for t in node.inputs
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.abs(np.divide(x, y)) / node.output.type.quant.scale
    is_small = np.asarray((steps < 0.49) & may_shift_far(node))
    return is_small | np.broadcast_to(y == 0, is_small.shape), is_small


def divides_by_constant_zero(case: Case) -> bool:
    """Return whether a divisor that is known holds a 0, which is refused."""
    try:
        case.graph()
    except UnsupportedModelError as error:
        return "its constant divisor holds 0" in str(error)
    return False


def compare_where_defined(case: Case, result: Array, want: Array, numerics: Numerics) -> None:
    """Compare with a reference where its compiler and processor have nothing to choose.

    There an EXP is the largest number here, and a quotient of less than half a step is 0.
    """
    if case.name.startswith("exp_int"):
        left_open = _beyond(case)
        assert (result[left_open] == np.iinfo(result.dtype).max).all(), case.name
        result, want = result[~left_open], want[~left_open]
    if case.name.startswith("div_int"):
        left_open, is_small = _quotients_left_open(case)
        (node,) = case.graph().nodes
        assert (result[is_small] == node.output.type.quant.zero_point).all(), case.name
        result, want = result[~left_open], want[~left_open]
    np.testing.assert_array_equal(result, want, err_msg=f"{case.name} {numerics}")


@pytest.mark.tools
@pytest.mark.parametrize(("dtype", "seed"), [("int16", 27737200001), ("int8", 44), ("int8", 382)])
def test_exponentials_beyond_the_range_saturate(dtype: str, seed: int) -> None:
    """Infinities are the largest stored number here; LiteRT gave 0 on one processor."""
    case = unlike_case("EXP", dtype, seed)
    (node,) = case.graph().nodes
    left_open = _beyond(case)
    assert left_open.any() and not left_open.all() and may_leave_float32(node)
    made = computed(case, Numerics.TFLM)
    assert made is not None
    compare_where_defined(case, made[0], run_litert(case.model, *case.inputs)[0], Numerics.TFLM)


@pytest.mark.tools
@pytest.mark.soak
@pytest.mark.parametrize("operator", OPERATORS)
def test_unlike_scales_are_those_of_the_references(operator: str) -> None:
    """All operators of narrow integers rescale, copy or are refused as in the reference.

    That is the one whose numerics are asked for; where it has no kernel, the other one.
    """
    oracles: dict[Numerics, Callable[[Case], list[Array] | None]] = {
        Numerics.TFLM: lambda c: ran(lambda: run_tflm(c.model, *c.inputs, outputs=c.outputs)),
        Numerics.TFLITE_REF: lambda c: ran(lambda: run_litert(c.model, *c.inputs)),
    }
    for dtype in NARROW:
        if (operator, dtype) in _TYPES_NOT_READ:
            continue
        for seed in seeds(1, 2):
            alike = unlike_case(operator, dtype, seed, is_unlike=False)
            case = unlike_case(operator, dtype, seed)
            known = [n for n, oracle in oracles.items() if oracle(alike) is not None]
            if (operator, dtype) in _OF_LITERT:
                known = [Numerics.TFLITE_REF]
            if not known or computed(alike, known[0]) is None:
                continue
            for numerics in oracles:
                if numerics is Numerics.TFLITE_REF and (operator, dtype) in _LITERT_ROUNDS:
                    continue
                expected = oracles[numerics if numerics in known else known[0]](case)
                made = computed(case, numerics)
                if operator == "DIV" and (expected is None or divides_by_constant_zero(case)):
                    continue  # a divisor of 0 ends a run, or is not looked at
                assert (made is None) is (expected is None), (case.name, numerics)
                for result, want in zip(made or [], expected or [], strict=True):
                    compare_where_defined(case, result, want, numerics)


@pytest.mark.tools
@pytest.mark.soak
def test_chains_of_unlike_scales(tmp_path: Path) -> None:
    """Many operators, each tensor in a scale of its own, equal both references, and so does the C.

    Passes over the graph move, fuse and drop operators beside those that copy integers.
    """
    cases = [unlike_chain(seed) for seed in seeds(0, 12)]
    for case in cases:
        of_micro, of_litert = (
            run_tflm(case.model, *case.inputs),
            run_litert(case.model, *case.inputs),
        )
        for numerics, expected in ((Numerics.TFLM, of_micro), (Numerics.TFLITE_REF, of_litert)):
            made = computed(case, numerics)
            assert made is not None
            np.testing.assert_array_equal(made[0], expected[0], err_msg=f"{case.name} {numerics}")
    compare(cases[:6], tmp_path, STRICT)


def _int8(builder: TfliteBuilder, name: str, scale: float, zero_point: int) -> int:
    return builder.tensor(name, (1, 8), np.int8, None, [float(np.float32(scale))], [zero_point])


def padded(dtype: npt.DTypeLike, given: Quant, value: Quant, made: Quant) -> tuple[bytes, Array]:
    """Return a model of PADV2 by a constant, and its input."""
    builder = TfliteBuilder()
    tensors = [
        builder.tensor(name, shape, dtype, data, [quant.scale], [quant.zero_point])
        for name, shape, data, quant in (
            ("x", (3,), None, given),
            ("value", (), np.array(9, dtype), value),
            ("y", (6,), None, made),
        )
    ]
    sides = builder.tensor("sides", (1, 2), np.int32, np.array([[1, 2]], np.int32))
    builder.operator(Code.PADV2, [tensors[0], sides, tensors[1]], [tensors[2]])
    return builder.build(tensors[:1], tensors[2:]), np.array([1, 2, 100], dtype)


@pytest.mark.tools
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_the_value_of_padv2_is_asked_for_the_scale_of_the_output(
    dtype: type[np.generic],
) -> None:
    """The input is copied whatever its scale is; tflite-micro asks nothing of int16."""
    first, second = Quant(0.5, 0), Quant(0.25, 0)
    for given, value in ((first, second), (first, first), (second, first)):
        model, x = padded(dtype, given, value, second)
        case = Case("padv2", model, (x,), 1)
        of_litert = ran(partial(run_litert, model, x))
        of_micro = ran(partial(run_tflm, model, x))
        assert (of_litert is not None) is (value == second)
        wanted = of_litert if dtype is np.uint8 else of_micro
        for numerics, expected in ((Numerics.TFLITE_REF, of_litert), (Numerics.TFLM, wanted)):
            made = computed(case, numerics)
            assert (made is None) is (expected is None), (given, value, numerics)
            if made is not None and expected is not None:
                np.testing.assert_array_equal(made[0], expected[0])
                told = stored_as_is(read(model, numerics))
                assert {one.name for one in told} == {"y"}


@pytest.mark.tools
@pytest.mark.parametrize(("step", "is_refused"), [(0.99e-6, False), (1.01e-6, True)])
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_pooling_takes_scales_that_are_nearly_equal(
    step: float, is_refused: bool, dtype: type[np.generic]
) -> None:
    """tflite-micro does so up to 1e-6, and copies stored integers."""
    builder, scale = TfliteBuilder(), float(np.float32(2e-5))
    x = builder.tensor("x", (1, 4, 4, 1), dtype, None, [scale], [0])
    y = builder.tensor("y", (1, 2, 2, 1), dtype, None, [float(np.float32(scale + step))], [0])
    builder.operator(Code.MAX_POOL_2D, [x], [y], Pool2DOptions(Padding.VALID, 2, 2, 2, 2))
    values = np.arange(16).reshape(1, 4, 4, 1).astype(dtype)
    case = Case("pool", builder.build([x], [y]), (values,), 1)
    expected, made = ran(partial(run_tflm, case.model, values)), computed(case, Numerics.TFLM)
    assert (expected is None) is (made is None) is is_refused
    if expected is not None and made is not None:
        np.testing.assert_array_equal(made[0], expected[0])
        (told,) = stored_as_is(read(case.model, Numerics.TFLM))
        assert told.name == "y"


def looping() -> bytes:
    """A model whose loop scales a value three times; no two ports have one scale."""
    builder = TfliteBuilder()
    x = _int8(builder, "x", 0.05, 3)
    count = builder.tensor("count", (), np.int32, np.array(0, np.int32))
    condition, body = builder.subgraph("condition"), builder.subgraph("body")
    counts = [graph.tensor("n", (), np.int32) for graph in (condition, body)]
    limit = condition.tensor("limit", (), np.int32, np.array(3, np.int32))
    flag = condition.tensor("flag", (), np.bool_)
    condition.operator(Code.LESS, [counts[0], limit], [flag])
    condition.define([counts[0], _int8(condition, "v", 0.07, 1)], [flag])
    step, grown = (
        body.tensor("step", (), np.int32, np.array(1, np.int32)),
        body.tensor("grown", (), np.int32),
    )
    body.operator(Code.ADD, [counts[1], step], [grown], AddOptions())
    value, scaled = _int8(body, "v", 0.04, -5), _int8(body, "scaled", 0.045, 7)
    body.operator(Code.RELU, [value], [scaled])
    body.define([counts[1], value], [grown, scaled])
    end, out = builder.tensor("end", (), np.int32), _int8(builder, "out", 0.09, 2)
    options = WhileOptions(condition.number, body.number)
    builder.operator(Code.WHILE, [count, x], [end, out], options)
    return builder.build([x], [out])


def branching() -> bytes:
    """A model that adds or multiplies in scales that are not those of its caller."""
    builder = TfliteBuilder()
    flag, x = builder.tensor("flag", (), np.bool_), _int8(builder, "x", 0.05, 3)
    branches = []
    for number, (code, options) in enumerate(
        ((Code.ADD, AddOptions()), (Code.MUL, FusedOptions()))
    ):
        graph = builder.subgraph(code.name)
        value, made = _int8(graph, "v", 0.04, -5), _int8(graph, "made", 0.06 + number, 9)
        graph.operator(code, [value, value], [made], options)
        graph.define([value], [made])
        branches.append(graph.number)
    out = _int8(builder, "out", 0.09, 2)
    builder.operator(Code.IF, [flag, x], [out], IfOptions(*branches))
    return builder.build([flag, x], [out])


@pytest.mark.tools
def test_subgraphs_take_integers_in_their_own_scale(tmp_path: Path) -> None:
    """What a loop or a branch is given and gives is copied, and its operators have its scales."""
    x = np.array([[-128, -30, -5, 0, 3, 20, 90, 127]], np.int8)
    cases = [Case("looping", looping(), (x,), 1)]
    cases += [Case(f"branch_{n}", branching(), (np.array(n == 0), x), 1) for n in range(2)]
    for case in cases:
        expected = run_tflm(case.model, *case.inputs)[0]
        np.testing.assert_array_equal(run_litert(case.model, *case.inputs)[0], expected)
        for numerics in (Numerics.TFLM, Numerics.TFLITE_REF):
            made = computed(case, numerics)
            assert made is not None
            np.testing.assert_array_equal(made[0], expected, err_msg=case.name)
        told = stored_as_is(case.graph())
        names = {one.name.split("/")[-1] for one in told}
        assert names <= {"v", "scaled", "made", "out"}
        assert {one.node.source.index for one in told} == {0}
    compare(cases, tmp_path, STRICT)


def remembering(read: Quant, held: Quant, *, is_first: bool, is_stated: bool = False) -> bytes:
    """A model that gives what a variable held before it is assigned, or holds then."""
    builder = TfliteBuilder()
    if is_stated:
        initialised(builder, np.arange(8, dtype=np.int8).reshape(1, 8))
    x = _int8(builder, "x", 0.05, 3)
    y, out = (
        _int8(builder, "y", held.scale, held.zero_point),
        _int8(builder, "out", read.scale, read.zero_point),
    )
    variable = handle(builder)
    builder.operator(Code.RELU, [x], [y])
    if is_first:
        builder.operator(Code.READ_VARIABLE, [variable], [out])
    builder.operator(Code.ASSIGN_VARIABLE, [variable, y], [])
    if not is_first:
        builder.operator(Code.READ_VARIABLE, [variable], [out])
    return builder.build([x], [out])


@pytest.mark.tools
def test_variables_are_read_in_another_scale(tmp_path: Path) -> None:
    """The integers are copied, as by both references; `check` tells it.

    tflite-micro begins with the zero point of what is first assigned, which is asked for where a
    read comes first and nothing initialises the variable; LiteRT fails there.
    """
    x = np.array([[-128, -30, -5, 0, 3, 20, 90, 127]], np.int8)
    first, second = Quant(0.04, -5), Quant(0.07, 9)
    models = [
        remembering(second, first, is_first=False),
        remembering(second, first, is_first=True, is_stated=True),
        remembering(Quant(0.07, -5), first, is_first=True),
        remembering(first, first, is_first=True),  # its plan ended in an IndexError
    ]
    cases = [Case(f"variable_{n}", model, (x,), 1) for n, model in enumerate(models)]
    compiled = load_batch([compile_case(case) for case in cases], tmp_path)
    steps = [x, x[:, ::-1].copy(), x // 2]
    for case, model in zip(cases, compiled, strict=True):
        graph = read(case.model, Numerics.TFLM)
        given, name = [{"x": step} for step in steps], graph.outputs[0].name
        wanted = run_tflm_steps(case.model, steps)
        for made in (execute_steps(graph, given), model.run_sequence(given)):
            for outputs, want in zip(made, wanted, strict=True):
                np.testing.assert_array_equal(outputs[name], want, err_msg=case.name)
        told = {one.name for one in stored_as_is(graph)} & {"out", "y_held"}
        assert bool(told) is (case is not cases[-1])
    with pytest.raises(MicrotirError, match="has the type int8"):
        from_tflite(remembering(second, first, is_first=True))


@pytest.mark.tools
@pytest.mark.soak
def test_c_of_unlike_scales(tmp_path: Path) -> None:
    """Generated C moves integers between scales as the graph says it does."""
    operators = ("RELU6", "RESHAPE", "PAD", "SPLIT", "CONCATENATION", "RESIZE_BILINEAR", "MAXIMUM")
    kinds = [(o, d) for o in operators for d in NARROW if (o, d) != ("CONCATENATION", "int8")]
    compare([unlike_case(o, d, s) for o, d in kinds for s in seeds(50, 1)], tmp_path, STRICT)


def test_check_and_compile_say_what_changes_values(microtir: Command, tmp_path: Path) -> None:
    """Both name the operator, the two scales and what to do; a model of one scale is not named."""
    unlike, _ = clamp("RELU6", np.int8, Quant(0.05, 0), Quant(6 / 255, -128))
    alike, _ = clamp("RELU6", np.int8, Quant(0.05, 0), Quant(0.05, 0))
    path, other = tmp_path / "unlike.tflite", tmp_path / "alike.tflite"
    path.write_bytes(unlike)
    other.write_bytes(alike)
    line = "  - operator 0 RELU6 ('y'): it copies integers stored with scale 0.0500000007"
    shown = microtir("check", path).out
    assert "1 operator changes real values" in shown and line in shown
    assert line in microtir("compile", path, "-o", tmp_path / "made").out
    (told,) = json.loads(microtir("check", path, "--json").out)["changed_values"]
    assert told["where"] == "unlike.tflite: operator 0 RELU6 ('y')"
    assert "changes real values" not in microtir("check", other).out
    assert json.loads(microtir("check", other, "--json").out)["changed_values"] == []
