from __future__ import annotations

import json
from pathlib import Path

from microtir import IRModule, build
from microtir.cli.compile import _recomputed
from tests.driver.test_bands import recomputing, wide_graph
from tests.support.command import INT8, Command

FILES = {
    "digits_int8.h",
    "digits_int8.c",
    "digits_int8_weights.h",
    "digits_int8_weights.c",
    "metadata.json",
}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


def test_compile_writes_and_tells(microtir: Command, tmp_path: Path) -> None:
    """The summary names every file with its size, the workspace with its bound, and the call."""
    out = tmp_path / "out"
    result = microtir("compile", INT8, "-o", out)
    assert (result.status, result.err) == (0, "")
    written = contents(out)
    assert written.keys() == FILES
    for name, data in written.items():
        assert any(line.split() == [name, f"{len(data):,}"] for line in result.out.splitlines())
    memory = json.loads(written["metadata.json"])["memory"]
    assert (
        f"workspace  {memory['workspace_size']:,} bytes of RAM; lower bound "
        f"{memory['lower_bound']:,}, gap {memory['gap']:,}\n"
    ) in result.out
    assert "input      image: int8 1x8x8x1\n" in result.out
    assert "output     probabilities: int8 1x10\n" in result.out
    assert "digits_int8_run(" in result.out


def test_the_price_of_bands_is_told(microtir: Command, tmp_path: Path) -> None:
    """Multiply-accumulates that are done twice for less memory, as text and as JSON."""
    config = recomputing(100).with_(optimize="ram-least")
    metadata = build(IRModule(graph=wide_graph(0), config=config)).metadata
    again = sum(layer.macs_recomputed for layer in metadata.layers)
    once = sum(layer.macs_executed for layer in metadata.layers) - again
    text = f"{again:,} multiply-accumulates, {again / once:.1%} more, for less memory"
    assert _recomputed(metadata) == [("recomputed", text)] and again > 0
    result = microtir("compile", INT8, "-o", tmp_path / "b", "--json")
    summary = json.loads(result.out)
    assert summary["macs_recomputed"] == 0 < summary["macs_executed"]


def test_summary_as_json(microtir: Command, tmp_path: Path) -> None:
    """--json prints the same facts as one JSON object."""
    result = microtir("compile", INT8, "-o", tmp_path / "out", "--json")
    facts = json.loads(result.out)
    assert {file["path"] for file in facts["files"]} == FILES
    assert facts["macs"] == 42048
    assert facts["memory"]["verified"] is True
    assert facts["module_name"] == "digits_int8"
    assert facts["model"]["file"] == "digits_int8.tflite"


def test_output_is_deterministic(microtir: Command, tmp_path: Path) -> None:
    """The same command writes the same bytes again, also over its own output."""
    microtir("compile", INT8, "-o", tmp_path / "a")
    first = contents(tmp_path / "a")
    microtir("compile", INT8, "-o", tmp_path / "b")
    assert microtir("compile", INT8, "-o", tmp_path / "a").status == 0
    assert contents(tmp_path / "a") == first == contents(tmp_path / "b")


def test_module_name(microtir: Command, tmp_path: Path) -> None:
    """The module is named after the file, mapped to an identifier, unless the user names it."""
    model = tmp_path / "my-model.v2.tflite"
    model.write_bytes(INT8.read_bytes())
    microtir("compile", model, "-o", tmp_path / "a")
    assert "my_model_v2.c" in contents(tmp_path / "a")
    microtir("compile", model, "-o", tmp_path / "b", "--module-name", "MyNet")
    assert b"MyNet_run(" in contents(tmp_path / "b")["MyNet.h"]
    refused = microtir("compile", model, "-o", tmp_path / "c", "--module-name", "my-model.v2")
    assert refused.status == 2
    assert "did you mean 'my_model_v2'?" in refused.diagnostic


def test_other_formats_are_refused(microtir: Command, tmp_path: Path) -> None:
    """A format that is not known is refused with the legal ones."""
    result = microtir("compile", INT8, "-o", tmp_path / "out", "--output-format", "source")
    assert result.status == 2
    assert "did you mean 'sources'?" in result.diagnostic
    assert "expected: sources, mlf, project" in result.diagnostic
    assert not (tmp_path / "out").exists()


def test_output_is_asked_for(microtir: Command) -> None:
    """Without -o there is nothing to write to."""
    result = microtir("compile", INT8)
    assert result.status == 2
    assert "add -o DIR" in result.diagnostic


def test_foreign_folder_needs_force(microtir: Command, tmp_path: Path) -> None:
    """A folder with somebody's files is left alone, unless --force."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    result = microtir("compile", INT8, "-o", out)
    assert result.status == 3
    assert "files that microtir did not write" in result.diagnostic
    assert "add --force" in result.diagnostic
    assert "force=True" not in result.diagnostic
    assert contents(out) == {"thesis.txt": b"mine"}
    assert microtir("compile", INT8, "-o", out, "--force").status == 0
    assert contents(out).keys() == FILES


def test_output_below_a_file(microtir: Command, tmp_path: Path) -> None:
    """A folder that cannot be made: status 3, one diagnostic."""
    (tmp_path / "file").write_text("")
    result = microtir("compile", INT8, "-o", tmp_path / "file" / "out")
    assert result.status == 3
    assert "cannot be written" in result.diagnostic


def test_exceeded_budget(microtir: Command, tmp_path: Path) -> None:
    """A workspace over the budget is the answer no: status 1, and nothing is written."""
    result = microtir("compile", INT8, "-o", tmp_path / "out", "--ram-budget", "100")
    assert result.status == 1
    assert "budget.ram" in result.diagnostic
    assert "\n  tried:    " in result.diagnostic
    assert not (tmp_path / "out").exists()
