"""`python -m benchmarks onnx [MODEL ...]`: the int8 models in ONNX, beside their TFLite twins.

Each reference model is written with the weights, scales and zero points of the TFLite file, with
QuantizeLinear and DequantizeLinear around every operator (`qdq.py`) and as QLinear operators
(`qoperator.py`); and as onnxruntime's static quantiser makes it of floats, in both formats.  All
are compiled for a Cortex-M4: as onnxruntime computes them, and in fixed point.  The first two take
an image as the twin does, channels last, the others and `in planes` as ONNX has it.  Before it is
measured, what a graph gives for random images is compared with onnxruntime, which computes every
step in floats then: where a real value lies next to the middle of two integers, outputs may be a
step apart.  The first form is measured on a Cortex-M55, too.  A last one has activations of int16.
`--record` writes the figures to `onnx_twins.json`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks.prices import write_prices
from benchmarks.qdq import qdq_model
from benchmarks.qoperator import qoperator_model
from benchmarks.static_quantiser import statically_quantised
from microtir import driver
from microtir.boards import load_board
from microtir.config import CompilationConfig, Numerics
from microtir.frontend import from_onnx, from_tflite
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.profiling import profile
from microtir.rewrite.reference import execute

RECORDED = Path(__file__).parent / "onnx_twins.json"
MODELS = ("ad01_int8", "kws_int8", "resnet8_int8", "vww_int8")
_BOARD, _WITH_VECTORS = "mps2_an386", "mps3_an547"
_ON = f", {_WITH_VECTORS}"
_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Price:
    """What a run of a model takes on the board, and the largest difference from onnxruntime."""

    instructions: int
    ram: int
    steps_apart: int = 0


def _measured(module: IRModule, name: str, numerics: Numerics, on: str = _BOARD) -> tuple[int, int]:
    board = load_board(on)
    config = CompilationConfig.from_target(board.target).with_(module_name=name, numerics=numerics)
    found = profile(driver.build(module, config), board)
    return found.instructions, found.ram.of_model + found.ram.stack


def _steps_apart(model: bytes, graph: Graph) -> int:
    """Return how far outputs are from onnxruntime's, which fuses nothing."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (port,) = session.get_inputs()
    rng, largest = np.random.default_rng(0), 0
    for _ in range(_SAMPLES):
        dtype = graph.inputs[0].dtype
        x = rng.integers(dtype.min, dtype.max + 1, port.shape).astype(dtype.value)
        (expected,) = session.run(None, {port.name: x})
        (got,) = execute(graph, {graph.inputs[0].name: x}).values()
        largest = max(largest, int(np.abs(expected.astype(int) - got.astype(int)).max()))
    return largest


def prices(name: str) -> dict[str, Price]:
    """Build and measure a model in each form."""
    folder = os.environ.get("MICROTIR_MODELS", RECORDED.parent.parent.parent / "shared" / "models")
    twin = from_tflite(Path(folder) / f"{name}.tflite")
    assert twin.graph is not None
    found = {"tflite": Price(*_measured(twin, name, Numerics.MODEL))} | vectorised(name, twin)
    for form, model in _forms(twin.graph).items():
        module = from_onnx(model, name=name)
        assert module.graph is not None
        apart = _steps_apart(model, module.graph)
        for way, numerics in (("onnxruntime", Numerics.MODEL), ("tflm", Numerics.TFLM)):
            steps = apart if numerics is Numerics.MODEL else 0
            found[f"{form}, {way}"] = Price(*_measured(module, name, numerics), steps)
    return found


def vectorised(name: str, twin: IRModule) -> dict[str, Price]:
    """Measure a model on a core with Helium, whose vectors of floats rescale what ONNX does."""
    assert twin.graph is not None
    module = from_onnx(qdq_model(twin.graph, unsigned=False, channels_last=True), name=name)
    forms = {"tflite": twin, "QDQ, onnxruntime": module}
    return {
        f"{form}{_ON}": Price(*_measured(given, name, Numerics.MODEL, _WITH_VECTORS))
        for form, given in forms.items()
    }


def _forms(graph: Graph) -> dict[str, bytes]:
    """Return the files of a graph by what they are called."""
    return {
        "QDQ": qdq_model(graph, unsigned=False, channels_last=True),
        "QOperator": qoperator_model(graph, channels_last=True),
        "QDQ in planes": qdq_model(graph, unsigned=False),
        **{f"static {f}": statically_quantised(graph, f) for f in ("QDQ", "QOperator")},
        "static QDQ int16": statically_quantised(graph, "QDQ", "QInt16"),
    }


def measure_all(named: list[str]) -> dict[str, dict[str, Price]]:
    """Print the figures of the models that are named, or of all."""
    found: dict[str, dict[str, Price]] = {}
    print(f"{'model':<16}{'form':<30}{'instructions':>14}{'times':>8}{'RAM':>10}{'times':>8}")
    for name in named or MODELS:
        found[name] = prices(name)
        for way, p in found[name].items():
            base = found[name]["tflite" + _ON * way.endswith(_ON)]
            times, more = p.instructions / base.instructions, p.ram / base.ram
            print(
                f"{name:<16}{way:<30}{p.instructions:>14,}{times:>8.3f}{p.ram:>10,}{more:>8.3f}"
                f"{f'  {p.steps_apart} apart' * bool(p.steps_apart)}",
                flush=True,
            )
    return found


def record(found: Mapping[str, Mapping[str, Price]]) -> None:
    """Write the figures; those of other models stay."""
    write_prices(RECORDED, Price, found)
