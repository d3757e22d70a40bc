"""Sessions: over lines that lose and change bytes, with programs that refuse, hang or end."""

from __future__ import annotations

import os
import random
import subprocess
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from microtir.boards import ProjectType
from microtir.boards.errors import EmulatorError, ProjectError
from microtir.device import DeviceSession
from microtir.device import session as session_module
from microtir.device.link import Link, ProcessLink, SerialLink
from microtir.device.session import PROTOCOL, Message, check_models
from microtir.device.transport import Decoder, MessageFrame, encode
from microtir.errors import MicrotirError
from microtir.module.ir_module import ModelInfo
from microtir.projects import Project, ProjectOptions, generate
from tests.support.board_projects import digits, digits_samples


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return the example model as a program of this machine that serves."""
    project = generate(
        digits("c"),
        "host",
        ProjectType.BAREMETAL,
        tmp_path_factory.mktemp("server") / "p",
        options=ProjectOptions(server=True),
    )
    project.build(["CFLAGS=-O1 -Werror -Wconversion -fsanitize=address,undefined"])
    return project


def model() -> ModelInfo:
    """Ports of the example model."""
    info = digits("c").module.model
    assert info is not None
    return info


def layer_count() -> int:
    """Functions of the example model that a program counts as layers."""
    return len(digits("c").metadata.layers)


def check_samples(session: DeviceSession, count: int) -> None:
    """Run samples of the test set and compare every byte."""
    samples = digits_samples(count)
    for image, expected in zip(
        samples.inputs["image"], samples.outputs["probabilities"], strict=True
    ):
        result = session.run(model(), {"image": image.reshape(model().inputs[0].type.shape)})
        assert result.status == 0
        assert np.array_equal(result.outputs["probabilities"].ravel(), expected.ravel())
        assert len(result.layer_ticks) == layer_count()


class BadLine:
    """A line that loses, changes and invents bytes, the same ones every time."""

    def __init__(self, link: Link, rate: float) -> None:
        self.name = link.name
        self._link = link
        self._rate = rate
        self._random = random.Random(3)

    def _damaged(self, data: bytes) -> bytes:
        result = bytearray()
        for byte in data:
            event = self._random.random() / self._rate
            if event < 1:
                result += b"" if event < 0.4 else bytes((byte ^ 0x10,))
            else:
                result.append(byte)
            if self._random.random() < self._rate / 2:
                result += b"\xa5\x5a"[: self._random.randrange(1, 3)]
        return bytes(result)

    def write(self, data: bytes) -> None:
        self._link.write(self._damaged(data))

    def read(self, timeout: float) -> bytes:
        return self._damaged(self._link.read(timeout))

    def close(self) -> int | None:
        return self._link.close()


def test_programs_outputs(server: Project) -> None:
    """Inputs go out, outputs come back, the program ends with status 0."""
    session = server.transport()
    check_models(session, ["digits"])
    check_samples(session, 5)
    assert session.end() == 0


def test_line_that_loses_bytes(server: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests and answers that are damaged are sent again, and no result is wrong."""
    monkeypatch.setattr(session_module, "_ANSWER_TIMEOUT", 0.1)
    monkeypatch.setattr(session_module, "_ATTEMPTS", 60)
    link = BadLine(ProcessLink([str(server.program_path)]), 0.004)
    with DeviceSession(link) as session:
        check_samples(session, 5)


def test_request_is_not_done_twice(server: Project) -> None:
    """The same sequence number again gives the same answer, and the model does not run again."""
    link = ProcessLink([str(server.program_path)])
    decoder = Decoder()

    def ask(frame: MessageFrame) -> MessageFrame:
        link.write(encode(frame))
        while True:
            for found in decoder.feed(link.read(5)):
                return found

    first = ask(MessageFrame(7, Message.RUN, b"\0"))
    assert ask(MessageFrame(7, Message.RUN, b"\0")) == first
    wrong = ask(MessageFrame(8, Message.WRITE, b"\0\0" + (1 << 20).to_bytes(4, "little") + b"x"))
    assert (wrong.type, wrong.payload) == (Message.REFUSED, bytes((Message.WRITE,)))
    for bad in (b"", b"\x05", b"\0\x09\0\0\0\0\x01\0", b"\0\0\0\0\0\0\xff\xff"):
        assert ask(MessageFrame(9 + len(bad), Message.READ, bad)).type == Message.REFUSED
    assert (
        ask(MessageFrame(40, Message.LAYERS, bytes((0, layer_count() - 1, 0, 2, 0)))).type
        == Message.REFUSED
    )
    assert ask(MessageFrame(41, 99)).type == Message.REFUSED
    assert ask(MessageFrame(42, Message.END, b"\x03")).type == Message.END
    assert link.close() == 3


def test_program_that_ends() -> None:
    """A program that ends instead of answering: its output is shown."""
    with pytest.raises(EmulatorError, match=r"has ended(.|\n)*fault: the stack is too small"):
        DeviceSession(ProcessLink(["sh", "-c", "echo fault: the stack is too small"]))


def test_program_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that never answers is given up, and ended."""
    monkeypatch.setattr(session_module, "_HELLO_ATTEMPTS", 2)
    with pytest.raises(EmulatorError, match=r"no answer to 'hello' in 0.5 seconds and printed"):
        DeviceSession(ProcessLink(["sleep", "100"]))


class Answers:
    """A program that gives one answer to the greeting, whatever it is."""

    name = "answers"

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._pending = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        (asked,) = Decoder().feed(data)
        self._pending += encode(MessageFrame(asked.sequence, asked.type, self._payload))

    def read(self, _timeout: float) -> bytes:
        data, self._pending = self._pending, b""
        return data

    def close(self) -> int | None:
        self.closed = True
        return None


@pytest.mark.parametrize(
    ("greeting", "text"),
    [
        (b"", "uses version none of the protocol"),
        (b"\x07", "uses version 7 of the protocol"),
        (bytes((PROTOCOL,)), "an answer has 1 bytes, not 4"),
        (bytes((PROTOCOL, 0, 1, 1, 0)), "an answer has 5 bytes, not 4"),
        (bytes((PROTOCOL, 6, 0, 1)), "accepts frames of 6 bytes"),
        (bytes((PROTOCOL, 255, 255, 1)), "accepts frames of 65535 bytes"),
    ],
)
def test_malformed_greeting(greeting: bytes, text: str) -> None:
    """A greeting of another length, or that promises nonsense, is a diagnostic; the line closes."""
    line = Answers(greeting)
    with pytest.raises(EmulatorError, match=text):
        DeviceSession(line)
    assert line.closed


def test_emulator_that_is_missing() -> None:
    """A command that cannot be started is a diagnostic."""
    with pytest.raises(EmulatorError, match="cannot be started: No such file"):
        ProcessLink(["./there-is-none"])


def test_another_program(server: Project) -> None:
    """A board with other models on it is refused."""
    with server.transport() as session, pytest.raises(EmulatorError, match="has the models digits"):
        check_models(session, ["kws"])


def test_server_needs_a_serial_port(tmp_path: Path) -> None:
    """Only bare-metal projects with a serial port can serve, and samples are refused."""
    with pytest.raises(ProjectError, match=r"cannot be a server(.|\n)*'baremetal'"):
        generate(digits("c"), "host", "cmake", tmp_path / "p", options=ProjectOptions(server=True))
    with pytest.raises(ProjectError, match="cannot contain samples"):
        ProjectOptions(samples={"digits": digits_samples(1)}, server=True)


@pytest.fixture
def serial_port(server: Project) -> Iterator[str]:
    """Yield a serial port with the program at its other end."""
    master, slave = os.openpty()
    tty.setraw(master)
    tty.setraw(slave)
    process = subprocess.Popen(
        [str(server.program_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None and process.stdout is not None
    ends = ((master, process.stdin.fileno()), (process.stdout.fileno(), master))

    def copy(source: int, sink: int) -> None:
        try:
            while data := os.read(source, 4096):
                os.write(sink, data)
        except OSError:
            pass  # one of the two ends was closed

    threads = [threading.Thread(target=copy, args=end, daemon=True) for end in ends]
    for thread in threads:
        thread.start()
    yield os.ttyname(slave)
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    os.close(slave)
    os.close(master)


def test_serial_port(server: Project, serial_port: str) -> None:
    """The same session over a real serial port of this machine."""
    with server.transport(serial_port) as session:
        check_samples(session, 3)


def test_serial_port_that_is_not_there() -> None:
    """A port that does not exist is one diagnostic with the ports there are."""
    with pytest.raises(ProjectError, match="cannot be opened: No such file") as caught:
        SerialLink("/dev/there-is-none", 115200)
    assert isinstance(caught.value, MicrotirError)
    assert caught.value.fix is not None
