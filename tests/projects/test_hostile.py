"""Texts of boards, options and users reach a project's files as texts, whatever is in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.boards import load_board
from microtir.boards.errors import BoardError, ProjectError
from microtir.errors import TemplateFileError
from microtir.projects import ProjectOptions, generate
from tests.support.small_models import module_of, tiny_graph
from tests.test_encoding import HOSTILE


def _board(folder: Path, old: str, new: str) -> Path:
    """Make a folder of boards with one that is this machine, and one line of its file changed."""
    text = load_board("host").file.read_text()
    assert old in text
    (folder / "mine").mkdir()
    (folder / "mine" / "board.toml").write_text(text.replace(old, new))
    return folder


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize("text", [text for text in HOSTILE if text])
def test_a_title_runs_nothing(tmp_path: Path, text: str) -> None:
    """The title of a board stands in comments, in a recipe and in READMEs, and starts nothing."""
    boards = _board(tmp_path, '"This machine"', _toml(text))
    for kind in ("baremetal", "cmake"):
        folder = tmp_path / kind
        generate([], "mine", kind, folder, board_dirs=[boards])
        assert text.replace("\\", "")[:3] in (folder / "README.md").read_text().replace("\\", "")
    for goal in ("flash", "size", "-n"):
        subprocess.run(
            ["make", "CC=true", "SIZE=true", goal], cwd=tmp_path / "baremetal",
            capture_output=True, check=False,
        )  # fmt: skip
    said = subprocess.run(
        ["make", "-n", "all"], cwd=tmp_path / "baremetal", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "gcc" in said.stdout
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("text", [text for text in HOSTILE if text and text != "-rf"])
@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('flags = ["-march=native"]', "flags = [{}]", "toolchain.flags"),
        ('prefix = ""', "prefix = {}", "toolchain.prefix"),
        ('program = "gcc"', "program = {}", "program"),
        ('package = "gcc"', "package = {}", "package"),
    ],
)
def test_what_names_a_tool_is_a_word(
    tmp_path: Path, text: str, old: str, new: str, field: str
) -> None:
    """Compilers, their flags and packages are of characters that no tool reads as anything else."""
    toml = load_board("host").file.read_text()
    if old not in toml:
        old, new = "[toolchain]", "[toolchain]\n" + new
    boards = _board(tmp_path, old, new.format(_toml(text)))
    with pytest.raises(BoardError, match=field):
        load_board("mine", [boards])


@pytest.mark.parametrize(
    "value", ["$(shell touch owned)", "`touch owned`", "a;b", "a#b", "a'b", "\0"]
)
def test_a_definition_is_a_value(value: str) -> None:
    """What no build system can be told as the value of a macro is refused."""
    with pytest.raises(ProjectError, match="NAME or NAME=value"):
        ProjectOptions(definitions=[f"X={value}"])


@pytest.mark.parametrize("kind", ["baremetal", "cmake"])
def test_a_definition_reaches_the_compiler(tmp_path: Path, kind: str) -> None:
    """A value with characters of a shell was a command in the Makefile: `-DX=1&touch`."""
    options = ProjectOptions(definitions=["X=(1|2)&3<4>0*1"])
    artifact = microtir.build(module_of(tiny_graph()), CompilationConfig(targets="c"))
    made = generate(artifact, "host", kind, tmp_path / "p p", options=options)
    source = next(made.folder.rglob("main.c"))
    source.write_text(source.read_text() + '\n_Static_assert((X) == 1, "value");\n')
    made.build()
    assert made.program_path.is_file()


@pytest.mark.parametrize("kind", ["baremetal", "cmake"])
@pytest.mark.parametrize("name", ["a b", "it's", "a#b", "a$(touch owned)b", "a;b", "50%"])
def test_a_folder_of_any_name_builds(tmp_path: Path, kind: str, name: str) -> None:
    """A project in a folder of the user's own works, or says what it cannot do with the name."""
    made = generate([], "host", kind, tmp_path / name)
    try:
        made.build()
    except ProjectError as error:
        assert name in str(error)  # noqa: PT017 - both outcomes are right
        assert "folder" in str(error)  # noqa: PT017
    else:
        assert made.run().status == 0
    assert not list(tmp_path.rglob("owned"))


def test_files_of_a_user_have_names_for_projects(tmp_path: Path) -> None:
    """A template whose name a Makefile cannot hold is refused, with the rule."""
    path = tmp_path / "user" / "baremetal" / "common" / "src" / "a b$(shell touch owned).c"
    path.parent.mkdir(parents=True)
    path.write_text("")
    with pytest.raises(TemplateFileError, match="letters, digits"):
        generate([], "host", "baremetal", tmp_path / "p", template_dir=tmp_path / "user")


def test_a_template_prints_what_is_encoded(tmp_path: Path) -> None:
    """A template of the user that prints a title as it is gets a message with the encoders."""
    path = tmp_path / "user" / "baremetal" / "common" / "Makefile.j2"
    path.parent.mkdir(parents=True)
    path.write_text("# {{ board.title }}\n")
    with pytest.raises(TemplateFileError, match=r"(?s)Makefile.j2:1.*make_comment"):
        generate([], "host", "baremetal", tmp_path / "p", template_dir=tmp_path / "user")
    path.write_text("# {{ board.title | cmake_comment }}\n")
    with pytest.raises(TemplateFileError, match="is encoded for CMake"):
        generate([], "host", "baremetal", tmp_path / "p", template_dir=tmp_path / "user")
    path.write_text("{% macro m() %}a b{% endmacro %}# {{ m() | as_is }}\n")
    made = generate([], "host", "baremetal", tmp_path / "p", template_dir=tmp_path / "user")
    assert (made.folder / "Makefile").read_text() == "# a b\n"
