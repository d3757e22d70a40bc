"""Connects with a program that serves: by the streams of an emulator, or a serial port."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Sequence
from typing import Any, Protocol

from microtir.boards.errors import EmulatorError, MissingToolError, ProjectError
from microtir.support.processes import Child
from microtir.support.resources import install_extra

DEFAULT_BAUD = 115200

_CHUNK = 65536


class LinkClosedError(Exception):
    """The other end has gone; whoever uses the link says what was being done."""


class Link(Protocol):
    """A line that bytes go over in both directions."""

    @property
    def name(self) -> str:
        """Return what the line leads to, for messages."""

    def write(self, data: bytes) -> None:
        """Send bytes; LinkClosedError if nobody takes them."""

    def read(self, timeout: float) -> bytes:
        """Return the bytes that came within `timeout` seconds, perhaps none; LinkClosedError."""

    def close(self) -> int | None:
        """Give the line up; the exit status of a process at the other end that has ended."""


class ProcessLink:
    """Standard input and output of a process that is started here.

    Raises:
        EmulatorError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.name = command[0]
        try:
            self._child = Child(command, has_input=True)
        except OSError as error:
            raise EmulatorError(f"cannot be started: {error.strerror}", where=self.name) from None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    @property
    def _output(self) -> int:
        assert self._child.process.stdout is not None
        return self._child.process.stdout.fileno()

    def write(self, data: bytes) -> None:
        assert self._child.process.stdin is not None
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._child.process.stdin.fileno(), view) :]
        except OSError:
            raise LinkClosedError("the other end closed the connection") from None

    def read(self, timeout: float) -> bytes:
        if not self._selector.select(timeout):
            return b""
        data = os.read(self._output, _CHUNK)
        if not data:
            raise LinkClosedError("the other end closed the connection")
        return data

    def close(self) -> int | None:
        self._selector.close()
        process = self._child.process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            return process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._child.end()


class SerialLink:
    """A serial port of this machine.

    Raises:
        MissingToolError: pyserial is not installed.
        ProjectError: the port is not there, or may not be opened.
    """

    def __init__(self, port: str, baud: int) -> None:
        self.name = port
        try:
            import serial
        except ImportError:
            raise MissingToolError(
                "pyserial is not installed", where="serial port", fix=install_extra("serial")
            ) from None
        try:
            self._port: Any = serial.Serial(port, baud, timeout=0, write_timeout=10)
        except (serial.SerialException, OSError, ValueError) as error:
            raise ProjectError(
                f"the serial port cannot be opened: {_reason(error)}",
                where=port,
                legal=", ".join(_ports()) or "there is no serial port on this machine",
                fix="connect the board, and check that you may use the port (group dialout)",
            ) from None
        self._port.reset_input_buffer()

    def write(self, data: bytes) -> None:
        import serial

        try:
            self._port.write(data)
        except (serial.SerialException, OSError):
            raise LinkClosedError("the other end closed the connection") from None

    def read(self, timeout: float) -> bytes:
        import serial

        self._port.timeout = timeout
        try:
            first = bytes(self._port.read(1))
            return first + bytes(self._port.read(self._port.in_waiting)) if first else b""
        except (serial.SerialException, OSError):
            raise LinkClosedError("the other end closed the connection") from None

    def close(self) -> int | None:
        self._port.close()
        return None


def _ports() -> list[str]:
    """Return the serial ports of this machine."""
    from serial.tools import list_ports

    return sorted(port.device for port in list_ports.comports())


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if isinstance(number, int) else str(error)


def find_port(vid: int, pid: int | None) -> str | None:
    """Return the only serial port of a USB device; None if there is none, or several."""
    try:
        from serial.tools import list_ports
    except ImportError:
        return None
    ports = [
        port.device for port in list_ports.comports() if port.vid == vid and pid in (None, port.pid)
    ]
    return ports[0] if len(ports) == 1 else None
