"""Makes the certificate of an artifact, and adds it with its checker to the generated files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from microtir.artifact import METADATA_FILE, Artifact, Metadata, PortData, SourceFile
from microtir.certificate import data
from microtir.certificate.calls import calls_in, members_of
from microtir.certificate.functions import functions_of, trusted_arithmetic
from microtir.certificate.vectors import vectors_of
from microtir.codegen.program import CProgram, make_program
from microtir.support.json_text import indented, plain
from microtir.support.resources import templates

CHECKER = "certcheck.py"


def checker_path() -> Path:
    """Return the checker: one file that needs nothing but Python."""
    return templates() / "certificate" / CHECKER


def certificate_file(artifact: Artifact) -> str:
    """Return the name of the certificate of an artifact."""
    return f"{artifact.metadata.module_name}.certificate.json"


def certified(artifact: Artifact) -> Artifact:
    """Return an artifact with its certificate and the checker among its files.

    Raises:
        UsageError: it is no compiled model, such as one that was read from an archive.
    """
    name = certificate_file(artifact)
    files = tuple(sorted((*artifact.metadata.files, name, CHECKER)))
    metadata = replace(artifact.metadata, files=files)
    sources = (
        *(file for file in artifact.sources if file.path != METADATA_FILE),
        SourceFile(METADATA_FILE, metadata.text),
        SourceFile(CHECKER, checker_path().read_text("utf-8")),
    )
    complete = replace(artifact, sources=sources, metadata=metadata)
    text = indented(plain(_certificate(complete))) + "\n"
    return replace(complete, sources=(*sources, SourceFile(name, text)))


def _certificate(artifact: Artifact) -> data.Certificate:
    lowered = artifact.module.require_program("certificate")
    program, facts, graph = make_program(artifact.module), artifact.metadata, artifact.module.graph
    assert facts.model is not None and program.model is not None and graph is not None
    memory = program.model.memory
    configuration = json.dumps(facts.config, sort_keys=True, separators=(",", ":"))
    return data.Certificate(
        data.FORMAT_VERSION,
        facts.generator,
        facts.module_name,
        data.FileDigest(facts.model.file, facts.model.bytes, facts.model.sha256),
        _sha256(configuration.encode()),
        tuple(
            data.FileDigest(file.path, len(file.content), _sha256(file.content))
            for file in artifact.files
        ),
        tuple(data.PoolFacts(pool.name, pool.size, pool.alignment) for pool in memory.pools),
        tuple(map(_port, facts.ports)),
        _states(facts),
        tuple(
            data.BufferFacts(
                p.name, memory.pools[p.pool].name, p.offset, p.size, p.first_step, p.last_step
            )
            for p in memory.placements
        ),
        _constants(program),
        tuple(calls_in(lowered.named_main.body, program, members_of(program.model))),
        tuple(functions_of(program, facts)),
        trusted_arithmetic(program),
        data.StackFacts(facts.stack.bytes, facts.stack.bytes_in_c, facts.stack.bytes_unoptimised),
        tuple(vectors_of(graph, program.model)),
    )


def _port(port: PortData) -> data.PortFacts:
    return data.PortFacts(port.kind, port.member, port.dtype, port.bytes, port.pool, port.offset)


def _states(facts: Metadata) -> tuple[data.PortFacts, ...]:
    members = facts.state.members if facts.state is not None else ()
    return tuple(
        data.PortFacts("state", m.member, m.dtype, m.bytes, None, m.offset) for m in members
    )


def _constants(program: CProgram) -> tuple[data.ConstantFacts, ...]:
    return tuple(
        data.ConstantFacts(array.name, array.dtype.value, int(array.data.size), array.alignment)
        for array in program.constants
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
