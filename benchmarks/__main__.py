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

`python -m benchmarks onnx [MODEL ...] [--record]`: the int8 models in ONNX beside their TFLite
twins; it goes to `onnx_twins.json`.

`python -m benchmarks planning [--record]`: processor time of planning, for the largest reference
model and for one of 500 operators; it goes to `planning.json`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import boards, host, int16, onnx_twins, over_time, planning, streaming
from benchmarks.footprint import Footprint, footprint, record
from benchmarks.stages import STAGES, StageTimes, time_stages
from microtir import resources

ROOT = Path(__file__).parent.parent


def models(given: list[Path]) -> list[Path]:
    """Return the models to measure: those given, or the example and the reference models."""
    if given:
        return given
    folder = Path(os.environ.get("MICROTIR_MODELS", ROOT.parent / "shared" / "models"))
    return [resources.example("digits/digits_int8.tflite"), *sorted(folder.glob("*.tflite"))]


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


def main() -> int:
    """Measure, print and, if asked, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.models and args.models[0] == Path("boards"):
        found = boards.measure_all([str(name) for name in args.models[1:]])
        if args.record:
            boards.record(found)
        return 0
    if args.models and args.models[0] == Path("host"):
        ratios = host.measure_all([str(name) for name in args.models[1:]])
        if args.record:
            host.record(ratios)
        return 0
    if args.models and args.models[0] == Path("streaming"):
        prices = streaming.measure_all([str(name) for name in args.models[1:]])
        if args.record:
            streaming.record(prices)
        return 0
    if args.models and args.models[0] == Path("over-time"):
        pushes = over_time.measure_all([str(name) for name in args.models[1:]])
        if args.record:
            over_time.record(pushes)
        return 0
    if args.models and args.models[0] == Path("int16"):
        layers = int16.measure_all([str(name) for name in args.models[1:]])
        if args.record:
            int16.record(layers)
        return 0
    if args.models and args.models[0] == Path("onnx"):
        twins = onnx_twins.measure_all([str(name) for name in args.models[1:]])
        if args.record:
            onnx_twins.record(twins)
        return 0
    if args.models and args.models[0] == Path("planning"):
        seconds = planning.measure_all()
        if args.record:
            planning.record(seconds)
        return 0
    chosen = models(args.models)
    print_times({path.stem: time_stages(path) for path in chosen})
    footprints = {path.stem: footprint(path) for path in chosen}
    print_footprints(footprints)
    if args.record:
        record(footprints)
    return 0


if __name__ == "__main__":
    sys.exit(main())
