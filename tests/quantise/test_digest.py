"""Programs that were made of one float file are told from each other, and so are their states."""

from __future__ import annotations

from dataclasses import replace

import microtir
from microtir.artifact import Artifact
from microtir.codegen.metadata import ModelData, StateData
from microtir.graph.ir import Graph, State
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add
from microtir.operators.dense.definition import FullyConnected
from microtir.quantise import Calibration, LayerWidth, QuantiseOptions, Width, quantise
from tests.support.float_networks import floats
from tests.support.graphs import constant, graph, node, tensor

_FILE = "ab" * 32
_OPTIONS = QuantiseOptions(calibration=Calibration.MINMAX, rounding_work=0.0)


def _running_sum() -> Graph:
    """Return a dense layer of the sum of all that was given, as if it were of a file."""
    x, before, after = (tensor(name, (1, 3)) for name in ("x", "before", "after"))
    y = tensor("y", (1, 2))
    weights, bias = constant("w", floats(1, 2, 3)), constant("b", floats(2, 2))
    network = graph(
        [node(Add(), (x, before), after), node(FullyConnected(), (after, weights, bias), y)],
        [x, before],
        [y, after],
    )
    states = (State(before, after, floats(0, 1, 3) * 0),)
    return replace(network, states=states, source_sha256=_FILE, source_bytes=9)


def _built(options: QuantiseOptions) -> Artifact:
    result = quantise(_running_sum(), {"x": floats(3, 6, 1, 3)}, options)
    return microtir.build(IRModule(graph=result.graph))


def _facts(artifact: Artifact) -> tuple[ModelData, StateData]:
    model, state = artifact.metadata.model, artifact.metadata.state
    assert model is not None and state is not None
    return model, state


def test_other_weights_are_another_program() -> None:
    """Metadata, header and what a saved state begins with differ; the digest of the file stays."""
    one, other = _built(_OPTIONS), _built(replace(_OPTIONS, width=Width.WEIGHTS4))
    (model, state), (other_model, other_state) = _facts(one), _facts(other)
    assert model.sha256 == other_model.sha256 == _FILE
    assert model.quantised_sha256 != other_model.quantised_sha256
    assert state.identity != other_state.identity
    members = [[(m.dtype, m.quantization) for m in s.members] for s in (state, other_state)]
    assert members[0] == members[1], "the states have other types, which differ by themselves"
    header = next(file.content for file in one.files if file.path.endswith(".h")).decode()
    assert f"SHA-256  {_FILE}\n * Integers {model.quantised_sha256}\n" in header


def test_the_same_integers_are_the_same_program() -> None:
    """What leads to equal integers on another road has the same digest."""
    layers = (LayerWidth("*", Width.INT8),)
    assert _facts(_built(_OPTIONS)) == _facts(_built(replace(_OPTIONS, layers=layers)))


def test_a_file_as_it_is_has_no_digest_of_integers() -> None:
    """The metadata of a model that was not quantised here does not name one."""
    artifact = microtir.build(IRModule(graph=_running_sum()))
    model, _ = _facts(artifact)
    assert model.quantised_sha256 is None
    assert "quantised_sha256" not in artifact.metadata.text
