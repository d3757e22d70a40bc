"""Talking to a program that serves (templates/projects/server): inputs, runs, outputs, figures.

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
from types import TracebackType

import numpy as np

from microtir.ir_module import ModelInfo, Port
from microtir.project.errors import EmulatorError
from microtir.project.link import Link, LinkClosedError
from microtir.project.options import Array
from microtir.project.transport import Decoder, Frame, encode

PROTOCOL = 1

RUN_TIMEOUT = 300.0  # seconds of one inference

_HELLO_TIMEOUT, _HELLO_ATTEMPTS = 0.25, 40  # a program that is starting yet hears nothing
_ANSWER_TIMEOUT, _ATTEMPTS = 2.0, 5  # seconds until a request is sent again, and how often

_SHOWN_CHARACTERS = 2000


class Message(IntEnum):
    """Types of frames; server.h says what each carries."""

    HELLO = 1
    MODEL = 2
    WRITE = 3
    RUN = 4
    READ = 5
    LAYERS = 6
    END = 7
    REFUSED = 127


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What the program says about one of its models."""

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


class Session:
    """A conversation with a program that serves.

    Args:
        link: the line; the session closes it.
        run_timeout: seconds that one inference may take.

    Raises:
        EmulatorError: nobody answers, or something else than the program of this version.
    """

    def __init__(self, link: Link, run_timeout: float = RUN_TIMEOUT) -> None:
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

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            data = np.ascontiguousarray(inputs[port.name]).tobytes()
            step = self._payload - 6
            for offset in range(0, len(data), step):
                head = struct.pack("<BBI", number, index, offset)
                self._ask(Message.WRITE, head + data[offset : offset + step])
        # A request for a run that was lost is not noticed before the run would have ended, so that
        # it is repeated meanwhile: a program that runs already does not run twice.
        wait = min(self._run_timeout, _ANSWER_TIMEOUT)
        attempts = math.ceil(self._run_timeout / wait)
        answer = self._ask(Message.RUN, bytes((number,)), wait, attempts)
        status, ticks = struct.unpack("<iI", answer)
        outputs = {}
        if status == 0:
            for index, port in enumerate(model.outputs):
                outputs[port.name] = self._read(number, index, port)
        return RemoteRun(status, outputs, ticks, self._layer_ticks(number))

    def _read(self, number: int, index: int, port: Port) -> Array:
        parts = []
        for offset in range(0, port.type.bytes, self._payload):
            count = min(self._payload, port.type.bytes - offset)
            request = struct.pack("<BBIH", number, index, offset, count)
            parts.append(self._ask(Message.READ, request))
        values = np.frombuffer(b"".join(parts), dtype=np.dtype(port.type.dtype.value))
        return values.reshape(port.type.shape)

    def _layer_ticks(self, number: int) -> tuple[int, ...]:
        found: list[int] = []
        step = self._payload // 4
        layers = self.models[number].layers
        for first in range(0, layers, step):
            count = min(step, layers - first)
            answer = self._ask(Message.LAYERS, struct.pack("<BHH", number, first, count))
            found += struct.unpack(f"<{count}I", answer)
        return tuple(found)

    def _start(self) -> tuple[RemoteModel, ...]:
        """Says hello until the program answers: it may be starting still."""
        hello = self._ask(Message.HELLO, b"", _HELLO_TIMEOUT, _HELLO_ATTEMPTS)
        protocol, self._payload, count = struct.unpack("<BHB", hello)
        if protocol != PROTOCOL:
            raise EmulatorError(
                f"the program speaks version {protocol} of the protocol",
                where=self._link.name,
                legal=f"version {PROTOCOL}",
                fix="generate, build and flash it again",
            )
        return tuple(self._model(number) for number in range(count))

    def _model(self, number: int) -> RemoteModel:
        answer = self._ask(Message.MODEL, bytes((number,)))
        inputs, outputs, layers = struct.unpack("<BBH", answer[:4])
        return RemoteModel(answer[4:].decode("ascii", "replace"), inputs, outputs, layers)

    def _ask(
        self,
        message: Message,
        payload: bytes,
        timeout: float = _ANSWER_TIMEOUT,
        attempts: int = _ATTEMPTS,
    ) -> bytes:
        """The answer to a request, which is repeated if none comes in `timeout` seconds."""
        self._sequence = (self._sequence + 1) % 256
        request = encode(Frame(self._sequence, message, payload))
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
            fix="see that the program on the board is the one that was generated to serve",
        )


def check_models(session: Session, names: Sequence[str]) -> None:
    """Refuse a program with other models.

    Raises:
        EmulatorError: says which it has.
    """
    found = [model.name for model in session.models]
    if found != list(names):
        raise EmulatorError(
            f"the program on the board has the models {', '.join(found) or 'none'}",
            where="session",
            legal=", ".join(names),
            fix="flash the project again",
        )
