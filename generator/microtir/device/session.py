"""Talks to a program that serves (templates/projects/server): inputs, runs, outputs, figures.

A run may go step by step: it then waits behind every layer, whose output can be read meanwhile.

Each request waits for its answer. A request that was not answered in time is sent again with the
same sequence number; the program does not do it again then, it repeats its answer. So bytes that a
line loses cost time and nothing else.
"""

from __future__ import annotations

import contextlib
import math
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from microtir.artifact import Metadata, NodeTensor
from microtir.boards.errors import EmulatorError
from microtir.device.link import Link, LinkClosedError
from microtir.device.transport import PAYLOAD_MAX, Decoder, MessageFrame, encode
from microtir.module.ir_module import ModelInfo
from microtir.support.arrays import Array

PROTOCOL = 2

RUN_TIMEOUT = 300.0  # seconds of one inference

_HELLO_TIMEOUT, _HELLO_ATTEMPTS = 0.25, 40  # a program that is starting yet hears nothing
_ANSWER_TIMEOUT, _ATTEMPTS = 2.0, 5  # seconds until a request is sent again, and how often

_WRITE_HEAD = 6  # bytes of a request to write, before the data
_LEAST_PAYLOAD = _WRITE_HEAD + 4  # what a program must take in a frame

_SHOWN_CHARACTERS = 2000


class Message(IntEnum):
    """The type of a frame; server.h says what each carries."""

    HELLO = 1
    MODEL = 2
    WRITE = 3
    RUN = 4
    READ = 5
    LAYERS = 6
    END = 7
    STEP = 8
    PEEK = 9
    BEGIN = 10
    REFUSED = 127


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model of a program, as the program describes it."""

    name: str
    inputs: int
    outputs: int
    layers: int


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """One inference on the board.

    Args:
        status: what the model's run function returned; 0 is success.
        outputs: by the model's names; empty if it failed.
        ticks: of the board's clock, for the whole inference.
        layer_ticks: by layer, in the order of the metadata; they are shares, the clock's rate is
            the board's own.
    """

    status: int
    outputs: Mapping[str, Array]
    ticks: int
    layer_ticks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that waits behind a layer, of which the rows [first, last) of an output are there."""

    layer: int  # in the order of the metadata
    output: int
    first: int
    last: int


class DeviceSession:
    """A conversation with a program that serves.

    Args:
        link: the line; the session closes it.
        run_timeout: seconds that one inference may take.
        metadata: what is known of the program's models, in their order.

    Raises:
        EmulatorError: nobody answers, or something else than the program of this version.
    """

    def __init__(
        self,
        link: Link,
        run_timeout: float = RUN_TIMEOUT,
        metadata: Sequence[Metadata] = (),
    ) -> None:
        self.metadata = tuple(metadata)
        self._link = link
        self._run_timeout = run_timeout
        self._decoder = Decoder()
        self._sequence = 0
        self._payload = 0
        try:
            self.models = self._start()
        except BaseException:
            link.close()
            raise

    def __enter__(self) -> DeviceSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind is None:
            self.end()
        else:
            self._link.close()

    def end(self) -> int | None:
        """End the program and close the line; gives the exit status of an emulator."""
        try:
            self._ask(Message.END, b"\0")
        finally:
            status = self._link.close()
        return status

    def run(self, model: ModelInfo, inputs: Mapping[str, Array], number: int = 0) -> RemoteRun:
        """Run a model once.

        Args:
            model: its ports.
            inputs: arrays by the model's names, of the ports' types and shapes.
            number: of the model in the program.

        Raises:
            EmulatorError: the program does not answer, or refuses: it has another model.
        """
        for index, port in enumerate(model.inputs):
            self.write(number, index, np.ascontiguousarray(inputs[port.name]).tobytes())
        status, ticks = self.start(number)
        outputs = {}
        if status == 0:
            for index, port in enumerate(model.outputs):
                values = np.frombuffer(
                    self.read(number, index, port.type.bytes), np.dtype(port.type.dtype.value)
                )
                outputs[port.name] = values.reshape(port.type.shape)
        return RemoteRun(status, outputs, ticks, self._layer_ticks(number))

    def layer_tensors(
        self, model: ModelInfo, inputs: Mapping[str, Array], number: int = 0
    ) -> dict[int, tuple[NodeTensor, ...]]:
        """Run a model layer by layer and take what each wrote, by its number.

        Raises:
            EmulatorError: the program does not answer, or refuses.
        """
        for index, port in enumerate(model.inputs):
            self.write(number, index, np.ascontiguousarray(inputs[port.name]).tobytes())
        layers = self.metadata[number].layers
        rows: dict[tuple[int, int], dict[int, bytes]] = {}
        while not isinstance(waits := self.step(number), int):
            facts = layers[waits.layer].outputs[waits.output]
            size = facts.row_elements * np.dtype(facts.dtype).itemsize
            memory = self.peek(number, facts.rows * size)
            written = rows.setdefault((waits.layer, waits.output), {})
            for row in range(waits.first, waits.last):
                start = row % facts.rows * size
                written[row] = memory[start : start + size]
        return {
            layer: tuple(
                NodeTensor(facts.dtype, b"".join(v for _, v in sorted(rows[layer, i].items())))
                for i, facts in enumerate(layers[layer].outputs)
                if (layer, i) in rows
            )
            for layer in range(len(layers))
        }

    def write(self, number: int, index: int, data: bytes) -> None:
        """Fill an input of a model; EmulatorError if there is none of this size."""
        step = self._payload - _WRITE_HEAD
        for offset in range(0, len(data), step):
            head = struct.pack("<BBI", number, index, offset)
            self._ask(Message.WRITE, head + data[offset : offset + step])

    def begin(self, number: int) -> None:
        """Make a model forget what it keeps from one run to the next.

        Raises:
            EmulatorError: the program does not answer, or refuses: the model keeps nothing.
        """
        (status,) = self._fields("<i", self._ask(Message.BEGIN, bytes((number,))))
        if status != 0:
            raise self._problem(f"the state of model {number} was refused with status {status}")

    def start(self, number: int) -> tuple[int, int]:
        """Run a model; gives what its run function returned, and the ticks that it took."""
        status, ticks = self._fields("<iI", self._ask_to_run(Message.RUN, number))
        return status, ticks

    def read(self, number: int, index: int, size: int) -> bytes:
        """Read the bytes of an output of a model."""
        return self._parts(Message.READ, bytes((number, index)), size)

    def step(self, number: int) -> Waiting | int:
        """Run a model up to the end of its next layer, or to its end.

        Returns:
            Where it waits, or what its run function returned.

        Raises:
            EmulatorError: the program does not answer, or refuses.
        """
        answer = self._ask_to_run(Message.STEP, number)
        if answer[:1] == b"\0":
            (status,) = self._fields("<i", answer[1:])
            return status
        return Waiting(*self._fields("<HBii", answer[1:]))

    def peek(self, number: int, size: int) -> bytes:
        """Read the first bytes of the output of the layer behind which a run waits."""
        return self._parts(Message.PEEK, bytes((number,)), size)

    def _ask_to_run(self, message: Message, number: int) -> bytes:
        # A request for a run that was lost is not noticed before the run would have ended, so that
        # it is repeated meanwhile: a program that runs already does not run twice.
        wait = min(self._run_timeout, _ANSWER_TIMEOUT)
        attempts = math.ceil(self._run_timeout / wait)
        return self._ask(message, bytes((number,)), wait, attempts)

    def _parts(self, message: Message, head: bytes, size: int) -> bytes:
        """Read so many bytes in as many requests as it takes."""
        parts = []
        for offset in range(0, size, self._payload):
            count = min(self._payload, size - offset)
            parts.append(self._ask(message, head + struct.pack("<IH", offset, count)))
        return b"".join(parts)

    def _layer_ticks(self, number: int) -> tuple[int, ...]:
        ticks: list[int] = []
        step = self._payload // 4
        layers = self.models[number].layers
        for first in range(0, layers, step):
            count = min(step, layers - first)
            answer = self._ask(Message.LAYERS, struct.pack("<BHH", number, first, count))
            ticks += self._fields(f"<{count}I", answer)
        return tuple(ticks)

    def _start(self) -> tuple[RemoteModel, ...]:
        """Say hello until the program answers: it may be starting still."""
        hello = self._ask(Message.HELLO, b"", _HELLO_TIMEOUT, _HELLO_ATTEMPTS)
        if hello[:1] != bytes((PROTOCOL,)):
            protocol = hello[0] if hello else "none"
            raise EmulatorError(
                f"the program uses version {protocol} of the protocol",
                where=self._link.name,
                legal=f"version {PROTOCOL}",
                fix="generate, build and flash the project again",
            )
        _, self._payload, count = self._fields("<BHB", hello)
        if not _LEAST_PAYLOAD <= self._payload <= PAYLOAD_MAX:
            raise self._problem(f"the program accepts frames of {self._payload} bytes")
        return tuple(self._model(number) for number in range(count))

    def _model(self, number: int) -> RemoteModel:
        answer = self._ask(Message.MODEL, bytes((number,)))
        inputs, outputs, layers = self._fields("<BBH", answer[:4])
        return RemoteModel(answer[4:].decode("ascii", "replace"), inputs, outputs, layers)

    def _fields(self, form: str, answer: bytes) -> tuple[int, ...]:
        """Return the numbers of an answer; EmulatorError if its length is wrong."""
        if len(answer) != struct.calcsize(form):
            raise self._problem(f"an answer has {len(answer)} bytes, not {struct.calcsize(form)}")
        return struct.unpack(form, answer)

    def _ask(
        self,
        message: Message,
        payload: bytes,
        timeout: float = _ANSWER_TIMEOUT,
        attempts: int = _ATTEMPTS,
    ) -> bytes:
        """Ask, again if none comes within `timeout` seconds, and return the answer."""
        self._sequence = (self._sequence + 1) % 256
        request = encode(MessageFrame(self._sequence, message, payload))
        for _ in range(attempts):
            answer = self._answer(request, message, timeout)
            if answer is not None:
                return answer
        raise self._problem(
            f"no answer to '{message.name.lower()}' in {timeout * attempts:g} seconds"
        )

    def _answer(self, request: bytes, message: Message, timeout: float) -> bytes | None:
        end = time.monotonic() + timeout
        try:
            self._link.write(request)
            while (left := end - time.monotonic()) > 0:
                for frame in self._decoder.feed(self._link.read(left)):
                    if frame.sequence != self._sequence:
                        continue  # the answer to a request that was answered before
                    if frame.type == Message.REFUSED:
                        raise self._problem(f"the program refuses '{message.name.lower()}'")
                    if frame.type == message:
                        return frame.payload
        except LinkClosedError:
            self._drain()
            raise self._problem("the program has ended") from None
        return None

    def _drain(self) -> None:
        """Take what a program that has ended had still printed."""
        with contextlib.suppress(LinkClosedError):
            while data := self._link.read(0.1):
                self._decoder.feed(data)

    def _problem(self, what: str) -> EmulatorError:
        text = self._decoder.text[-_SHOWN_CHARACTERS:]
        return EmulatorError(
            f"{what}; its last output:\n{text}" if text.strip() else f"{what} and printed nothing",
            where=self._link.name,
            fix="check that the board runs a program that was generated as a server",
        )


def check_models(session: DeviceSession, names: Sequence[str]) -> None:
    """Refuse a program with other models.

    Raises:
        EmulatorError: says which it has.
    """
    names_there = [model.name for model in session.models]
    if names_there != list(names):
        raise EmulatorError(
            f"the program on the board has the models {', '.join(names_there) or 'none'}",
            where="session",
            legal=", ".join(names),
            fix="flash the project again",
        )
