"""Projects of models with another executor or interface than the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.boards import ProjectType, load_board
from microtir.projects import ProjectOptions, Samples, generate
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
    "packed_apart": Executor("aot", {"interface-api": "packed", "link-params": False}),
}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("host", tuple(EXECUTORS)),
        ("mps2_an386", ("graph", "packed_apart")),
        ("atmega2560", ("apart", "packed_apart")),
    ],
)
def test_a_program_has_models_of_all_kinds(
    name: str, kinds: tuple[str, ...], tmp_path: Path
) -> None:
    """Each computes what it should; weights of a file are linked to the program.

    Portable code of an AVR reads them from RAM, to which start-up code copies the program's bytes.
    """
    board, model = load_board(name), quantised_graph()
    config = CompilationConfig(targets=[board.target])
    artifacts = [
        microtir.build(module_of(model), config.with_(executor=EXECUTORS[k], module_name=k))
        for k in kinds
    ]
    inputs = sample_inputs(model)
    samples = Samples(
        {key: values[None] for key, values in inputs.items()},
        {key: values[None] for key, values in reference_outputs(model, inputs).items()},
    )
    options = ProjectOptions(samples=dict.fromkeys(kinds, samples))
    folder = tmp_path / "p"
    project = generate(artifacts, board, ProjectType.BAREMETAL, folder, options=options)
    project.build([STRICT])
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, len(kinds)), result.output
    for kind, artifact in zip(kinds, artifacts, strict=True):
        is_apart = artifact.metadata.parameters is not None
        assert any(folder.rglob(f"{kind}_parameters.c")) is is_apart
