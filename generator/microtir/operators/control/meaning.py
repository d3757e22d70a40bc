"""Define in numpy what the ends of loops and branches give; how often they run is not said here."""

from __future__ import annotations

from microtir.graph.ir import Array, Node
from microtir.operators.control import definition as control


def unchanged(
    _op: control.Repeat | control.Guard | control.Then | control.Otherwise,
    _node: Node,
    *values: Array,
) -> tuple[Array, ...]:
    """Return the values as they are: of a Repeat, those of the first turn."""
    return values


def end_repeat(op: control.EndRepeat, _node: Node, *values: Array) -> tuple[Array, ...]:
    """Return the new values after a turn; those before it where the guard has ended the loop."""
    goes_on = not op.is_guarded or bool(values[0].all())
    values = values[op.is_guarded :]
    half = len(values) // 2
    return values[half:] if goes_on else values[:half]


def end_if(_op: control.EndIf, _node: Node, flag: Array, *values: Array) -> tuple[Array, ...]:
    """Return the results of the branch that the condition chooses."""
    half = len(values) // 2
    return values[:half] if flag.all() else values[half:]


def put_item(_op: control.PutItem, _node: Node, items: Array, item: Array, index: Array) -> Array:
    """Return the list with one item replaced."""
    changed: Array = items.copy()
    number = int(index.reshape(()))
    if 0 <= number < len(items):
        changed[number] = item.reshape(items.shape[1:])
    return changed
