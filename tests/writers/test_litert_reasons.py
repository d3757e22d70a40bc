"""Why LiteRT's reference kernels give other values for some written files.

LiteRT's integer LSTM computes sigmoid and tanh with gemmlowp's polynomials, where tflite-micro has
tables.  Its reference kernel for SUM rescales by a factor that nothing has set; its other one is
right.
"""

from __future__ import annotations

import numpy as np
import pytest

from microtir.config import Numerics
from microtir.frontend import from_tflite
from microtir.graph.ir import Array, Graph
from microtir.operators.common.fixed_point import Ints
from microtir.operators.common.sigmoid_table import SigmoidScaling
from microtir.operators.recurrent import meaning
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.reduction.definition import Sum
from microtir.quantise import QuantiseOptions, quantise
from microtir.quantise.runs import stored
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.requests.numerics import ChooseNumerics
from microtir.writers import tflite_bytes
from tests.support import gemmlowp
from tests.support.float_networks import floats
from tests.support.graphs import constant, graph, node, tensor
from tests.support.litert import run_litert_steps

_UNITS, _STEPS, _RUNS = 7, 9, 20


def _written(model: Graph) -> tuple[bytes, Graph, list[Array]]:
    """Return the file of a model in int8, what is read of it, and arguments of some runs."""
    samples = floats(3, _RUNS, *model.inputs[0].shape)
    quantised = quantise(model, {"x": samples}, QuantiseOptions(rounding_work=0.0)).graph
    data = tflite_bytes(quantised)
    again = from_tflite(data, name="again").graph
    assert again is not None
    return data, again, [stored(run, again.arguments[0].type) for run in samples]


def _network() -> Graph:
    x, y = tensor("x", (1, _STEPS, 5)), tensor("y", (1, _STEPS, _UNITS))
    states = [constant(name, np.zeros((1, _UNITS), np.float32)) for name in ("hidden", "cell")]
    after = [tensor(f"{t.name}_after", t.shape) for t in states]
    weights = [constant(f"w{n}", floats(n, _UNITS, 5)) for n in range(4)]
    recurrent = [constant(f"r{n}", floats(9 + n, _UNITS, _UNITS, spread=0.4)) for n in range(4)]
    biases = [constant(f"b{n}", floats(20 + n, _UNITS, spread=0.3)) for n in range(4)]
    inputs = (x, *states, *weights, *recurrent, *biases)
    return graph([node(Lstm(), inputs, [y, *after])], [x], [y])


def _bits(scaling: SigmoidScaling) -> int:
    """Return the bits before the point of an argument."""
    return 3 + (scaling.multiplier // 3).bit_length() - 1 - scaling.right_shift


def _logistic(values: Ints, scaling: SigmoidScaling) -> Ints:
    return gemmlowp.logistic(values, _bits(scaling))


def _tanh(values: Ints, scaling: SigmoidScaling) -> Ints:
    return gemmlowp.tanh(values, _bits(scaling))


@pytest.mark.parametrize("has_polynomials", [True, False])
def test_an_lstm_has_polynomials_in_litert(
    monkeypatch: pytest.MonkeyPatch, *, has_polynomials: bool
) -> None:
    """With gemmlowp's functions all values are LiteRT's; without them some differ by one step."""
    data, again, arguments = _written(_network())
    if has_polynomials:
        monkeypatch.setattr(meaning, "logistic_of_int16", _logistic)
        monkeypatch.setattr(meaning, "tanh_of_int16", _tanh)
    wanted = run_litert_steps(data, [[x] for x in arguments])
    runs = execute_steps(again, [{again.arguments[0].name: x} for x in arguments])
    differences = [
        run[again.results[0].name].astype(int) - outputs[0]
        for outputs, run in zip(wanted, runs, strict=True)
    ]
    assert max(np.abs(each).max() for each in differences) == (0 if has_polynomials else 1)


def test_a_sum_is_that_of_the_other_kernels_of_litert() -> None:
    """Those that it has for programs without delegates."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    x, y = tensor("x", (1, 4, 8)), tensor("y", (1, 4))
    data, again, arguments = _written(graph([node(Sum((2,), False), (x,), y)], [x], [y]))
    interpreter = Interpreter(
        model_content=data,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    model = ChooseNumerics(Numerics.TFLITE_REF)(again)
    for values in arguments:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        (wanted,) = execute(model, {model.arguments[0].name: values}).values()
        np.testing.assert_array_equal(found, wanted)
