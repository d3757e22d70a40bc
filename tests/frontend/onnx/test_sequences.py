"""Sequences in ONNX, whose tensors are known one by one, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from microtir import build, host
from microtir.config import CompilationConfig
from microtir.errors import MicrotirError
from microtir.frontend import check as problems_of
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.frontend.onnx.test_readers import check, drawn
from tests.support.command import Command
from tests.support.onnx_models import Array, model_of, typed

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=20, deadline=None)


def sequence(name: str, shape: tuple[Any, ...] | None = None) -> Any:
    """Return an input or output that is a sequence of floats."""
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, shape)


@given(st.data(), st.booleans())
@SAMPLE
def test_what_is_taken_apart_is_put_together(data: st.DataObject, is_stacked: bool) -> None:
    """Tensors are split off, inserted, erased and taken out by places from both ends."""
    x, size = drawn(data, 6, 2), data.draw(st.integers(1, 3), "size")
    count = 6 // size
    places = {
        "size": np.array(size),
        "into": np.array(data.draw(st.integers(-count, count), "into")),
        "out": np.array(data.draw(st.integers(-count - 1, count), "out")),
        "which": np.array(data.draw(st.integers(-count, count - 1), "which")),
    }
    nodes = [
        helper.make_node("SplitToSequence", ["x", "size"], ["s"]),
        helper.make_node("SequenceAt", ["s", "which"], ["one"]),
        helper.make_node("SequenceInsert", ["s", "one", "into"], ["longer"]),
        helper.make_node("SequenceErase", ["longer", "out"], ["shorter"]),
        helper.make_node("SequenceLength", ["shorter"], ["length"]),
        helper.make_node(
            "ConcatFromSequence", ["shorter"], ["y"], axis=-1, new_axis=int(is_stacked)
        ),
    ]
    results = [typed("y", (None,) * (2 + is_stacked)), typed("length", (), np.int64)]
    if not is_stacked and 6 % size:
        return  # parts of several sizes are no rows of one tensor
    check(model_of(nodes, [typed("x", x)], results, places), x=x)


@given(st.data(), st.booleans())
@SAMPLE
def test_parts_of_sizes(data: st.DataObject, is_kept: bool) -> None:
    """Sizes that are said, or one place each, whose axis is kept or not."""
    x = drawn(data, 2, 5)
    sizes = data.draw(st.sampled_from([(1, 4), (2, 1, 2), (5,), None]), "sizes")
    constants = {"which": np.array(-1)}
    if sizes is not None:
        constants["sizes"] = np.array(sizes)
    nodes = [
        helper.make_node(
            "SplitToSequence",
            ["x"] if sizes is None else ["x", "sizes"],
            ["s"],
            axis=1,
            keepdims=int(is_kept),
        ),
        helper.make_node("SequenceAt", ["s", "which"], ["y"]),
    ]
    rank = 2 if is_kept or sizes is not None else 1
    check(model_of(nodes, [typed("x", x)], [typed("y", (None,) * rank)], constants), x=x)


def test_loop_that_grows_a_sequence() -> None:
    """A state of a loop is a sequence, which is empty at first."""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "turn"], ["row"]),
            helper.make_node("SequenceInsert", ["old", "row", "front"], ["new"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [typed("turn", (), np.int64), typed("go", (), np.bool_), sequence("old")],
        [typed("on", (), np.bool_), sequence("new")],
    )
    nodes = [
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("Loop", ["turns", "start", "none"], ["rows"], body=body),
        helper.make_node("ConcatFromSequence", ["rows"], ["y"], axis=0),
    ]
    constants = {"turns": np.array(3), "start": np.array(True), "front": np.array(0)}
    check(model_of(nodes, [typed("x", x)], [typed("y", (6,))], constants), x=x)


@given(st.booleans())
@SAMPLE
def test_sequence_that_is_chosen(flag: bool) -> None:
    """Of two sequences of equal types the tensors are chosen while the model runs."""
    x = np.array([1, -2], np.float32)
    branches = {
        name: helper.make_graph(
            [
                helper.make_node(operator, ["x"], ["r"]),
                helper.make_node("SequenceConstruct", ["r", "x"], ["s"]),
            ],
            name,
            [],
            [sequence("s")],
        )
        for name, operator in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    nodes = [
        helper.make_node("If", ["flag"], ["chosen"], **branches),
        helper.make_node("ConcatFromSequence", ["chosen"], ["y"], axis=0),
    ]
    model = model_of(nodes, [typed("x", x), typed("flag", (), np.bool_)], [typed("y", (4,))])
    check(model, x=x, flag=np.array(flag))


def doubling(length: int = 2) -> bytes:
    """Return a model that doubles each tensor of a sequence, and says the first of them again."""
    body = helper.make_graph(
        [helper.make_node("Add", ["part", "part"], ["sum"])],
        "body",
        [typed("part", ("n",))],
        [typed("sum", ("n",))],
    )
    nodes = [
        helper.make_node("SequenceMap", ["parts"], ["twice"], body=body),
        helper.make_node("SequenceAt", ["parts", "first"], ["y"]),
    ]
    outputs = [sequence("twice"), typed("y", ("n",))]
    return model_of(nodes, [sequence("parts", ("n",))], outputs, {"first": np.array(-length)})


def test_sequences_in_and_out_in_c() -> None:
    """Each tensor of a sequence is an input or output with a number behind its name."""
    module = from_onnx(doubling(), input_shapes={"parts.0": (2,), "parts.1": (3,)})
    graph = module.graph
    assert graph is not None
    assert [t.name for t in graph.inputs] == ["parts.0", "parts.1"]
    assert [t.name for t in graph.outputs] == ["twice.0", "twice.1", "y"]
    inputs: dict[str, Array] = {
        "parts.0": np.array([1, 2], np.float32),
        "parts.1": np.array([3, 4, 5], np.float32),
    }
    model = host.load(build(module, CompilationConfig.from_target("c")))
    found = model.run(inputs)
    for name, want in execute(graph, inputs).items():
        np.testing.assert_array_equal(found[name], want)
    np.testing.assert_array_equal(found["twice.1"], [6, 8, 10])


def test_sequences_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shapes of their tensors are said as those of other inputs, and who forgets is told."""
    microtir, path = Command(capsys), tmp_path / "doubling.onnx"
    path.write_bytes(doubling())
    refused = microtir("check", path)
    assert refused.status
    assert "--input-shapes parts.0:[2,3],parts.1:[2,3]" in refused.out + refused.err
    found = microtir("check", path, "--input-shapes", "parts.0:[2],parts.1:[3]")
    assert not found.status, found.err


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([("SequenceAt", ["s", "far"], "y")], "place (2,) of a sequence of 2"),
        ([("SequenceInsert", ["s", "x", "beyond"], "y")], "place (3,) of a sequence of 2"),
        ([("SequenceErase", ["none"], "y")], "out of an empty sequence"),
        ([("ConcatFromSequence", ["none"], "y")], "joins an empty sequence"),
        ([("Neg", ["s"], "y")], "has a sequence instead of a tensor"),
        ([("SequenceLength", ["x"], "y")], "input 0 is a tensor"),
        ([("SequenceAt", ["s", "computed"], "y")], "the model computes the place"),
        ([("SplitToSequence", ["x", "sizes"], "y")], "parts of (1, 2)"),
        ([("LayerNormalization", ["s", "x"], "y")], "sequence"),
        ([("Celu", ["s"], "y")], "sequence"),
        ([("Identity", ["none"], "y")], "is a sequence without tensors"),
    ],
)
def test_refusals(nodes: list[tuple[str, list[str], str]], words: str) -> None:
    """What is no sequence, or has no such place, is said; nothing fails otherwise."""
    made = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("Size", ["x"], ["size"]),
        helper.make_node("Cast", ["x"], ["computed"], to=TensorProto.INT64),
    ]
    for operator, inputs, output in nodes:
        more: dict[str, Any] = {"axis": 0} if operator == "ConcatFromSequence" else {}
        made.append(helper.make_node(operator, inputs, [output], **more))
    constants = {"far": np.array(2), "beyond": np.array(3), "sizes": np.array([1, 2])}
    outputs = [sequence("y")] if nodes[0][0] == "Identity" else ["y"]
    model = model_of(made, [typed("x", (2,))], outputs, constants)
    assert words in " ".join(problem.what for problem in problems_of(model))


def test_what_is_not_optional_has_its_element() -> None:
    """Exporters ask so for inputs that a function of theirs may do without."""
    nodes = [
        helper.make_node("OptionalGetElement", ["x"], ["y"]),
        helper.make_node("OptionalHasElement", ["x"], ["is_there"]),
        helper.make_node("OptionalHasElement", [""], ["is_nowhere"]),
    ]
    flags = [typed(name, (), np.bool_) for name in ("is_there", "is_nowhere")]
    graph = from_onnx(model_of(nodes, [typed("x", (2,))], ["y", *flags])).graph
    assert graph is not None
    found = execute(graph, {"x": np.ones(2, np.float32)})
    assert (bool(found["is_there"]), bool(found["is_nowhere"])) == (True, False)


def test_four_bits_in_sequences_are_refused() -> None:
    """Nothing that takes a sequence apart knows the range of its integers."""
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.INT4),
        helper.make_node("SequenceConstruct", ["narrow"], ["s"]),
    ]
    with pytest.raises(MicrotirError, match="integers of 4 bits"):
        from_onnx(model_of(nodes, [typed("x", (2,))], [sequence("s")]))
