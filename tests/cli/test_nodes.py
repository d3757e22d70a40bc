"""`microtir run --executor debug`: the table of the nodes, here and on a board."""

from __future__ import annotations

import binascii
import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import INT8, Command

DEBUG = ("run", INT8, "--executor", "debug", "--fill-mode", "random")


@pytest.mark.parametrize("board", [None, "mps2_an386"])
def test_nodes_are_told_with_time_and_checksum(
    microtir: Command, board: str | None, tmp_path: Path
) -> None:
    """The checksum of the last node is that of the output, and the dump holds what was summed."""
    where = ("--board", board) if board else ("--target", "c -mcpu=cortex-m4")
    out, dump = tmp_path / "out.npz", tmp_path / "dump.npz"
    result = microtir(*DEBUG, *where, "--json", "-o", out, "--dump-tensors", dump)
    assert (result.status, result.err) == (0, "")
    (sample,) = json.loads(result.out)
    nodes = sample["nodes"]
    with np.load(out) as outputs, np.load(dump) as dumped:
        assert nodes[-1]["checksums"] == [binascii.crc32(outputs["probabilities"].tobytes())]
        for number, node in enumerate(nodes):
            for index, checksum in enumerate(node["checksums"]):
                tensor = dumped[f"sample0_node{number}_tensor{index}"]
                assert binascii.crc32(tensor.tobytes()) == checksum
    assert sum(node["ticks"] for node in nodes) > 0
    assert nodes[-1]["name"] == "probabilities"


def test_boards_and_this_machine_agree(microtir: Command) -> None:
    """One target, two machines: every checksum is the same."""
    target = ("--target", "c -mcpu=cortex-m4", "--json")
    (here,) = json.loads(microtir(*DEBUG, *target).out)
    (there,) = json.loads(microtir(*DEBUG, *target, "--board", "mps2_an386").out)
    assert [n["checksums"] for n in here["nodes"]] == [n["checksums"] for n in there["nodes"]]
    assert here["outputs"] == there["outputs"]


def test_the_table_is_for_people(microtir: Command) -> None:
    """One line for each node, and a total."""
    lines = microtir(*DEBUG).out.splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("node"))
    assert lines[heading].split() == ["node", "nanoseconds", "%", "checksum", "name"]
    assert lines[-1].startswith(f"{len(lines) - heading - 3} nodes, ")


def test_a_dump_without_nodes_is_refused(microtir: Command, tmp_path: Path) -> None:
    """Another executor, and sanitizers, do not show nodes."""
    dump = ("--dump-tensors", tmp_path / "dump.npz")
    result = microtir("run", INT8, *dump)
    assert result.status == 2 and "add --executor debug" in result.err
    result = microtir(*DEBUG, "--sanitize", *dump)
    assert result.status == 2 and "leave out --sanitize" in result.err
    assert not (tmp_path / "dump.npz").exists()


@pytest.mark.parametrize("executor", ["debug", "aot"])
def test_nodes_of_a_project(microtir: Command, executor: str, tmp_path: Path) -> None:
    """A project has the table, too, with the checksums of the model here; AOT code has layers."""
    archive, folder, dump = tmp_path / "m.tar", tmp_path / "project", tmp_path / "dump.npz"
    options = ("--target", "c", "--executor", executor)
    assert microtir("compile", INT8, *options, "-f", "mlf", "-o", archive).status == 0
    made = ("micro", "create-project", folder, archive, "crt", "--project-option")
    assert microtir(*made, "project_type=host_driven").status == 0
    assert microtir("micro", "build", folder, "crt").status == 0
    run = ("run", "--device", "micro", folder, "--fill-mode", "random")
    flags = ("--dump-tensors", dump) if executor == "debug" else ("--profile",)
    result = microtir(*run, *flags, "--json")
    assert (result.status, result.err) == (0, "")
    (there,) = json.loads(result.out)
    (here,) = json.loads(microtir(*DEBUG, "--target", "c", "--json").out)
    assert there["outputs"] == here["outputs"]
    checksums = [node["checksums"] for node in there["nodes"]]
    if executor == "debug":
        assert checksums == [node["checksums"] for node in here["nodes"]]
        assert [node["name"] for node in there["nodes"]] == [n["name"] for n in here["nodes"]]
        with np.load(dump) as tensors:
            last = tensors[f"sample0_node{len(checksums) - 1}_tensor0"]
        assert [binascii.crc32(last.tobytes())] == checksums[-1]
    else:
        assert checksums[-1] == here["nodes"][-1]["checksums"]
    measure = ("--repeat", 2, "--number", 2) if executor == "aot" else ()
    printed = microtir(*run, "--print-time", *measure).out.splitlines()
    assert ("time: mean " in printed[-1]) is bool(measure)
    assert printed[-1].startswith("time: ") and ("nodes, " in "".join(printed)) == (
        executor == "debug"
    )


def test_times_of_a_model_here_are_counted(microtir: Command) -> None:
    """What depends on the machine is not printed: instructions are what profile counts."""
    for flag in (("--print-time",), ("--profile",), ("--repeat", 2), ("--number", 2)):
        result = microtir("run", INT8, *flag)
        assert result.status == 2 and "use microtir profile" in result.err
