"""`python -m benchmarks host [MODEL ...] [--record]`: this machine against LiteRT and onnxruntime.

One thread each, in one process, in turns: a round runs every engine for about one millisecond,
and the best of many rounds counts, so that what else the machine does hits all alike.  LiteRT runs
the .tflite file, with XNNPACK; onnxruntime runs QDQ models written from the graph IR (`qdq.py`),
with int8 and with uint8 activations, of which the faster one counts.  `--record` writes the ratios
to `host.json`, by CPU and compiler: times of different machines, or days, do not compare.

That the QDQ models are right is shown by onnxruntime itself with its optimisations off: then it
computes in floats, whose results are at most some steps from the golden ones.  Its fused integer
kernels are farther away on CPUs without VNNI, where their sums of two products saturate.

The packages are taken from where this Python finds them, else installed from PyPI into a folder
that is removed afterwards.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import microtir
from benchmarks.boards import INT8_MODELS, models_folder
from benchmarks.qdq import UntranslatedError, qdq_model, stored_as, to_nchw
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.graph.ir import Graph
from microtir.host.backend import SharedLibrary
from microtir.host.build import Build
from microtir.host.tensors import aligned, empty_output, ports
from microtir.host.toolchain import find_compiler
from microtir.module.ir_module import PortKind

RECORDED = Path(__file__).parent / "host.json"
PACKAGES = ("onnxruntime", "onnx", "ai_edge_litert")
_ROUNDS = 500
_VECTORS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni")
_SECONDS = 0.001  # of one engine in one round

Array = npt.NDArray[Any]
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class HostFigures:
    """One model: the times as ratios, and how far outputs are from the golden ones, in steps.

    Below 1.0 microtir is the faster one.
    """

    to_onnxruntime: float
    to_litert: float
    difference: int
    onnxruntime_difference: int
    onnxruntime_float_difference: int
    litert_difference: int


Figures = dict[str, dict[str, HostFigures]]
"""By CPU with compiler, and by model."""


@contextmanager
def rivals() -> Iterator[None]:
    """Make the packages importable, if need be from a folder that lives as long as this."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="microtir-rivals-") as folder:
        print(f"installing {', '.join(missing)} from PyPI")
        names = [name.replace("_", "-") for name in missing]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *names]
        subprocess.run(command, check=True)
        sys.path.append(folder)
        yield
        sys.path.remove(folder)


@dataclass(frozen=True, slots=True)
class Engine:
    """Something that runs one model: `run` with the first sample, `outputs` for any.

    `owns` is what `run` uses and nobody else keeps alive.
    """

    name: str
    run: Run
    outputs: Callable[[Array], Array]
    owns: tuple[object, ...] = ()

    def difference(self, inputs: Array, wanted: Array) -> int:
        """Return the largest distance from a golden output, in steps of its quantisation."""
        pairs = zip(inputs, wanted, strict=True)
        return max(
            int(np.abs(self.outputs(x).astype(np.int32).reshape(-1) - y.reshape(-1)).max())
            for x, y in pairs
        )


def microtir_engine(path: Path, x: Array) -> Engine:
    """Build the generated C for this machine with -O3 -march=native."""
    config = CompilationConfig.from_target(Target("c -mcpu=native")).with_(optimize=Optimize.SPEED)
    artifact = microtir.build(microtir.frontend.from_tflite(path), config)
    library = SharedLibrary.compiled(artifact, Build(find_compiler(), opt_level=3, native=True))
    memory = artifact.metadata.memory
    assert memory is not None
    workspace = aligned(memory.workspace_size, memory.alignment, 0)
    source = np.array(x, order="C")
    (sink,) = (empty_output(info, 0) for info in ports(artifact.metadata, PortKind.OUTPUT))
    run = library.bound([source], [sink], workspace)

    def outputs(sample: Array) -> Array:
        np.copyto(source, sample)
        run()
        copied: Array = sink.copy()
        return copied

    return Engine("microtir", run, outputs, (library, source, sink, workspace))


def onnxruntime_engine(graph: Graph, x: Array, *, unsigned: bool, optimised: bool = True) -> Engine:
    """Load the QDQ model into onnxruntime; input and output are bound once."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        qdq_model(graph, unsigned=unsigned), options, providers=["CPUExecutionProvider"]
    )
    (source,), (sink,) = session.get_inputs(), session.get_outputs()
    binding = session.io_binding()
    binding.bind_cpu_input(source.name, stored_as(to_nchw(x), unsigned))
    binding.bind_output(sink.name, "cpu")

    def outputs(sample: Array) -> Array:
        (got,) = session.run(None, {source.name: stored_as(to_nchw(sample), unsigned)})
        stored: Array = got.astype(np.int32) - 128 if unsigned else got
        return stored

    name = f"onnxruntime {'uint8' if unsigned else 'int8'}"
    return Engine(name, lambda: session.run_with_iobinding(binding), outputs)


def litert_engine(path: Path, x: Array) -> Engine:
    """Load a model into LiteRT, whose default on a CPU is XNNPACK."""
    module: Any = importlib.import_module("ai_edge_litert.interpreter")
    interpreter = module.Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    (source,), (sink,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(source["index"], x)

    def outputs(sample: Array) -> Array:
        interpreter.set_tensor(source["index"], sample)
        interpreter.invoke()
        got: Array = interpreter.get_tensor(sink["index"])
        return got

    return Engine("LiteRT", interpreter.invoke, outputs)


def best_times(engines: list[Engine]) -> dict[str, float]:
    """Return each engine's best microseconds of one inference, in rounds that take turns."""
    calls = {}
    for engine in engines:
        _seconds(engine.run, 3)
        calls[engine.name] = max(1, int(_SECONDS / _seconds(engine.run, 3)))
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(_ROUNDS):
        for engine in engines:
            best[engine.name] = min(best[engine.name], _seconds(engine.run, calls[engine.name]))
    return {name: seconds * 1e6 for name, seconds in best.items()}


def _seconds(run: Run, calls: int) -> float:
    """Return the seconds of one call, on average."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def measure(model: str) -> HostFigures:
    """Compare the engines on one of the reference models; prints a row.

    Raises:
        UntranslatedError: onnxruntime cannot be given the model.
    """
    path = models_folder() / f"{model}.tflite"
    graph = microtir.frontend.from_tflite(path).graph
    assert graph is not None
    golden = np.load(models_folder() / f"{model}.golden.npz")
    samples = golden["inputs"].reshape(-1, *graph.inputs[0].shape)
    engines = [
        microtir_engine(path, samples[0]),
        onnxruntime_engine(graph, samples[0], unsigned=False),
        onnxruntime_engine(graph, samples[0], unsigned=True),
        litert_engine(path, samples[0]),
    ]
    times = best_times(engines)
    ours, int8, uint8, litert = times.values()
    floats = onnxruntime_engine(graph, samples[0], unsigned=False, optimised=False)
    away = [engine.difference(samples, golden["outputs"]) for engine in (*engines, floats)]
    found = HostFigures(
        round(ours / min(int8, uint8), 2),
        round(ours / litert, 2),
        away[0],
        away[1] if int8 <= uint8 else away[2],
        away[4],
        away[3],
    )
    cells = "".join(f"{t:>9.1f} ({d})" for t, d in zip(times.values(), away, strict=False))
    print(
        f"{model:<14}{cells} ({away[4]}){found.to_onnxruntime:>9.2f}{found.to_litert:>9.2f}",
        flush=True,
    )
    return found


def measure_all(chosen: list[str]) -> Figures:
    """Measure the reference models, or those chosen; one that has no ONNX form is left out."""
    print("Microseconds, best of many turns in one run (largest difference to the golden outputs)")
    print(
        f"{'model':<14}    microtir     ORT int8    ORT uint8       LiteRT  (ORT floats)"
        "  / ORT  / LiteRT"
    )
    rows: dict[str, HostFigures] = {}
    with rivals():
        for model in INT8_MODELS:
            if chosen and model not in chosen:
                continue
            try:
                rows[model] = measure(model)
            except UntranslatedError as reason:
                print(f"{model:<14} skipped: {reason}", flush=True)
    return {machine(): rows}


def cpu_of(text: str) -> str:
    """Return the CPU that /proc/cpuinfo describes, and its vector extensions that matter.

    A virtual machine may cut the name short, so that family, model and stepping tell generations
    apart.

    Raises:
        SystemExit: it does not say its name: figures would be of nobody knows what.
    """
    facts: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    if not facts.get("model name"):
        raise SystemExit("error: /proc/cpuinfo has no 'model name'; figures need the CPU's name")
    numbers = [f"{key} {facts[key]}" for key in ("cpu family", "model", "stepping") if key in facts]
    flags = facts.get("flags", "").split()
    vectors = [flag for flag in _VECTORS if flag in flags]
    return f"{facts['model name']} ({', '.join(numbers)}), {' '.join(vectors) or 'no vectors'}"


def machine() -> str:
    """Return CPU and compiler, which ratios depend on."""
    cpu = cpu_of(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return f"{cpu}, {find_compiler().version}"


def read_recorded() -> Figures:
    """Read the ratios of `host.json`."""
    data: Mapping[str, Any] = json.loads(RECORDED.read_text()) if RECORDED.is_file() else {}
    return {cpu: {m: HostFigures(**row) for m, row in rows.items()} for cpu, rows in data.items()}


def record(found: Figures) -> None:
    """Put ratios into `host.json`; those of other machines and models stay."""
    merged = read_recorded()
    for cpu, rows in found.items():
        merged.setdefault(cpu, {}).update(rows)
    data = {
        cpu: {model: asdict(row) for model, row in sorted(rows.items())}
        for cpu, rows in sorted(merged.items())
    }
    RECORDED.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
