"""A process that is asked to end puts away what it began, and ends what it started."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from microtir.cli import main
from microtir.support import ending, scratch
from microtir.support.ending import ENDINGS, EndRequested, ends_cleanly
from tests.support.command import INT8
from tests.support.network import python_path

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _default_handlers() -> Iterator[None]:
    """Let signals do what they do in a process that nobody has told otherwise."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDINGS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_ends_the_block_and_not_the_process(number: signal.Signals) -> None:
    """Once, even if it is sent twice; afterwards it does what it did."""
    seen = []

    def work() -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(_PATIENCE)
        finally:
            os.kill(os.getpid(), number)
            seen.append(number)

    with pytest.raises(EndRequested) as caught, ends_cleanly():
        work()
    assert seen == [number]
    assert (caught.value.name, caught.value.status) == (number.name, 128 + number)
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_request_after_a_while_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first may have come where an exception is lost."""
    monkeypatch.setattr(ending, "_ONE_REQUEST", 0.0)
    with ends_cleanly():
        for _ in range(2):
            with pytest.raises(EndRequested):
                os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None], ids=["nohup", "own"])
def test_what_others_made_of_a_signal_stays(handler: signal.Handlers) -> None:
    """`nohup` ignores the hang-up, and an application may have a use for it."""
    signal.signal(signal.SIGHUP, handler)
    with ends_cleanly():
        assert signal.getsignal(signal.SIGHUP) is handler
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is handler


def test_another_thread_is_not_told() -> None:
    """Handlers belong to the main thread; the command line works in others, too."""
    done = []

    def work() -> None:
        with ends_cleanly():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


def test_no_folder_is_left_beside_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signal in the last moment before the output is there."""
    out = tmp_path / "out"
    main(["compile", str(INT8), "-o", str(out)])
    before = sorted(tmp_path.rglob("*"))

    def hit(*_: object) -> bool:
        assert len(list(tmp_path.iterdir())) == 2
        os.kill(os.getpid(), signal.SIGTERM)
        return False

    monkeypatch.setattr(scratch, "exchange", hit)
    assert main(["compile", str(INT8), "-o", str(out), "--force", "--optimize", "ram"]) == 143
    assert "ended by SIGTERM" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("number", ENDINGS)
def test_neither_files_nor_compilers_are_left(number: signal.Signals, tmp_path: Path) -> None:
    """A verb that waits for a C compiler; that one has started another program."""
    temporary, begun = tmp_path / "tmp", tmp_path / "begun"
    temporary.mkdir()
    compiler = tmp_path / "cc"
    compiler.write_text(
        f"""#!/bin/sh
[ "$1" = --version ] && echo gcc 12 && exit
: > "$TMPDIR/cc.s"; trap 'rm "$TMPDIR/cc.s"' TERM
sleep 600 & echo $$ $! > {begun}.x
mv {begun}.x {begun}; wait
"""
    )
    compiler.chmod(stat.S_IRWXU)
    environment = {
        **os.environ, "PYTHONPATH": python_path(ROOT / "generator"), "CC": str(compiler),
        "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip
    command = [sys.executable, "-m", "microtir", "verify", str(INT8), "--samples", "1"]
    status, errors = _ended(command, environment, begun, number)
    assert (status, errors.splitlines()[-1]) == (128 + number, f"ended by {number.name}")
    assert list(temporary.iterdir()) == []
    assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()] == []
    assert not any(map(_runs, begun.read_text().split()))


def test_processes_of_a_pool_end_with_their_files(tmp_path: Path) -> None:
    """Those of `fit` and `tune`: the work of minutes is not waited for."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys, tempfile, time
            from pathlib import Path
            from microtir.support.ending import ends_cleanly
            from microtir.support.pool import process_pool

            def work(begun):
                folder = Path(tempfile.mkdtemp())
                (folder / "file").touch()
                Path(begun + ".x").write_text(str(os.getpid()))
                os.rename(begun + ".x", begun)
                time.sleep(600)

            if __name__ == "__main__":
                with ends_cleanly(), process_pool(2) as pool:
                    pool.submit(work, sys.argv[1]).result()
            """
        )
    )
    temporary, begun = tmp_path / "tmp", tmp_path / "begun"
    temporary.mkdir()
    environment = {
        **os.environ, "PYTHONPATH": python_path(ROOT / "generator"), "TMPDIR": str(temporary)
    }  # fmt: skip
    command = [sys.executable, str(script), str(begun)]
    status, _ = _ended(command, environment, begun, signal.SIGTERM)
    assert status == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []
    assert not _runs(begun.read_text())


def _ended(
    command: list[str], environment: dict[str, str], begun: Path, number: signal.Signals
) -> tuple[int, str]:
    """Start a program, send it a signal when it works; returns its status and stderr."""
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        end = time.monotonic() + _PATIENCE
        while not begun.exists():
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        _, errors = process.communicate(timeout=_PATIENCE)
    return process.returncode, errors


def _runs(number: str) -> bool:
    """Return whether a process still runs, after a moment."""
    for _ in range(100):
        try:
            if Path(f"/proc/{number}/stat").read_text("ascii").split()[2] == "Z":
                return False
        except OSError:
            return False
        time.sleep(0.02)
    return True
