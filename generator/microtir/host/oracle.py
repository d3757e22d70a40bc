"""Computes reference outputs with something else than the C, where no file has them."""

from __future__ import annotations

import importlib.util
import tempfile
from enum import Enum
from pathlib import Path

import numpy as np

from microtir.errors import ToolError, UsageError
from microtir.graph import reference
from microtir.graph.ir import Graph
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
    oracle: Oracle, graph: Graph, model: bytes, samples: SampleBatch, *, file: str = ""
) -> SampleBatch:
    """Return reference outputs of each sample.

    Args:
        oracle: who computes them.
        graph: the model as the frontend read it.
        model: the model file.
        samples: inputs.
        file: name of the model file, for diagnostics.

    Raises:
        UsageError: the oracle is not built yet.
        ToolError: the oracle is not installed, refuses the model, or crashes on it.
    """
    check_oracle(oracle)
    if oracle is Oracle.TFLM:
        return _tflm(graph, model, samples, file or graph.name)
    return SampleBatch(tuple(reference.execute(graph, inputs) for inputs in samples.values))


def _tflm(graph: Graph, model: bytes, samples: SampleBatch, where: str) -> SampleBatch:
    """Have tflite-micro run the samples in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="microtir-") as name:
        folder = Path(name)
        (folder / tflm_process.MODEL).write_bytes(model)
        arrays = {
            tflm_process.key(sample, index): inputs[tensor.name]
            for sample, inputs in enumerate(samples.values)
            for index, tensor in enumerate(graph.inputs)
        }
        counts = np.array([len(samples), len(graph.inputs), len(graph.outputs)])
        tflm_process.save(folder / tflm_process.INPUTS, {"counts": counts, **arrays})
        run_in_child(
            "microtir.host.tflm_process",
            folder,
            "the oracle 'tflm' (tflite-micro)",
            where,
            "nothing was compared; use --oracle reference, or a file: --golden FILE.npz",
        )
        with np.load(folder / tflm_process.OUTPUTS) as stored:
            return SampleBatch(
                tuple(
                    {
                        tensor.name: stored[tflm_process.key(sample, index)]
                        for index, tensor in enumerate(graph.outputs)
                    }
                    for sample in range(len(samples))
                )
            )
