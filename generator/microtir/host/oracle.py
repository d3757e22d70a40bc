"""Computes reference outputs with something else than the C, where no file has them."""

from __future__ import annotations

import importlib.util
import tempfile
from dataclasses import replace
from enum import Enum
from pathlib import Path

import numpy as np

from microtir.errors import ToolError, UsageError
from microtir.graph import reference
from microtir.graph.ir import Graph, Stream
from microtir.graph.streaming import windows
from microtir.host import tflm_process
from microtir.host.child_process import run_in_child
from microtir.host.samples import SampleBatch
from microtir.resources import install_extra


class Oracle(Enum):
    """An implementation that computes reference outputs."""

    REFERENCE = "reference"  # microtir's own numpy semantics of the graph
    TFLM = "tflm"  # tflite-micro's reference kernels
    LITERT = "litert"
    ONNXRUNTIME = "onnxruntime"


SAMPLE_SECONDS = 60.0
"""How long an oracle may take for a sample, which may be a sequence of runs."""

BUILT = (Oracle.REFERENCE, Oracle.TFLM)


def check_oracle(oracle: Oracle) -> None:
    """Refuse an oracle that is not built, or not installed, before anything costly is done.

    Raises:
        UsageError: it is not built yet.
        ToolError: it needs a package that is not installed.
    """
    if oracle not in BUILT:
        raise UsageError(
            f"the oracle '{oracle.value}' is not built yet",
            where="--oracle",
            legal=", ".join(built.value for built in BUILT),
            fix="use one of these, or compare with a file: --golden FILE.npz",
        )
    # Not imported: it is code of others, which runs in a process of its own.
    if oracle is Oracle.TFLM and importlib.util.find_spec("tflite_micro") is None:
        raise ToolError(
            "the oracle 'tflm' needs the package tflite-micro, which is not installed",
            where="--oracle",
            fix=f"{install_extra('test')} (Linux on x86-64), or use --oracle reference",
        )


def expected_outputs(
    oracle: Oracle,
    graph: Graph,
    model: bytes,
    samples: SampleBatch,
    *,
    file: str = "",
    seconds: float = SAMPLE_SECONDS,
) -> SampleBatch:
    """Return reference outputs of each run; a sample begins with the state that the file gives.

    Of pushes of frames they are those of the whole model on the sliding window.

    Args:
        oracle: who computes them.
        graph: the model as the frontend read it.
        model: the model file.
        samples: inputs.
        file: name of the model file, for diagnostics.
        seconds: what code of others gets for each sample.

    Raises:
        UsageError: the oracle is not built yet.
        ToolError: the oracle is not installed, refuses the model, crashes on it, or does not end.
    """
    check_oracle(oracle)
    if graph.stream is not None:
        # Of pushes nobody but microtir knows: the reference is the whole model on each window.
        whole, on_windows = graph.stream.whole, _on_windows(graph.stream, samples)
        outputs = expected_outputs(oracle, whole, model, on_windows, file=file, seconds=seconds)
        return replace(outputs, steps=samples.steps)
    if oracle is Oracle.TFLM:
        return _tflm(graph, model, samples, file or graph.name, seconds)
    results = (o for runs in samples.samples() for o in reference.execute_steps(graph, runs))
    return replace(samples, values=tuple(results))


def _on_windows(stream: Stream, samples: SampleBatch) -> SampleBatch:
    """Return what the whole model is given instead of pushes, each a sample of its own."""
    name = stream.input.name
    values = tuple(
        {**run, name: window}
        for runs in samples.samples()
        for run, window in zip(
            runs, windows(stream.input, stream.axis, [run[name] for run in runs]), strict=True
        )
    )
    return replace(samples, values=values, steps=None)


def _tflm(
    graph: Graph, model: bytes, samples: SampleBatch, where: str, seconds: float
) -> SampleBatch:
    """Have tflite-micro run the samples in a process of its own."""
    of_each = samples.steps or 1
    with tempfile.TemporaryDirectory(prefix="microtir-") as name:
        folder = Path(name)
        (folder / tflm_process.MODEL).write_bytes(model)
        arrays = {
            tflm_process.key(run, index): inputs[tensor.name]
            for run, inputs in enumerate(samples.values)
            for index, tensor in enumerate(graph.arguments)
        }
        kept_for = of_each if graph.states else 0
        counts = np.array([len(samples), len(graph.arguments), len(graph.results), kept_for])
        tflm_process.save(folder / tflm_process.INPUTS, {"counts": counts, **arrays})
        run_in_child(
            "microtir.host.tflm_process",
            folder,
            "the oracle 'tflm' (tflite-micro)",
            where,
            "nothing was compared; give it more time with --oracle-timeout, use --oracle "
            "reference, or a file: --golden FILE.npz",
            timeout=seconds * -(-len(samples) // of_each),
        )
        with np.load(folder / tflm_process.OUTPUTS) as stored:
            outputs = tuple(
                {
                    tensor.name: stored[tflm_process.key(run, index)]
                    for index, tensor in enumerate(graph.results)
                }
                for run in range(len(samples))
            )
    return replace(samples, values=outputs)
