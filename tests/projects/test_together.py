"""Projects of models that may run at the same time: they share no memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, export_model_library_format
from microtir.artifact import Artifact
from microtir.boards import ProjectType
from microtir.errors import UsageError
from microtir.projects import Project, ProjectOptions, Samples, generate
from tests.support.small_models import (
    branching_graph,
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
)

GRAPHS = {"first": quantised_graph(), "second": branching_graph(), "third": quantised_graph()}


def models() -> list[Artifact]:
    """Three models, as many graphs as names."""
    config = CompilationConfig(targets="c")
    return [
        microtir.build(module_of(graph), config.with_(module_name=name))
        for name, graph in GRAPHS.items()
    ]


def samples() -> dict[str, Samples]:
    """One sample of each model, with what it must give."""
    found = {}
    for name, graph in GRAPHS.items():
        inputs = sample_inputs(graph)
        outputs = reference_outputs(graph, inputs)
        found[name] = Samples(
            {key: values[None] for key, values in inputs.items()},
            {key: values[None] for key, values in outputs.items()},
        )
    return found


def sizes(project: Project) -> tuple[int, int]:
    """Bytes of what models share: workspace, and inputs and outputs."""
    program = project.program_path
    said = subprocess.run(
        ["nm", "-S", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = {line.split()[-1]: int(line.split()[1], 16) for line in said if len(line.split()) == 4}
    return found["workspace"], found["tensors"]


def made(artifacts: list[Artifact], folder: Path, together: list[list[str]]) -> Project:
    """Return a project for this machine that has run, and found all outputs right."""
    options = ProjectOptions(samples=samples(), together=together)
    project = generate(artifacts, "host", ProjectType.BAREMETAL, folder, options=options)
    project.build(["CFLAGS=-O1 -Werror -Wconversion -pedantic"])
    result = project.run()
    assert result.status == 0, result.output
    return project


def test_models_that_meet_lie_apart(tmp_path: Path) -> None:
    """A project of an archive has what the joint header of the archive states."""
    pair = [["first", "second"]]
    turns = made(models(), tmp_path / "turns", [])
    asked = made(models(), tmp_path / "asked", pair)
    path = export_model_library_format(models(), tmp_path / "a.tar", together=pair)
    imported = list(microtir.import_model_library_format(path))
    brought = made(imported, tmp_path / "brought", [])
    text = (brought.folder / "src" / "models.c").read_text()
    assert text == (asked.folder / "src" / "models.c").read_text()
    assert "/* May run at the same time: first, second. They share no memory. */" in text
    needs = [a.metadata.memory.workspace_size for a in imported if a.metadata.memory]
    assert sizes(turns)[0] - max(needs) < 8
    assert 0 <= sizes(brought)[0] - (needs[0] + needs[1]) < 16
    assert sizes(brought)[1] > sizes(turns)[1]
    # Each is where no byte of the other is: what one leaves there outlives a run of the other.
    (brought.folder / "src" / "main.c").write_text(_KEPT)
    brought.build(["CFLAGS=-O1 -DMEET=1 -Werror"])
    assert brought.run().status == 0


_KEPT = """
#include <string.h>
#include "models.h"

int main(void)
{
    static uint8_t kept[2][4096];
    for (int i = 0; i < 2; i++) {
        const struct tensor *const out = &models[i].outputs[0];
        if (models[i].run() != 0) {
            return 9;
        }
        memcpy(kept[i], out->data, out->elements * element_bytes(out->element));
    }
    for (int i = 0; i < 2; i++) {
        const struct tensor *const out = &models[i].outputs[0];
        if (memcmp(kept[i], out->data, out->elements * element_bytes(out->element)) != 0) {
            return 1;
        }
    }
    return 0;
}
"""


def test_sets_that_are_none(tmp_path: Path) -> None:
    """The message names the option."""
    options = ProjectOptions(together=[["first", "secnd"]])
    with pytest.raises(UsageError, match=r"(?s)options.together.*'secnd'.*second"):
        generate(models(), "host", ProjectType.BAREMETAL, tmp_path / "p", options=options)
    assert not (tmp_path / "p").exists()
