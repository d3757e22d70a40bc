"""What outlives a run: facts about it, the RAM that it takes, and archives that hold it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact, footprint, read_metadata
from microtir.errors import LimitError
from microtir.report.collect import describe
from microtir.report.summary import facts
from microtir.support.reading import WrongDataError
from tests.support.programs import artifact_of, model_module
from tests.support.stateful import KINDS, random_model, running_sum

CONFIG = CompilationConfig(targets="c", module_name="kept")
SUM = running_sum(np.array([[3.0, -7.5]], np.float32))


@pytest.fixture(scope="module")
def total() -> Artifact:
    """Return a model that adds up what it is given."""
    return microtir.build(microtir.frontend.from_tflite(SUM), CONFIG)


def test_metadata_describe_the_struct(total: Artifact) -> None:
    """A member has the model's name, the name in C, its type and its place."""
    state = read_metadata(total.metadata.text.encode()).state
    assert state is not None
    assert (state.size, state.alignment, state.saved_size) == (12, 4, 16)
    (member,) = state.members
    assert (member.name, member.member, member.offset, member.bytes) == ("sum", "sum", 4, 8)
    assert (member.shape, member.dtype, member.quantization) == ((1, 2), "float32", None)


def test_a_model_that_keeps_nothing_says_nothing() -> None:
    """Its text is as it was before there were states."""
    artifact = artifact_of(model_module())
    assert "state" not in artifact.metadata.as_json()
    assert read_metadata(artifact.metadata.text.encode()).state is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_struct_is_what_c_makes_of_it(kind: str) -> None:
    """Members follow each other, each at a multiple of its alignment, on every CPU alike."""
    for seed in range(3):
        model = microtir.frontend.from_tflite(random_model(seed, kind))
        artifact = microtir.build(model, CONFIG)
        state = read_metadata(artifact.metadata.text.encode()).state  # checks the offsets
        assert state is not None
        assert state.size % state.alignment == 0


@pytest.mark.parametrize(
    ("field", "value"), [("size", 16), ("alignment", 8), ("identity", "no"), ("members", [])]
)
def test_a_struct_that_is_none_is_refused(total: Artifact, field: str, value: object) -> None:
    """Metadata of others cannot claim a struct that its members do not make."""
    written = json.loads(total.metadata.text)
    written["state"][field] = value
    with pytest.raises(WrongDataError, match=r"state"):
        read_metadata(json.dumps(written).encode())


def test_ram_counts_it(total: Artifact) -> None:
    """It stands beside workspace, inputs and outputs."""
    found = footprint(total.metadata)
    assert found.state == 12
    assert found.budgeted == found.planned + 12
    assert found.of_model == found.budgeted + found.io


def test_a_budget_of_ram_counts_it(total: Artifact) -> None:
    """A budget that the workspace alone keeps to is exceeded, by as many bytes as are said."""
    need = footprint(total.metadata).budgeted
    model = microtir.frontend.from_tflite(SUM)
    for goal in ("balanced", "ram", "speed"):
        config = CONFIG.with_(optimize=goal)
        microtir.build(model, config.with_(budget={"ram": need}))
        with pytest.raises(LimitError, match="the workspace and the state take") as caught:
            microtir.build(model, config.with_(budget={"ram": need - 1}))
        assert (caught.value.taken, caught.value.allowed) == (need, need - 1)
    with pytest.raises(LimitError):
        microtir.build(model, CONFIG.with_(budget={"ram": 1}))


def test_a_report_names_it() -> None:
    """The facts of a model say what outlives a run."""
    module = microtir.frontend.from_tflite(SUM).with_configuration(CONFIG)
    report = describe(module)
    assert dict(facts(report))["state"] == "12 bytes of RAM that outlive a run: sum 1x2 float32"
    limited = describe(module.with_configuration(CONFIG.with_(budget={"ram": 4})))
    (limit,) = limited.limits
    assert (limit.what, limit.used) == ("workspace and the state", report.ram.budgeted)


def test_archives_hold_it(total: Artifact, tmp_path: Path) -> None:
    """What is read back has the same facts; the initial values are in its code."""
    path = microtir.export_model_library_format(total, tmp_path / "kept.tar")
    (found,) = microtir.import_model_library_format(path)
    assert found.metadata == total.metadata
    model, original = found.module.model, total.module.model
    assert model is not None and original is not None
    assert [(s.name, s.c_name, s.type, s.alignment) for s in model.states] == [
        (s.name, s.c_name, s.type, s.alignment) for s in original.states
    ]
    assert model.memory.state_size == original.memory.state_size == 12
    again = microtir.export_model_library_format(found, tmp_path / "again.tar")
    (second,) = microtir.import_model_library_format(again)
    assert second.metadata == total.metadata
