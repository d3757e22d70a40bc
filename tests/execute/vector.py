"""Cases for kernels of wide vectors, compiled for x86-64.

`python -m tests.execute.vector FOLDER` runs all of them under sanitizers, in this process.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.graph.reference import execute
from microtir.ir_module import IRModule
from microtir.plan.ir import Kernel, Plan
from tests.support.batch import load_batch
from tests.support.dsp_cases import DspCase, Sizes, cases, global_average
from tests.support.sanitizers import FLAGS

PER_KIND = 20
SANITIZED_PER_KIND = 8
SIZES = Sizes(
    widths=range(1, 20),
    heights=range(1, 9),
    channels=(1, 2, 3, 4, 5, 7, 8, 8, 11, 16, 16, 20, 32, 33, 48, 57),
    outputs=(1, 2, 3, 5, 8, 9, 14, 16, 31, 40),
)
CONFIG = CompilationConfig.from_target(Target("c -mcpu=x86-64"))
# At least this many of the cases must reach each kernel, or the tests say little.
EXPECTED = {
    Kernel.GEMM_PANELS: 28, Kernel.DEPTHWISE_LANES: 12, Kernel.ADD_LANES: 14, Kernel.POOL_LANES: 9,
}  # fmt: skip

Batch = tuple[list[DspCase], list[microtir.Artifact]]


def compiled(case: DspCase, goal: Optimize, chosen: Counter[Kernel]) -> microtir.Artifact:
    """The C of a case; counts the kernels that were chosen for it."""

    def observe(stage: str, result: object) -> None:
        if stage == "plan":
            assert isinstance(result, Plan)
            chosen.update(op.candidate.kernel for op in result.operators)

    config = CONFIG.with_(module_name=case.name, optimize=goal)
    return microtir.build(IRModule(graph=case.graph), config, observe=observe)


def batch(per_kind: int = PER_KIND, first: int = 500) -> Batch:
    """Cases and their artifacts; every kernel is among them often enough."""
    chosen: Counter[Kernel] = Counter()
    some = cases(per_kind, first, SIZES)
    some += [global_average(first + number, SIZES) for number in range(per_kind // 2)]
    artifacts = [compiled(case, Optimize.SPEED, chosen) for case in some]
    for kernel, least in EXPECTED.items():
        assert chosen[kernel] * PER_KIND >= least * per_kind, chosen
    return some, artifacts


def compare(given: Batch, folder: Path, flags: Sequence[str]) -> None:
    """Run all cases in C, compiled with more flags, and compare them with the reference.

    Raises:
        AssertionError: names the case and the first difference.
    """
    models = load_batch(given[1], folder, flags=flags)
    for case, model in zip(given[0], models, strict=True):
        inputs = case.named_inputs()
        want = execute(case.graph, inputs)["y"]
        np.testing.assert_array_equal(model.run(inputs)["y"], want, err_msg=case.name)


def main() -> int:
    """Run twins and intrinsics; a finding ends the process with its report."""
    folder, given = Path(sys.argv[1]), batch(SANITIZED_PER_KIND, first=900)
    for name, flags in (("twins", ()), ("native", ("-march=native",))):
        (folder / name).mkdir()
        compare(given, folder / name, (*FLAGS, *flags))
    sys.stdout.write("vector kernels clean\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
