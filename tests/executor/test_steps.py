"""Steps of the AOT executor: all of them in turn are a run, and each has a cost in the header."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import jinja2
import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.artifact import Artifact
from microtir.codegen.printer.c_types import C_TYPES
from microtir.errors import ConfigError
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule, ModelInfo, Port
from tests.support.board_projects import digits_with
from tests.support.c_compilers import STRICT
from tests.support.sanitizers import FLAGS
from tests.support.stateful import random_model
from tests.support.streams import Garden

STEPS = Executor("aot", {"steps": True})
ROWS = STEPS.with_options({"row-fed-inputs": True, "row-drained-outputs": True})


def config_of(name: str, **options: Any) -> CompilationConfig:
    """Return a configuration for this machine, with steps."""
    return CompilationConfig(**{"targets": "c", "executor": STEPS, **options}, module_name=name)


def built(graph: Graph, name: str, **options: Any) -> Artifact:
    """Return the program of a graph."""
    return microtir.build(IRModule(graph=graph), config_of(name, **options))


def model_of(artifact: Artifact) -> ModelInfo:
    """Return the facts about a model."""
    assert artifact.module.model is not None
    return artifact.module.model


def values(port: Port) -> dict[str, object]:
    """Return what the program of a test says about a tensor."""
    return {
        "name": port.c_name,
        "c_type": C_TYPES[port.type.dtype],
        "elements": port.type.elements,
        "bytes": port.type.bytes,
        "row_bytes": port.row_bytes,
        "offset": port.offset,
    }


def client(artifact: Artifact) -> str:
    """Return the program that compares runs with steps."""
    name, model = artifact.metadata.module_name, model_of(artifact)
    state = "&state_step, " * bool(model.states)
    text = Path(__file__).with_name("steps.c.j2").read_text()
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(text).render(
        name=name,
        macro=name.upper(),
        runs=5,
        sides=("run", "step"),
        has_state=bool(model.states),
        step=f"{name}_step(&inputs_step, &outputs_step, {state}workspace_step",
        inputs=[values(port) for port in model.inputs],
        outputs=[values(port) for port in model.outputs],
    )


def steps_run(artifact: Artifact, folder: Path) -> int:
    """Run the program under sanitizers; return how many steps a run has."""
    artifact.export(folder)
    main, program = folder / "client.c", folder / "program"
    main.write_text(client(artifact))
    sources = [path for path in folder.glob("*.c") if path != main]
    for strict, units in ((STRICT, sources), ((), [main])):
        command = ["gcc", "-std=c99", "-O1", *strict, *FLAGS, "-c", *map(str, units)]
        subprocess.run(command, check=True, cwd=folder)
    objects = [str(path) for path in folder.glob("*.o")]
    subprocess.run(["gcc", *FLAGS, *objects, "-o", str(program), "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout.split()[0])


@pytest.mark.parametrize("goal", ["ram-least", "speed"])
def test_the_example(goal: str, tmp_path: Path) -> None:
    """A loop over rows has a step for each turn, any other statement is one."""
    artifact = digits_with(config_of("digits", optimize=goal))
    count = steps_run(artifact, tmp_path)
    layers = len({decision.index for decision in model_of(artifact).decisions.values()})
    assert count > layers if goal == "ram-least" else count == layers
    header = (tmp_path / "digits.h").read_text()
    assert f"#define DIGITS_STEP_COUNT {count}\n" in header


@pytest.mark.parametrize("seed", range(3))
def test_random_graphs(seed: int, tmp_path: Path) -> None:
    """Streams of random shapes, batches, and tensors in the workspace are equal."""
    images = 1 + seed % 2
    pass_config = {"memory.use_workspace_io": seed == 2}
    graph = Garden(seed, images=images).graph(6)
    artifact = built(graph, "net", optimize="ram-least", pass_config=pass_config)
    assert steps_run(artifact, tmp_path) % images == 0


def test_rows_of_the_application(tmp_path: Path) -> None:
    """The application is asked for rows in the step that needs them."""
    artifact = digits_with(config_of("digits", optimize="ram-least", executor=ROWS))
    assert steps_run(artifact, tmp_path) > 4


@pytest.mark.parametrize("seed", [3, 5])
def test_states(seed: int, tmp_path: Path) -> None:
    """The last step makes the state that of the next run."""
    module = microtir.frontend.from_tflite(random_model(seed, "mixed"))
    artifact = microtir.build(module, config_of("kept"))
    assert model_of(artifact).states
    steps_run(artifact, tmp_path)


def test_without_steps() -> None:
    """Nothing of them is in other programs."""
    text = "".join(f.text for f in digits_with(CompilationConfig(targets="c")).sources)
    assert "_step(" not in text and "STEP_COUNT" not in text


def test_packed_is_refused() -> None:
    """A packed call runs the whole model."""
    with pytest.raises(
        ConfigError, match="cannot be combined with interface-api 'packed'"
    ) as error:
        CompilationConfig(
            targets="c", executor=Executor("aot", {"interface-api": "packed", "steps": True})
        )
    assert error.value.where == "executor.steps"
