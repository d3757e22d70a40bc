"""Layers of some kinds that a damaged package computes wrongly.

`python -m tests.execute.wrong_layers CORE FOLDER KIND...`, with a damaged package on the path,
compiles the layers of some kinds as the test of that core does, runs them, and prints those that
are refused or whose output is not the reference's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

import microtir
from microtir.artifact import Artifact
from microtir.config import CompilationConfig
from microtir.errors import MemoryPlanError, TirError
from microtir.module.ir_module import IRModule
from microtir.rewrite.reference import execute
from tests.execute import cases as operators
from tests.execute import test_arm_kernels as arm
from tests.execute import test_blocked as blocked
from tests.execute import test_operators, vector
from tests.kernels.test_block_rings import RINGS, row_by_row
from tests.support.batch import load_batch
from tests.support.dsp_cases import DspCase
from tests.support.emulated_arm import differing
from tests.support.kernel_cases import found
from tests.support.operator_cases import OPERATORS


def wrong_layers(core: str, kinds: Sequence[str], folder: Path) -> list[str]:
    """Return the layers of some kinds that the package on the path computes wrongly or refuses."""
    if core == "portable":
        return _wrong_operators(kinds, folder)
    if core == "rings":
        return [name for kernel in kinds for name in _wrong_rings(kernel)]
    chosen: Counter[str] = Counter()
    if core == "avx2":
        return _wrong(
            _of_kinds(vector.layers(), kinds),
            lambda case: vector.compiled(case, vector.CONFIG, chosen),
            lambda some, artifacts: _that_differ(some, artifacts, folder, ("-march=native",)),
        )
    if core == "blocked":
        return _wrong(
            _of_kinds(blocked.some_cases(), kinds),
            lambda case: blocked.compiled(case, chosen),
            lambda some, artifacts: _that_differ(some, artifacts, folder),
        )
    if core == "tiles":
        tiles = {case.name: (case, config) for case, config in blocked.tiles(folder)}
        return _wrong(
            [case for case, _ in tiles.values()],
            lambda case: blocked.built(*tiles[case.name], chosen),
            lambda some, artifacts: _that_differ(some, artifacts, folder),
        )
    of = arm.CORES[core]
    pairs = _configured(of, kinds, folder)
    configs = {case.name: config for case, config in pairs}

    def compiled(case: DspCase) -> Artifact:
        return microtir.build(IRModule(graph=case.graph), configs[case.name])

    def compared(some: Sequence[DspCase], artifacts: Sequence[Artifact]) -> list[str]:
        inputs = [case.inputs for case in some]
        return differing(of.machine, artifacts, inputs, arm.expected(some), folder)

    return _wrong([case for case, _ in pairs], compiled, compared)


def _configured(
    core: arm.Core, kinds: Sequence[str], folder: Path
) -> list[tuple[DspCase, CompilationConfig]]:
    """Return the layers of some kinds with configurations, or those of a kernel that is forced."""
    if kinds[0] in core.forced:
        return list(arm.forcing(core, kinds[0], folder))
    return [
        (case, core.config.with_(module_name=case.name, optimize="speed"))
        for case in _of_kinds(arm.layers(), kinds)
    ]


def _of_kinds(some: Sequence[DspCase], kinds: Sequence[str]) -> list[DspCase]:
    """Return the layers of some kinds; fail where a kind has none."""
    of_kind = {kind: [c for c in some if c.name.rpartition("_")[0] == kind] for kind in kinds}
    missing = [kind for kind, layers in of_kind.items() if not layers]
    assert not missing, f"no layer is of the kinds {missing}"
    return [case for layers in of_kind.values() for case in layers]


def _wrong(
    some: Sequence[DspCase],
    compiled: Callable[[DspCase], Artifact],
    compared: Callable[[Sequence[DspCase], Sequence[Artifact]], list[str]],
) -> list[str]:
    """Return layers in which a checker of the package finds a mistake, and those that differ."""

    def accepted(case: DspCase) -> Artifact | None:
        try:
            return compiled(case)
        except (MemoryPlanError, TirError):
            return None

    made = [(case, accepted(case)) for case in some]
    refused = [case.name for case, artifact in made if artifact is None]
    left = [(case, artifact) for case, artifact in made if artifact is not None]
    return refused or compared([case for case, _ in left], [artifact for _, artifact in left])


def _that_differ(
    some: Sequence[DspCase],
    artifacts: Sequence[Artifact],
    folder: Path,
    flags: Sequence[str] = (),
) -> list[str]:
    wrong = []
    for case, model in zip(some, load_batch(artifacts, folder, flags=flags), strict=True):
        want = execute(case.graph, case.named_inputs())["y"]
        got = model.run(case.named_inputs())["y"]
        tolerance = 1e-4 * (want.dtype == np.float32)
        if not np.allclose(got, want, tolerance, tolerance):
            wrong.append(case.name)
    return wrong


def _wrong_operators(names: Sequence[str], folder: Path) -> list[str]:
    wrong = []
    for name in names:
        (folder / name).mkdir()
        some = operators.cases_of(name, OPERATORS[name].dtypes, test_operators.SEEDS)
        try:
            operators.compare(some, folder / name)
        except AssertionError:
            wrong.append(name)
    return wrong


def _wrong_rings(kernel: str) -> Iterator[str]:
    for case, operator in found(kernel, RINGS):
        want = execute(case.graph, case.named_inputs())["y"]
        try:
            is_right = np.array_equal(row_by_row(case, operator), want)
        except TirError:
            is_right = False
        if not is_right:
            yield case.name


def main() -> int:
    """Print the layers that are wrong."""
    core, folder, *kinds = sys.argv[1:]
    sys.stdout.write("\n".join(wrong_layers(core, kinds, Path(folder))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
