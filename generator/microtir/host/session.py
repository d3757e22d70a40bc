"""Drives a model on a board from here: inputs, run, outputs, or one layer after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from microtir.artifact import Metadata, logical_rows
from microtir.errors import RunError, UsageError, nearest
from microtir.host.tensors import Array, TensorInfo, matched, ports
from microtir.module.ir_module import PortKind
from microtir.support.arguments import checked_arguments


class Waits(Protocol):
    """A point where a run waits: behind the rows [first, last) of an output of a layer."""

    @property
    def layer(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...


class Transport(Protocol):
    """A line to a program that serves, such as `Project.transport` gives.

    `metadata` describes the program's models, in their order; `number` is a position in it. What
    each function does is said at `microtir.device.session.DeviceSession`.
    """

    @property
    def metadata(self) -> Sequence[Metadata]: ...
    def write(self, number: int, index: int, data: bytes) -> None: ...
    def start(self, number: int) -> tuple[int, int]: ...
    def read(self, number: int, index: int, size: int) -> bytes: ...
    def step(self, number: int) -> Waits | int: ...
    def begin(self, number: int) -> None: ...
    def peek(self, number: int, size: int) -> bytes: ...
    def end(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class LayerStep:
    """The rows [first, last) of a layer's output that a run has just computed.

    A layer that runs row by row is seen several times. `values` are (rows, elements of a row);
    `index` is the operator's position in the model file, `output` counts the tensors that the layer
    writes.
    """

    name: str
    operator: str
    index: int
    function: str
    output: int
    first: int
    last: int
    values: Array


class Session:
    """A conversation with a model of a program that serves; it belongs to one thread.

    Args:
        transport: the line; it is ended with the session.
        model: module name, if the program has several models.

    Raises:
        UsageError: there is no such model, or the transport does not know what it has.
    """

    @checked_arguments
    def __init__(self, transport: Transport, model: str | None = None) -> None:
        self._transport = transport
        self._number = _position(transport.metadata, model)
        self._metadata = transport.metadata[self._number]
        self._given: set[str] = set()
        self._has_outputs = False
        self._waits = False
        self.inputs: tuple[TensorInfo, ...] = ports(self._metadata, PortKind.INPUT)
        self.outputs: tuple[TensorInfo, ...] = ports(self._metadata, PortKind.OUTPUT)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """End the program, and the transport with it."""
        self._transport.end()

    @checked_arguments
    def set_inputs(self, inputs: Mapping[str, Array]) -> None:
        """Fill some or all inputs, which keep their values from run to run.

        Args:
            inputs: arrays by the tensors' names in the model or in C.

        Raises:
            RunError: a name, shape or type does not fit.
        """
        self._let_go()
        wanted = [info for info in self.inputs if inputs.keys() & {*info.names}]
        for info, array in zip(wanted, matched(wanted, inputs), strict=True):
            self._transport.write(self._number, self.inputs.index(info), array.tobytes())
            self._given.add(info.name)

    def run(self) -> int:
        """Run the model once.

        Returns:
            Ticks of the board's clock, whose rate is the board's own.

        Raises:
            RunError: an input was never set, or the model returned an error status.
        """
        self._let_go()
        self._check_inputs()
        status, ticks = self._transport.start(self._number)
        self._finish(status)
        return ticks

    def reset(self) -> None:
        """Forget what runs have left: the next one is as the first.

        A model that keeps nothing from one run to the next needs no such thing.
        """
        self._let_go()
        if self._metadata.state is not None:
            self._transport.begin(self._number)

    def steps(self) -> Iterator[LayerStep]:
        """Run the model, and wait behind every layer while what it computed is looked at.

        A loop that is left early leaves the run waiting; whatever is asked for next lets it run to
        its end first.

        Raises:
            RunError: as for `run`.
        """
        self._let_go()
        self._check_inputs()
        self._has_outputs = False
        while not isinstance(waits := self._transport.step(self._number), int):
            self._waits = True
            yield self._layer_step(waits)
        self._waits = False
        self._finish(waits)

    def get_outputs(self) -> dict[str, Array]:
        """Return all outputs of the last run, as new arrays.

        Raises:
            RunError: there was no run that succeeded.
        """
        return {info.name: self.get_output(info.name) for info in self.outputs}

    @checked_arguments
    def get_output(self, name: str) -> Array:
        """Return an output of the last run, as a new array.

        Raises:
            RunError: there is no such output, or there was no run that succeeded.
        """
        names = [info.name for info in self.outputs]
        if name not in names:
            raise RunError(
                f"there is no output '{name}'", where="Session.get_output",
                legal=", ".join(names), fix=nearest(name, names) or None,
            )  # fmt: skip
        self._let_go()
        if not self._has_outputs:
            raise RunError("the model has not run", where="Session.get_output", fix="run() it")
        info = self.outputs[names.index(name)]
        size = int(np.prod(info.shape, dtype=np.int64)) * info.dtype.itemsize
        data = self._transport.read(self._number, names.index(name), size)
        values: Array = np.frombuffer(data, info.dtype).reshape(info.shape).copy()
        return values

    def _let_go(self) -> None:
        """Let a run that waits go on to its end."""
        while self._waits:
            status = self._transport.step(self._number)
            if isinstance(status, int):
                self._waits, self._has_outputs = False, status == 0

    def _check_inputs(self) -> None:
        missing = [info.name for info in self.inputs if info.name not in self._given]
        if missing:
            raise RunError(
                f"the input '{missing[0]}' was never set", where="Session", fix="use set_inputs"
            )

    def _finish(self, status: int) -> None:
        self._has_outputs = status == 0
        if status != 0:
            raise RunError(
                f"the model returned status {status}; the header of the model explains it",
                where=f"{self._metadata.module_name}_run",
            )

    def _layer_step(self, waits: Waits) -> LayerStep:
        layer = self._metadata.layers[waits.layer]
        facts = layer.outputs[waits.output]
        dtype = np.dtype(facts.dtype)
        shape = facts.rows, facts.row_elements
        data = self._transport.peek(self._number, shape[0] * shape[1] * dtype.itemsize)
        memory = np.frombuffer(data, dtype).reshape(shape)
        # Row y lies in slot y % rows of a ring.
        values = logical_rows(memory[np.arange(waits.first, waits.last) % shape[0]], facts)
        return LayerStep(
            layer.name, layer.operator, layer.index, layer.function,
            waits.output, waits.first, waits.last, values,
        )  # fmt: skip


def _position(models: Sequence[Metadata], name: str | None) -> int:
    names = [metadata.module_name for metadata in models]
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        raise UsageError(
            f"there is no model '{name}'" if name else f"the program has {len(names)} models",
            where="Session(model)",
            legal=", ".join(names) or "none: the transport was made without metadata",
            fix="get the transport from Project.transport()" if not names else None,
        )
    return names.index(name)
