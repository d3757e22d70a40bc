"""What `--certificate` writes: digests, buffers, calls and accesses as they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microtir import build, host
from microtir.artifact import Artifact
from microtir.certificate import certified
from microtir.config import Target
from microtir.errors import UsageError
from microtir.frontend import from_tflite
from microtir.module.ir_module import IRModule
from microtir.support.resources import example
from tests.support.command import Command
from tests.support.programs import artifact_of, matmul_module
from tests.support.small_models import quantised_graph


def _digits(target: str = "c") -> Artifact:
    return certified(build(from_tflite(example("digits/digits_int8.tflite")), Target(target)))


def _facts(artifact: Artifact) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(artifact.sources[-1].text)
    return facts


def test_digests_are_those_of_the_files(tmp_path: Path, microtir: Command) -> None:
    """Every generated file but the certificate is listed, by the bytes on the disk."""
    model, folder = example("digits/digits_int8.tflite"), tmp_path / "c"
    microtir("compile", model, "--certificate", "-o", folder)
    facts = json.loads((folder / "digits_int8.certificate.json").read_bytes())
    listed = {file["path"]: file["sha256"] for file in facts["files"]}
    written = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "digits_int8.certificate.json"
    }
    assert listed == written
    assert facts["model"]["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    # What it says of the folder lets the next call replace it.
    assert microtir("compile", model, "--certificate", "-o", folder).status == 0


def test_the_c_is_the_same_with_a_certificate() -> None:
    """A certificate changes no file but the list of files."""
    plain = build(from_tflite(example("digits/digits_int8.tflite")), Target("c"))
    texts = {file.path: file.text for file in _digits().sources}
    for file in plain.sources:
        assert file.path == "metadata.json" or texts[file.path] == file.text


def test_buffers_and_calls_are_those_of_the_program() -> None:
    """Buffers are where placement put them, and the calls name them."""
    artifact = _digits()
    facts, memory = _facts(artifact), artifact.metadata.memory
    assert memory is not None
    assert [(b["name"], b["offset"], b["bytes"]) for b in facts["buffers"]] == [
        (p.name, p.offset, p.size) for p in memory.placements
    ]
    names = {b["name"] for b in facts["buffers"]} | {p["member"] for p in facts["ports"]}
    functions = {f["name"] for f in facts["functions"]}
    assert {call["function"] for call in facts["calls"]} <= functions
    assert len(facts["calls"]) == len(artifact.metadata.layers)
    used = {a["buffer"] for call in facts["calls"] for a in call["arguments"] if a["buffer"]}
    assert {b["name"] for b in facts["buffers"]} <= used <= names


@pytest.mark.parametrize("target", ["c", "cortex-m4"])
def test_accesses_lie_inside_their_buffers(target: str) -> None:
    """Each access is within the elements of its parameter or constant, and some touch the ends."""
    facts = _facts(_digits(target))
    constants = {c["name"]: c["elements"] for c in facts["constants"]}
    touched = 0
    for function in facts["functions"]:
        sizes = constants | {p["name"]: p["elements"] for p in function["parameters"]}
        for access in function["accesses"]:
            size = sizes.get(access["buffer"])
            if size is not None:
                assert 0 <= access["least"] <= access["greatest"] < size, function["name"]
                touched += access["greatest"] == size - 1
    assert touched > len(facts["functions"])


def test_vectors_are_what_the_c_computes() -> None:
    """Inputs by the rule on the page, through the compiled C, have the digests of the reference."""
    artifact = _digits()
    model = host.load(artifact)
    for vector in _facts(artifact)["vectors"]:
        state, values = vector["seed"], []
        for _ in range(64):
            state = (1664525 * state + 1013904223) % 2**32
            values.append((state >> 24) - 128)
        image = np.array(values, np.int8).reshape(1, 8, 8, 1)
        (output,) = model.run({"image": image}).values()
        (digest,) = vector["outputs"].values()
        assert hashlib.sha256(output.tobytes()).hexdigest() == digest


def test_what_is_no_compiled_model_has_no_certificate(tmp_path: Path, microtir: Command) -> None:
    """Archives and other formats are refused by a sentence."""
    model = example("digits/digits_int8.tflite")
    refused = microtir("compile", model, "--certificate", "-f", "mlf", "-o", tmp_path / "a.tar")
    assert refused.status == 2
    assert "--certificate requires --output-format sources" in refused.diagnostic


def test_a_graph_without_a_file_has_a_certificate() -> None:
    """A graph that was made in memory has no file with a digest."""
    facts = _facts(certified(build(IRModule(graph=quantised_graph()), Target("c"))))
    assert facts["calls"] and facts["functions"]


def test_functions_alone_are_refused() -> None:
    """Functions of a user are no model."""
    with pytest.raises(UsageError, match="no compiled model"):
        certified(artifact_of(matmul_module()))
