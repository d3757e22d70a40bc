"""Extents that a file leaves open: the command that is printed is one with which all works."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from microtir.frontend import check, from_onnx
from tests.support.command import Command
from tests.support.onnx_models import model_of, typed

pytestmark = pytest.mark.tools


def convolutions() -> bytes:
    """Images of less than 17 rows end in a window that is larger than what is left."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], strides=[8, 8]),
        helper.make_node("Conv", ["a", "v"], ["y"]),
    ]
    held = {"w": np.ones((4, 3, 3, 3), np.float32), "v": np.ones((2, 4, 3, 3), np.float32)}
    return model_of(nodes, [typed("x", ("n", 3, "height", "width"))], ["y"], held)


def reshaped(length: int) -> bytes:
    """A model that is legal with one length alone."""
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    return model_of(
        [node], [typed("x", ("n", "length", 3))], ["y"], {"s": np.array([1, length * 3])}
    )


def added(*shapes: tuple[Any, ...]) -> bytes:
    """Inputs one behind the other."""
    names = [f"x{n}" for n in range(len(shapes))]
    inputs = [typed(name, shape) for name, shape in zip(names, shapes, strict=True)]
    return model_of([helper.make_node("Concat", names, ["y"], axis=1)], inputs, ["y"])


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        (convolutions(), ["--dim", "height=32", "--dim", "width=32"]),
        (reshaped(224), ["--dim", "length=224"]),
        (reshaped(1), ["--dim", "length=1"]),
        (added(("batch", "length", 3)), ["--dim", "length=16"]),
        (added(("b", "l"), ("b", "l + 1")), ["--dim", "l=16", "--dim", "l + 1=17"]),
        (added(("n", -1), ("n", "length")), ["--dim", "length=16", "--input-shapes", "x0:[1,16]"]),
        (added((1, 2, -1, 4)), ["--input-shapes", "x0:[1,2,16,4]"]),
    ],
)
def test_the_command_works(
    model: bytes, flags: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that `check` prints is one that it then answers with yes."""
    monkeypatch.chdir(tmp_path)
    path = Path("a model.onnx")
    path.write_bytes(model)
    problems = check(path)
    (fix,) = {str(problem.for_command_line().fix) for problem in problems}
    words = shlex.split(fix.partition("for example: ")[2])
    assert words == ["microtir", "check", str(path), *flags]
    result = Command(capsys)(*words[1:])
    assert result.status == 0, result


def test_the_call_works() -> None:
    """The same in Python."""
    (problem,) = check(convolutions())
    assert str(problem.fix).endswith("from_onnx(..., dims={'height': 32, 'width': 32})")
    assert from_onnx(convolutions(), dims={"height": 32, "width": 32}).graph is not None


def test_other_problems_stay() -> None:
    """Where something else is wrong, too, extents are an example all the same."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("RandomUniformLike", ["r"], ["y"]),
    ]
    problems = check(model_of(nodes, [typed("x", (1, "length"))], ["y"]))
    assert "--dim length=16" in str(problems[0].for_command_line().fix)
