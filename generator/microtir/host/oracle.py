"""Computes reference outputs with something else than the C, where no file has them."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType

import numpy as np

from microtir.errors import ToolError, UsageError
from microtir.graph.ir import Array, Graph, Stream
from microtir.host import oracle_process, runtimes
from microtir.host.child_process import run_in_child
from microtir.host.oracle_process import Request
from microtir.host.samples import SampleBatch
from microtir.rewrite import reference
from microtir.rewrite.requests.streaming import windows
from microtir.support.resources import install_extra


class Oracle(Enum):
    """An implementation that computes reference outputs."""

    REFERENCE = "reference"  # microtir's own numpy semantics of the graph
    TFLM = runtimes.TFLM
    LITERT = runtimes.LITERT
    ONNXRUNTIME = runtimes.ONNXRUNTIME


@dataclass(frozen=True, slots=True)
class _Foreign:
    """An oracle of others.

    Attributes:
        title: what a verdict calls it, with what it computes by.
        package: what pip installs; it is imported by `module`.
        module: its Python name.
        takes: the format of its models.
        remark: on installing it.
        hands_on: whether it gives a run what outputs of the run before were.
    """

    title: str
    package: str
    module: str
    takes: str
    remark: str = ""
    hands_on: bool = False


_TFLITE, _ONNX = "TFLite", "ONNX"
_FOREIGN: Mapping[Oracle, _Foreign] = MappingProxyType({
    Oracle.TFLM: _Foreign(
        "tflite-micro", "tflite-micro", "tflite_micro", _TFLITE, " (Linux on x86-64)"
    ),
    Oracle.LITERT: _Foreign(
        "LiteRT's reference kernels", "ai-edge-litert", "ai_edge_litert", _TFLITE
    ),
    Oracle.ONNXRUNTIME: _Foreign(
        "onnxruntime without graph optimisations", "onnxruntime", "onnxruntime", _ONNX,
        hands_on=True,
    ),
})  # fmt: skip

_OTHERS = "use --oracle reference, or a file: --golden FILE.npz"

SAMPLE_SECONDS = 60.0
"""Longest time that an oracle may take for a sample, which may be a sequence of runs."""


def title_of(oracle: Oracle) -> str:
    """Return what a verdict calls an oracle."""
    foreign = _FOREIGN.get(oracle)
    return "microtir's numpy reference" if foreign is None else foreign.title


def hands_on_outputs(oracle: Oracle) -> bool:
    """Return whether an oracle runs models whose states are inputs and outputs of the file."""
    foreign = _FOREIGN.get(oracle)
    return foreign is None or foreign.hands_on


def check_oracle(oracle: Oracle) -> None:
    """Refuse an oracle that is not installed, before anything costly is done.

    Raises:
        ToolError: it needs a package that is not installed.
    """
    foreign = _FOREIGN.get(oracle)
    # Not imported: it is code of others, which runs in a process of its own.
    if foreign is not None and importlib.util.find_spec(foreign.module) is None:
        raise ToolError(
            f"the oracle '{oracle.value}' needs the package {foreign.package}, which is not"
            " installed",
            where="--oracle",
            fix=f"{install_extra('test')}{foreign.remark}, or use --oracle reference",
        )


def check_format(oracle: Oracle, file: str, own: str) -> None:
    """Refuse an oracle that reads files of another format.

    Args:
        oracle: that is asked for.
        file: the name of the model.
        own: its format, as in "ONNX".

    Raises:
        UsageError: says which oracles read the file.
    """
    foreign = _FOREIGN.get(oracle)
    if foreign is None or foreign.takes == own:
        return
    others = [other.value for other, known in _FOREIGN.items() if known.takes == own]
    raise UsageError(
        f"the oracle '{oracle.value}' runs only {foreign.takes} models, but {file} is a model in "
        f"{own}",
        where="--oracle",
        legal=", ".join([Oracle.REFERENCE.value, *others]),
        fix=f"use --oracle {others[0] if others else Oracle.REFERENCE.value}",
    )


def expected_outputs(
    oracle: Oracle,
    graph: Graph,
    model: bytes,
    samples: SampleBatch,
    *,
    file: str = "",
    folder: Path | None = None,
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
        folder: where it lies, with values of a model in ONNX that are in other files.
        seconds: what code of others gets for each sample.

    Raises:
        ToolError: the oracle is not installed, refuses the model, crashes on it, or does not end.
    """
    check_oracle(oracle)
    if graph.stream is not None:
        # Of pushes nobody but microtir knows: the reference is the whole model on each window.
        whole, on_windows = graph.stream.whole, _on_windows(graph.stream, samples)
        outputs = expected_outputs(
            oracle, whole, model, on_windows, file=file, folder=folder, seconds=seconds
        )
        return replace(outputs, steps=samples.steps)
    if oracle in _FOREIGN:
        call = _Call(oracle, file or graph.name, folder, seconds)
        return call.outputs(graph, model, samples)
    return replace(samples, values=tuple(_by_reference(graph, samples)))


def _by_reference(graph: Graph, samples: SampleBatch) -> Iterator[Mapping[str, Array]]:
    for runs in samples.samples():
        yield from reference.execute_steps(graph, runs)


def _with_counts(
    graph: Graph, samples: SampleBatch, values: Iterable[Mapping[str, Array]]
) -> Iterator[Mapping[str, Array]]:
    """Yield outputs of others with how many rows they have, and what the C has behind these.

    Rows that are not in use mean nothing, and only microtir has them: they are the reference's.
    """
    for outputs, own in zip(values, _by_reference(graph, samples), strict=True):
        results = dict(outputs)
        for counted in graph.counted:
            rows = np.moveaxis(own[counted.name].copy(), counted.axis, 0)
            own_rows = np.moveaxis(outputs[counted.name], counted.axis, 0)
            rows[: len(own_rows)] = own_rows[: len(rows)]
            results[counted.name] = np.moveaxis(rows, 0, counted.axis)
            results[counted.count] = np.array([len(own_rows)], np.int32)
        yield results


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


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of an oracle of others, in a process of its own.

    Attributes:
        oracle: who is called.
        where: the model file, for diagnostics.
        folder: of that file.
        seconds: what it gets for each sample.
    """

    oracle: Oracle
    where: str
    folder: Path | None
    seconds: float

    def outputs(self, graph: Graph, model: bytes, samples: SampleBatch) -> SampleBatch:
        """Return what it computes."""
        counts = {counted.count for counted in graph.counted}
        request = Request(
            runtime=self.oracle.value,
            inputs=tuple(graph.file_name(tensor.name) for tensor in graph.arguments),
            outputs=tuple(t.name for t in graph.results if t.name not in counts),
            runs=len(samples),
            steps=(samples.steps or 1) if graph.states else 0,
            folder="" if self.folder is None else str(self.folder.resolve()),
            counted=tuple(graph.file_name(counted.name) for counted in graph.counted),
            states=_handed_on(graph) if hands_on_outputs(self.oracle) else (),
            names={graph.file_name(named.name): named.names for named in graph.named},
        )
        with tempfile.TemporaryDirectory(prefix="microtir-") as name:
            work = Path(name)
            (work / oracle_process.MODEL).write_bytes(model)
            request.write(work)
            arrays = {
                oracle_process.key(run, index): inputs[tensor.name]
                for run, inputs in enumerate(samples.values)
                for index, tensor in enumerate(graph.arguments)
            }
            for state in graph.states[: len(request.states)]:
                arrays[oracle_process.first_key(state.before.name)] = state.initial
            oracle_process.save(work / oracle_process.INPUTS, arrays)
            self._start(work, len(samples) // (samples.steps or 1))
            values = _read_outputs(work, request)
        if graph.counted:
            values = tuple(_with_counts(graph, samples, values))
        return replace(samples, values=values)

    def _start(self, work: Path, samples: int) -> None:
        run_in_child(
            "microtir.host.oracle_process",
            work,
            f"the oracle '{self.oracle.value}' ({title_of(self.oracle)})",
            self.where,
            f"nothing was compared; {_OTHERS}",
            timeout=self.seconds * samples,
            fix_if_slow=f"nothing was compared; give it more time with --oracle-timeout, {_OTHERS}",
        )


def _handed_on(graph: Graph) -> tuple[tuple[str, str], ...]:
    """Return the inputs of the file that are states, each with the output that it becomes."""
    producers = graph.producers()
    return tuple(
        (state.before.name, producers[state.after].inputs[0].name) for state in graph.states
    )


def _read_outputs(work: Path, request: Request) -> tuple[Mapping[str, Array], ...]:
    with np.load(work / oracle_process.OUTPUTS) as stored:
        return tuple(
            {
                title: stored[oracle_process.key(run, index)]
                for index, title in enumerate(request.outputs)
            }
            for run in range(request.runs)
        )
