"""Programs that microtir starts end when it does, whatever ends it."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from microtir.boards.errors import BuildError
from microtir.device.emulate import run_program
from microtir.projects.build import run_build
from microtir.support import processes
from tests.layering.source import PACKAGE
from tests.support.network import python_path

ROOT = PACKAGE.parent
# A program with a helper; both write their number into a file.
SCRIPT = "echo $$ >> {0}; sh -c 'echo $$ >> {0}; sleep 60' & sleep 60"
STARTS = {
    "run": "from microtir.support import processes; processes.run({0!r}, timeout=60)",
    "emulator": "from microtir.device.emulate import run_program; run_program({0!r}, 60)",
    "link": "from microtir.device.link import ProcessLink; ProcessLink({0!r}).read(60)",
    "build": "from pathlib import Path; from microtir.projects.build import run_build; "
    "run_build({0!r}, Path('/'))",
    "from a thread": "import threading, time; from microtir.support.processes import Child; "
    "t = threading.Thread(target=Child, args=({0!r},)); t.start(); t.join(); time.sleep(60)",
}


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether a condition holds within some seconds."""
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def is_alive(number: int) -> bool:
    """Whether a process runs; one that waits to be buried does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Tests that run with nohup, or behind an ampersand, have these ignored, and so have children.
HEARD = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT], ids=lambda s: s.name
)
@pytest.mark.parametrize("start", STARTS)
def test_children_end_with_their_parent(tmp_path: Path, start: str, number: int) -> None:
    """SIGTERM left QEMU running: nothing that was started is left, helpers included."""
    file = tmp_path / "numbers"
    code = HEARD + STARTS[start].format(["/bin/sh", "-c", SCRIPT.format(file)])
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert wait_for(lambda: file.exists() and len(file.read_text().split()) == 2)
    numbers = list(map(int, file.read_text().split()))
    assert all(map(is_alive, numbers))
    parent.send_signal(number)
    parent.wait(30)
    assert wait_for(lambda: not any(map(is_alive, numbers)))


def test_helpers_of_a_build_that_takes_too_long_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a time-out `make` alone was killed, and the compilers that it had started went on."""
    file = tmp_path / "numbers"
    with pytest.raises(TimeoutError, match=r"'/bin/sh' did not end in 0\.5 seconds"):
        processes.run(["/bin/sh", "-c", SCRIPT.format(file)], timeout=0.5)
    numbers = list(map(int, file.read_text().split()))
    assert len(numbers) == 2 and wait_for(lambda: not any(map(is_alive, numbers)))
    monkeypatch.setattr("microtir.projects.build.TIMEOUT", 0.2)
    with pytest.raises(BuildError, match="took over"):
        run_build(["/bin/sh", "-c", "sleep 60"], tmp_path)


def test_a_program_does_not_begin_before_it_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal between the start of a program and that of its watcher left it alone."""
    start, mark = subprocess.Popen, tmp_path / "begun"

    def interrupted(command: list[str], **options: object) -> object:
        if mark.name not in " ".join(command):
            time.sleep(0.5)
            raise KeyboardInterrupt
        return start(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processes.Child(["/bin/sh", "-c", f"touch {mark}"])
    assert not mark.exists()


def test_streams_and_status_come_back(tmp_path: Path) -> None:
    """Output and errors apart or together, any bytes, the folder and the environment."""
    script = ["/bin/sh", "-c", "printf 'a\\r\\n\\377'; echo $X >&2; pwd; exit 7"]
    done = processes.run(script, timeout=60, cwd=tmp_path, env={"X": "b"})
    assert (done.returncode, done.stdout, done.stderr) == (7, f"a\n\ufffd{tmp_path}\n", "b\n")
    assert "b\n" in processes.run(script, timeout=60, env={"X": "b"}, merged=True).stdout
    with pytest.raises(OSError, match="No such file"):
        processes.run([str(tmp_path / "missing")], timeout=60)


def test_what_a_program_leaves_behind_lives(tmp_path: Path) -> None:
    """A program that ends by itself may leave a server behind, as compilers' caches do."""
    done = processes.run(["/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], timeout=30)
    server = int(done.stdout)
    try:
        assert is_alive(server)
    finally:
        os.kill(server, signal.SIGKILL)
    assert run_program(["/bin/true"]).status == 0


def test_programs_are_started_in_one_place() -> None:
    """Whatever starts a program another way forgets that it must end."""
    starts = {"subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_output",
              "subprocess.check_call", "os.system", "os.popen", "os.fork"}  # fmt: skip
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in (path.read_text("utf-8"),)
        if any(name in text for name in starts)  # parsing all takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in starts
    ]
    assert {place.split(":")[0] for place in found} == {"support/system.py"}, found
