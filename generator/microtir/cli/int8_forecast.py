"""Say what int8 would make of a float model: its RAM, flash and instructions, and the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from microtir.cli.output import cell, write
from microtir.errors import MicrotirError

if TYPE_CHECKING:
    from microtir.graph.ir import Graph
    from microtir.module.ir_module import IRModule

_SAMPLES = 2  # made up: they decide ranges, and so no figure
_MOST_MACS = 50_000_000  # of a float model that is run twice for it


@dataclass(frozen=True, slots=True)
class Taken:
    """Bytes of workspace, and estimates of bytes of flash and of instructions of a run."""

    workspace: int
    flash: int
    instructions: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """A float model as it is, and as int8.

    Args:
        floats: what it takes.
        int8: what it would take.
        layers_in_floats: that have no form in integers.
    """

    floats: Taken
    int8: Taken
    layers_in_floats: int


def forecast(lowered: IRModule) -> Forecast | None:
    """Return what int8 would make of a float model; None of any other, and of a very large one.

    Sizes and loops follow from types, shapes and weights, so that made-up samples will do.
    """
    import numpy as np

    from microtir import driver
    from microtir.host.samples import Fill, filled
    from microtir.quantise import Calibration, QuantiseOptions, quantise

    graph, model = lowered.graph, lowered.model
    if graph is None or model is None or not _is_float(graph):
        return None
    batch = filled(model.inputs, _SAMPLES, Fill.RANDOM)
    samples = {
        port.name: np.stack([run[port.name] for run in batch.values]) for port in model.inputs
    }
    options = QuantiseOptions(
        calibration=Calibration.MINMAX, equalise=False, correct_bias=False, holdout=0.0
    )
    config = lowered.require_config("check")
    try:
        result = quantise(graph, samples, options)
        integers = driver.lower(type(lowered)(graph=result.graph).with_configuration(config))
    except MicrotirError:
        return None  # it has no integer version, or budgets that int8 does not fit, either
    return Forecast(_taken(lowered), _taken(integers), len(result.floats))


def _is_float(graph: Graph) -> bool:
    from microtir.operators import record_of
    from microtir.operators.definition import Trait
    from microtir.rewrite.facts.macs import macs

    weighted = [node for node in graph.nodes if record_of(node.op).has(Trait.WEIGHTED)]
    has_integers = any(tensor.type.quantization for tensor in graph.tensors())
    work = sum(map(macs, weighted))
    return bool(weighted) and not has_integers and work <= _MOST_MACS


def _taken(lowered: IRModule) -> Taken:
    program, model = lowered.require_program("check"), lowered.model
    assert model is not None
    return Taken(
        model.memory.workspace_size,
        program.figures.flash.bytes,
        sum(decision.instructions for decision in program.decisions.values()),
    )


def write_forecast(file: str, known: Forecast | None) -> None:
    """Print it; nothing where there is none."""
    if known is None:
        return
    floats, int8 = known.floats, known.int8
    write(
        f"\nas int8: {cell(int8.workspace)} bytes of workspace instead of {cell(floats.workspace)},"
        f" about {cell(int8.flash)} bytes of flash instead of {cell(floats.flash)},"
        f" about {cell(int8.instructions)} instructions instead of {cell(floats.instructions)}"
    )
    if known.layers_in_floats:
        write(f"  {known.layers_in_floats} layers would stay in floats")
    write(f"  microtir quantise {file} --data samples.npz -o int8.tflite")
