"""Archives in Model Library Format: layout, metadata, one or several programs, the same bytes."""

from __future__ import annotations

import json
import tarfile
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import microtir
from microtir import CompilationConfig, Runtime, export_model_library_format
from microtir.artifact import Artifact
from microtir.errors import OutputError, UsageError
from tests.support.c_compilers import STRICT, compiler_output
from tests.support.programs import artifact_of, matmul_module
from tests.support.small_models import module_of, quantised_graph, tiny_graph

pytestmark = pytest.mark.tools  # compiles the C of an archive
BASE = CompilationConfig(targets="c -mcpu=cortex-m4")
SYSTEM_LIB = Runtime("crt", {"system-lib": True})
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """Return a small quantised model with a system library."""
    config = BASE.with_(module_name="first", runtime=SYSTEM_LIB)
    return microtir.build(module_of(quantised_graph()), config)


@pytest.fixture(scope="module")
def second() -> Artifact:
    """Another model, with a smaller workspace."""
    config = BASE.with_(module_name="second", runtime=SYSTEM_LIB)
    return microtir.build(module_of(tiny_graph()), config)


def files(archive: Path) -> Files:
    """Contents of an archive; every name begins with a dot and a slash."""
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.isfile()]
        assert all(member.name.startswith("./") for member in members)
        streams = {member.name[2:]: tar.extractfile(member) for member in members}
        return {name: stream.read() for name, stream in streams.items() if stream is not None}


def metadata(archive: Path) -> dict[str, Any]:
    """Its metadata.json."""
    found: dict[str, Any] = json.loads(files(archive)["metadata.json"])
    return found


def test_layout(artifact: Artifact, tmp_path: Path) -> None:
    """Every file lies where build systems for microTVM look, with the text that was generated."""
    found = files(artifact.export(tmp_path / "model.tar", "mlf"))
    assert [name for name in found if not name.startswith("runtime/")] == [
        "codegen/host/include/first.h",
        "codegen/host/include/first_packed.h",
        "codegen/host/include/first_weights.h",
        "codegen/host/src/first_lib0.c",
        "codegen/host/src/first_lib1.c",
        "codegen/host/src/first_lib2.c",
        "codegen/host/src/first_lib3.c",
        "metadata.json",
        "parameters/first.params",
        "src/first.tir",
    ]
    assert found["codegen/host/src/first_lib0.c"] == artifact.source("first.c").encode()
    assert found["codegen/host/src/first_lib1.c"] == artifact.source("first_weights.c").encode()
    assert found["runtime/include/microtir/runtime.h"]
    assert len(found["parameters/first.params"]) == 32
    assert b"func layer0_conv_2d" in found["src/first.tir"]


def test_keys_of_version_7(artifact: Artifact, tmp_path: Path) -> None:
    """Tools find microTVM's keys with true values; shapes and quantisation stand beside them."""
    data = metadata(artifact.export(tmp_path / "model.tar", "mlf"))
    assert data["version"] == 7
    module = data["modules"]["first"]
    facts = artifact.metadata
    memory = facts.memory
    assert memory is not None
    assert module["model_name"] == "first"
    assert module["style"] == "full-model"
    assert module["executors"] == ["aot"]
    assert module["target"] == ["c -mcpu=cortex-m4"]
    assert module["external_dependencies"][0]["url"] == "./runtime"
    datetime.strptime(module["export_datetime"], "%Y-%m-%d %H:%M:%SZ").replace(tzinfo=timezone.utc)
    [main] = module["memory"]["functions"]["main"]
    assert main["workspace_size_bytes"] == memory.workspace_size
    assert main["constants_size_bytes"] == facts.weights_bytes
    assert main["io_size_bytes"] == 12 + 5
    quantization = facts.ports[0].quantization
    assert quantization is not None
    assert main["inputs"]["image"] == {
        "size": 12,
        "dtype": "int8",
        "shape": [1, 3, 4, 1],
        "quantization": asdict(quantization),
        "member": "image",
    }
    assert list(main["outputs"]) == ["scores"]


def test_table_of_layers(artifact: Artifact, tmp_path: Path) -> None:
    """Operators stand in the order of their calls, with cost and tensors; weights add up."""
    module = metadata(artifact.export(tmp_path / "model.tar", "mlf"))["modules"]["first"]
    rows = module["memory"]["functions"]["operator_functions"]
    assert [row["function_name"] for row in rows] == [
        layer.function for layer in artifact.metadata.layers
    ]
    assert [row["operator"] for row in rows] == ["CONV_2D", "FULLY_CONNECTED"]
    assert rows[0]["tensors"][0].split()[:3] == ["input", "1x3x4x1", "int8,"]
    assert all(row["workspace"][0]["device"] == 1 for row in rows)
    total = sum(row["constants_size_bytes"] for row in rows)
    assert total == artifact.metadata.weights_bytes > 0


def test_scratch_is_workspace_of_a_function(tmp_path: Path) -> None:
    """Memory that lasts for one call is listed with the function that uses it."""
    config = BASE.with_(optimize="speed")
    artifact = microtir.build(module_of(quantised_graph()), config)
    module = metadata(artifact.export(tmp_path / "model.tar", "mlf"))["modules"]["default"]
    rows = module["memory"]["functions"]["operator_functions"]
    scratch = {f.name: f.scratch for f in artifact.module.functions if f.scratch is not None}
    assert [row["workspace"][0]["workspace_size_bytes"] > 0 for row in rows] == [
        f.name in scratch for f in artifact.module.functions[:-1]
    ]


def test_same_programs_same_bytes(artifact: Artifact, second: Artifact, tmp_path: Path) -> None:
    """Without a timestamp nothing of the time or the machine is in the archive."""
    one = export_model_library_format([artifact, second], tmp_path / "one.tar")
    two = export_model_library_format([artifact, second], tmp_path / "sub" / "two.tar")
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as tar:
        owners = {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in tar}
    assert owners == {(0, 0, "root", "root", 0)}


def test_timestamp_is_utc(artifact: Artifact, tmp_path: Path) -> None:
    """A time is written when it is asked for: converted to UTC, which its suffix says it is."""
    zone = timezone(timedelta(hours=2))
    when = datetime(2024, 12, 10, 1, 30, tzinfo=zone)
    path = export_model_library_format(artifact, tmp_path / "model.tar", timestamp=when)
    assert metadata(path)["modules"]["first"]["export_datetime"] == "2024-12-09 23:30:00Z"
    with tarfile.open(path) as tar:
        assert {member.mtime for member in tar} == {int(when.timestamp())}
    with pytest.raises(UsageError, match="no time zone"):
        export_model_library_format(artifact, path, timestamp=when.replace(tzinfo=None))


def test_several_modules_share_a_workspace(
    artifact: Artifact, second: Artifact, tmp_path: Path
) -> None:
    """The joint workspace has the size of the largest, not of the sum."""
    path = export_model_library_format([artifact, second], tmp_path / "both.tar")
    found, data = files(path), metadata(path)
    assert list(data["modules"]) == ["first", "second"]
    sizes = [
        module["memory"]["functions"]["main"][0]["workspace_size_bytes"]
        for module in data["modules"].values()
    ]
    assert sizes[0] > sizes[1] > 0
    assert data["microtir"]["joint_workspace"]["size_bytes"] == sizes[0]
    header = found["codegen/host/include/joint_workspace.h"].decode()
    assert f"#define JOINT_WORKSPACE_SIZE {sizes[0]}\n" in header
    # What a program has once must not be compiled for each of them.
    assert "src/first_system_lib.c" in found
    assert not any(b"microtir_system_lib_entry_point(void)\n{" in text for name, text in
                   found.items() if name.startswith("codegen/host/src"))  # fmt: skip


_MAIN = """
#include <stdio.h>
#include "joint_workspace.h"
static JOINT_WORKSPACE(memory);
int main(void)
{
    static int8_t image[12], scores[5], x[5], y[3];
    const struct first_inputs a = {image};
    const struct first_outputs b = {scores};
    const struct second_inputs c = {x};
    const struct second_outputs d = {y};
    const int32_t first = first_run(&a, &b, memory);
    const int32_t second = second_run(&c, &d, memory);
    (void)printf("%d %d\\n", (int)first, (int)second);
    return 0;
}
"""


def test_unpacked_archive_compiles_and_runs(
    artifact: Artifact, second: Artifact, tmp_path: Path
) -> None:
    """All of codegen/host/src, with two include paths, is what a build system needs."""
    path = export_model_library_format([artifact, second], tmp_path / "both.tar")
    for name, content in files(path).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "main.c").write_text(_MAIN)
    units = [p.relative_to(tmp_path).as_posix() for p in sorted(tmp_path.glob("**/src/*.c"))]
    units = [unit for unit in units if not unit.startswith("src/")]
    command = ["gcc", "-std=c99", *STRICT, "-Icodegen/host/include", "-Iruntime/include"]
    assert not compiler_output([*command, "main.c", *units, "-o", "main"], tmp_path)
    assert compiler_output(["./main"], tmp_path) == ""


def test_functions_of_a_user(tmp_path: Path) -> None:
    """A program without a model has style "operator": its buffers are listed, at the top."""
    path = artifact_of(matmul_module()).export(tmp_path / "algebra.tar", "mlf")
    data = metadata(path)
    assert (data["style"], data["executors"], data["model_name"]) == ("operator", [], "algebra")
    rows = data["memory"]["algebra_matmul"]
    assert rows[1] == {
        "size_bytes": 48,
        "shape": [4, 3],
        "dtype": "float32",
        "input_binding": "b",
    }
    assert rows[0]["size_bytes"] is None  # an extent is known at run time only
    assert "codegen/host/src/lib0.c" in files(path)


def test_what_cannot_be_together_is_refused(artifact: Artifact, tmp_path: Path) -> None:
    """Two programs of one name, no program, a model beside functions."""
    path = tmp_path / "model.tar"
    with pytest.raises(UsageError, match="2 programs with the module name 'first'"):
        export_model_library_format([artifact, artifact], path)
    with pytest.raises(UsageError, match="nothing to export"):
        export_model_library_format([], path)
    with pytest.raises(UsageError, match="only functions, and no model"):
        export_model_library_format([artifact, artifact_of(matmul_module())], path)
    assert not path.exists()


def test_foreign_files_are_kept(artifact: Artifact, tmp_path: Path) -> None:
    """A file or folder that microtir did not write is not replaced, its own archive is."""
    path = tmp_path / "model.tar"
    path.write_text("mine")
    with pytest.raises(OutputError, match=r"(?s)microtir did not write this file.*fix:.*force"):
        artifact.export(path, "mlf")
    assert path.read_text() == "mine"
    artifact.export(path, "mlf", force=True)
    before = path.read_bytes()
    assert artifact.export(path, "mlf").read_bytes() == before
    with pytest.raises(OutputError, match="is a folder"):
        artifact.export(tmp_path, "mlf", force=True)
    with pytest.raises(OutputError, match="cannot be written"):
        artifact.export(path / "sub" / "model.tar", "mlf")
