"""Artifacts become folders: whole or not at all, and never over somebody else's files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from microtir.artifact import Artifact, ExportFormat, read_metadata
from microtir.codegen import SourceFile
from microtir.errors import OutputError, UsageError
from tests.support.programs import artifact_of, matmul_module, model_module


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """Return the small model."""
    return artifact_of(model_module())


def _files(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_export_writes_the_sources(artifact: Artifact, tmp_path: Path) -> None:
    """The folder holds exactly the sources, byte for byte; missing parents are made."""
    folder = artifact.export(tmp_path / "a" / "b")
    assert folder == tmp_path / "a" / "b"
    assert _files(folder) == {f.path: f.text.encode() for f in artifact.sources}
    assert list((tmp_path / "a").iterdir()) == [folder]


def test_export_replaces_what_it_wrote(artifact: Artifact, tmp_path: Path) -> None:
    """A second export of a program replaces the first, files that no longer exist included."""
    more = replace(artifact, sources=(*artifact.sources, SourceFile("gone.c", "")))
    metadata = more.source("metadata.json").replace('"files": [', '"files": ["gone.c",')
    sources = tuple(replace(f, text=metadata) if f.path == "metadata.json" else f
                    for f in more.sources)  # fmt: skip
    replace(more, sources=sources).export(tmp_path / "out")
    assert "gone.c" in _files(tmp_path / "out")
    artifact.export(tmp_path / "out")
    assert sorted(_files(tmp_path / "out")) == sorted(f.path for f in artifact.sources)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("form", ["sources", "mlf"])
def test_another_program_is_kept(artifact: Artifact, tmp_path: Path, form: str) -> None:
    """Exports replaced the files of another model without a word; now that takes force."""
    target = artifact.export(tmp_path / "out", form)
    before = _files(tmp_path) if form == "mlf" else _files(target)
    other = artifact_of(matmul_module())
    with pytest.raises(OutputError, match=r"(?s)'small' from .*fix:.*force=True") as caught:
        other.export(target, form)
    assert (_files(tmp_path) if form == "mlf" else _files(target)) == before
    assert "--force" not in str(caught.value)
    other.export(target, form, force=True)
    assert (_files(tmp_path) if form == "mlf" else _files(target)) != before


def test_empty_folder_is_used(artifact: Artifact, tmp_path: Path) -> None:
    """An empty folder is as good as none."""
    (tmp_path / "out").mkdir()
    artifact.export(str(tmp_path / "out"), "sources")
    assert (tmp_path / "out" / "small.c").exists()


@pytest.mark.parametrize("where", ["notes.txt", "sub/notes.txt"])
def test_foreign_files_are_kept(artifact: Artifact, tmp_path: Path, where: str) -> None:
    """A folder with a file that microtir did not write is refused, and left as it is."""
    folder = artifact.export(tmp_path / "out")
    (folder / where).parent.mkdir(exist_ok=True)
    (folder / where).write_text("mine")
    before = _files(folder)
    with pytest.raises(OutputError, match=r"(?s)did not write.*expected:.*fix:"):
        artifact.export(folder)
    assert _files(folder) == before
    artifact.export(folder, force=True)
    assert where not in _files(folder)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 5}', "\xff"])
def test_other_metadata_is_not_ours(artifact: Artifact, tmp_path: Path, text: str) -> None:
    """A metadata.json of another program does not make a folder microtir's."""
    (tmp_path / "metadata.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(OutputError, match="did not write"):
        artifact.export(tmp_path)


def test_path_is_a_file(artifact: Artifact, tmp_path: Path) -> None:
    """A file in place of the folder is an error, not overwritten."""
    (tmp_path / "out").write_text("mine")
    with pytest.raises(OutputError, match="is a file"):
        artifact.export(tmp_path / "out", force=True)
    assert (tmp_path / "out").read_text() == "mine"


def test_parent_cannot_be_made(artifact: Artifact, tmp_path: Path) -> None:
    """A folder that cannot be made is reported with its path and what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"(?s)file/out: cannot be written: .*fix:"):
        artifact.export(tmp_path / "file" / "out")


def test_failure_leaves_the_old_folder(
    artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full in the middle, the last export is still there and nothing else is."""
    folder = artifact.export(tmp_path / "out")
    before = _files(folder)
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "metadata.json":
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match="No space left on device"):
        artifact.export(folder)
    assert _files(folder) == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_unknown_format(artifact: Artifact, tmp_path: Path) -> None:
    """A format that does not exist is refused with the ones that do, before anything is written."""
    with pytest.raises(UsageError, match=r"(?s)'source' is not an export format.*'sources'"):
        artifact.export(tmp_path / "out", "source")
    assert not (tmp_path / "out").exists()
    assert [known.value for known in ExportFormat] == ["sources", "mlf"]


def test_metadata_is_that_of_the_file(artifact: Artifact) -> None:
    """The artifact and the file hold the same facts."""
    assert read_metadata(artifact.source("metadata.json").encode()) == artifact.metadata
    assert artifact.metadata.memory is not None
    assert artifact.metadata.memory.workspace_size == 24


def test_metadata_names_no_place_and_no_time(artifact: Artifact) -> None:
    """What is written does not tell where or when it was made."""
    text = artifact.source("metadata.json")
    assert str(Path(__file__).resolve().parents[2]) not in text
    assert str(Path.home()) not in text
    assert not {"time", "date"} & set(json.loads(text))


def test_a_console_shows_a_line(artifact: Artifact) -> None:
    """Not the whole program, which is megabytes of text."""
    shown = repr(artifact)
    assert shown.startswith(f"<Artifact {artifact.metadata.module_name}, for ")
    assert len(shown) < 100


def test_a_notebook_shows_what_it_takes(artifact: Artifact) -> None:
    """The fragment has name, processor, memory, ports and files, as text and not as HTML."""
    port = replace(artifact.metadata.ports[0], member="a<b")
    shown = replace(artifact, metadata=replace(artifact.metadata, ports=(port,)))._repr_html_()
    assert f"<b>{artifact.metadata.module_name}, for " in shown and "a&lt;b: " in shown
    assert f"{artifact.metadata.weights_bytes:,} bytes of flash" in shown
    assert all(file.path in shown for file in artifact.files)
