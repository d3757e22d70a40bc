"""Verifies a model: runs the compiled C, always, and compares its outputs with a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from microtir.artifact import Artifact
from microtir.config import Target
from microtir.graph.ir import Graph
from microtir.host import load
from microtir.host.compare import Comparison, compare
from microtir.host.layers import WrongLayer, first_wrong_layer
from microtir.host.samples import SampleBatch
from microtir.host.sequences import run_samples
from microtir.host.tolerance import Tolerance, Values
from microtir.rewrite import reference

HOST = "host"
"""Name that stands for the board where a model runs on this machine."""

Runner = Callable[[SampleBatch], Sequence[Values]]
"""Runs a compiled model on every sample, somewhere, and gives the outputs."""


class WrongLayerData(TypedDict):
    """The first layer that differs, and its first wrong element."""

    name: str
    operator: str
    index: int
    function: str
    sample: int
    step: int | None
    element: list[int]
    expected: float | None
    got: float | None


class VerificationData(TypedDict):
    """The data that `verify --json` writes. A float that is not finite is null: JSON has no NaN.

    `steps` are the runs of each sample that is a sequence, null where a sample is one run.
    """

    model: str
    targets: list[str]
    board: str
    samples: int
    steps: int | None
    outputs: int
    mismatches: int
    max_abs_error: float | None
    equal: bool
    within_one_step: bool
    first_wrong_layer: WrongLayerData | None


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict on a model.

    `layers_checked` says that `first_wrong_layer` is an answer also where it is None. Layers are
    compared on this machine, wherever the model ran. `within_one_step` says that quantised outputs
    differ by one, that the reference is known to round otherwise, and that the C computes what
    microtir means to the bit.
    """

    model: str
    targets: tuple[Target, ...]
    board: str
    comparison: Comparison
    layers_checked: bool
    first_wrong_layer: WrongLayer | None
    within_one_step: bool = False

    @property
    def equal(self) -> bool:
        return self.comparison.equal and self.first_wrong_layer is None

    @property
    def is_here(self) -> bool:
        """Return whether the model ran on this machine."""
        return self.board == HOST

    def to_dict(self) -> VerificationData:
        """Return the facts as JSON values."""
        layer, comparison = self.first_wrong_layer, self.comparison
        return {
            "model": self.model,
            "targets": [str(target) for target in self.targets],
            "board": self.board,
            "samples": comparison.samples,
            "steps": comparison.steps,
            "outputs": comparison.values,
            "mismatches": comparison.mismatches,
            "max_abs_error": _finite(comparison.max_abs_error),
            "equal": self.equal,
            "within_one_step": self.within_one_step,
            "first_wrong_layer": None if layer is None else _layer_data(layer),
        }


def verify(
    artifact: Artifact,
    graph: Graph,
    inputs: SampleBatch,
    expected: SampleBatch,
    tolerance: Tolerance,
    *,
    compiler: str | None = None,
    sanitize: bool = False,
    every_layer: bool = False,
    board: str = HOST,
    run: Runner | None = None,
    rounds_otherwise: bool = False,
) -> Verification:
    """Compile the C, run it on every sample, and compare.

    Args:
        artifact: a compiled model.
        graph: the graph that the artifact was planned from, after the graph passes.
        inputs: what to run it on.
        expected: the reference outputs of the same samples.
        tolerance: for floats: `rounding_of` the graph as it was read and the inputs, or a
            `RelativeTolerance`.
        compiler: as for `host.load`.
        sanitize: run under address and undefined-behaviour sanitizers.
        every_layer: compare every layer with the reference, too. If outputs differ this is done
            in any case, for the samples that show it.
        board: where `run` runs the model.
        run: runs it somewhere else than on this machine.
        rounds_otherwise: whether the reference is known to round integers otherwise.

    Raises:
        ToolError: there is no compiler, or it failed.
        RunError: the C returned an error status, or a sanitizer objected.
    """
    if run is None:
        model = load(artifact, compiler=compiler, sanitize=sanitize)
        got: Sequence[Values] = run_samples(model, inputs)
    else:
        got = run(inputs)
    comparison = compare(expected.values, got, tolerance, inputs.steps)
    differing = {d.sample * (inputs.steps or 1) + (d.step or 0) for d in comparison.differences}
    suspects = set(range(len(inputs))) if every_layer else differing
    wrong = None
    if suspects:
        debug = load(artifact, compiler=compiler, debug=True)
        wrong = first_wrong_layer(debug, graph, inputs, suspects, tolerance)
    quantised = {t.name for t in graph.results if t.dtype.is_int and t.type.quantization}
    is_near = rounds_otherwise and wrong is None and comparison.differs_by_one(quantised)
    model_info = artifact.metadata.model
    return Verification(
        model=model_info.file if model_info else artifact.metadata.module_name,
        targets=artifact.module.require_config("verify").targets,
        board=board,
        comparison=comparison,
        layers_checked=bool(suspects),
        first_wrong_layer=wrong,
        within_one_step=is_near and _is_as_meant(graph, inputs, got, differing),
    )


def _is_as_meant(
    graph: Graph, inputs: SampleBatch, got: Sequence[Values], runs: Collection[int]
) -> bool:
    """Return whether the integers of some runs are those of the numpy reference."""
    steps = inputs.steps or 1
    for number, sample in enumerate(inputs.samples()):
        first = number * steps
        if not any(first <= run < first + len(sample) for run in runs):
            continue
        meant = reference.execute_steps(graph, sample)
        for run, outputs in enumerate(meant, first):
            if run in runs and any(
                not np.array_equal(array, got[run][name])
                for name, array in outputs.items()
                if array.dtype.kind != "f"
            ):
                return False
    return True


def _layer_data(layer: WrongLayer) -> WrongLayerData:
    return {
        "name": layer.name,
        "operator": layer.operator,
        "index": layer.index,
        "function": layer.function,
        "sample": layer.difference.sample,
        "step": layer.difference.step,
        "element": list(layer.difference.index),
        "expected": _finite(layer.difference.expected),
        "got": _finite(layer.difference.got),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
