"""Reads what the application prints on a real board's serial port."""

from __future__ import annotations

import time

from microtir.boards.errors import EmulatorError
from microtir.device.link import DEFAULT_BAUD, LinkClosedError, SerialLink
from microtir.device.printed import is_complete
from microtir.projects.project import Project

_SHOWN_CHARACTERS = 2000


def read_console(project: Project, port: str, timeout: float) -> str:
    """Read the lines of one run, from the first model's to the last model's last.

    Args:
        project: whose program is on the board.
        port: the serial port.
        timeout: seconds to wait for the last line; the board must be reset in the meantime.

    Raises:
        ProjectError: the port is not there.
        EmulatorError: the last line did not come; shows what came.
    """
    serial = project.board.serial
    link = SerialLink(port, serial.baud if serial else DEFAULT_BAUD)
    names = [model.name for model in project.models]
    data = b""
    end = time.monotonic() + timeout
    try:
        while (left := end - time.monotonic()) > 0:
            data += link.read(left)
            text = data.decode("utf-8", "replace").replace("\r\n", "\n")
            if is_complete(text, names):
                return _from_start(text, project.models[0].name)
    except LinkClosedError:
        raise EmulatorError("the serial port was disconnected", where=port) from None
    finally:
        link.close()
    shown = data.decode("utf-8", "replace")[-_SHOWN_CHARACTERS:]
    raise EmulatorError(
        f"the program's last line did not arrive in {timeout:g} seconds; the output was:\n{shown}",
        where=port,
        fix="reset the board while microtir waits. Check the wires and the speed of the port",
    )


def _from_start(text: str, first: str) -> str:
    """Return the text without what was on its way when the port was opened."""
    start = text.find(f"{first} sample 0 ")
    return text[max(start, 0) :]
