"""A model as a configuration asks to stream it, and what speaks against that."""

from __future__ import annotations

import math
from dataclasses import dataclass

from microtir.errors import ConfigError, nearest
from microtir.graph.ir import Graph, Tensor
from microtir.graph.rewriting import Keeps, Rewrite
from microtir.operators.control.definition import has_control
from microtir.rewrite.requests.streaming.push import push_graph


@dataclass(frozen=True, slots=True)
class CheckPush(Rewrite):
    """Checks what is asked of a model before its layers are followed, and changes nothing.

    Args:
        input: that is streamed; empty for the only one.
        axis: of it.
        hop: the frames of a push.

    Raises:
        ConfigError: no such input, or no frames along the axis, or a model of another kind.
    """

    input: str
    axis: int
    hop: int

    def __call__(self, graph: Graph) -> Graph:
        if graph.states:
            raise _refused("the model has a state", graph.name)
        if has_control(graph.nodes):
            raise _refused("the model has loops or branches", graph.name)
        if graph.images != 1:
            raise _refused(f"the model computes {graph.images} images", graph.name)
        _check_axis(_input(graph, self.input, self.axis), self.axis, self.hop)
        return graph


@dataclass(frozen=True, slots=True)
class Push(Rewrite):
    """Makes the graph of a push of a model that was checked, with layers as they are compiled.

    Raises:
        ConfigError: no value stays from one push to the next.
    """

    input: str
    axis: int
    hop: int
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        pushed = push_graph(graph, _input(graph, self.input, self.axis), self.axis, self.hop)
        if not pushed.states:
            raise _refused("no value is kept from one run to the next", graph.name)
        return pushed


def _input(graph: Graph, name: str, axis: int) -> Tensor:
    names, name = [tensor.name for tensor in graph.arguments], graph.port_name(name)
    if not name and len(names) == 1:
        return graph.arguments[0]
    if name not in names:
        what = f"no input is called '{name}'" if name else "stream_axis names no input"
        raise ConfigError(
            f"{what}{nearest(name, names) if name else ''}",
            where="stream_axis",
            legal=", ".join(f"{known}={axis}" for known in names),
        )
    return graph.arguments[names.index(name)]


def _check_axis(x: Tensor, axis: int, hop: int) -> None:
    """Refuse an axis along which an input has no rows, or too few."""
    shape = x.shape
    legal = [str(n) for n, e in enumerate(shape) if e > 1 and math.prod(shape[:n]) == 1]
    if str(axis) not in legal:
        raise ConfigError(
            f"axis {axis} of '{x.name}' with the shape {shape} has no consecutive frames",
            where="stream_axis",
            legal=", ".join(legal) or "another model: no axis has any",
        )
    if hop >= shape[axis]:
        raise ConfigError(
            f"{hop} frames are not fewer than the {shape[axis]} frames of the window",
            where="stream_hop",
            legal=f"1 to {shape[axis] - 1}",
        )


def _refused(why: str, name: str) -> ConfigError:
    return ConfigError(
        f"'{name}' cannot be streamed: {why}",
        where="stream_axis",
        legal="a model of consecutive layers over a window of frames",
        fix="leave stream_axis out",
    )
