"""`microtir diff`: figures and layers of two programs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import INT8, Command


@pytest.fixture
def folders(microtir: Command, tmp_path: Path) -> tuple[str, str]:
    """The example at two goals."""
    made = []
    for goal in ("flash", "speed"):
        made.append(str(tmp_path / goal))
        assert microtir("compile", INT8, "-o", made[-1], "--optimize", goal).status == 0
    return made[0], made[1]


def test_two_folders(microtir: Command, folders: tuple[str, str]) -> None:
    """Figures are those of the metadata; each layer that changed has both kernels."""
    told = json.loads(microtir("diff", *folders, "--json").out)
    facts = [json.loads((Path(f) / "metadata.json").read_text("utf-8")) for f in folders]
    figures = {entry["name"]: (entry["before"], entry["after"]) for entry in told["figures"]}
    assert figures["weights"] == tuple(f["weights_bytes"] for f in facts)
    assert figures["workspace"] == tuple(f["memory"]["workspace_size"] for f in facts)
    assert figures["flash"][0] < figures["flash"][1]
    assert figures["instructions"][0] > figures["instructions"][1]
    costs = [{x["name"]: x["choice"]["instructions"] for x in f["layers"]} for f in facts]
    assert sum(costs[0].values()) == figures["instructions"][0]
    for layer in told["layers"]:
        assert (layer["before"], layer["after"]) == tuple(c[layer["name"]] for c in costs)
        assert " -> " in layer["kernel"]
    assert told["config"] == {"optimize": ["flash", "speed"]}


def test_a_model_with_more_layers(microtir: Command, folders: tuple[str, str]) -> None:
    """A model file is compiled with the flags; what is new has no number before."""
    result = microtir("diff", folders[1], INT8, "--optimize", "speed", "--append", "argmax")
    assert result.status == 0
    [added] = [line for line in result.out.splitlines() if "_appended_" in line]
    assert added.split()[1] == "-"
    assert [line.split()[0] for line in result.out.splitlines()[-1:]] == ["append"]


@pytest.mark.parametrize(("limit", "status"), [("1", 1), ("400", 0)])
def test_limits(microtir: Command, folders: tuple[str, str], limit: str, status: int) -> None:
    """More growth than is allowed is a no, in Markdown too."""
    result = microtir("diff", *folders, "--max-flash", limit, "--markdown")
    assert result.status == status
    assert "| figure | before | after | change |" in result.out
    assert ("flash has grown by" in result.out) == bool(status)


@pytest.mark.parametrize("limit", ["nan", "-1"])
def test_what_is_no_limit(microtir: Command, folders: tuple[str, str], limit: str) -> None:
    """With nan no growth was ever too much, and a limit below 0 let what stays the same pass."""
    result = microtir("diff", *folders, "--max-ram", limit)
    assert result.status == 2 and "'--max-ram'" in result.diagnostic


def test_what_has_no_facts_is_refused(
    microtir: Command, tmp_path: Path, folders: tuple[str, str]
) -> None:
    """A folder of something else, facts that are damaged, flags without a model file."""
    result = microtir("diff", str(tmp_path), folders[0])
    assert result.status == 3 and "has no metadata.json" in result.diagnostic
    result = microtir("diff", *folders, "--optimize", "ram")
    assert result.status == 2 and "have no effect" in result.diagnostic
    result = microtir("diff", *folders, "--markdown", "--json")
    assert result.status == 2 and "cannot be used together" in result.diagnostic
    (Path(folders[0]) / "metadata.json").write_text('{"metadata_version": 2}', "utf-8")
    result = microtir("diff", *folders)
    assert result.status != 0 and "Traceback" not in result.diagnostic
