"""`python -m benchmarks [MODEL ...]`: time of each stage, and what the result takes.

Without arguments: the example model and, where the folder of reference models is found, all of
those. `--record` writes the figures that do not depend on the machine to `recorded.json`.

`python -m benchmarks boards [NAME ...] [--record]`: every emulated board with every int8 model, or
those of which a board or model is named; the figures go to `boards.json`.

`python -m benchmarks host [MODEL ...] [--record]`: the int8 models on this machine, as ratios to
LiteRT and onnxruntime; they go to `host.json`.

`python -m benchmarks streaming [MODEL ...] [--record]`: what streaming costs in instructions with
the same kernels; it goes to `streaming.json`.

`python -m benchmarks over-time [MODEL ...] [--record]`: pushes of frames of a keyword spotter
beside runs of its whole window; it goes to `over_time.json`.

`python -m benchmarks int16 [BOARD ...] [--record]`: layers of int16 beside the same in int8, on
emulated boards; it goes to `int16.json`.

`python -m benchmarks arena [MODEL ...] [--record]`: RAM beside tflite-micro's arena, of recurrent
layers, networks of int16, audio and streams; it goes to `arena.json`.

`python -m benchmarks onnx [MODEL ...] [--record]`: the int8 models in ONNX beside their TFLite
twins; it goes to `onnx_twins.json`.

`python -m benchmarks tokens [NAME ...] [--record]`: a token of a language model on an emulated
Cortex-M4, with weights of 8 and of 4 bits; it goes to `tokens.json`.

`python -m benchmarks results [NETWORK ...] [--record]`: networks of some twenty shapes on boards,
as `fit` sees them; they go to `results.json` and the page `docs/results.md`.

`python -m benchmarks planning [--record]`: processor time of planning, for the largest reference
model and for one of 500 operators; it goes to `planning.json`.

`python -m benchmarks operators [--only ROW ...] [--cpu CPU,...] [--record]`: one operator at a
time beside its goal and what planning said; it goes to `operators.json` and `docs/figures.md`.

`python -m benchmarks unseen [CPU ...] [--record]`: 200 random models of one operator, and how near
what planning states of each is to what the emulator counts; it goes to `unseen.json`.

`python -m benchmarks code [CPU ...] [--record]`: estimates of code of the reference models at each
goal, beside what compilers make; they go to `code.json`. `code unseen [CPU ...] [--record]` has ten
of the exported models. `code calibrate [CPU ...] [--record]` fits the figures of these estimates,
`measure/measured/CPU.json` of the package, to random networks.

`python -m benchmarks pages`: writes what is recorded into README.md, docs/figures.md and the
picture of the frontier; it measures nothing.

`python -m benchmarks naive MODEL...`: how much of models, files or networks of many shapes by their
names, is spent by kernels that take more than 1.5 times the goals of their operators.

`python -m benchmarks calibrate [KERNEL ...] [--record]`: instructions around micro-kernels on
emulated CPUs; they go to `kernels/measured/CPU.json` of the package, which estimates are made of.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from benchmarks import (
    arena,
    boards,
    calibrate,
    code,
    host,
    int16,
    naive,
    onnx_twins,
    operator_page,
    operators,
    over_time,
    pages,
    planning,
    results,
    streaming,
    tokens,
    unseen,
)
from benchmarks.boards import models_folder
from benchmarks.footprint import Footprint, footprint, record
from benchmarks.stages import STAGES, StageTimes, time_stages
from microtir.support import resources

ROOT = Path(__file__).parent.parent

Found = TypeVar("Found")


def models(given: list[Path]) -> list[Path]:
    """Return the models to measure: those given, or the example and the reference models."""
    if given:
        return given
    files = sorted(models_folder().glob("*.tflite"))
    return [resources.example("digits/digits_int8.tflite"), *files]


def print_times(times: dict[str, StageTimes]) -> None:
    """Print a row per model and a column per stage."""
    print("Milliseconds per stage, one run on this machine; compare columns, not machines")
    print(f"{'model':<16}" + "".join(f"{stage:>10}" for stage in (*STAGES, "all")))
    for name, result in times.items():
        cells = (*(result.milliseconds[stage] for stage in STAGES), result.total)
        print(f"{name:<16}" + "".join(f"{cell:>10.1f}" for cell in cells))


def print_footprints(footprints: dict[str, Footprint]) -> None:
    """Print a row per model."""
    compiler = next(iter(footprints.values())).compiler
    print(f"\nBytes; code and weights as .text and .rodata of {compiler}")
    print(f"{'model':<16}{'code':>10}{'weights':>10}{'workspace':>11}{'bound':>10}{'gap':>6}")
    for name, size in footprints.items():
        print(
            f"{name:<16}{size.code:>10}{size.weights:>10}"
            f"{size.workspace:>11}{size.lower_bound:>10}{size.workspace - size.lower_bound:>6}"
        )


Part = Callable[[list[str], bool], None]
"""Measures what is named, or all of it, prints it, and records it if that is asked for."""


def part(measure: Callable[[list[str]], Found], record: Callable[[Found], None]) -> Part:
    """Return a part of the benchmarks."""

    def run(named: list[str], recorded: bool) -> None:
        found = measure(named)
        if recorded:
            record(found)

    return run


def record_operators(found: operators.Prices) -> None:
    """Record figures of operators, and show them on their page."""
    operators.record(found)
    operator_page.write()


def measure_stages(paths: list[str], recorded: bool) -> None:
    """Measure the times of all stages and what the results take."""
    chosen = models([Path(path) for path in paths])
    print_times({path.stem: time_stages(path) for path in chosen})
    footprints = {path.stem: footprint(path) for path in chosen}
    print_footprints(footprints)
    if recorded:
        record(footprints)


def measure_code(named: list[str], recorded: bool) -> None:
    """Measure estimates of code, or fit what they are made of."""
    if named[:1] == ["calibrate"]:
        code.calibrate(named[1:], recorded=recorded)
        return
    if named[:1] == [code.UNSEEN]:
        found = code.measure_unseen(models_folder() / "exported", named[1:])
    else:
        example = ROOT / "examples" / "digits" / "digits_float.tflite"
        found = code.measure_all([example, *models([])], named)
    if recorded:
        code.record(found)


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "boards": part(boards.measure_all, boards.record),
        "host": part(host.measure_all, host.record),
        "streaming": part(streaming.measure_all, streaming.record),
        "over-time": part(over_time.measure_all, over_time.record),
        "int16": part(int16.measure_all, int16.record),
        "arena": part(arena.measure_all, arena.record),
        "onnx": part(onnx_twins.measure_all, onnx_twins.record),
        "tokens": part(tokens.measure_all, tokens.record),
        "results": part(results.measure_all, results.record),
        "calibrate": part(calibrate.measure_all, calibrate.record),
        "code": measure_code,
        "naive": part(naive.measure_all, naive.not_recorded),
        "operators": part(operators.measure_all, record_operators),
        "unseen": part(unseen.measure_all, unseen.record),
        "pages": lambda *_: pages.write(),
        "planning": part(lambda _: planning.measure_all(), planning.record),
    }
)

HAVE_OPTIONS = ("operators",)
"""Parts that read options of their own."""


def main() -> int:
    """Measure, print and, if asked, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--record", action="store_true")
    args, options = parser.parse_known_args()
    first, *rest = args.names or [""]
    if options and first not in HAVE_OPTIONS:
        parser.error(f"unrecognized arguments: {' '.join(options)}")
    if first in PARTS:
        PARTS[first]([*rest, *options], args.record)
    else:
        measure_stages(args.names, args.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
