"""Compiled models that keep something from one run to the next."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, host
from microtir.errors import RunError
from microtir.host.tensors import aligned
from tests.execute.stateful import RUNS, SANITIZED, Case, case_of, check_all
from tests.support.c_compilers import C_COMPILERS, strict_problems
from tests.support.programs import artifact_of, model_module
from tests.support.sanitizers import run_sanitized
from tests.support.seeds import seeds
from tests.support.stateful import KINDS, random_model, running_sum

FIRST = np.array([[3.0, -7.5]], np.float32)


@pytest.mark.soak
def test_sequences_equal_the_reference(tmp_path: Path) -> None:
    """Rings, sums and delays of every type go on for many runs as the reference does."""
    check_all([case_of(seed, kind) for kind in KINDS for seed in seeds(0, 2)], tmp_path)


@pytest.mark.soak
def test_c_is_clean_under_sanitizers(tmp_path: Path) -> None:
    """No run reads or writes beside the memory that it was given."""
    said = run_sanitized("tests.execute.stateful", tmp_path)
    assert said == f"{len(KINDS) * len(SANITIZED)} models clean"


@pytest.fixture(scope="module")
def case() -> Case:
    """Return a model with several variables of int8."""
    return case_of(3, "int8")


@pytest.fixture(scope="module")
def model(case: Case) -> host.Model:
    """Return it, compiled."""
    return host.load(case.artifact)


def outputs_of(model: host.Model, case: Case, first: int, last: int) -> list[bytes]:
    """Return the outputs of some of the steps, as bytes."""
    results = model.run_sequence(case.steps[first:last])
    return [b"".join(array.tobytes() for array in outputs.values()) for outputs in results]


def test_instances_do_not_mix(model: host.Model, case: Case) -> None:
    """Two instances that take turns give what each gives alone."""
    one, other = model.instance(), model.instance()
    alone = outputs_of(model.instance(), case, 0, RUNS)
    for step in range(RUNS // 2):
        assert outputs_of(one, case, step, step + 1) == alone[step : step + 1]
        if step >= 5:
            assert outputs_of(other, case, step - 5, step - 4) == alone[step - 5 : step - 4]


def test_a_reset_begins_anew(model: host.Model, case: Case) -> None:
    """After it the model gives its first outputs again."""
    fresh = model.instance()
    before = outputs_of(fresh, case, 0, 9)
    assert outputs_of(fresh, case, 0, 9) != before
    fresh.reset()
    assert outputs_of(fresh, case, 0, 9) == before


def test_what_was_saved_goes_on(model: host.Model, case: Case) -> None:
    """An instance, or another compilation of the model, continues where another one was saved."""
    first = model.instance()
    outputs_of(first, case, 0, 20)
    saved = first.save()
    wanted = outputs_of(first, case, 20, 40)
    second = model.instance()
    second.restore(saved)
    assert outputs_of(second, case, 20, 40) == wanted
    module = microtir.frontend.from_tflite(random_model(3, "int8"))
    other = host.load(microtir.build(module, CompilationConfig(targets="c", optimize="speed")))
    other.restore(saved)
    assert outputs_of(other, case, 20, 40) == wanted


def test_the_first_values_are_those_of_the_file() -> None:
    """Fresh instances are equal, and hold the value that the file gives."""
    artifact = microtir.build(microtir.frontend.from_tflite(running_sum(FIRST)))
    model = host.load(artifact)
    assert model.save()[8:] == FIRST.tobytes()
    (result,) = model.run({"x": np.zeros((1, 2), np.float32)}).values()
    np.testing.assert_array_equal(result, 2 * FIRST)


@pytest.mark.parametrize("damage", ["cut", "longer", "version", "identity", "empty"])
def test_what_was_saved_of_others_is_refused(model: host.Model, case: Case, damage: str) -> None:
    """And the instance keeps what it has."""
    instance = model.instance()
    outputs_of(instance, case, 0, 7)
    saved = instance.save()
    damaged = {
        "cut": saved[:-1],
        "longer": saved + b"\0",
        "version": bytes([saved[0] ^ 1]) + saved[1:],
        "identity": saved[:4] + bytes([saved[4] ^ 1]) + saved[5:],
        "empty": b"",
    }[damage]
    with pytest.raises(RunError, match="the state was refused with status"):
        instance.restore(damaged)
    assert instance.save() == saved


def test_a_model_that_keeps_nothing_has_the_empty_state() -> None:
    """So whoever saves and restores models need not ask which of them keep something."""
    model = host.load(artifact_of(model_module()))
    assert model.state_values() == {}
    model.restore(model.save())
    model.reset()
    with pytest.raises(RunError, match="the model has no state"):
        model.restore(b"12345678")


@pytest.mark.parametrize("sanitize", [False, True])
def test_states_that_are_none_are_refused(sanitize: bool) -> None:
    """One that nobody initialised, one of another model, and a misaligned one."""
    artifact = microtir.build(microtir.frontend.from_tflite(running_sum()))
    facts, memory = artifact.metadata.state, artifact.metadata.memory
    assert facts is not None and memory is not None
    backend = host.load(artifact, sanitize=sanitize)._backend
    begun = aligned(facts.size, facts.alignment, 0)
    assert backend.call_state("init", [begun]) == 0
    of_others = begun.copy()
    of_others[0] ^= 1
    misaligned = aligned(facts.size + 1, facts.alignment, 0)[1:]
    misaligned[:] = begun
    fresh = aligned(facts.size, facts.alignment, 0xA5)
    # The sanitizers' program has memory of its own, which is aligned.
    refused = [fresh, of_others, *([] if sanitize else [misaligned])]
    (pool,) = memory.pools
    for state, is_legal in [(begun, True), *((state, False) for state in refused)]:
        x, y = np.ones((1, 2), np.float32), np.full((1, 2), 7, np.float32)
        workspace = aligned(pool.size, pool.alignment, 0)
        status = backend.run([x], [y], workspace, state=state)
        assert (status == 0, y.ravel().tolist()) == (is_legal, [0, 0] if is_legal else [7, 7])
        if not is_legal:
            assert "the state is misaligned, not initialised" in backend.status_text(status)
    if not sanitize:
        assert backend.call_state("save", [fresh, np.zeros(facts.saved_size, np.uint8)]) < 0


def test_sanitized_runs_keep_the_state(case: Case) -> None:
    """Each run is a process of its own, which is given what the last one has left."""
    model = host.load(case.artifact, sanitize=True)
    wanted = outputs_of(host.load(case.artifact), case, 0, 4)
    assert outputs_of(model, case, 0, 2) == wanted[:2]
    saved = model.save()
    assert outputs_of(model, case, 2, 4) == wanted[2:]
    model.restore(saved)
    assert outputs_of(model, case, 2, 3) == wanted[2:3]


@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_c_has_no_warning(compiler: str, tmp_path: Path) -> None:
    """The functions of a state compile everywhere, and its struct has the size that is said."""
    case = case_of(5, "mixed")
    assert len(case.graph.states) > 1
    case.artifact.export(tmp_path / "out")
    assert strict_problems(tmp_path / "out", compiler, "c99") == ""


def test_nothing_is_static(case: Case, tmp_path: Path) -> None:
    """The code of a model has no variable of its own: all that it keeps is the caller's."""
    folder = case.artifact.export(tmp_path / "out")
    units = sorted(path.name for path in folder.glob("*.c"))
    subprocess.run(["gcc", "-std=c99", "-O1", "-c", *units], cwd=folder, check=True)
    objects = sorted(path.name for path in folder.glob("*.o"))
    symbols = subprocess.run(["nm", *objects], cwd=folder, check=True, capture_output=True)
    kinds = {line.split()[-2] for line in symbols.stdout.decode().splitlines() if " " in line}
    assert "T" in kinds
    assert not kinds & set("bBdDCsS"), symbols.stdout.decode()
