"""Import of archives: what was exported comes back, and nothing else is believed."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, host, import_model_library_format
from microtir.artifact import Artifact
from microtir.errors import ModelFileError
from tests.microtvm.test_mlf import SYSTEM_LIB, Files, files, metadata
from tests.support.programs import artifact_of, matmul_module
from tests.support.small_models import module_of, quantised_graph, tiny_graph
from tests.test_encoding import HOSTILE

pytestmark = pytest.mark.tools  # runs the C of an archive
BASE = CompilationConfig(targets="c")


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """Return a small quantised model."""
    return microtir.build(module_of(quantised_graph()), BASE.with_(module_name="first"))


@pytest.fixture
def archive(artifact: Artifact, tmp_path: Path) -> Path:
    """Return the model in an archive."""
    return artifact.export(tmp_path / "model.tar", "mlf")


def test_sources_facts_and_results_come_back(artifact: Artifact, archive: Path) -> None:
    """An imported program has the same files, interface and configuration, and runs."""
    [found] = import_model_library_format(archive)
    assert found.sources == artifact.sources
    model, known = found.module.model, artifact.module.model
    assert model is not None and known is not None
    assert (model.ports, model.memory.workspace_size) == (known.ports, known.memory.workspace_size)
    assert found.module.config == artifact.module.config
    image = np.arange(12, dtype=np.int8).reshape(1, 3, 4, 1)
    expected = host.load(artifact).run({"image": image})["scores"]
    assert np.array_equal(host.load(found).run({"image": image})["scores"], expected)


@pytest.mark.parametrize(
    ("executor", "has_graph"),
    [
        (Executor("aot", {"interface-api": "packed"}), False),
        (Executor("aot", {"link-params": False}), False),
        (Executor("graph", {"link-params": False}), True),
        (Executor("debug"), True),
    ],
    ids=lambda value: str(value).split("{", maxsplit=1)[0],
)
def test_every_executor_comes_back(executor: Executor, has_graph: bool, tmp_path: Path) -> None:
    """Sources, the table of calls as JSON, and weights that are a file of their own."""
    artifact = microtir.build(module_of(quantised_graph()), BASE.with_(executor=executor))
    path = artifact.export(tmp_path / "model.tar", "mlf")
    [found] = import_model_library_format(path)
    assert (found.sources, found.data) == (artifact.sources, artifact.data)
    assert ("executor-config/graph/default.graph" in files(path)) is has_graph
    module = metadata(path)["modules"]["default"]
    assert module["executors"] == [executor.name]
    assert ("sids" in module["memory"]) is has_graph
    weights = files(path)["parameters/default.params"]
    assert weights == (artifact.data[0].content if artifact.data else weights[:32])


def test_rows_come_back(tmp_path: Path) -> None:
    """What tensors that are handed over row by row say of themselves is not lost."""
    executor = Executor("aot", {"row-fed-inputs": True})
    artifact = microtir.build(module_of(quantised_graph()), BASE.with_(executor=executor))
    path = artifact.export(tmp_path / "rows.tar", "mlf")
    [found] = import_model_library_format(path)
    model, known = found.module.model, artifact.module.model
    assert model is not None and known is not None
    assert model.ports == known.ports
    assert model.inputs[0].row_bytes
    [main] = metadata(path)["modules"]["default"]["memory"]["functions"]["main"]
    assert main["io_size_bytes"] == model.outputs[0].type.bytes


def test_several_modules_come_back_whole(artifact: Artifact, tmp_path: Path) -> None:
    """Each has all its files, those that a program of several models leaves out included."""
    config = BASE.with_(module_name="second", runtime=SYSTEM_LIB)
    second = microtir.build(module_of(tiny_graph()), config)
    path = microtir.export_model_library_format([artifact, second], tmp_path / "both.tar")
    found = import_model_library_format(path)
    assert [each.sources for each in found] == [artifact.sources, second.sources]


def test_an_import_exports_the_same(archive: Path, tmp_path: Path) -> None:
    """Only the text of the TIR, which is for people, is not kept."""
    [found] = import_model_library_format(archive)
    again = files(found.export(tmp_path / "again.tar", "mlf"))
    assert again == {k: v for k, v in files(archive).items() if not k.endswith(".tir")}


def test_functions_of_a_user_come_back(tmp_path: Path) -> None:
    """Style "operator" is read, too."""
    artifact = artifact_of(matmul_module())
    [found] = import_model_library_format(artifact.export(tmp_path / "algebra.tar", "mlf"))
    assert found.sources == artifact.sources
    assert found.module.model is None


def rewritten(archive: Path, change: Callable[[dict[str, Any], Files], None]) -> Path:
    """Return the archive with other content."""
    content = files(archive)
    data = json.loads(content["metadata.json"])
    change(data, content)
    content["metadata.json"] = json.dumps(data).encode()
    with tarfile.open(archive, "w") as tar:
        for name, text in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return archive


def _facts(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["modules"]["first"]["microtir"]["metadata"]
    return found


def _layout(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["modules"]["first"]["microtir"]["layout"]
    return found


DAMAGE: dict[str, tuple[Callable[[dict[str, Any], Files], Any], str]] = {
    "version": (lambda d, _: d.update(version=8), "has version 8, not 7"),
    "no modules": (lambda d, _: d.update(modules={}), "lists no module"),
    "microTVM's": (lambda d, _: d["modules"]["first"].pop("microtir"), "by another program"),
    "older": (lambda d, _: _facts(d).update(metadata_version=0), "another version of microtir"),
    "no ports": (lambda d, _: _facts(d).pop("ports"), "lacks a field"),
    "no dtype": (lambda d, _: _facts(d)["ports"][0].update(dtype="int3"), "lacks a field"),
    "bad config": (lambda d, _: _facts(d)["config"].update(targets=["z80"]), "not valid"),
    "no source": (lambda _, f: f.pop("codegen/host/src/first_lib0.c"), "lib0.c' is missing"),
    "outside": (lambda _, f: f.update({"../evil.c": b""}), "lies outside"),
    "absolute": (lambda _, f: f.update({"/etc/evil": b""}), "lies outside"),
    "drive": (lambda _, f: f.update({"C:evil": b""}), "lies outside"),
    "shell in a path": (
        lambda d, _: _layout(d).update({"src/$(shell touch x).c": "metadata.json"}),
        "lacks a field.*character that file names",
    ),
    "another name inside": (
        lambda d, _: _facts(d).update(module_name="x"),
        "metadata of the module .* names another module",
    ),
    "float extent": (lambda d, _: _facts(d)["ports"][0].update(shape=[1.0]), "lacks a field"),
    "flag for a number": (lambda d, _: _facts(d)["ports"][0].update(bytes=True), "lacks a field"),
    "absurd shape": (
        lambda d, _: _facts(d)["ports"][0].update(shape=[2**31 - 1] * 9),
        "is a tensor of",
    ),
    "huge tensor": (
        lambda d, _: _facts(d)["ports"][0].update(shape=[2**30], bytes=2**30),
        "is a tensor of 1073741824 bytes",
    ),
    "many extents": (lambda d, _: _facts(d)["ports"][0].update(shape=[1] * 99), "99 extents"),
    "outside of its pool": (
        lambda d, _: _facts(d)["ports"][0].update(offset=2**30, pool="workspace"),
        "does not lie in a pool",
    ),
    "half a character": (
        lambda d, _: _facts(d)["ports"][0].update(name="\ud800"),
        "half of a character",
    ),
    "type of an output": (
        lambda d, _: _facts(d)["layers"][0]["outputs"][0].update(dtype="x"),
        "not a type of elements",
    ),
    "unknown fact": (lambda d, _: _facts(d).update(evil=1), "'evil' in 'metadata' is unknown"),
    "name of a function": (
        lambda d, _: _facts(d)["layers"][0].update(function="f(); system"),
        "not a C identifier",
    ),
    "section": (
        lambda d, _: _facts(d)["memory"]["pools"][0].update(section='a")))'),
        "not a name of a section",
    ),
    "written outside": (
        lambda d, _: _layout(d).update({"../x.c": "metadata.json"}),
        "lies outside of its folder",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_is_damaged_is_refused(archive: Path, case: str) -> None:
    """One diagnostic that names the file and says what is wrong in it; nothing is unpacked."""
    change, text = DAMAGE[case]
    with pytest.raises(ModelFileError, match=text) as caught:
        import_model_library_format(rewritten(archive, change))
    assert caught.value.where == str(archive)
    assert {p.name for p in archive.parent.iterdir()} == {"model.tar"}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_of_an_archive_is_a_command(archive: Path, text: str) -> None:
    """A module name or path of an archive reached the Makefile as it was, and make executed it."""
    if not text:
        return

    def renamed(data: dict[str, Any], _: Files) -> None:
        module = data["modules"].pop("first")
        module["microtir"]["metadata"]["module_name"] = text
        data["modules"][text] = module

    with pytest.raises(ModelFileError, match="module_name"):
        import_model_library_format(rewritten(archive, renamed))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_path_of_an_archive_is_a_command(archive: Path, text: str) -> None:
    """The name of a source file in an archive was executed by make, too."""
    path = f"src/{text}.c" if text else "src//x.c"
    with pytest.raises(ModelFileError, match="layout"):
        import_model_library_format(
            rewritten(archive, lambda d, _: _layout(d).update({path: "metadata.json"}))
        )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"[" * 100_000, "nested too deep"),
        (b'{"version": 7, "modules": ' + b"9" * 5000 + b"}", "5000 digits"),
        (b'{"version": 1e999}', "too large"),
        (b'{"version": NaN}', "NaN is not a number"),
        (b"\xff\xfe\x00", "not JSON"),
    ],
    ids=["deep", "digits", "infinite", "NaN", "not text"],
)
def test_json_that_python_stumbles_over(archive: Path, content: bytes, text: str) -> None:
    """Nesting and numbers that Python's reader gives up on ended in internal errors."""
    with tarfile.open(archive, "w") as tar:
        entry = tarfile.TarInfo("metadata.json")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    with pytest.raises(ModelFileError, match=text):
        import_model_library_format(archive)


def _bomb(path: Path, header: bytes, tail: bytes = b"") -> Path:
    path.write_bytes(header + tail + bytes(1024))
    return path


def test_a_sparse_member_is_no_file(tmp_path: Path) -> None:
    """An archive of some kilobytes claimed gigabytes of holes, which were all filled with zeros."""
    entry = tarfile.TarInfo("metadata.json")
    entry.pax_headers = {
        "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "metadata.json",
        "GNU.sparse.size": str(60 * 2**30), "GNU.sparse.map": f"{60 * 2**30 - 1},1",
    }  # fmt: skip
    entry.size = 1
    path = _bomb(tmp_path / "pax.tar", entry.tobuf(tarfile.PAX_FORMAT), bytes(512))
    with pytest.raises(ModelFileError, match=r"neither a plain file|declares more"):
        import_model_library_format(path)


@pytest.mark.parametrize(
    ("size", "text"), [(2**40, "declares more"), (-512, "declares more|no tar")]
)
def test_sizes_are_those_of_the_file(tmp_path: Path, size: int, text: str) -> None:
    """A header that declares more than the file, or less than nothing, ends the reading."""
    entry = tarfile.TarInfo("metadata.json")
    entry.size = size
    path = _bomb(tmp_path / "size.tar", entry.tobuf(tarfile.GNU_FORMAT), bytes(512))
    with pytest.raises(ModelFileError, match=text):
        import_model_library_format(path)


def test_members_are_counted(tmp_path: Path) -> None:
    """A file of nothing but headers ends with the ten thousandth, not when memory does."""
    header = tarfile.TarInfo("a").tobuf(tarfile.USTAR_FORMAT)
    folder = tarfile.TarInfo("b")
    folder.type = tarfile.DIRTYPE
    content = header + folder.tobuf(tarfile.USTAR_FORMAT) * 10_001
    with pytest.raises(ModelFileError, match="declares more than 10000 files"):
        import_model_library_format(_bomb(tmp_path / "many.tar", content))


def test_links_are_refused(archive: Path) -> None:
    """A link could lead anywhere."""
    with tarfile.open(archive, "a") as tar:
        entry = tarfile.TarInfo("codegen/link.c")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    with pytest.raises(ModelFileError, match="neither a plain file nor a folder"):
        import_model_library_format(archive)


@pytest.mark.parametrize("content", [b"", b"mine", b"\x00" * 1024])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """Something that is no archive, and an archive with nothing in it."""
    path = tmp_path / "model.tar"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"not a tar archive|no metadata.json"):
        import_model_library_format(path)


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(ModelFileError, match=r"nowhere\.tar: the archive cannot be read"):
        import_model_library_format(tmp_path / "nowhere.tar")
