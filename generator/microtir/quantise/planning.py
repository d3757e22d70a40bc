"""Plan the graph of integers: what has a form, and what is left in floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node
from microtir.operators.control.definition import has_control
from microtir.operators.state.definition import Assign
from microtir.quantise.build import Built, Plan, built
from microtir.quantise.forms import IntegerForm, integer_form, problems_of
from microtir.quantise.options import QuantiseOptions, Width
from microtir.quantise.ranges import Range
from microtir.quantise.result import LeftInFloats
from microtir.quantise.scales import Stored, quantisations, shared_scales

_NO_FORM = "it has no form in integers"
_IN_CONTROL = "the graph has loops or branches, whose values have one memory"


def planned(
    graph: Graph, range_of: Callable[[Stored], Range], options: QuantiseOptions
) -> tuple[Plan, Built, tuple[LeftInFloats, ...]]:
    """Return the plan of a float graph, what is built by it, and what is left in floats.

    A node whose integers break a rule of its operator stays in floats; that changes what others
    share, so that all is planned anew.

    Args:
        graph: of floats, prepared.
        range_of: gives the range of an activation by itself.
        options: which width layers have, and what ports are.
    """
    forms, reasons = _forms(graph, options)
    while True:
        shared = shared_scales(graph, forms)
        quants, calibrations = quantisations(shared, range_of)
        plan = Plan(graph, forms, shared, quants, calibrations, options)
        result = built(plan)
        broken = {**_broken(forms, result), **_assigned_floats(graph, forms)}
        if not broken:
            break
        reasons.update(broken)
        forms = {node: form for node, form in forms.items() if node not in broken}
    left = tuple(LeftInFloats(n.name, n.source, reasons[n]) for n in graph.nodes if n in reasons)
    return plan, result, left


def _forms(
    graph: Graph, options: QuantiseOptions
) -> tuple[dict[Node, IntegerForm], dict[Node, str]]:
    """Return the forms of nodes in integers, and why others with real numbers have none."""
    forms: dict[Node, IntegerForm] = {}
    reasons: dict[Node, str] = {}
    in_control, producers = has_control(graph.nodes), graph.producers()
    for node in graph.nodes:
        if not any(t.dtype is DType.FLOAT32 for t in (*node.inputs, *node.outputs)):
            continue
        width = options.width_of(node.name)
        if isinstance(node.op, Assign):
            width = _width_of_source(producers.get(node.inputs[0]), node, forms, width)
        form = None if in_control else integer_form(node, width)
        if form is not None:
            forms[node] = form
        elif in_control:
            reasons[node] = _IN_CONTROL
        elif width is Width.FLOAT:
            reasons[node] = "its width is float"
        else:
            is_wide = width is Width.INT16 and integer_form(node, Width.INT8) is not None
            reasons[node] = f"{_NO_FORM} of 16 bits" if is_wide else _NO_FORM
    return forms, reasons


def _width_of_source(
    source: Node | None, node: Node, forms: Mapping[Node, IntegerForm], width: Width
) -> Width:
    """Return the width of the value that a node stores, which its layer may give several of."""
    form = None if source is None else forms.get(source)
    if source is None or form is None:
        return width
    dtype = form.outputs[source.outputs.index(node.inputs[0])]
    return Width.INT16 if dtype is DType.INT16 else Width.INT8


def _assigned_floats(graph: Graph, forms: Mapping[Node, IntegerForm]) -> dict[Node, str]:
    """Return the nodes that would store in integers what a layer of floats remembers."""
    producers = graph.producers()
    assigns = [node for node in forms if isinstance(node.op, Assign)]
    sources = {node: producers.get(node.inputs[0]) for node in assigns}
    return {
        node: "the layer that computes its value is one of floats"
        for node, source in sources.items()
        if source is not None and source not in forms
    }


def _broken(forms: Mapping[Node, IntegerForm], result: Built) -> dict[Node, str]:
    """Return the nodes whose integers break a rule of their operator, and which."""
    broken: dict[Node, str] = {}
    for node in forms:
        problem = next(problems_of(result.nodes[node]), None)
        if problem is not None:
            legal = f"; legal is {problem.legal}" if problem.legal else ""
            tensor = f"'{problem.tensor.name}': " if problem.tensor else ""
            broken[node] = f"{tensor}{problem.what}{legal}"
    return broken
