"""Generated projects: their files, what is refused, and that nothing is written by halves."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import te
from microtir.boards import Console, ProjectType, load_board
from microtir.boards.errors import BoardError, ModelTooLargeError, ProjectError
from microtir.dtype import DType
from microtir.errors import OutputError, TemplateFileError, UsageError
from microtir.projects import ProjectOptions, Samples, generate, load_project
from tests.support.board_projects import (
    BOARD_OF_EACH_TYPE,
    digits,
    digits_samples,
    executed_boards,
    is_left_alone,
)

M4 = "c -mcpu=cortex-m4"


def _files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", executed_boards())
def test_same_bytes_again(name: str, tmp_path: Path) -> None:
    """The same model and board give the same files, which name no folder of this machine."""
    artifact = digits("c")
    for folder in ("a", "b"):
        generate(artifact, name, "baremetal", tmp_path / folder)
    first = _files(tmp_path / "a")
    assert first == _files(tmp_path / "b")
    assert not [path for path, content in first.items() if str(tmp_path).encode() in content]
    assert {"Makefile", "CMakeLists.txt", "README.md", "model/digits/digits.c"} <= first.keys()
    assert not [path for path in first if path.endswith((".py", ".j2"))]


def test_project_is_loaded_again(tmp_path: Path) -> None:
    """A project can be moved, and is the same when it is opened there."""
    made = generate(digits(M4), "mps2_an386", "baremetal", tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    loaded = load_project(tmp_path / "b")
    assert (loaded.type, loaded.models, loaded.program) == (made.type, made.models, made.program)
    assert (loaded.build_step, loaded.flash_step) == (made.build_step, made.flash_step)
    assert loaded.board.memories == made.board.memories
    assert loaded.models[0].layers[0].operator == "CONV_2D"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a project of microtir"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 1}', "is damaged"),
        ('{"format": 99}', "project has format 99"),
    ],
)
def test_folder_that_is_no_project(text: str | None, message: str, tmp_path: Path) -> None:
    """A folder without a project, and a damaged one, are refused with the reason."""
    if text is not None:
        (tmp_path / "project.json").write_text(text)
    with pytest.raises(ProjectError, match=message):
        load_project(tmp_path)


def test_existing_folder(tmp_path: Path) -> None:
    """A folder with files is refused and left as it is; force replaces it as a whole."""
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "mine.txt").write_text("precious")
    with pytest.raises(OutputError, match=r"exists and is not empty(.|\n)*force"):
        generate(digits(M4), "mps2_an386", "baremetal", folder)
    assert is_left_alone(folder, {"mine.txt": b"precious"})
    generate(digits(M4), "mps2_an386", "baremetal", folder, force=True)
    assert not (folder / "mine.txt").exists()
    assert (folder / "Makefile").exists()


def test_file_in_the_way(tmp_path: Path) -> None:
    """A file is never replaced by a folder."""
    (tmp_path / "p").write_text("x")
    with pytest.raises(OutputError, match="is a file"):
        generate(digits(M4), "mps2_an386", "baremetal", tmp_path / "p", force=True)


def test_failure_leaves_the_old_project(tmp_path: Path) -> None:
    """When a template is broken, the project that was there is still whole, even with force."""
    folder, templates = tmp_path / "p", tmp_path / "t"
    generate(digits(M4), "mps2_an386", "baremetal", folder)
    before = _files(folder)
    (templates / "baremetal" / "common").mkdir(parents=True)
    (templates / "baremetal" / "common" / "README.md.j2").write_text("{{ nothing }}")
    with pytest.raises(TemplateFileError, match="nothing"):
        generate(digits(M4), "mps2_an386", "baremetal", folder, force=True, template_dir=templates)
    assert _files(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "t"]


def test_model_that_is_too_large(tmp_path: Path) -> None:
    """A model beyond the board's RAM is refused before anything is written, with a table."""
    options = ProjectOptions(stack=16 * 1024)
    with pytest.raises(ModelTooLargeError) as caught:
        generate(digits("c"), "microbit", "baremetal", tmp_path / "p", options=options)
    assert caught.value.exit_code == 1
    assert not (tmp_path / "p").exists()
    text = str(caught.value)
    rows = dict(line.strip().rsplit(maxsplit=1) for line in text.splitlines() if line[:2] == "  ")
    assert rows["stack"] == "16384"
    model = digits("c").module.model
    assert model is not None
    assert int(rows["workspace"]) == model.memory.workspace_size
    assert int(rows["total"]) == 16384 + model.memory.workspace_size + 64 + 10
    assert f"{int(rows['total']) - 16384} too many" in text
    assert "the largest part is 'stack'" in text


def test_weights_count_as_ram_on_avr(tmp_path: Path) -> None:
    """Portable code reads its constants from RAM on an AVR, which is part of the table."""
    options = ProjectOptions(stack=4000)
    with pytest.raises(ModelTooLargeError, match=r"copy of the weights +\d+"):
        generate(digits("c"), "atmega2560", "baremetal", tmp_path / "p", options=options)
    artifact = digits("c -mcpu=atmega2560")
    generate(artifact, "atmega2560", "baremetal", tmp_path / "p", options=options)


def test_program_and_variables_in_one_memory(tmp_path: Path) -> None:
    """Where the program is loaded into RAM, both together must fit."""
    board = tmp_path / "tiny"
    board.mkdir()
    (board / "board.toml").write_text(
        'title = "t"\ntarget = "c"\ncode = "ram"\ndata = "ram"\n'
        '[[memory]]\nname = "ram"\nkind = "ram"\naddress = 0\nsize = 8000\n[toolchain]\n'
        '[projects.baremetal]\nlabel = "checked"\nstack = 1024\n'
    )
    with pytest.raises(
        ModelTooLargeError, match=r"weights +\d+(.|\n)*workspace +\d+(.|\n)*too many"
    ):
        generate(digits("c"), "tiny", "baremetal", tmp_path / "p", board_dirs=[tmp_path])


def test_models_of_one_name(tmp_path: Path) -> None:
    """Two models of one module name would have the same C functions."""
    with pytest.raises(ProjectError, match="2 models with the module name 'digits'"):
        generate([digits(M4), digits(M4)], "mps2_an386", "baremetal", tmp_path / "p")


def test_model_with_the_name_of_a_file(tmp_path: Path) -> None:
    """A model called like a header of the application is refused."""
    with pytest.raises(ProjectError, match=r"itself contains a file 'models\.h'"):
        generate(digits(M4, "models"), "mps2_an386", "baremetal", tmp_path / "p")


def test_functions_are_no_model(tmp_path: Path) -> None:
    """Compiled functions have no inputs to run on: a project of them is refused."""
    x = te.placeholder((4,), DType.INT32, "x")
    schedule = te.create_schedule(te.compute((4,), lambda i: x[i] + 1, "y"))
    with pytest.raises(ProjectError, match="only functions, and no model"):
        generate(microtir.build(schedule), "mps2_an386", "baremetal", tmp_path / "p")


def test_unknown_project_type(tmp_path: Path) -> None:
    """A misspelt project type gives the nearest."""
    with pytest.raises(ProjectError, match=r"'bare-metal' is not a project type(.|\n)*'baremetal'"):
        generate(digits(M4), "mps2_an386", "bare-metal", tmp_path / "p")


def test_project_type_that_the_board_has_not(tmp_path: Path) -> None:
    """A board that a framework does not know is refused."""
    with pytest.raises(BoardError, match="has no project of type 'esp-idf'"):
        generate(digits(M4), "mps2_an386", ProjectType.ESP_IDF, tmp_path / "p")


def test_console_that_the_board_has_not(tmp_path: Path) -> None:
    """A console is one that the board has."""
    options = ProjectOptions(console=Console.SEMIHOSTING)
    with pytest.raises(ProjectError, match="no console 'semihosting'\n  expected: stdio"):
        generate(digits("c"), "host", "baremetal", tmp_path / "p", options=options)


def test_options_reach_the_project(tmp_path: Path) -> None:
    """Stack, macros and optimisation are in the files that the compiler and linker read."""
    options = ProjectOptions(stack=2468, definitions=["MINE=3", "OTHER"], optimization="-Os")
    generate(digits(M4), "mps2_an386", "baremetal", tmp_path / "p", options=options)
    makefile = (tmp_path / "p" / "Makefile").read_text()
    assert "-DMINE=3 -DOTHER" in makefile
    assert "CFLAGS ?= -Os" in makefile
    assert ". += 2468;" in (tmp_path / "p" / "board" / "link.ld").read_text()
    assert "MINE=3" in (tmp_path / "p" / "CMakeLists.txt").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"definitions": "ABC"}, r"the value is the text 'ABC'(.|\n)*write \['ABC'\]"),
        ({"definitions": ["A B"]}, "'A B' is not a definition"),
        ({"definitions": ["A=$(x)"]}, r"'A=\$\(x\)' is not a definition"),
        ({"stack": 16}, "at least 256 bytes"),
        ({"optimization": "-O2; rm"}, "'-O2; rm' is not an optimisation"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    """An option that is not legal is refused when it is made: a text is no list of macros."""
    with pytest.raises(ProjectError, match=message):
        ProjectOptions(**options)  # type: ignore[arg-type]


def _with_samples(samples: Samples, tmp_path: Path) -> str:
    options = ProjectOptions(samples={"digits": samples})
    with pytest.raises(ProjectError) as caught:
        generate(digits(M4), "mps2_an386", "baremetal", tmp_path / "p", options=options)
    return str(caught.value)


def test_wrong_samples(tmp_path: Path) -> None:
    """Samples of another type, shape, count or name are refused with what is legal."""
    right = digits_samples(2)
    image = np.asarray(right.inputs["image"])
    wide = Samples({"image": image.astype(np.int16)})
    assert "the samples have the type int16" in _with_samples(wide, tmp_path)
    flat = Samples({"image": image.reshape(-1)})
    assert "expected: [samples, 1, 8, 8, 1]" in _with_samples(flat, tmp_path)
    missing = Samples({}, right.outputs)
    assert "no values for 'image'" in _with_samples(missing, tmp_path)
    misspelt = Samples({"imgae": image})
    assert "there is no 'imgae': did you mean 'image'?" in _with_samples(misspelt, tmp_path)
    uneven = Samples({"image": image[:1]}, right.outputs)
    assert "hold 1 and 2 samples" in _with_samples(uneven, tmp_path)
    none = Samples({"image": image[:0]})
    assert "hold 0 samples" in _with_samples(none, tmp_path)


def test_samples_of_no_model(tmp_path: Path) -> None:
    """Samples for a model that is not in the project are refused."""
    options = ProjectOptions(samples={"digit": digits_samples(1)})
    with pytest.raises(ProjectError, match="no model 'digit'\n  expected: digits"):
        generate(digits(M4), "mps2_an386", "baremetal", tmp_path / "p", options=options)


def test_building_and_flashing_what_is_not_there(tmp_path: Path) -> None:
    """Running and flashing want a built program; flashing wants a command."""
    project = generate(digits(M4), "mps2_an386", "baremetal", tmp_path / "p")
    with pytest.raises(ProjectError, match="is not built"):
        project.run()
    program = project.program_path
    program.parent.mkdir()
    program.write_bytes(b"")
    with pytest.raises(ProjectError, match="microtir has no command that flashes a program"):
        project.flash()


def test_flash_needs_a_port(tmp_path: Path) -> None:
    """A board that is written through a serial port asks for one, and shows what failed."""
    project = generate([], "atmega2560", "baremetal", tmp_path / "p")
    project.program_path.parent.mkdir()
    project.program_path.write_bytes(b"")
    with pytest.raises(ProjectError, match="through a serial port"):
        project.flash()


def test_missing_template_folder(tmp_path: Path) -> None:
    """A template folder that is not there is refused."""
    with pytest.raises(UsageError, match="there is no such folder"):
        generate([], "host", "baremetal", tmp_path / "p", template_dir=tmp_path / "t")


def test_project_file_holds_the_layers(tmp_path: Path) -> None:
    """What a profiler needs to know of the models is in the project, as JSON."""
    artifact = digits(M4)
    generate(artifact, "mps2_an386", "baremetal", tmp_path / "p")
    facts = json.loads((tmp_path / "p" / "project.json").read_text())
    layers = artifact.metadata.layers
    assert facts["models"][0]["run"] == "digits_run"
    assert [row["macs"] for row in facts["models"][0]["layers"]] == [row.macs for row in layers]
    assert [row["function"] for row in facts["models"][0]["layers"]] == [
        row.function for row in layers
    ]


@pytest.mark.parametrize(("board", "kind"), BOARD_OF_EACH_TYPE)
def test_the_page_of_a_project_answers_an_engineer(board: str, kind: str, tmp_path: Path) -> None:
    """It says what stack a run takes, where weights lie and who may run; its call compiles."""
    model = digits(str(load_board(board).target))
    folder = generate([model], board, kind, tmp_path / "p").folder
    page = (folder / "README.md").read_text()
    words = " ".join(page.split())
    most = model.metadata.stack.bytes_in_c
    assert f"- `DIGITS_STACK_SIZE`: {most} bytes" in words
    assert f"| stack of a run, at most | {most} |" in page
    assert "which the linker places in flash" in words
    assert "**Tasks.** Several tasks may run a model at the same time" in words
    (call,) = (block for block in re.findall(r"```c\n(.*?)```", page, re.S) if "_run(" in block)
    (tmp_path / "call.c").write_text(call)
    (header,) = folder.rglob("digits.h")
    flags = ["-Wall", "-Wextra", "-Werror", "-std=c99", "-fsyntax-only", f"-I{header.parents[1]}"]
    subprocess.run(["gcc", *flags, str(tmp_path / "call.c")], check=True)
