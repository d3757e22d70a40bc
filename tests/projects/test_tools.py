"""Compilers, emulators and microtir's own tools: missing, failing, hanging."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from microtir.boards import load_board
from microtir.boards.errors import BoardError, BuildError, EmulatorError, MissingToolError
from microtir.boards.toolchain import check_requirements, compiler_version, symbols
from microtir.device.compiled_tools import Tool, tool_path
from microtir.device.emulate import emulator_command, run_program
from microtir.errors import ExitCode, OutputError
from microtir.projects import generate
from microtir.projects.build import reason, run_build


def _only(folder: Path, monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """Leave only these programs on the PATH."""
    folder.mkdir(exist_ok=True)
    for program in programs:
        (folder / program).write_text("#!/bin/sh\necho nothing\n")
        (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_missing_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cross compiler a build says which package to install."""
    project = generate([], "mps2_an386", "baremetal", tmp_path / "p")
    _only(tmp_path / "bin", monkeypatch, "make")
    with pytest.raises(MissingToolError) as caught:
        project.build()
    assert "arm-none-eabi-gcc is not on this machine" in str(caught.value)
    assert "sudo apt-get install gcc-arm-none-eabi" in str(caught.value)
    assert caught.value.exit_code is ExitCode.ENVIRONMENT


def test_missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cross compiler without its C library says which package has it."""
    _only(tmp_path / "bin", monkeypatch, "riscv64-unknown-elf-gcc")
    with pytest.raises(
        MissingToolError, match=r"does not find picolibc\.specs(.|\n)*install picolibc-riscv64"
    ):
        check_requirements(load_board("riscv32").toolchain)


def test_missing_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build tool is looked for, too."""
    project = generate([], "host", "baremetal", tmp_path / "p")
    _only(tmp_path / "bin", monkeypatch, "gcc")
    with pytest.raises(MissingToolError, match=r"make is not on this machine(.|\n)*install make"):
        project.build()


def test_compiler_in_no_package(tmp_path: Path) -> None:
    """For a toolchain that Debian does not have, its origin is named."""
    with pytest.raises(MissingToolError, match="Espressif's installer"):
        check_requirements(load_board("esp32_devkitc").toolchain)


def test_missing_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the emulator, running says which package to install."""
    _only(tmp_path / "bin", monkeypatch)
    with pytest.raises(MissingToolError, match=r"qemu-system-arm is not(.|\n)*qemu-system-arm"):
        emulator_command(load_board("microbit"), tmp_path / "x.elf")


def test_board_without_emulator(tmp_path: Path) -> None:
    """A real board's program is not run here."""
    with pytest.raises(BoardError, match="'rpi_pico' has no emulator"):
        emulator_command(load_board("rpi_pico"), tmp_path / "x.elf")


def test_tool_that_cannot_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a library of the AVR runner is missing, its package is named with gcc's message."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "bin"
    _only(folder, monkeypatch, "gcc")
    (folder / "gcc").write_text(
        '#!/bin/sh\n[ "$1" = -dumpfullversion ] && exit 0\necho "simavr: not found" >&2\nexit 1\n'
    )
    with pytest.raises(MissingToolError, match=r"simavr: not found(.|\n)*libsimavr-dev libelf-dev"):
        tool_path(Tool.AVR_RUNNER)
    assert list((tmp_path / "cache" / "microtir").iterdir()) == []


def test_tool_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second use finds the file of the first, even without a compiler that works."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tool_path(Tool.QEMU_PROFILER)
    before = path.stat().st_mtime_ns
    assert path.is_relative_to(tmp_path / "microtir")
    assert tool_path(Tool.QEMU_PROFILER) == path
    assert path.stat().st_mtime_ns == before


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder that cannot be made is a diagnostic."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(OutputError, match=r"cannot be written(.|\n)*XDG_CACHE_HOME"):
        tool_path(Tool.QEMU_PROFILER)


def test_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """After the time-out nothing of the program is left, and its last output is shown."""
    mark = tmp_path / "alive"
    script = f"echo last words; (sleep 2; touch {mark}) & sleep 60"
    with pytest.raises(EmulatorError, match=r"did not end in 0\.5 seconds(.|\n)*last words"):
        run_program(["/bin/sh", "-c", script], timeout=0.5)
    with pytest.raises(EmulatorError, match="did not end"):
        run_program(["/bin/sh", "-c", "sleep 60"], timeout=2.5)
    assert not mark.exists()


def test_program_that_does_not_start(tmp_path: Path) -> None:
    """A program that is no program is a diagnostic."""
    with pytest.raises(EmulatorError, match="cannot be started"):
        run_program([str(tmp_path / "missing")])


def test_status_and_output() -> None:
    """Both streams and the exit status come back; line ends are single."""
    result = run_program(["/bin/sh", "-c", "printf 'a\\r\\n'; echo b >&2; exit 7"])
    assert (result.status, sorted(result.output.split())) == (7, ["a", "b"])
    assert "\r" not in result.output


def test_reason_of_a_failed_build() -> None:
    """What went well before the error is left out; its line of context stays."""
    commands = "\n".join(f"gcc -c file{n}.c" for n in range(50))
    error = "x.c: In function 'main':\nx.c:1:2: error: 'y' undeclared\nmake: *** Error 1"
    assert reason(f"{commands}\n{error}\n") == error
    assert reason("line\n" * 100).count("line") == 25
    cmake = "CMake Error at cmake/modules/west.cmake:97 (message):\n  no west workspace"
    after = "-- Configuring incomplete\n" * 30
    assert reason(f"-- Board: x\n{cmake}\n{after}").startswith(f"-- Board: x\n{cmake}\n")


def test_build_that_fails_names_its_folder(tmp_path: Path) -> None:
    """The command, its status and the folder are in the message."""
    with pytest.raises(BuildError) as caught:
        run_build(["/bin/sh", "-c", "echo 'x.c:1: error: bad'; exit 3"], tmp_path)
    assert "status 3:\nx.c:1: error: bad" in str(caught.value)
    assert f"run the command again in {tmp_path}" in str(caught.value)
    with pytest.raises(BuildError, match="cannot be started"):
        run_build([str(tmp_path / "missing")], tmp_path)


def test_a_compiler_that_fails(tmp_path: Path) -> None:
    """The status and what the tool said are told, and the command to look at."""
    broken = tmp_path / "gcc"
    broken.write_text("#!/bin/sh\necho 'no licence' >&2\nexit 4\n")
    broken.chmod(0o755)
    toolchain = replace(load_board("host").toolchain, prefix=f"{tmp_path}/")
    with pytest.raises(MissingToolError, match="does not work: status 4: no licence") as caught:
        compiler_version(toolchain)
    assert f"find out why `{broken} --version` fails" in str(caught.value)


def test_symbols_and_version(tmp_path: Path) -> None:
    """The compiler tells its version, and nm where a program's functions lie."""
    toolchain = load_board("host").toolchain
    assert "gcc" in compiler_version(toolchain)
    (tmp_path / "a.c").write_text("static const char table[77]={1}; int main(int c, char **v) "
                                  "{ (void)v; return table[c]; }\n")  # fmt: skip
    run_build(["gcc", "-O0", "a.c", "-o", "a"], tmp_path)
    found = {symbol.name: symbol for symbol in symbols(toolchain, tmp_path / "a")}
    assert found["table"].size == 77
    assert found["main"].kind == "T"
    addresses = [symbol.address for symbol in symbols(toolchain, tmp_path / "a")]
    assert addresses == sorted(addresses)


def test_no_environment_is_changed(tmp_path: Path) -> None:
    """Looking for tools changes neither the working folder nor the environment."""
    before = (Path.cwd(), dict(os.environ))
    check_requirements(load_board("host").toolchain)
    assert (Path.cwd(), dict(os.environ)) == before
