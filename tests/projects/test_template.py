"""Project templates: which file wins, and that none reaches out of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.boards import ProjectType, load_board
from microtir.errors import TemplateFileError
from microtir.projects import generate
from microtir.projects.template import ProjectTemplates
from microtir.support.template_files import Part, checked_path


def _template(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder


def _refused(folder: Path, values: dict[str, object] | None = None) -> str:
    files, given = ProjectTemplates(folder), values or {}
    with pytest.raises(TemplateFileError) as caught:
        files.render(files.targets([Part("mine", "to")], given), given)
    return str(caught.value)


def test_files_are_rendered_or_copied(tmp_path: Path) -> None:
    """`X.j2` becomes X, other files stay byte for byte, and names may have placeholders."""
    _template(tmp_path, "mine/a.c.j2", "int {{ name }};\n")
    _template(tmp_path, "mine/{{ name }}/b.txt", "{{ not a placeholder }}\r\n")
    files = ProjectTemplates(tmp_path)
    values = {"name": "x"}
    found = files.render(files.targets([Part("mine", "to")], values), values)
    assert found == {"to/a.c": b"int x;\n", "to/x/b.txt": b"{{ not a placeholder }}\r\n"}


def test_a_changed_template_is_compiled_anew(tmp_path: Path) -> None:
    """The code that is kept of a template is used for the same text only."""
    for text in ("one {{ x }}", "two {{ x }}", "one {{ x }}"):
        _template(tmp_path, "mine/a.txt.j2", text)
        files = ProjectTemplates(tmp_path)
        found = files.render(files.targets([Part("mine", "to")], {"x": 1}), {"x": 1})
        assert found == {"to/a.txt": text.replace("{{ x }}", "1").encode()}


def test_later_parts_replace_files(tmp_path: Path) -> None:
    """A file of a later part stands for that of an earlier one."""
    _template(tmp_path, "one/a.txt", "1")
    _template(tmp_path, "two/a.txt.j2", "2")
    files = ProjectTemplates(tmp_path)
    assert files.render(files.targets([Part("one", "."), Part("two", ".")], {}), {}) == {
        "a.txt": b"2"
    }


def test_users_template_wins(tmp_path: Path) -> None:
    """The user's file is taken before the board's, and the board's before the common one."""
    board = _template(tmp_path, "boards/mine/baremetal/host/board/host.c", "board")
    _template(board, "boards/mine/src/unused.txt", "")
    text = (load_board("host").file).read_text()
    _template(tmp_path, "boards/mine/board.toml", text)
    made = generate([], "mine", "baremetal", tmp_path / "a", board_dirs=[tmp_path / "boards"])
    assert (made.folder / "board" / "host.c").read_text() == "board"
    user = _template(tmp_path / "user", "baremetal/host/board/host.c", "user")
    made = generate(
        [], "mine", "baremetal", tmp_path / "b", board_dirs=[tmp_path / "boards"], template_dir=user
    )
    assert (made.folder / "board" / "host.c").read_text() == "user"
    assert (made.folder / "Makefile").is_file()


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\\..\\b", ""])
def test_path_out_of_the_folder(name: str) -> None:
    """No path may be absolute or go up."""
    with pytest.raises(TemplateFileError, match="leads out of its folder"):
        checked_path(name, "template")


def test_placeholder_that_goes_up(tmp_path: Path) -> None:
    """A value inside a file name cannot lead out of the project."""
    _template(tmp_path, "mine/{{ name }}.txt", "")
    assert "leads out of its folder" in _refused(tmp_path, {"name": "../../x"})


def test_link_out_of_the_templates(tmp_path: Path) -> None:
    """A link in a template folder does not copy a file from elsewhere into a project."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (tmp_path / "t" / "mine").mkdir(parents=True)
    (tmp_path / "t" / "mine" / "a.txt").symlink_to(secret)
    assert "a link that leads out" in _refused(tmp_path / "t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{% include '../secret' %}", "leads out of its folder"),
        ("{% include 'missing' %}", "there is no template 'missing'"),
        ("x\n{% if %}", "a.j2:2: is malformed"),
        ("x\n{{ unknown }}", "a.j2:2: uses undefined names: 'unknown' is undefined"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_broken_template(text: str, message: str, tmp_path: Path) -> None:
    """A broken template is named with its line; one that reaches into Python is refused."""
    assert message in _refused(_template(tmp_path, "mine/a.j2", text))


def test_part_without_files(tmp_path: Path) -> None:
    """A part that no template folder has is an error, not an empty project."""
    assert "there are no such templates" in _refused(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('summary = 1\nmodels = "m"', "summary: got 1"),
        ('summary = "s"\nmodels = "m"\nbild = 1', "unknown key 'bild': did you mean 'build'"),
        ('summary = "s"\nmodels = "m"\n[build]', "build.command: there is no command"),
        ('summary = "s"\nmodels = "m"\n[[part]]\nfolder = "f"', "part[0].to: the key 'to'"),
    ],
)
def test_wrong_manifest(text: str, message: str, tmp_path: Path) -> None:
    """A mistake in template.toml is refused with file and field."""
    _template(tmp_path, "baremetal/template.toml", text)
    with pytest.raises(TemplateFileError) as caught:
        ProjectTemplates(tmp_path).manifest(ProjectType.BAREMETAL)
    assert message in str(caught.value)
    assert str(tmp_path / "baremetal" / "template.toml") in str(caught.value)
