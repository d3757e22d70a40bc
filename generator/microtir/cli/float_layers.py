"""Say what a quantised model computes in floats, and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from microtir.cli.model import model_path, reading_of
from microtir.cli.output import cell, write

if TYPE_CHECKING:
    from microtir.module.ir_module import IRModule


@dataclass(frozen=True, slots=True)
class FloatPart:
    """A layer of floats between integers, as `check` prints it.

    Args:
        where: file and operator.
        why: it is not computed in integers.
        instructions: an estimate of those of its floats, conversions included.
        ram: bytes that its floats take beyond integers, at most.
    """

    where: str
    why: str
    instructions: int
    ram: int


def float_parts(model: str, lowered: IRModule) -> tuple[FloatPart, ...]:
    """Return the layers of floats of a model, with what the plan says that they take."""
    from microtir import frontend

    said = reading_of(model)
    layers = frontend.float_layers(
        model_path(model), dims=said.dims, input_shapes=said.input_shapes
    )
    if not layers or lowered.program is None:
        return ()
    floats = {
        (op.node.source.index, op.node.name)
        for op in lowered.program.plan.operators
        if any(t.dtype.is_float for t in (*op.node.inputs, *op.node.outputs))
    }
    known = {(d.index, d.layer): d.instructions for d in lowered.program.decisions.values()}
    planned = [(where[0], known[where]) for where in floats if where in known]
    return tuple(
        FloatPart(
            str(layer.source),
            layer.why,
            sum(taken for index, taken in planned if index in layer.operators),
            layer.ram,
        )
        for layer in layers
    )


def write_rounded_rows(lowered: IRModule) -> None:
    """Print how many layers round what they read; nothing where there are none."""
    from microtir.operators.block_dense.definition import rounds_rows

    nodes = [op.node for op in lowered.require_program("check").plan.operators]
    if rounding := sum(map(rounds_rows, nodes)):
        write(f"{rounding} layers round rows of floats to int8 while the model runs")


def write_float_parts(file: str, parts: Sequence[FloatPart]) -> None:
    """Print them; nothing where there are none."""
    if not parts:
        return
    noun = "layer" if len(parts) == 1 else "layers"
    write(f"\n{len(parts)} {noun} between integers in floats:")
    for part in parts:
        where = part.where.removeprefix(f"{file}: ")
        takes = f"some {cell(part.instructions)} instructions"
        write(f"  - {where}: {part.why}; {takes}, up to {cell(part.ram)} more bytes of RAM")
