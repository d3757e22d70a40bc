"""The verbs for boards: what they do, and each mistake as one diagnostic with its exit status."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from microtir.boards import Label, ProjectType, all_boards
from tests.support.command import INT8, TEST_SET, Command

COMMON = ("example:digits", "--board", "mps2_an386")


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Return a golden file of three samples."""
    path = tmp_path / "few.npz"
    with np.load(TEST_SET) as stored:
        np.savez(path, inputs=stored["inputs"][:3], outputs=stored["outputs"][:3])
    return path


def sizes(program: Path) -> tuple[int, int, int]:
    """Return the bytes of code and constants, of data and of bss, as binutils count them."""
    command = ("arm-none-eabi-size", program)
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, listed.splitlines()[1].split()[:3])
    return text, data, bss


def test_boards(microtir: Command) -> None:
    """The list has every board with its label; the JSON says the same."""
    rows = json.loads(microtir("boards", "--json").out)
    assert [row["name"] for row in rows] == [board.name for board in all_boards()]
    text = microtir("boards").out
    for row, board in zip(rows, all_boards(), strict=True):
        (line,) = [line for line in text.splitlines() if line.split()[:1] == [row["name"]]]
        told = {label: types.split(", ") for label, types in re.findall(r"(\w+): ([^;]+)", line)}
        for support in board.projects:
            assert support.type.value in told[support.label.value]
            assert {"type": support.type.value, "label": support.label.value} in row["projects"]
        assert [memory["bytes"] for memory in row["memories"]] == [m.size for m in board.memories]
    assert any(
        {"type": ProjectType.BAREMETAL.value, "label": Label.EXECUTED.value} in row["projects"]
        for row in rows
    )


def test_project_from_creation_to_run(microtir: Command, tmp_path: Path) -> None:
    """Created, built, run: outputs compared with those of the test set."""
    folder = tmp_path / "p"
    made = microtir("micro", "create-project", "-o", folder, *COMMON, "--samples", 2)
    assert (made.status, made.err) == (0, "")
    assert "microtir micro build" in made.out
    assert "__ARM_FEATURE_DSP" in (folder / "model" / "digits_int8" / "digits_int8.c").read_text()
    not_built = microtir("micro", "run", folder)
    assert (not_built.status, "is not built" in not_built.diagnostic) == (2, True)
    built = microtir("micro", "build", folder, "CFLAGS=-Os")
    assert (built.status, built.err) == (0, "")
    text, data, bss = sizes(folder / "build" / "firmware.elf")
    taken = f"firmware.elf: {text + data:,} bytes of flash, {data + bss:,} bytes of RAM"
    assert f"{taken}, 4,096 of them for the stack\n" in built.out
    run = microtir("micro", "run", folder)
    assert (run.status, run.out.count(" equal\n")) == (0, 2)
    emulated = microtir("micro", "flash", folder)
    assert (emulated.status, emulated.err) == (0, "")
    assert emulated.out.startswith("nothing to flash for ") and "micro run" in emulated.out

    again = microtir("micro", "create-project", "-o", folder, *COMMON)
    assert (again.status, "not empty" in again.diagnostic) == (3, True)
    assert microtir("micro", "create-project", "-o", folder, *COMMON, "--force").status == 0
    assert not (folder / "build").exists()


def test_wrong_output_is_status_1(microtir: Command, tmp_path: Path, few: Path) -> None:
    """A program that finds a difference: status 1, for run as for verify."""
    with np.load(few) as stored:
        outputs = stored["outputs"].copy()
        outputs[1, 0, 3] ^= 8  # a step would be one that the reference may round otherwise
        np.savez(few, inputs=stored["inputs"], outputs=outputs)
    folder = tmp_path / "p"
    options = ("--golden", few, "--samples", 3)
    assert microtir("micro", "create-project", "-o", folder, *COMMON, *options).status == 0
    assert microtir("micro", "build", folder).status == 0
    run = microtir("micro", "run", folder)
    assert (run.status, run.out.count("differs at 3")) == (1, 1)
    verdict = microtir("verify", *COMMON, "--golden", few, "--json", "-")
    assert verdict.status == 1
    data = json.loads(verdict.out)
    assert (data["board"], data["mismatches"], data["equal"]) == ("mps2_an386", 1, False)


def test_compile_to_a_project(microtir: Command, tmp_path: Path) -> None:
    """`compile --output-format project` writes the same project, of the type that is asked for."""
    compiled, created = tmp_path / "a", tmp_path / "b"
    options = ("--board", "mps2_an386", "--project-type", "cmake")
    first = microtir("compile", INT8, "-o", compiled, "--output-format", "project", *options)
    assert (first.status, first.err) == (0, "")
    assert microtir("micro", "create-project", INT8, "-o", created, *options).status == 0
    names = sorted(p.relative_to(compiled) for p in compiled.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(created) for p in created.rglob("*") if p.is_file())
    assert all((compiled / n).read_bytes() == (created / n).read_bytes() for n in names)
    assert (compiled / "CMakeLists.txt").is_file()


def test_several_models(microtir: Command, tmp_path: Path) -> None:
    """Several models in one project, each under the name of its file."""
    other = tmp_path / "other.tflite"
    other.write_bytes(INT8.read_bytes())
    folder = tmp_path / "p"
    made = microtir("micro", "create-project", "-o", folder, "--board", "host", INT8, other)
    assert made.status == 0
    assert sorted(p.name for p in (folder / "model").iterdir()) == ["digits_int8", "other"]
    assert microtir("micro", "build", folder).status == 0
    run = microtir("micro", "run", folder)
    assert "other sample 0" in run.out and "digits_int8 sample 0" in run.out


def test_verify_and_run_on_a_board(microtir: Command, few: Path, tmp_path: Path) -> None:
    """The same verbs as for this machine; the target is the board's."""
    verdict = microtir("verify", *COMMON, "--golden", few)
    assert (verdict.status, verdict.err) == (0, "")
    assert "equal on mps2_an386: 3 samples, 30 values" in verdict.out
    here, there = tmp_path / "here.npz", tmp_path / "there.npz"
    for board, path in ((("--board", "riscv32"), there), ((), here)):
        assert microtir("run", "example:digits", *board, "-i", few, "-o", path).status == 0
    with np.load(here) as a, np.load(there) as b:
        assert np.array_equal(a["probabilities"], b["probabilities"])
    config = json.loads(microtir("verify", *COMMON, "--dump-config").out)
    assert "cortex-m4" in json.dumps(config["targets"])


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("verify", "example:digits", "--board", "mps2_an368"), 2, "did you mean 'mps2_an386'"),
        (("profile", "example:digits", "--board", "host"), 2, "cannot be counted on 'host'"),
        (
            ("profile", "example:digits", "--board", "nano33ble"),
            2,
            "use --board mps2_an386, which",
        ),
        (("run", "example:digits", "--board", "nrf52840dk"), 2, "use --board mps2_an386"),
        (("run", "example:digits", "--port", "x"), 2, "--port requires --board"),
        (("verify", *COMMON, "--sanitize"), 2, "sanitizers run only on this machine"),
        (
            ("verify", *COMMON, "--port", "/dev/none"),
            2,
            "microtir has no command that flashes a program",
        ),
        (("compile", INT8, "-o", "x", "-f", "project"), 2, "a project needs a board"),
        (("compile", INT8, "-o", "x", "--project-type", "cmake"), 2, "--output-format project"),
        (("micro", "create-project", "-o", "x", *COMMON, "--project-type", "zephir"), 2, "zephir"),
        (("micro", "creat-project"), 2, "did you mean 'create-project'?"),
        (("micro", "build", "."), 2, "is not a project of microtir"),
        (("profile", "example:digits"), 2, "--board"),
    ],
)
def test_mistakes(
    microtir: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[object, ...],
    status: int,
    text: str,
) -> None:
    """Each mistake is one diagnostic with the exit status of the contract."""
    monkeypatch.chdir(tmp_path)
    result = microtir(*arguments)
    assert (result.status, text in result.diagnostic) == (status, True), result.err
    assert not (tmp_path / "x").exists()


def test_missing_toolchain(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the compiler the Debian package to install is named, with status 3."""
    monkeypatch.setenv("PATH", str(tmp_path))
    result = microtir("profile", *COMMON)
    assert (result.status, "apt-get install" in result.diagnostic) == (3, True)


def test_program_that_hangs(microtir: Command, tmp_path: Path) -> None:
    """A program that does not end is stopped after the time-out, and its last output is shown."""
    folder = tmp_path / "p"
    assert microtir("micro", "create-project", "-o", folder, *COMMON).status == 0
    main = folder / "src" / "main.c"
    main.write_text(main.read_text().replace("platform_exit(", "for (;;) {\n    }\n    (void)("))
    main.write_text(
        main.read_text().replace(
            "    for (;;)", '    platform_write((const uint8_t *)"hi", 2);\n    for (;;)'
        )
    )
    assert microtir("micro", "build", folder).status == 0
    result = microtir("micro", "run", folder, "--timeout", "1.5")
    assert (result.status, "did not end in 1.5 seconds" in result.diagnostic) == (3, True)
    assert "hi" in result.diagnostic
