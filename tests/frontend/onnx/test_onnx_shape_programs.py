"""Random programs that compute with shapes: known while reading, as numpy and onnxruntime do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from onnx import helper

from microtir import frontend
from microtir.graph.ir import Array
from microtir.rewrite.reference import execute
from tests.support.onnx_models import model_of, run_onnxruntime, typed
from tests.support.seeds import seeds
from tests.support.shape_programs import ShapeProgram, Step, drawn, shown

RNG = np.random.default_rng(3)

PLAIN: Mapping[str, str] = MappingProxyType(
    {
        "take": "Gather", "join": "Concat", "squeeze": "Squeeze", "halves": "Split",
        "negate": "Neg", "shape": "Shape", "cast": "Cast", "range": "Range", "part": "Slice",
        "slice": "Slice", "reshape": "Reshape", "unsqueeze": "Unsqueeze", "tile": "Tile",
        "fill": "Expand",
    }
)  # fmt: skip
BINARY: Mapping[str, str] = MappingProxyType(
    {"add": "Add", "sub": "Sub", "mul": "Mul", "max": "Max", "min": "Min", "mod": "Mod"}
)


def number_of(dtype: np.dtype[np.generic]) -> int:
    """The number that the format has for a numpy type."""
    return int(helper.np_dtype_to_tensor_dtype(dtype))


class Writer:
    """A model of a program."""

    def __init__(self, program: ShapeProgram) -> None:
        self.program = program
        self.nodes: list[object] = []
        self.constants: dict[str, Array] = {}
        self.known: list[str] = []
        for step in program.steps:
            made = [f"t{len(self.known) + i}" for i in range(len(step.results))]
            self.write(step, [self.known[n] for n in step.inputs], made)
            self.known += made

    def constant(self, values: object, dtype: object = np.int64) -> str:
        """A constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)  # type: ignore[call-overload]
        return name

    def node(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **rest: Any
    ) -> None:
        """Add a node."""
        self.nodes.append(helper.make_node(operator, list(inputs), list(outputs), **rest))

    def write(self, step: Step, inputs: list[str], made: list[str]) -> None:
        """Write the nodes of a step."""
        if step.kind in ("binary", "scale", "stack", "pick"):
            getattr(self, step.kind)(step, inputs, made)
            return
        if step.kind == "reduce":
            name = f"Reduce{step.given['name'].capitalize()}"
            axes = self.constant([step.given["axis"]])
            self.node(name, [*inputs, axes], made, keepdims=int(step.given["keep"]))
            return
        before, after, attributes = self.parts(step)
        self.node(PLAIN[step.kind], [*before, *inputs, *after], made, **attributes)

    def parts(self, step: Step) -> tuple[list[str], list[str], dict[str, Any]]:
        """Return constants before and behind the inputs of a step, and attributes."""
        given, c, result = step.given, self.constant, step.results[0]
        parts: Mapping[str, Callable[[], tuple[list[str], list[str], dict[str, Any]]]] = {
            "shape": lambda: (["x"], [], {}),
            "take": lambda: ([], [c(given["places"])], {"axis": 0}),
            "part": lambda: (
                [], [c([given["begin"]]), c([given["end"]]), c([0]), c([given["stride"]])], {},
            ),
            "slice": lambda: ([], [c(given["begin"]), c(given["end"])], {}),
            "join": lambda: ([], [], {"axis": 0}),
            "cast": lambda: ([], [], {"to": number_of(result.dtype)}),
            "range": lambda: ([c(0, result.dtype)], [c(1, result.dtype)], {}),
            "reshape": lambda: ([], [c(given["shape"])], {"allowzero": int(result.size == 0)}),
            "squeeze": lambda: ([], [], {}),
            "unsqueeze": lambda: ([], [c([given["axis"]])], {}),
            "halves": lambda: ([], [], {"axis": 0, "num_outputs": 2}),
            "negate": lambda: ([], [], {}),
            "tile": lambda: ([], [c([given["times"]])], {}),
            "fill": lambda: ([c(given["number"])], [], {}),
        }  # fmt: skip
        return parts[step.kind]()

    def binary(self, step: Step, inputs: list[str], made: list[str]) -> None:
        """Write two numbers into one; ONNX divides towards 0, so the rest is taken off before."""
        if step.given["name"] != "floor_div":
            self.node(BINARY[step.given["name"]], inputs, made)
            return
        rest, whole = f"{made[0]}_rest", f"{made[0]}_whole"
        self.node("Mod", inputs, [rest])
        self.node("Sub", [inputs[0], rest], [whole])
        self.node("Div", [whole, inputs[1]], made)

    def scale(self, step: Step, inputs: list[str], made: list[str]) -> None:
        """Multiply in float32."""
        whole, scaled = f"{made[0]}_whole", f"{made[0]}_scaled"
        self.node("Cast", inputs, [whole], to=number_of(np.dtype(np.float32)))
        self.node("Mul", [whole, self.constant(step.given["factor"], np.float32)], [scaled])
        self.node("Cast", [scaled], made, to=number_of(step.results[0].dtype))

    def stack(self, _step: Step, inputs: list[str], made: list[str]) -> None:
        """Join along a new axis."""
        rows = [f"{made[0]}_{i}" for i in range(2)]
        for value, row in zip(inputs, rows, strict=True):
            self.node("Unsqueeze", [value, self.constant([0])], [row])
        self.node("Concat", rows, made, axis=0)

    def pick(self, step: Step, inputs: list[str], made: list[str]) -> None:
        """Take a number by a scalar."""
        self.node("Gather", [*inputs, self.constant(step.given["place"])], made, axis=0)

    def model(self, numbers: Sequence[int]) -> tuple[bytes, dict[str, Array], list[Array]]:
        """Return a model that adds values to inputs, the inputs, and what it has to give."""
        fed: dict[str, Array] = {"x": np.zeros(self.program.shape, np.float32)}
        outputs, wanted = [], []
        for number in numbers:
            value = self.program.values[number]
            fed[f"z{number}"] = RNG.integers(0, 9, value.shape).astype(value.dtype)
            outputs.append(typed(f"y{number}", value))
            self.node("Add", [f"z{number}", self.known[number]], [f"y{number}"])
            wanted.append(np.asarray(fed[f"z{number}"] + value))
        inputs = [typed(name, value) for name, value in fed.items()]
        return model_of(self.nodes, inputs, outputs, self.constants), fed, wanted


@pytest.mark.soak
def test_random_programs_are_known_as_numpy_and_onnxruntime_have_them() -> None:
    """Scalars, lists and empty ones: nothing of it is left to compute, and the numbers are right.

    Shapes are int64 in ONNX.
    """
    for seed in seeds(0, 120):
        program = drawn(seed, np.int64)
        numbers = shown(program)
        data, fed, wanted = Writer(program).model(numbers)
        graph = frontend.from_onnx(data).graph
        assert graph is not None
        assert len(graph.nodes) == len(numbers), f"seed {seed}: {graph.nodes}"
        outputs = zip(execute(graph, fed).values(), run_onnxruntime(data, fed), strict=True)
        for (got, reference), want in zip(outputs, wanted, strict=True):
            np.testing.assert_array_equal(reference, want, err_msg=f"seed {seed}, of onnxruntime")
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
