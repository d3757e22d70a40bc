"""Makes the certificate of an artifact, and adds it with its checker to the generated files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from microtir.artifact import METADATA_FILE, Artifact, Metadata, PortData, SourceFile
from microtir.certificate import data
from microtir.certificate.calls import calls_in, members_of
from microtir.certificate.functions import functions_of, trusted_arithmetic
from microtir.certificate.vectors import vectors_of
from microtir.codegen.program import CProgram, make_program
from microtir.codegen.timing import causes_by_function
from microtir.support.json_text import indented, plain
from microtir.support.resources import templates
from microtir.tir.analysis.timing import worst

CHECKER = "certcheck.py"


def checker_path() -> Path:
    """Return the checker: one file that needs nothing but Python."""
    return templates() / "certificate" / CHECKER


def certificate_file(artifact: Artifact) -> str:
    """Return the name of the certificate of an artifact."""
    return f"{artifact.metadata.module_name}.certificate.json"


def certified(artifact: Artifact, counted: data.InstructionFacts | None = None) -> Artifact:
    """Return an artifact with its certificate and the checker among its files.

    Args:
        artifact: a compiled model.
        counted: instructions of a run, which the header then states.

    Raises:
        UsageError: it is no compiled model, such as one that was read from an archive.
    """
    name = certificate_file(artifact)
    timing = tuple(_timing(artifact))
    if counted is not None:
        artifact = _with_instructions(artifact, counted, timing)
    files = tuple(sorted((*artifact.metadata.files, name, CHECKER)))
    metadata = replace(artifact.metadata, files=files)
    sources = (
        *(file for file in artifact.sources if file.path != METADATA_FILE),
        SourceFile(METADATA_FILE, metadata.text),
        SourceFile(CHECKER, checker_path().read_text("utf-8")),
    )
    complete = replace(artifact, sources=sources, metadata=metadata)
    certificate = replace(_certificate(complete, timing), instructions=counted)
    text = indented(plain(certificate)) + "\n"
    return replace(complete, sources=(*sources, SourceFile(name, text)))


def _timing(artifact: Artifact) -> Iterator[data.TimeFacts]:
    """Yield what the time of the run function and of each layer depends on."""
    causes = causes_by_function(artifact.module)
    layers = [layer.function for layer in artifact.metadata.layers]
    for function in dict.fromkeys([f"{artifact.metadata.module_name}_run", *layers]):
        of = causes[function]
        time = worst(cause.time for cause in of)
        yield data.TimeFacts(function, str(time), tuple(f"{c.time}: {c.what}" for c in of))


def _with_instructions(
    artifact: Artifact, counted: data.InstructionFacts, timing: Sequence[data.TimeFacts]
) -> Artifact:
    """Return an artifact whose header has the instructions of a run, or why there is no number."""
    macro, path = artifact.metadata.module_name.upper(), f"{artifact.metadata.module_name}.h"
    end = f"#endif /* {macro}_H */"
    lines = _instruction_lines(f"{macro}_INSTRUCTIONS", counted, timing)
    text = "".join(f"{line}\n" for line in lines)
    sources = tuple(
        replace(file, text=file.text.replace(end, f"{text}\n{end}")) if file.path == path else file
        for file in artifact.sources
    )
    return replace(artifact, sources=sources)


def _instruction_lines(
    name: str, counted: data.InstructionFacts, timing: Sequence[data.TimeFacts]
) -> list[str]:
    """Return what a header says of the instructions of a run.

    The machine code decides. Where it was not followed, what TIR says of each function does.
    """
    build = f" * built by {counted.compiler} with {' '.join(counted.flags)}, on {counted.board}."
    fixed, largest = f"#define {name} {counted.instructions}", f"#define {name}_MAX"
    machine_code, depending = counted.machine_code, [of for of in timing if of.causes]
    if counted.range is None:
        unchecked = f" * The machine code was not checked: {machine_code.problem}."
        if depending:
            causes = [f" * {of.function}: {of.causes[0]}" for of in depending]
            return ["/* A run has no fixed number of instructions:", *causes, unchecked, " */"]
        return ["/* Instructions of a run,", build, unchecked, " */", fixed]
    least, most = counted.range
    if least == most:
        note = " * No branch of the machine code depends on data. */"
        return ["/* Instructions of a run, for any input,", build, note, fixed, f"{largest} {most}"]
    return [
        f"/* The largest number of instructions of a run, for any input; the smallest is {least},",
        build,
        " * These branches of the machine code depend on data:",
        *(f" * {branch}" for branch in machine_code.branches),
        " */",
        f"{largest} {most}",
    ]


def _certificate(artifact: Artifact, timing: tuple[data.TimeFacts, ...]) -> data.Certificate:
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
        timing,
        None,
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
