"""Defects of microTVM's projects: D7 to D14, D27."""

from __future__ import annotations

import ast
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, export_model_library_format
from microtir.artifact import Artifact
from microtir.boards.errors import EmulatorError, ProjectError
from microtir.device.link import ProcessLink, SerialLink, find_port
from microtir.device.session import PROTOCOL, DeviceSession, Message
from microtir.device.transport import Decoder, MessageFrame, encode
from microtir.errors import MicrotirError
from microtir.projects import ProjectOptions, generate, load_project
from tests.support.command import Command
from tests.support.small_models import module_of, quantised_graph, tiny_graph

PACKAGE = Path(__file__).parents[2] / "generator" / "microtir"
BOARDS = PACKAGE.parents[1] / "boards"


def built(name: str = "default", *, small: bool = True) -> Artifact:
    """Return a small model."""
    model = tiny_graph() if small else quantised_graph()
    return microtir.build(module_of(model), CompilationConfig(targets="c", module_name=name))


def test_d7_a_closed_line_is_a_diagnostic() -> None:
    """The server raised a name that did not exist where the transport was closed."""
    link = ProcessLink([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(EmulatorError) as caught:
        DeviceSession(link)
    assert isinstance(caught.value, MicrotirError)
    assert "Traceback" not in str(caught.value)


class _Refusing:
    """A program that greets and then refuses everything, with a reason."""

    name = "refusing"

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._answers = b""

    def write(self, data: bytes) -> None:
        for frame in self._decoder.feed(data):
            if frame.type == Message.HELLO:
                hello = struct.pack("<BHB", PROTOCOL, 64, 0)
                self._answers += encode(MessageFrame(frame.sequence, Message.HELLO, hello))
            else:
                self._answers += encode(MessageFrame(frame.sequence, Message.REFUSED, b""))

    def read(self, timeout: float) -> bytes:
        answers, self._answers = self._answers, b""
        return answers

    def close(self) -> int | None:
        return 0


def test_d8_an_error_of_the_other_side_is_not_dropped() -> None:
    """The client computed the server's error and threw it away."""
    model = built().module.model
    assert model is not None
    session = DeviceSession(_Refusing())
    with pytest.raises(MicrotirError, match="the program refuses 'write'"):
        session.run(model, {"x": np.zeros((1, 5), np.int8)})


@pytest.mark.parametrize(
    ("release", "name"), [("3.5", "mps2_an385"), ("3.10", "mps2/an385"), ("4.1", "mps2/an385")]
)
def test_d9_versions_are_no_decimal_numbers(release: str, name: str, tmp_path: Path) -> None:
    """3.10 comes after 3.9: compared as numbers it came before 3.2."""
    generate(built(), "mps2_an385", "zephyr", tmp_path / "p")
    text = (tmp_path / "p" / "CMakeLists.txt").read_text()
    start, end = text.index("if(NOT DEFINED BOARD"), text.index("list(APPEND")
    major, minor = release.split(".")
    (tmp_path / "VERSION").write_text(f"VERSION_MAJOR = {major}\nVERSION_MINOR = {minor}\n")
    (tmp_path / "board.cmake").write_text(f'{text[start:end]}message("board ${{BOARD}}")\n')
    done = subprocess.run(
        ["cmake", "-P", "board.cmake"],
        cwd=tmp_path,
        env={"ZEPHYR_BASE": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.split() == ["board", name]


def test_d10_definitions_are_no_letters(microtir: Command, tmp_path: Path) -> None:
    """A text was iterated: one definition for each of its characters."""
    with pytest.raises(ProjectError, match="the value is the text 'A=1'"):
        ProjectOptions(definitions="A=1")
    path = export_model_library_format(built(), tmp_path / "m.tar")
    words = ("board=mps2_an385", "compile_definitions=-DFIRST=1 SECOND=2")
    made = microtir(
        *("micro", "create-project", tmp_path / "p", path, "zephyr", "--project-option", *words)
    )
    assert (made.status, made.err) == (0, "")
    text = (tmp_path / "p" / "CMakeLists.txt").read_text()
    assert "target_compile_definitions(app PRIVATE FIRST=1 SECOND=2)" in text


def test_d11_flashing_needs_no_serial_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every flash of a board of Nordic's without a serial number ended in AttributeError."""
    board, tool, log = tmp_path / "boards" / "mps2_an385", tmp_path / "flasher", tmp_path / "log"
    shutil.copytree(BOARDS / "mps2_an385", board)
    with (board / "board.toml").open("a") as file:
        file.write('\n[flash]\ncommand = ["flasher", "-w", "{program}"]\n')
    tool.write_text(f'#!/bin/sh\necho "$@" > {log}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    project = generate(
        built(), "mps2_an385", "baremetal", tmp_path / "p", board_dirs=[tmp_path / "boards"]
    )
    project.program_path.parent.mkdir()
    project.program_path.write_bytes(b"\x7fELF")
    load_project(tmp_path / "p").flash()
    assert log.read_text().split() == ["-w", project.program or ""]


def _ports(monkeypatch: pytest.MonkeyPatch, *found: tuple[str, int, int]) -> None:
    """Pretend that these serial ports are there."""
    ports = [SimpleNamespace(device=name, vid=vid, pid=pid) for name, vid, pid in found]
    tools, package = ModuleType("serial.tools"), ModuleType("serial")
    setattr(tools, "list_ports", SimpleNamespace(comports=lambda: ports))  # noqa: B010
    setattr(package, "tools", tools)  # noqa: B010
    monkeypatch.setitem(sys.modules, "serial", package)
    monkeypatch.setitem(sys.modules, "serial.tools", tools)


def test_d12_ports_are_found_whatever_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable was unbound where a serial number was given, and messages had no values."""
    _ports(monkeypatch, ("/dev/one", 0x2341, 0x57), ("/dev/two", 0x2341, 0x58))
    assert find_port(0x2341, 0x58) == "/dev/two"
    assert find_port(0x2341, None) is None  # two of them: the user must say which
    assert find_port(0x1366, None) is None


def test_d13_a_port_is_a_path(tmp_path: Path) -> None:
    """The option was declared a number."""
    path = str(tmp_path / "tty")
    with pytest.raises(MicrotirError) as caught:
        SerialLink(path, 115200)
    assert path in str(caught.value) or "pyserial" in str(caught.value)


def test_d14_models_share_their_workspace(tmp_path: Path) -> None:
    """The workspace of a project was the sum over its models; they run one after another."""
    both = [built("first", small=False), built("second", small=False)]
    memories = [memory for a in both if (memory := a.metadata.memory) is not None]
    largest = max(memory.workspace_size for memory in memories)
    program = generate(both, "host", "baremetal", tmp_path / "p").build()
    listed = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True)
    [size] = re.findall(r"^\w+ (\w+) b workspace$", listed.stdout, re.MULTILINE)
    assert largest <= int(size, 16) < largest + 8


def test_d27_nothing_of_an_archive_or_template_is_executed_or_escapes(tmp_path: Path) -> None:
    """A script of a template was run, and archives were unpacked wherever they pointed."""
    unpacking = {"extractall", "extract", "unpack_archive"}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        if not any(name in text for name in unpacking):
            continue  # parsing all takes seconds
        calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
        names = {n.func.attr for n in calls if isinstance(n.func, ast.Attribute)}
        assert not names & unpacking, path
    script = tmp_path / "templates" / "baremetal" / "launch_microtvm_api_server.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    generate(built(), "host", "baremetal", tmp_path / "p", template_dir=tmp_path / "templates")
    assert not (tmp_path / "ran").exists()
