"""Golden files of whole windows, for models that are given them push by push."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from microtir.errors import RunError
from microtir.graph.ir import Array
from microtir.host.samples import SampleBatch, read_golden
from microtir.module.ir_module import ModelInfo, Port, PortKind, StreamInfo


def read_golden_windows(path: Path, model: ModelInfo) -> tuple[SampleBatch, SampleBatch]:
    """Return inputs and expected outputs of pushes from a file of whole windows, or of pushes.

    A sample that is a window becomes the pushes that fill one.  The last one gives what the file
    has; of those before it nothing is expected.

    Raises:
        DataFileError: as for `read_golden`.
        RunError: as for `read_golden`.
    """
    stream = model.stream
    if stream is None:
        return read_golden(path, model)
    ports = tuple(_whole(port, stream) for port in model.ports)
    try:
        inputs, outputs = read_golden(path, replace(model, ports=ports, states=()))
    except RunError:
        return read_golden(path, model)  # pushes, or what its own message is about
    steps = -(-stream.window // stream.frames)
    pushes = tuple(push for window in inputs.values for push in _pushes(window, stream, steps))
    expected = tuple(run for last in outputs.values for run in (*({},) * (steps - 1), last))
    return SampleBatch(pushes, steps=steps), SampleBatch(expected, steps=steps)


def _whole(port: Port, stream: StreamInfo) -> Port:
    """Return a port as the whole model has it."""
    if port.kind is not PortKind.INPUT or port.name != stream.input:
        return port
    shape = list(port.type.shape)
    shape[stream.axis] = stream.window
    return replace(port, type=replace(port.type, shape=tuple(shape)))


def _pushes(
    window: Mapping[str, Array], stream: StreamInfo, steps: int
) -> Iterator[dict[str, Array]]:
    """Yield pushes that fill a window; what is pushed too much has left it at the end."""
    axis, frames = stream.axis, window[stream.input]
    before = frames.take(range(steps * stream.frames - stream.window), axis)
    longer = np.concatenate([before, frames], axis)
    for push in np.split(longer, steps, axis):
        yield {**window, stream.input: np.ascontiguousarray(push)}
