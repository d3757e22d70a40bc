"""Differences between two compiled programs: figures, layers, and their configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from microtir.artifact import LayerData, Metadata


class Figure(Enum):
    """A figure of a program, each of which is better if it is less; the value is its name."""

    RAM = "RAM"
    FLASH = "flash"
    INSTRUCTIONS = "instructions"
    WORKSPACE = "workspace"
    STATE = "state"
    STACK = "stack"
    WEIGHTS = "weights"
    CODE = "code"
    MACS = "multiply-accumulates"


@dataclass(frozen=True, slots=True)
class Change:
    """A number before and after.

    Args:
        name: of the figure or the layer.
        before: None where it was not there.
        after: None where it is gone.
        note: what else is to be said.
    """

    name: str
    before: int | None
    after: int | None
    note: str = ""

    @property
    def by(self) -> int:
        return (self.after or 0) - (self.before or 0)

    @property
    def percent(self) -> float | None:
        """Return how much more it is in percent; None where it was not there, or nothing."""
        if not self.before or self.after is None:
            return None
        return 100.0 * self.by / self.before


@dataclass(frozen=True, slots=True)
class Difference:
    """Two programs side by side.

    Args:
        figures: all of them, in order.
        layers: those that changed, by their instructions; the largest change first.
        config: fields of the configuration that differ, before and after.
    """

    figures: tuple[Change, ...]
    layers: tuple[Change, ...]
    config: Mapping[str, tuple[str, str]]

    def figure(self, figure: Figure) -> Change:
        return next(change for change in self.figures if change.name == figure.value)


def difference(before: Metadata, after: Metadata) -> Difference:
    """Compare what metadata say of two programs."""
    old, new = figures_of(before), figures_of(after)
    return Difference(
        tuple(Change(figure.value, old[figure], new[figure]) for figure in Figure),
        _layers(before.layers, after.layers),
        _config(before.config, after.config),
    )


def figures_of(facts: Metadata) -> dict[Figure, int]:
    """Return the figures of a program; instructions, code and stack are estimates of planning.

    RAM is the workspace, the states and the stack: what inputs and outputs take is the caller's.
    """
    workspace = facts.memory.workspace_size if facts.memory else 0
    state = facts.state.size if facts.state else 0
    stack = facts.stack.bytes
    code, weights = facts.code_bytes_estimate, facts.weights_bytes
    return {
        Figure.RAM: workspace + state + stack,
        Figure.FLASH: code + weights,
        Figure.INSTRUCTIONS: facts.images
        * sum(map(_instructions, _by_name(facts.layers).values())),
        Figure.WORKSPACE: workspace,
        Figure.STATE: state,
        Figure.STACK: stack,
        Figure.WEIGHTS: weights,
        Figure.CODE: code,
        Figure.MACS: sum(layer.macs for layer in facts.layers),
    }


def _by_name(layers: Sequence[LayerData]) -> dict[str, LayerData]:
    """Return the layers; functions of one operator share a name, and what was chosen for it."""
    return {layer.name: layer for layer in layers}


def _instructions(layer: LayerData) -> int:
    return layer.choice.instructions or 0 if layer.choice else 0


def _kernel(layer: LayerData) -> str:
    return layer.choice.kernel if layer.choice else ""


def _layers(before: Sequence[LayerData], after: Sequence[LayerData]) -> tuple[Change, ...]:
    """Return the layers whose kernel or cost changed, by the names of the model file."""
    old, new = _by_name(before), _by_name(after)
    changes = []
    for name in dict.fromkeys((*old, *new)):
        a, b = old.get(name), new.get(name)
        costs = [None if layer is None else _instructions(layer) for layer in (a, b)]
        kernels = ["" if layer is None else _kernel(layer) for layer in (a, b)]
        if costs[0] != costs[1] or kernels[0] != kernels[1]:
            note = " -> ".join(dict.fromkeys(kernel or "-" for kernel in kernels))
            changes.append(Change(name, costs[0], costs[1], note))
    return tuple(sorted(changes, key=lambda change: -abs(change.by)))


_NAME = "module_name"
"""Field of the configuration that changes names only."""


def _config(
    before: Mapping[str, object], after: Mapping[str, object], path: str = ""
) -> dict[str, tuple[str, str]]:
    """Return the fields that differ, by their paths."""
    changes: dict[str, tuple[str, str]] = {}
    for name in dict.fromkeys((*before, *after)):
        a, b = before.get(name), after.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            changes |= _config(a, b, f"{path}{name}.")
        elif a != b and name != _NAME:
            changes[f"{path}{name}"] = (str(a), str(b))
    return changes
