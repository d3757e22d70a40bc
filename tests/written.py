"""Quantises every float model of the exporters, and compares the written files with references.

    python -m tests.written MODELS
    python -m tests.written MODELS --record

MODELS is the folder of the reference models.  Each float model becomes int8, 16x8 and weights of 4
bits; tflite-micro and LiteRT's reference kernels run the files over three runs, and what they give
is compared with the meaning of the graph that is read of the file.  The second form writes the
result, with versions, to tests/written.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from microtir.config import Numerics
from microtir.errors import MicrotirError
from microtir.frontend import read_model
from microtir.quantise import QuantiseOptions, Width
from tests.support.written_files import WrittenFile

RECORDED = Path(__file__).with_suffix(".json")
_PACKAGES = ("tflite_micro", "ai-edge-litert")
WIDTHS = {"int8": Width.INT8, "16x8": Width.INT16, "int4": Width.WEIGHTS4}
_REFERENCES = {"tflite-micro": Numerics.TFLM, "LiteRT": Numerics.TFLITE_REF}
EQUAL, DIFFER = "equal", "values differ"


def float_models(folder: Path) -> Iterator[Path]:
    """Yield the models of the exporters whose weights are floats, sorted."""
    for path in sorted((folder / "exported").iterdir()):
        is_onnx = path.suffix == ".onnx" and (
            path.stem.startswith(("torch_", "onnx_"))
            or ("tf2onnx" in path.stem and "int8" not in path.stem)
        )
        if is_onnx or path.name.endswith("_float32.tflite"):
            yield path


def verdicts(path: Path, width: Width) -> dict[str, str]:
    """Return what each reference says of the file of a model, or why there is none."""
    try:
        graph = read_model(path).graph
        assert graph is not None
        file = WrittenFile.of(graph, QuantiseOptions(width=width, rounding_work=0.0), count=8)
    except MicrotirError as error:
        problems = getattr(error, "problems", ())
        return {"not written": (problems[0] if problems else error).what}
    return {name: _verdict(file, numerics) for name, numerics in _REFERENCES.items()}


def _verdict(file: WrittenFile, numerics: Numerics) -> str:
    try:
        differences = file.differences(numerics)
    except (RuntimeError, ValueError) as error:  # the reference lacks a kernel
        return f"refused: {str(error).strip().splitlines()[0]}"
    return f"{differences} {DIFFER}" if differences else EQUAL


def _kind(verdict: str) -> str:
    return DIFFER if verdict.endswith(DIFFER) else verdict.split(":", maxsplit=1)[0]


def main() -> None:
    """Run all, print what is not equal, and record it if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("not written", *_REFERENCES)}
    others: dict[str, dict[str, str]] = {}
    for path in float_models(given.models):
        for width, kind in WIDTHS.items():
            said = verdicts(path, kind)
            for name, verdict in said.items():
                counts[name][_kind(verdict) if name in _REFERENCES else "models"] += 1
            odd = {name: verdict for name, verdict in said.items() if verdict != EQUAL}
            if odd:
                others[f"{path.name} {width}"] = odd
                sys.stdout.write(f"{path.name} {width}: {odd}\n")
    versions = {name: metadata.version(name) for name in _PACKAGES}
    result = {"versions": versions, "counts": counts, "not equal": others}
    sys.stdout.write(f"{json.dumps(counts)}\n")
    if given.record:
        RECORDED.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
