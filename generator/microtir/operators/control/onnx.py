"""Read ONNX's control flow: loops are those of the graph, of a choice both branches are computed.

How often a loop runs, or how often at most, must follow from constants and shapes.  Turns are
written out where they are few, or differ in more than their numbers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from microtir.dtype import DType
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_arithmetic import sub
from microtir.operators.common.onnx_loops import Loop, Turn
from microtir.operators.common.onnx_operands import MANY, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import along, from_first, reshaped, stacked
from microtir.operators.common.onnx_values import TensorSequence, Value, tensors_of
from microtir.operators.indexing.definition import Gather
from microtir.operators.selection.definition import Select

_MOST_TURNS = 1 << 12  # that are written out
_ENDLESS = 1 << 62  # as many turns as nobody means
_SCAN_WITHOUT_BATCHES = 9  # the operator set from which on it has no batches


def if_(node: OnnxNode) -> tuple[Value, ...]:
    """Read If: of a known condition one branch, else each result is chosen while the model runs."""
    condition = node.input(0)
    if condition.type.elements != 1:
        raise node.malformed(f"a condition of shape {condition.shape}", "one element")
    if condition.data is not None:
        return node.run("then_branch" if condition.data.any() else "else_branch")
    flag = reshaped(node, condition)
    pairs = zip(node.run("then_branch"), node.run("else_branch"), strict=True)
    return tuple(_chosen(node, flag, *pair) for pair in pairs)


def _chosen(node: OnnxNode, flag: Tensor, yes: Value, no: Value) -> Value:
    """Return one of two values, of sequences tensor by tensor."""
    first, second = tensors_of(yes), tensors_of(no)
    is_sequence = isinstance(yes, TensorSequence)
    if isinstance(no, TensorSequence) is not is_sequence or [x.type for x in first] != [
        x.type for x in second
    ]:
        shapes = [
            ", ".join(str(x.shape) for x in values) or "nothing" for values in (first, second)
        ]
        raise node.unsupported(
            f"its branches give {shapes[0]} and {shapes[1]}",
            "results of one shape and type, or a condition that is known",
            "export the model with results of one shape",
        )
    pairs = zip(first, second, strict=True)
    results = tuple(node.emit(Select(), flag, a, b, dtype=a.dtype) for a, b in pairs)
    return TensorSequence(results) if is_sequence else results[0]


def loop(node: OnnxNode) -> tuple[Value, ...]:
    """Read Loop."""
    turns = _ENDLESS
    if node.optional(0) is not None:
        turns = node.whole_number(0, "how often it runs")
    condition = node.optional(1)
    states: tuple[Value, ...] = tuple(node.value(at) for at in range(2, len(node.inputs)))
    first = tuple(value for value in states if isinstance(value, Tensor))
    is_begun = condition is None or condition.data is None or condition.data.all()
    if len(first) == len(states) and is_begun:
        begins = condition if condition is not None and condition.data is None else None
        most = None if turns >= _ENDLESS else turns
        body = partial(_turn, node, len(first))
        results = node.emitter.repeat(Loop(first, body, most, begins, DType.INT64))
        if results is not None:
            return (*results.states, *results.lists)
    return _turn_by_turn(node, turns, condition, states)


def _turn(node: OnnxNode, count: int, number: Tensor, states: tuple[Tensor, ...]) -> Turn:
    """Read a turn of a Loop."""
    flag, *results = node.tensors(node.run("body", number, node.constant(np.array(True)), *states))
    return Turn(tuple(results[:count]), tuple(results[count:]), flag)


def _turn_by_turn(
    node: OnnxNode, turns: int, condition: Tensor | None, states: tuple[Value, ...]
) -> tuple[Value, ...]:
    """Write the turns of a Loop out."""
    lists: list[list[Tensor]] = [[] for _ in range(node.outputs - len(states))]
    number = 0
    while number < turns and _holds(node, condition):
        if number >= _MOST_TURNS:
            raise _too_long(node)
        is_going = node.constant(np.array(True)) if condition is None else condition
        counter = node.constant(np.array(number, np.int64))
        flag, *results = node.run("body", counter, is_going, *states)
        (condition,) = node.tensors((flag,))
        states = tuple(results[: len(states)])
        for values, result in zip(lists, node.tensors(results[len(states) :]), strict=False):
            values.append(result)
        number += 1
    if lists and not number:
        raise node.unsupported(
            "it never runs, so its lists are empty", "one iteration or more", "leave the loop out"
        )
    return (*states, *(stacked(node, values, 0) for values in lists))


def _holds(node: OnnxNode, condition: Tensor | None) -> bool:
    if condition is None:
        return True
    if condition.data is None:
        raise node.unsupported(
            "the condition of its loop depends on the inputs of the model",
            "a number of iterations that follows from constants and shapes, or such a bound if "
            "the loop makes no lists",
            "export the model with a loop of a fixed number of iterations",
        )
    return bool(condition.data.all())


def _too_long(node: OnnxNode) -> UnsupportedModelError:
    return node.unsupported(
        f"it runs more than {_MOST_TURNS} times", f"at most {_MOST_TURNS} iterations",
        "export the model with a shorter sequence",
    )  # fmt: skip


def scan(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read Scan; in operator set 8 it is given batches, and lengths of the lists of each."""
    if node.version >= _SCAN_WITHOUT_BATCHES:
        return _scan(node)
    if node.optional(0) is not None:
        raise node.unsupported(
            "its lists have several lengths", "lists as long as their axis",
            "export the model without sequence_lens",
        )  # fmt: skip
    operands = node.with_inputs(*node.inputs[1:]).present
    batches = operands[0].shape[0] if operands and operands[0].shape else 0
    if not batches or any(x.shape[:1] != (batches,) for x in operands):
        raise node.malformed("its inputs have no common number of batches", "one first extent")
    directions = node.list_of_integers("directions", ())
    attributes = {name: node.attributes[name] for name in ("body", "num_scan_inputs")}
    inner = replace(node, attributes={**attributes, "scan_input_directions": directions})
    if not directions:
        inner = replace(node, attributes=attributes)
    all_batches = [
        _scan(inner.with_inputs(*(_at(node, x, 0, n) for x in operands))) for n in range(batches)
    ]
    return tuple(stacked(node, parts, 0) for parts in zip(*all_batches, strict=True))


def _scan(node: OnnxNode) -> tuple[Tensor, ...]:
    """Emit it turn by turn: slices of some inputs, and results put together."""
    taken = node.integer("num_scan_inputs")
    states, lists = node.present[:-taken], node.present[-taken:]
    list_count = node.outputs - len(states)
    axes = node.list_of_integers("scan_input_axes", (0,) * taken)
    backwards = node.list_of_integers("scan_input_directions", (0,) * taken)
    if not 1 <= taken <= len(node.inputs) or not len(axes) == len(backwards) == taken:
        raise node.malformed(f"{taken} lists of {len(node.inputs)} inputs", "one axis for each")
    axes = tuple(node.axis(axis, len(x.shape)) for axis, x in zip(axes, lists, strict=True))
    turns = lists[0].shape[axes[0]]
    if any(x.shape[axis] != turns for axis, x in zip(axes, lists, strict=True)):
        raise node.malformed("its lists have several lengths", "one length")
    out_axes = node.list_of_integers("scan_output_axes", (0,) * list_count)
    reverse = node.list_of_integers("scan_output_directions", (0,) * list_count)
    if not len(out_axes) == len(reverse) == list_count:
        raise node.malformed(f"axes {out_axes} of {list_count} lists that it makes", "one for each")

    def turn(number: Tensor, values: tuple[Tensor, ...]) -> Turn:
        last = node.scalar_like(turns - 1, number)
        parts = [
            node.emit(Gather(axis), x, sub(node, last, number) if flag else number)
            for x, axis, flag in zip(lists, axes, backwards, strict=True)
        ]
        results = node.tensors(node.run("body", *values, *parts))
        return Turn(results[: len(values)], results[len(values) :])

    from_end = tuple(map(bool, reverse))
    all_results = node.emitter.repeat(Loop(states, turn, turns, from_end=from_end))
    if all_results is not None:
        moved = (from_first(node, *one) for one in zip(all_results.lists, out_axes, strict=True))
        return (*all_results.states, *moved)
    if turns > _MOST_TURNS:
        raise _too_long(node)
    results: list[list[Tensor]] = [[] for _ in range(list_count)]
    for number in range(turns):
        places = [turns - 1 - number if flag else number for flag in backwards]
        parts = [_at(node, *one) for one in zip(lists, axes, places, strict=True)]
        made_now = node.tensors(node.run("body", *states, *parts))
        states = made_now[: len(states)]
        for result, part in zip(results, made_now[len(states) :], strict=True):
            result.append(part)
    return (
        *states,
        *(
            stacked(node, parts[::-1] if flag else parts, axis)
            for parts, axis, flag in zip(results, out_axes, reverse, strict=True)
        ),
    )


def _at(node: OnnxNode, x: Tensor, axis: int, place: int) -> Tensor:
    shape = (size for n, size in enumerate(x.shape) if n != axis)
    return reshaped(node, along(node, x, axis, place, 1), *shape)


_SCAN = (
    "body", "directions", "num_scan_inputs", "scan_input_axes", "scan_input_directions",
    "scan_output_axes", "scan_output_directions",
)  # fmt: skip

ONNX_READERS = (
    OnnxReader("If", if_, attributes=("else_branch", "then_branch"), outputs=MANY),
    OnnxReader("Loop", loop, (2, MANY), ("body",), outputs=MANY),
    OnnxReader("Scan", scan, (1, MANY), _SCAN, outputs=MANY, since=8),
)
