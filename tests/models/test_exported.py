"""Small models as real exporters write them, each against its golden file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from microtir import frontend
from microtir.config import Numerics
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.host.compare import compare
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import SampleBatch
from microtir.host.tolerance import rounding_of
from microtir.host.verify import HOST, Runner, verify
from microtir.rewrite import reference
from microtir.rewrite.reference.evaluate import evaluate, value_of
from tests.models.test_models import Compiled, compile_model
from tests.support.cut_layers import cut_out
from tests.support.litert_arithmetic import (
    LitertKernels,
    differs_in_litert,
    execute_as_litert,
    rounding_as_litert,
)
from tests.support.model_gate import EXPORTED, find_models


@dataclass(frozen=True)
class Rounding:
    """How far LiteRT's golden file of a model is from what tflite-micro's kernels give.

    Args:
        kernels: those of LiteRT that made the file.
        values: how many values of the file differ.
        largest: the largest difference.
    """

    kernels: LitertKernels
    values: int
    largest: int


REFERENCE, OPTIMISED = LitertKernels.REFERENCE, LitertKernels.OPTIMISED
LITERT_ROUNDS_OTHERWISE: Mapping[str, Rounding] = MappingProxyType({
    "act_elu_selu_softplus_int8": Rounding(OPTIMISED, 1, 1),
    "conv1d_global_max_16x8": Rounding(REFERENCE, 2, 2),
    "dense_sequence_batch_none_int8": Rounding(REFERENCE, 4, 2),
    "dense_sequence_keras2_batch_none_int8": Rounding(REFERENCE, 2, 3),
    "transformer_prenorm_int8": Rounding(REFERENCE, 10, 3),
    "transformer_tokens_int8": Rounding(REFERENCE, 4, 1),
    "unet_resize_16x8": Rounding(OPTIMISED, 15, 1),
    "unet_resize_int8": Rounding(OPTIMISED, 8, 1),
})  # fmt: skip
"""Models that tflite-micro lacks an operator of, so that their golden files are LiteRT's.

Layers of theirs that tflite-micro has are rounded otherwise by LiteRT, and tflite-micro counts
(docs/frontend.md). That nothing else differs is tested below.
"""


def names() -> list[str]:
    """Return the models of the folder, none where there is no folder."""
    models = find_models(Path(__file__).parents[2])
    return sorted(path.stem for path in (models / EXPORTED).glob("*.tflite")) if models else []


EACH = [pytest.param(name, marks=pytest.mark.model(f"{EXPORTED}/{name}")) for name in names()]
ROUNDED = [
    pytest.param(n, marks=pytest.mark.model(f"{EXPORTED}/{n}")) for n in LITERT_ROUNDS_OTHERWISE
]


@pytest.mark.parametrize("name", EACH)
def test_equals_its_golden_file(models_dir: Path, name: str) -> None:
    """Integers are identical to the golden outputs, floats as near to the exact values."""
    check_golden(name, compile_model(models_dir / EXPORTED, name))


def check_golden(name: str, model: Compiled, board: str = HOST, run: Runner | None = None) -> None:
    """Compare what a model computes with its golden file, on this machine or where `run` does."""
    tolerance = rounding_of(model.graph, model.inputs.values, model.inputs.steps)
    expected, rounding = model.expected, LITERT_ROUNDS_OTHERWISE.get(name)
    if rounding is not None:
        expected = expected_outputs(Oracle.REFERENCE, model.graph, b"", model.inputs)
    verdict = verify(
        model.artifact, model.planned, model.inputs, expected, tolerance, board=board, run=run
    )
    assert verdict.equal, verdict.to_dict()
    if rounding is not None:
        found = compare(model.expected.values, expected.values, tolerance)
        assert (found.mismatches, found.max_abs_error) == (rounding.values, rounding.largest)


@pytest.mark.parametrize("name", ROUNDED)
def test_golden_files_of_litert_differ_by_its_roundings(models_dir: Path, name: str) -> None:
    """With the roundings of LiteRT's kernels the graph gives the golden file to the bit."""
    graph, inputs, expected = _with_golden(models_dir, name)
    kernels = LITERT_ROUNDS_OTHERWISE[name].kernels
    for given, wanted in zip(inputs.values, expected.values, strict=True):
        for output, array in execute_as_litert(graph, given, kernels).items():
            assert np.array_equal(array, wanted[output])


OF_REFERENCE_KERNELS = [
    p for p in ROUNDED if LITERT_ROUNDS_OTHERWISE[str(p.values[0])].kernels is REFERENCE
]


@pytest.mark.parametrize("name", OF_REFERENCE_KERNELS)
def test_c_gives_the_golden_files_of_reference_kernels(models_dir: Path, name: str) -> None:
    """Compiled with numerics `tflite_ref`, to the bit."""
    model = compile_model(models_dir / EXPORTED, name, numerics=Numerics.TFLITE_REF)
    tolerance = rounding_of(model.graph, model.inputs.values)
    verdict = verify(model.artifact, model.planned, model.inputs, model.expected, tolerance)
    assert verdict.equal, verdict.to_dict()


@pytest.mark.parametrize("name", ROUNDED)
def test_layers_that_litert_rounds_otherwise_equal_tflite_micro(
    models_dir: Path, name: str
) -> None:
    """Each of them, cut out of the model, gives what tflite-micro's kernel gives for it."""
    graph, inputs, _ = _with_golden(models_dir, name)
    kernels = LITERT_ROUNDS_OTHERWISE[name].kernels
    layers = [node for node in graph.nodes if differs_in_litert(node, kernels)]
    runs = [_layer_values(graph, given) for given in inputs.values]
    given = tuple(
        {f"input{at}": seen[node.inputs[0]] for at, node in enumerate(layers)} for seen in runs
    )
    model = cut_out(layers)
    alone = frontend.from_tflite(model).graph
    assert alone is not None
    made = expected_outputs(Oracle.TFLM, alone, model, SampleBatch(given))
    differ = 0
    for seen, outputs in zip(runs, made.values, strict=True):
        for at, node in enumerate(layers):
            assert np.array_equal(outputs[f"output{at}"], seen[node.output]), node.name
            with rounding_as_litert(node, kernels):
                (other,) = evaluate(node, [value_of(tensor, seen) for tensor in node.inputs])
            differ += int((other != seen[node.output]).sum())
    assert differ > 0


def _with_golden(models_dir: Path, name: str) -> tuple[Graph, SampleBatch, SampleBatch]:
    folder = models_dir / EXPORTED
    module = frontend.from_tflite(folder / f"{name}.tflite")
    assert module.graph is not None
    (given,), (made,) = module.graph.inputs, module.graph.outputs
    with np.load(folder / f"{name}.golden.npz") as golden:
        return (
            module.graph,
            SampleBatch(tuple({given.name: array} for array in golden["inputs"])),
            SampleBatch(tuple({made.name: array} for array in golden["outputs"])),
        )


def _layer_values(graph: Graph, inputs: Mapping[str, Array]) -> dict[Tensor, Array]:
    """Return every tensor that a run computes."""
    seen = {tensor: inputs[tensor.name] for tensor in graph.inputs}

    def note(node: Node, outputs: tuple[Array, ...]) -> None:
        seen.update(zip(node.outputs, outputs, strict=True))

    reference.execute(graph, inputs, note)
    return seen


def test_what_rounds_otherwise_is_there() -> None:
    """No name is left over from a model that has gone."""
    assert not names() or set(names()) >= set(LITERT_ROUNDS_OTHERWISE)
