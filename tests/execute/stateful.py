"""`python -m tests.execute.stateful FOLDER`: models that keep something, under sanitizers.

What their C gives in many runs is what the reference gives, which tests compare with tflite-micro.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.graph.ir import Graph
from microtir.host.model import Model
from microtir.rewrite.reference import execute_steps
from tests.support.batch import load_batch
from tests.support.sanitizers import FLAGS
from tests.support.seeds import seeds
from tests.support.stateful import KINDS, random_model, values_of

Step = Mapping[str, npt.NDArray[Any]]

RUNS = 56
SANITIZED = seeds(100, 1)
_GOALS = ("balanced", "ram-least", "speed", "flash")


@dataclass(frozen=True)
class Case:
    """A model, its program, and what it is run on."""

    name: str
    graph: Graph
    artifact: Artifact
    steps: Sequence[Step]

    def check(self, model: Model) -> None:
        """Compare every output of every run with the reference."""
        wanted = execute_steps(self.graph, self.steps)
        got = model.run_sequence(self.steps)
        for run, (outputs, expected) in enumerate(zip(got, wanted, strict=True)):
            for name, array in expected.items():
                text = f"{self.name}, run {run}, {name}"
                np.testing.assert_array_equal(outputs[name], array, err_msg=text)


def case_of(seed: int, kinds: str) -> Case:
    """Return a random model, compiled for another goal and other memory by its seed."""
    name = f"kept_{kinds}_{seed}"
    config = CompilationConfig(
        targets="c",
        module_name=name,
        optimize=_GOALS[seed % len(_GOALS)],
        pass_config={"memory.use_workspace_io": seed % 3 == 0},
    )
    module = microtir.frontend.from_tflite(random_model(seed, kinds))
    assert module.graph is not None
    steps = steps_of(module.graph, seed, RUNS)
    return Case(name, module.graph, microtir.build(module, config), steps)


def steps_of(graph: Graph, seed: int, count: int) -> list[Step]:
    """Return random inputs of many runs."""
    generator = np.random.default_rng(seed)
    return [
        {t.name: values_of(generator, t.dtype.value, t.shape) for t in graph.arguments}
        for _ in range(count)
    ]


def check_all(cases: Sequence[Case], folder: Path, flags: Sequence[str] = ()) -> None:
    """Compile all cases together and check each."""
    artifacts = [case.artifact for case in cases]
    models = load_batch(artifacts, folder, flags=flags, opt_level=0 if flags else 1)
    for case, model in zip(cases, models, strict=True):
        case.check(model)


def main() -> int:
    """Run models of all types; a finding ends the process with its report."""
    cases = [case_of(seed, kind) for kind in KINDS for seed in SANITIZED]
    check_all(cases, Path(sys.argv[1]), FLAGS)
    sys.stdout.write(f"{len(cases)} models clean\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
