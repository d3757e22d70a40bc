"""Projects of models with another executor or interface than the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.boards import ProjectType, load_board
from microtir.projects import ProjectOptions, Samples, generate
from tests.support.board_projects import digits_samples, digits_with
from tests.support.small_models import (
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
)

STRICT = "CFLAGS=-O2 -Werror -Wconversion -Wcast-qual -Wstrict-prototypes -pedantic"
EXECUTORS = {
    "graph": Executor("graph"),
    "debug": Executor("debug", {"link-params": True}),
    "apart": Executor("aot", {"link-params": False}),
    "packed": Executor("aot", {"interface-api": "packed"}),
    "packed-apart": Executor("aot", {"interface-api": "packed", "link-params": False}),
}
CASES = [("host", kind) for kind in EXECUTORS] + [
    ("mps2_an386", "graph"),
    ("mps2_an386", "packed-apart"),
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_example_model(name: str, kind: str, tmp_path: Path) -> None:
    """It computes what it should; weights of a file are linked to the program."""
    board = load_board(name)
    config = CompilationConfig(
        targets=[board.target], executor=EXECUTORS[kind], module_name="digits"
    )
    artifact = digits_with(config)
    options = ProjectOptions(samples={"digits": digits_samples(2)})
    project = generate(artifact, board, ProjectType.BAREMETAL, tmp_path / "p", options=options)
    project.build([STRICT])
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, 2), result.output
    assert any(tmp_path.rglob("digits_parameters.c")) is (artifact.metadata.parameters is not None)


@pytest.mark.parametrize("interface", ["c", "packed"])
def test_weights_in_a_file_on_an_avr(interface: str, tmp_path: Path) -> None:
    """Portable code reads them from RAM, to which start-up code copies the program's bytes."""
    board = load_board("atmega2560")
    model = quantised_graph()
    executor = Executor("aot", {"interface-api": interface, "link-params": False})
    config = CompilationConfig(targets=[board.target], executor=executor, module_name="net")
    inputs = sample_inputs(model)
    samples = Samples(
        {name: values[None] for name, values in inputs.items()},
        {name: values[None] for name, values in reference_outputs(model, inputs).items()},
    )
    options = ProjectOptions(samples={"net": samples})
    artifact = microtir.build(module_of(model), config)
    project = generate(artifact, board, ProjectType.BAREMETAL, tmp_path / "p", options=options)
    project.build()
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, 1), result.output
