"""Plan the graph of integers: what has a form, and what is left in floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node
from microtir.operators.state.definition import Assign
from microtir.quantise.build import Built, Plan, built
from microtir.quantise.forms import IntegerForm, integer_form, problems_of
from microtir.quantise.memories import Memories
from microtir.quantise.options import QuantiseOptions, Width
from microtir.quantise.ranges import Range
from microtir.quantise.result import LeftInFloats
from microtir.quantise.scales import Stored, quantisations, shared_scales
from microtir.rewrite.optimise.tabulate import computes_floats, regions_of_one_element

_NO_FORM = "it has no integer version"
_IN_TABLE = "; C and .tflite files look it up in a table"


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
    memories = Memories(graph)
    layers, reasons = _forms(graph, memories, options)
    refused: set[Node] = set()
    while True:
        both = {**layers, **memories.forms(layers, options, refused)}
        forms = {node: both[node] for node in graph.nodes if node in both}
        shared = shared_scales(graph, forms, memories.mixed)
        quants, calibrations = quantisations(shared, range_of)
        plan = Plan(graph, forms, shared, quants, calibrations, options)
        result = built(plan)
        broken = {**_broken(forms, result), **_assigned_floats(graph, forms)}
        if not broken:
            break
        reasons.update((node, why) for node, why in broken.items() if node in layers)
        refused.update(broken)
        layers = {node: form for node, form in layers.items() if node not in broken}
    tables = regions_of_one_element(result.graph, computes_floats)
    looked_up = {node.name for region in tables for node in region.nodes}
    left = tuple(
        LeftInFloats(n.name, n.source, reasons[n] + _IN_TABLE * (n.name in looked_up))
        for n in graph.nodes
        if n in reasons
    )
    return plan, result, left


def _forms(
    graph: Graph, memories: Memories, options: QuantiseOptions
) -> tuple[dict[Node, IntegerForm], dict[Node, str]]:
    """Return the forms of layers in integers, and why others with real numbers have none."""
    forms: dict[Node, IntegerForm] = {}
    reasons: dict[Node, str] = {}
    producers = graph.producers()
    for node in graph.nodes:
        has_reals = any(t.dtype is DType.FLOAT32 for t in (*node.inputs, *node.outputs))
        if memories.holds(node) or not has_reals:
            continue
        width = options.width_of(node.name)
        if isinstance(node.op, Assign):
            width = _width_of_source(producers.get(node.inputs[0]), node, forms, width)
        form = integer_form(node, width)
        if form is not None:
            forms[node] = form
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
        node: "the layer that computes its value stays in floats"
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
