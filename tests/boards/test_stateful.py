"""Models that keep something from one run to the next, on boards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.boards import ProjectType, load_board
from microtir.boards.errors import EmulatorError, ProjectError
from microtir.host import Session
from microtir.projects import Project, ProjectOptions, Samples, generate, run_samples
from microtir.rewrite.reference import execute_steps
from tests.execute.stateful import Case, case_of
from tests.support.board_projects import BOARD_OF_EACH_TYPE, digits
from tests.support.stateful import random_model

STEPS = 6
STRICT = ["CFLAGS=-O1 -Werror -Wconversion -fsanitize=address,undefined"]


@pytest.fixture(scope="module")
def case() -> Case:
    """Return a model with several states of different types."""
    return case_of(5, "mixed")


@pytest.fixture(scope="module")
def project(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return it beside one that keeps nothing, as a program of this machine that serves."""
    folder = tmp_path_factory.mktemp("stateful") / "p"
    options = ProjectOptions(server=True)
    artifacts = [digits("c"), case.artifact]
    made = generate(artifacts, "host", ProjectType.BAREMETAL, folder, options=options)
    made.build(STRICT)
    return made


def wanted(case: Case, first: int = 0) -> list[dict[str, np.ndarray]]:
    """Return the outputs of a sequence that begins anew."""
    return list(execute_steps(case.graph, case.steps[first : first + STEPS]))


def test_a_session_goes_on_until_a_reset(project: Project, case: Case) -> None:
    """Each run begins with what the last one left, whole or layer by layer."""
    with Session(project.transport(), case.name) as session:
        for begin in (0, 3):
            session.reset()
            for number, outputs in enumerate(wanted(case, begin)):
                session.set_inputs(case.steps[begin + number])
                if number == 2:
                    assert list(session.steps())
                else:
                    session.run()
                for name, array in outputs.items():
                    np.testing.assert_array_equal(session.get_output(name), array)


def test_a_model_that_keeps_nothing_has_nothing_to_forget(project: Project) -> None:
    """A session resets it without a word; the program refuses the message."""
    with Session(project.transport(), "digits") as session:
        session.reset()
    transport = project.transport()
    with pytest.raises(EmulatorError, match="refuses 'begin'"):
        transport.begin(0)
    transport.end()


def test_no_reset_while_a_run_waits(project: Project, case: Case) -> None:
    """The run would go on with another state than it began with."""
    transport = project.transport()
    model = case.artifact.module.model
    assert model is not None
    for index, port in enumerate(model.inputs):
        transport.write(1, index, case.steps[0][port.name].tobytes())
    assert not isinstance(transport.step(1), int)
    with pytest.raises(EmulatorError, match="refuses 'begin'"):
        transport.begin(1)
    transport.end()


@pytest.mark.parametrize(
    "board", ["mps2_an386", pytest.param("atmega2560", marks=pytest.mark.soak_only)]
)
def test_samples_are_sequences(board: str, case: Case) -> None:
    """Each begins with the state of the file, on another CPU as on this machine."""
    runs = case.steps[: 2 * STEPS]
    found = run_samples(case.artifact, load_board(board), runs, steps=STEPS)
    for got, expected in zip(found, [*wanted(case), *wanted(case, STEPS)], strict=True):
        for name, array in expected.items():
            np.testing.assert_array_equal(got[name], array)


@pytest.mark.parametrize("interface", ["packed", "graph"])
def test_applications_pass_it_by_every_interface(interface: str, tmp_path: Path) -> None:
    """Packed, it is a tensor of bytes; for a graph it is the parameter that it always is."""
    options = {"interface-api": "packed"} if interface == "packed" else {"link-params": True}
    kind = "aot" if interface == "packed" else "graph"
    config = CompilationConfig(targets="c", module_name="kept", executor=Executor(kind, options))
    case = case_of(5, "mixed")
    module = microtir.frontend.from_tflite(random_model(5, "mixed"))
    outputs = wanted(case)
    samples = Samples(
        {n: np.stack([run[n] for run in case.steps[:STEPS]])[None] for n in case.steps[0]},
        {n: np.stack([run[n] for run in outputs])[None] for n in outputs[0]},
    )
    made = generate(
        microtir.build(module, config), "host", ProjectType.BAREMETAL, tmp_path / "p",
        options=ProjectOptions(samples={"kept": samples}),
    )  # fmt: skip
    made.build(STRICT)
    result = made.run()
    assert (result.status, result.output.count(" equal\n")) == (0, STEPS * len(outputs[0]))


@pytest.mark.parametrize("is_wrong", [False, True])
def test_an_application_runs_sequences(case: Case, tmp_path: Path, *, is_wrong: bool) -> None:
    """Its lines have the number of the step, and the wrong one is named."""
    outputs = [*wanted(case), *wanted(case, STEPS)]
    expected = {n: np.stack([run[n] for run in outputs]) for n in outputs[0]}
    inputs = {n: np.stack([run[n] for run in case.steps[: 2 * STEPS]]) for n in case.steps[0]}
    name = next(iter(expected))
    if is_wrong:
        values = expected[name].reshape(2, STEPS, -1)
        values[1, 4, 0] = values[1, 4, 0] == 0
    given, results = (
        {n: array.reshape(2, STEPS, *array.shape[1:]) for n, array in arrays.items()}
        for arrays in (inputs, expected)
    )
    options = ProjectOptions(samples={case.name: Samples(given, results)})
    folder = tmp_path / "p"
    made = generate(case.artifact, "host", ProjectType.BAREMETAL, folder, options=options)
    made.build(STRICT)
    result = made.run()
    assert result.status == int(is_wrong), result.output
    assert f"{case.name} sample 0 step {STEPS - 1} {name} equal\n" in result.output
    assert (f"{case.name} sample 1 step 4 {name} differs at 0: " in result.output) == is_wrong


def test_samples_of_other_lengths_are_refused(case: Case, tmp_path: Path) -> None:
    """All inputs have the same number of steps."""
    shapes = {port.name: port.shape for port in case.graph.arguments}
    arrays = {
        tensor.name: np.zeros((2, 3 + number, *shapes[tensor.name]), tensor.dtype.value)
        for number, tensor in enumerate(case.graph.arguments)
    }
    assert len(arrays) > 1
    options = ProjectOptions(samples={case.name: Samples(arrays)})
    with pytest.raises(ProjectError, match=r"different lengths \(3 and 4"):
        generate(case.artifact, "host", ProjectType.BAREMETAL, tmp_path / "p", options=options)


@pytest.mark.parametrize(("board", "kind"), BOARD_OF_EACH_TYPE)
def test_projects_say_how_a_state_begins(case: Case, board: str, kind: str, tmp_path: Path) -> None:
    """The page of a project tells whoever writes an application of his own."""
    made = generate(case.artifact, board, kind, tmp_path / "p")
    page = (made.folder / "README.md").read_text()
    assert "_state_init" in page
    assert "keeps nothing between" not in page
