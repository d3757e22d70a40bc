"""A model on a board driven from Python: whole, and one layer after another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.artifact import Artifact
from microtir.boards import ProjectType
from microtir.boards.errors import EmulatorError
from microtir.device import session as protocol
from microtir.device.link import ProcessLink
from microtir.errors import RunError, UsageError
from microtir.graph.ir import Array, Graph, Node
from microtir.host import Session
from microtir.module.ir_module import IRModule
from microtir.projects import Project, ProjectOptions, generate
from microtir.rewrite import reference
from microtir.support import resources
from tests.support.board_projects import digits, digits_samples
from tests.support.pages import follow, shown
from tests.support.small_models import quantised_graph


def served(artifacts: Artifact | list[Artifact], board: str, folder: Path) -> Project:
    """Return a program that serves, for a board."""
    project = generate(
        artifacts, board, ProjectType.BAREMETAL, folder / "p", options=ProjectOptions(server=True)
    )
    flags = ["CFLAGS=-O1 -Werror -Wconversion -fsanitize=address,undefined"]
    project.build(flags if board == "host" else [])
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Build the example model and a small one, streamed row by row, as one program."""
    config = CompilationConfig(targets="c", module_name="small", optimize="ram-least")
    small = microtir.build(IRModule(graph=quantised_graph()), config)
    return served([digits("c"), small], "host", tmp_path_factory.mktemp("session"))


IMAGE = np.random.default_rng(2).integers(-128, 128, (1, 3, 4, 1)).astype(np.int8)


def test_run(project: Project) -> None:
    """Inputs stay from run to run, outputs come back by name."""
    samples = digits_samples(2)
    with Session(project.transport(), "digits") as session:
        shape = session.inputs[0].shape
        for image, expected in zip(
            samples.inputs["image"], samples.outputs["probabilities"], strict=True
        ):
            session.set_inputs({"image": image.reshape(shape)})
            for _ in range(2):
                session.run()
                assert np.array_equal(session.get_output("probabilities").ravel(), expected.ravel())
        assert list(session.get_outputs()) == ["probabilities"]


def values(graph: Graph, image: Array) -> dict[str, Array]:
    """Return what every tensor of a graph is for an image."""
    found: dict[str, Array] = {}

    def keep(node: Node, outputs: tuple[Array, ...]) -> None:
        found[node.outputs[0].name] = outputs[0]

    reference.execute(graph, {graph.inputs[0].name: image}, keep)
    return found


def test_steps_show_every_layer(project: Project) -> None:
    """Each layer's values are those of the reference; the run ends as a whole one does."""
    seen: dict[str, object] = {}
    model = microtir.frontend.from_tflite(resources.example("digits/digits_int8.tflite"))
    microtir.lower(model, observe=seen.__setitem__)
    graph = seen["graph"]
    assert isinstance(graph, Graph)
    image = digits_samples(1).inputs["image"][0].reshape(graph.inputs[0].shape)
    wanted = values(graph, image)
    outputs = {n.source.index: n.outputs[0].name for n in graph.nodes}
    with Session(project.transport(), "digits") as session:
        session.set_inputs({"image": image})
        rows: dict[int, dict[int, Array]] = {}
        for step in session.steps():
            rows.setdefault(step.index, {}).update(enumerate(step.values, step.first))
        for index, found in rows.items():
            joined = np.stack([found[row] for row in sorted(found)])
            assert np.array_equal(joined.ravel(), wanted[outputs[index]].ravel()), outputs[index]
        # A RESHAPE is no layer, and the input of a layer that accumulates is never whole.
        assert rows.keys() >= {0, 1, 2, 3, 4, 8, 9, 10}
        (last,) = graph.outputs
        assert np.array_equal(session.get_output(last.name), wanted[last.name])


def test_steps_of_a_model_that_streams(project: Project) -> None:
    """Rows come as they are computed, out of the ring that holds them."""
    features = values(quantised_graph(), IMAGE)
    with Session(project.transport(), "small") as session:
        session.set_inputs({"image": IMAGE})
        steps = list(session.steps())
        rows = {s.first: s.values for s in steps if s.operator == "CONV_2D"}
        found = np.concatenate([rows[first] for first in sorted(rows)])
        assert np.array_equal(found.ravel(), features["features"].ravel())
        assert np.array_equal(session.get_output("scores"), features["scores"])


def test_a_loop_that_is_left_early(project: Project) -> None:
    """What is asked for next lets the run end first."""
    with Session(project.transport(), "small") as session:
        session.set_inputs({"image": IMAGE})
        session.run()
        expected = session.get_output("scores")
        for ask in ("output", "run", "inputs", "steps"):
            for step in session.steps():
                assert step.index == 0
                break
            if ask == "run":
                session.run()
            elif ask == "inputs":
                session.set_inputs({"image": IMAGE})
            elif ask == "steps":
                assert len(list(session.steps())) > 1
            assert np.array_equal(session.get_output("scores"), expected)


def test_a_program_that_waits_can_be_ended(project: Project) -> None:
    """END and HELLO let the run go on, so that nobody is locked out."""
    transport = project.transport()
    session = Session(transport, "small")
    session.set_inputs({"image": IMAGE})
    next(session.steps())
    assert transport.end() == 0
    again = project.transport()
    session = Session(again, "small")
    session.set_inputs({"image": IMAGE})
    next(session.steps())
    again._start()
    session._waits = False
    session.run()
    assert transport is not again and again.end() == 0


def test_a_program_that_waits_refuses_to_be_disturbed(project: Project) -> None:
    """Inputs are not changed under a run, and nothing is read behind an output's end."""
    with project.transport() as transport:
        with pytest.raises(EmulatorError, match="refuses 'peek'"):
            transport.peek(1, 4)
        waits = transport.step(1)
        assert isinstance(waits, protocol.Waiting)
        with pytest.raises(EmulatorError, match="refuses 'write'"):
            transport.write(1, 0, bytes(12))
        with pytest.raises(EmulatorError, match="refuses 'run'"):
            transport.start(1)
        with pytest.raises(EmulatorError, match="refuses 'peek'"):
            transport.peek(1, 1 << 16)
        while not isinstance(status := transport.step(1), int):
            pass
        assert status == 0
        with pytest.raises(EmulatorError, match="refuses 'step'"):
            transport.step(7)


def test_a_failure_is_an_error(tmp_path: Path) -> None:
    """The status of the model's run function comes back from whole runs and from steps."""
    from microtir import custom
    from microtir.dtype import DType
    from microtir.graph.ir import TensorType

    type_ = TensorType((1, 2), DType.FLOAT32)
    code = "int32_t f(const float *x, float *y) { y[0] = x[0]; return x[0] > 1.0f; }"
    function = custom.from_c("F", lambda _n, x: x, function="f", code=code, returns_status=True)
    artifact = microtir.build(custom.as_model(function, [type_], [type_]))
    with Session(served(artifact, "host", tmp_path).transport()) as session:
        with pytest.raises(RunError, match="the input 'x0' was never set"):
            session.run()
        for value in (2.0, 0.0):
            session.set_inputs({"x0": np.full((1, 2), value, np.float32)})
            for run in (session.run, lambda: list(session.steps())):
                if value:
                    with pytest.raises(RunError, match="the model returned status -6"):
                        run()
                    with pytest.raises(RunError, match="the model has not run"):
                        session.get_output("y0")
                else:
                    run()
        with pytest.raises(RunError, match="there is no output 'y'"):
            session.get_output("y")


def test_models_are_known_by_name(project: Project) -> None:
    """Several models need a name; a line without metadata is refused."""
    with project.transport() as transport:
        with pytest.raises(UsageError, match="the program has 2 models"):
            Session(transport)
        with pytest.raises(UsageError, match="there is no model 'other'"):
            Session(transport, "other")
    link = ProcessLink([str(project.program_path)])
    with (
        protocol.DeviceSession(link) as bare,
        pytest.raises(UsageError, match="the transport was made without metadata"),
    ):
        Session(bare, "small")


def test_on_an_emulated_board(tmp_path: Path) -> None:
    """The same over the serial line of a Cortex-M4."""
    config = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
    artifact = microtir.build(IRModule(graph=quantised_graph()), config)
    with Session(served(artifact, "mps2_an386", tmp_path).transport()) as session:
        session.set_inputs({"image": IMAGE})
        assert [step.operator for step in session.steps()] == ["CONV_2D", "FULLY_CONNECTED"]
        expected = reference.execute(quantised_graph(), {"image": IMAGE})
        assert np.array_equal(session.get_output("scores"), expected["scores"])


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/session.md does what it says."""
    monkeypatch.chdir(tmp_path)
    assert follow("session.md", tmp_path).splitlines() == shown("session.md")
