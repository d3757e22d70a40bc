"""Plausible certificates for wrong programs: one thing is changed, and all digests are made anew.

    python -m tests.certificate.mutants 5000 [PROGRAM ...]

It takes as many of each program, no change twice, and prints how many mutants each part of the
checker noticed, and those that were accepted, with what their test vectors say of them.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import runpy
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from microtir import CompilationConfig, build
from microtir.certificate import certificate_file, certified, checker_path
from microtir.config import Optimize
from microtir.frontend import from_tflite
from microtir.module.ir_module import IRModule
from microtir.support.resources import example
from scripts.models.wake_word import Order, Shape, wake_word
from tests.support.small_models import (
    attention_graph,
    planes_graph,
    products_graph,
    quantised_graph,
)

CHECKER = runpy.run_path(str(checker_path()))
Files = dict[str, str]


@dataclass(frozen=True)
class Mutant:
    """Changed files and claims; `kind` is what was changed, `what` how."""

    kind: str
    what: str
    files: Files
    facts: dict[str, Any]


def _digits() -> IRModule:
    return from_tflite(example("digits/digits_int8.tflite"))


def _streaming() -> IRModule:
    shape = Shape(3, 8, (5, 8), (((5,), 8), ((2, 3), 12)), 4)
    return from_tflite(wake_word(Order.APPEND_DROP, shape))


def _layers() -> IRModule:
    return IRModule(graph=quantised_graph())


# Models and how they are compiled; "streaming" has states, rings of frames.
PROGRAMS: dict[str, tuple[Callable[[], IRModule], CompilationConfig]] = {
    "layers": (_layers, CompilationConfig(targets="c")),
    "canaries": (_layers, CompilationConfig(targets="c", canaries=True)),
    "products": (
        lambda: IRModule(graph=products_graph()),
        CompilationConfig(targets="c -mcpu=cortex-m4"),
    ),
    "planes": (
        lambda: IRModule(graph=planes_graph()),
        CompilationConfig(targets="c -mcpu=cortex-m4", optimize=Optimize.SPEED),
    ),
    "attention": (
        lambda: IRModule(graph=attention_graph()),
        CompilationConfig(targets="c -mcpu=cortex-m55", optimize=Optimize.SPEED),
    ),
    "digits": (_digits, CompilationConfig(targets="c")),
    "digits_m4": (_digits, CompilationConfig(targets="c -mcpu=cortex-m4")),
    "digits_m55": (_digits, CompilationConfig(targets="c -mcpu=cortex-m55")),
    "streaming": (_streaming, CompilationConfig(targets="c")),
}


def program(name: str = "layers") -> tuple[Files, dict[str, Any]]:
    """Return generated files and the certificate of a program, to be changed at will."""
    texts = dict(_texts(name))
    facts = json.loads(texts.popitem()[1])
    return {name: texts[name] for name in texts if name.endswith((".c", ".h"))}, facts


@cache
def _texts(name: str) -> tuple[tuple[str, str], ...]:
    model, config = PROGRAMS[name]
    artifact = certified(build(model(), config))
    assert artifact.sources[-1].path == certificate_file(artifact)
    return tuple((file.path, file.text) for file in artifact.sources)


def verdict(
    files: Files, facts: dict[str, Any], folder: Path, compiler: str | None = None
) -> list[str]:
    """Return the parts of the checker that refuse files with a certificate of their digests."""
    listed = [
        {"path": name, "bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
        for name, text in files.items()
    ]
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    path = folder / "a.certificate.json"
    path.write_text(json.dumps({**facts, "files": listed}), "utf-8")
    try:
        check = CHECKER["Check"](path, folder)
        check.all(compiler)
    except CHECKER["BadInput"]:
        return ["form"]
    return [part for part, _ in check.refused]


def mutants(files: Files, facts: dict[str, Any], seed: int) -> Iterator[Mutant]:
    """Yield mutants, none of them twice, until a thousand draws have brought no other."""
    rng = random.Random(seed)
    kinds = sorted(KINDS)
    seen = {_digest(files, facts)}
    draws = 0
    while draws < 1000:
        draws += 1
        kind = rng.choice(kinds)
        changed, claims = dict(files), json.loads(json.dumps(facts))
        what = KINDS[kind](rng, changed, claims)
        digest = _digest(changed, claims)
        if what and digest not in seen:
            seen.add(digest)
            draws = 0
            yield Mutant(kind, what, changed, claims)


def _digest(files: Files, facts: dict[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps([files, facts]).encode()).digest()


def _source(files: Files) -> str:
    return next(name for name in files if name.endswith(".c") and "_weights" not in name)


def _replaced(
    rng: random.Random, files: Files, name: str, pattern: str, new: Callable[[re.Match[str]], str]
) -> re.Match[str] | None:
    """Change one place of a file that a pattern fits; comments and macros have none."""
    matches = list(re.finditer(pattern, files[name]))
    if not matches:
        return None
    match = rng.choice(matches)
    text = files[name]
    files[name] = text[: match.start()] + new(match) + text[match.end() :]
    return match


def _step(rng: random.Random) -> int:
    return rng.choice((-16, -4, -3, -1, 1, 3, 4, 16))


def _offset(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    step, where = _step(rng), rng.choice(("c", "claim", "both"))
    buffers = [b for b in facts["buffers"] if b["offset"] + step >= 0]
    if not buffers:
        return ""
    buffer = rng.choice(buffers)
    old = buffer["offset"]
    if where != "claim" and not _replaced(
        rng, files, _source(files), rf"\(memory \+ {old}\)", lambda _: f"(memory + {old + step})"
    ):
        return ""
    if where != "c":
        buffer["offset"] += step
    return f"{buffer['name']} at {old} by {step} in {where}"


def _lifetime(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    buffer, end = rng.choice(facts["buffers"]), rng.choice(("first_call", "last_call"))
    buffer[end] = max(0, buffer[end] + rng.choice((-1, 1, 2)))
    return "" if facts == json.loads(json.dumps(facts)) and buffer[end] == 0 else str(buffer)


def _bound(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    function = rng.choice([f for f in facts["functions"] if f["accesses"]])
    access, end, step = (
        rng.choice(function["accesses"]),
        rng.choice(("least", "greatest")),
        _step(rng),
    )
    access[end] += step
    return f"{function['name']} {access['buffer']} {end} by {step}"


def _extent(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    step = rng.choice((-2, -1, 1, 2))
    match = _replaced(
        rng, files, _source(files), r"(for \(int32_t \w+ = \d+; \w+ < )(\d+)(;)",
        lambda m: f"{m[1]}{max(1, int(m[2]) + step)}{m[3]}",
    )  # fmt: skip
    if match is None or int(match[2]) + step < 1:
        return ""
    variable, stop = match[1].split()[2], int(match[2])
    if rng.random() < 0.7:
        for function in facts["functions"]:
            for one in function["loops"]:
                if (one["variable"], one["stop"]) == (variable, stop):
                    one["stop"] += step
    return f"{match[0]} by {step}"


def _size(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    constant, step = rng.choice(facts["constants"]), _step(rng)
    old = constant["elements"]
    if old + step < 1:
        return ""
    for name in files:
        before = f"{constant['name']}[{old}]"
        files[name] = files[name].replace(before, f"{constant['name']}[{old + step}]")
    constant["elements"] += step
    return f"{constant['name']} by {step}"


def _callee(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    types = {
        f["name"]: tuple((p["dtype"], p["elements"] is None) for p in f["parameters"])
        for f in facts["functions"]
    }
    pairs = [(a, b) for a in types for b in types if a != b and types[a] == types[b]]
    if not pairs:
        return ""
    one, other = rng.choice(pairs)
    match = _replaced(rng, files, _source(files), rf"(?m)^( +){one}\(", lambda m: f"{m[1]}{other}(")
    for call in facts["calls"]:
        if call["function"] == one and rng.random() < 0.7:
            call["function"] = other
    return f"{one} becomes {other}" if match else ""


def _order(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    name = _source(files)
    head, start, run = files[name].partition("_run(\n")
    calls = list(re.finditer(r"(?m)^ {4,}\w+_layer\d+\w*\((?:[^;]*?)\);\n", run))
    if len(calls) < 2:
        return ""
    i = rng.randrange(len(calls) - 1)
    a, b = calls[i], calls[i + 1]
    run = run[: a.start()] + b[0] + run[a.end() : b.start()] + a[0] + run[b.end() :]
    files[name] = head + start + run
    if rng.random() < 0.7:
        facts["calls"][i : i + 2] = reversed(facts["calls"][i : i + 2])
    return f"calls {i} and {i + 1}"


def _index(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    step = rng.choice((-2, -1, 1, 2))
    match = _replaced(
        rng, files, _source(files), r"(\w\[[^\]\n]*[+*] )(\d+)(\])",
        lambda m: f"{m[1]}{int(m[2]) + step}{m[3]}",
    )  # fmt: skip
    return f"{match[0]} by {step}" if match and int(match[2]) + step >= 0 else ""


def _accumulator(rng: random.Random, files: Files, facts: dict[str, Any]) -> str:
    match = _replaced(
        rng, files, _source(files), r"int32_t ((?:sum|low|high)\w*(?: = 0|\[\d+\]);)",
        lambda m: f"int16_t {m[1]}",
    )  # fmt: skip
    if match is None:
        return ""
    before = match.string[: match.start()]
    name = max((f["name"] for f in facts["functions"]), key=lambda n: before.rfind(f" {n}("))
    return f"{match[0]} of {name}"


KINDS: dict[str, Callable[[random.Random, Files, dict[str, Any]], str]] = {
    "accumulator": _accumulator, "bound": _bound, "called layer": _callee, "index": _index,
    "lifetime": _lifetime, "loop extent": _extent, "offset": _offset, "order": _order,
    "array size": _size,
}  # fmt: skip


def tried(
    count: int, name: str = "layers", seed: int = 1
) -> tuple[Counter[tuple[str, str]], list[Mutant]]:
    """Return how often which part noticed which kind of mutant, and those that none noticed."""
    files, facts = program(name)
    noticed: Counter[tuple[str, str]] = Counter()
    accepted = []
    with tempfile.TemporaryDirectory() as folder:
        assert verdict(files, facts, Path(folder)) == []
        for mutant in islice(mutants(files, facts, seed), count):
            parts = verdict(mutant.files, mutant.facts, Path(folder))
            noticed[mutant.kind, parts[0] if parts else "nobody"] += 1
            if not parts:
                accepted.append(mutant)
    return noticed, accepted


def _said(mutant: Mutant) -> str:
    with tempfile.TemporaryDirectory() as folder:
        parts = verdict(mutant.files, mutant.facts, Path(folder), "gcc")
    return "noticed by test vectors" if parts else "with equal outputs"


def main(count: int, *names: str) -> int:
    """Print what noticed how many mutants of each program; return 1 if one was accepted."""
    chosen = names or tuple(PROGRAMS)
    is_accepted = False
    for name in chosen:
        noticed, accepted = tried(count // len(chosen), name)
        lines = [f"{name}: {noticed.total()} mutants"]
        lines += [f"{kind:14} {part:10} {n:6}" for (kind, part), n in sorted(noticed.items())]
        lines += [f"accepted, {_said(mutant)}: {mutant.kind}: {mutant.what}" for mutant in accepted]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        is_accepted |= bool(accepted)
    return int(is_accepted)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
