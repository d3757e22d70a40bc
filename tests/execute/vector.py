"""Cases for kernels of wide vectors, compiled for x86-64.

`python -m tests.execute.vector FOLDER` runs all of them under sanitizers, in this process.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.kernels import candidates
from microtir.module.ir_module import IRModule
from microtir.plan.ir import Plan
from microtir.plan.measured import Cost, Key, Measured, signature
from microtir.rewrite.reference import execute
from tests.support.batch import load_batch
from tests.support.dsp_cases import DspCase, Sizes, cases, global_average
from tests.support.remainders import thinned
from tests.support.sanitizers import FLAGS
from tests.support.seeds import is_soak, seeds

PER_KIND = 20
SANITIZED_PER_KIND = 5
FIRST = 500  # seed
SIZES = Sizes(
    widths=range(1, 20),
    heights=range(1, 9),
    channels=(1, 2, 3, 4, 5, 7, 8, 8, 11, 16, 16, 20, 32, 33, 48, 57),
    outputs=(1, 2, 3, 5, 8, 9, 14, 16, 31, 40),
)
CONFIG = CompilationConfig.from_target(Target("c -mcpu=x86-64"))
# At least this many of the cases must reach each kernel, or the tests say little: four fifths
# of those that did when this was written.
EXPECTED = {
    "add_s8_1x8_avx2": 8, "conv_s8_6x8_avx2": 27, "conv_s8_6x8_avx2_windows": 11,
    "dense_s8_6x8_avx2": 4, "dwconv_s8_1x16_avx2": 19, "dwconv_s8_1x16_avx2_windows": 10,
    "pool_s8_1x8_avx2": 8,
}  # fmt: skip

Batch = tuple[list[DspCase], list[microtir.Artifact]]


WINDOWS = ("conv_s8_6x8_avx2_windows", "dwconv_s8_1x16_avx2_windows")


def offers(case: DspCase, kernel: str) -> bool:
    """Whether a kernel can compute the case."""
    return any(c.kernel == kernel for c in candidates(case.graph.nodes[0], CONFIG))


def records(cases: Sequence[DspCase], folder: Path) -> str:
    """A file of tuning records by which kernels that copy a window at a time cost nothing."""
    nodes = [node for case in cases for node in case.graph.nodes]
    costs = {Key(signature(node), kernel): Cost(0, 0) for node in nodes for kernel in WINDOWS}
    path = folder / "records.json"
    path.write_text(Measured(str(CONFIG.primary_target()), costs).to_text(), encoding="utf-8")
    return str(path)


def compiled(case: DspCase, config: CompilationConfig, chosen: Counter[str]) -> microtir.Artifact:
    """The C of a case; counts the kernels that were chosen for it."""

    def observe(stage: str, result: object) -> None:
        if stage == "plan":
            assert isinstance(result, Plan)
            chosen.update(op.candidate.kernel for op in result.operators)

    config = config.with_(module_name=case.name, optimize=Optimize.SPEED)
    return microtir.build(IRModule(graph=case.graph), config, observe=observe)


def layers(per_kind: int = PER_KIND, first: int = FIRST) -> list[DspCase]:
    """Return random layers of every kind, those that add a remainder or an attribute."""
    first = seeds(first, per_kind).start
    some = thinned(cases(per_kind, first, SIZES))
    return some + [global_average(first + number, SIZES) for number in range(per_kind // 2)]


def batch(per_kind: int = PER_KIND, first: int = FIRST) -> Batch:
    """Cases and their artifacts; every kernel is among them often enough."""
    chosen: Counter[str] = Counter()
    some = layers(per_kind, first)
    artifacts = [compiled(case, CONFIG, chosen) for case in some]
    # A depthwise convolution of one channel is one that both kernels compute.
    of_windows = {
        case.name: replace(case, name=f"{case.name}_windows")
        for kernel in WINDOWS
        for case in [c for c in some if offers(c, kernel)][: per_kind // 2]
    }
    again = list(of_windows.values())
    with TemporaryDirectory(prefix="microtir-windows-") as folder:
        config = CONFIG.with_(tuning_records=records(again, Path(folder)))
        artifacts += [compiled(case, config, chosen) for case in again]
    some += again
    for kernel, least in EXPECTED.items():
        assert is_soak() or chosen[kernel] * PER_KIND >= least * per_kind, chosen
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
