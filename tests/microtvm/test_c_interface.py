"""The headers declare what those of TVM v0.18 did; what they leave out is listed with a reason.

`tvm_v0_18.json` holds names and types of the C headers of microTVM's runtime, header by header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from microtir.support import resources
from tests.microtvm.left_out import DIFFERENT, LEFT_OUT, WITHOUT
from tests.support.c_declarations import declared

pytestmark = pytest.mark.tools

FACTS: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("tvm_v0_18.json").read_text(encoding="utf-8")
)
RUNTIME = resources.runtime_crt()
HEADERS = RUNTIME / "microtvm" / "base" / "include"
# Stops the compiler, on purpose.
SERVER = "tvm/runtime/crt/microtvm_rpc_server.h"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Any]]:
    """What microtir's headers declare: by kind and name, wherever it stands."""
    headers = sorted(p.relative_to(HEADERS).as_posix() for p in HEADERS.rglob("*.h"))
    headers.remove(SERVER)
    scratch = tmp_path_factory.mktemp("library")
    found = declared(headers, [HEADERS, RUNTIME / "include"], scratch)
    result: dict[str, dict[str, Any]] = {}
    for declarations in found.values():
        for kind, named in asdict(declarations).items():
            values = named if isinstance(named, dict) else dict.fromkeys(named)
            result.setdefault(kind, {}).update(values)
    return result


def cases() -> list[tuple[str, str, str, Any]]:
    """Header, kind, name and type of everything that microTVM declared."""
    return [
        (header, kind, name, named[name] if isinstance(named, dict) else None)
        for header, kinds in FACTS.items()
        for kind, named in kinds.items()
        for name in named
    ]


def test_everything_is_there_or_left_out_with_a_reason(
    ours: Mapping[str, Mapping[str, Any]],
) -> None:
    """By name and type, from the macros to the members of structs."""
    wrong = []
    for header, kind, name, wanted in cases():
        if name in LEFT_OUT:
            continue
        found = ours[kind].get(name, "nothing")
        if name in DIFFERENT:
            # A typedef may stand for a struct of another name, or for one that differs.
            others = {"typedefs": wanted, "structs": "nothing"}
            is_right = found in (DIFFERENT[name][0], others.get(kind))
        elif kind == "structs" and found != "nothing":
            wrong += [f"{header}: {text}" for text in _members(name, found, wanted)]
            continue
        else:
            is_right = found == wanted
        wrong += [] if is_right else [f"{header}: {name} is {found}, and was {wanted}"]
    assert not wrong, "\n".join(wrong)


def _members(struct: str, found: list[str], wanted: list[str]) -> list[str]:
    """Members that are missing or different: further ones may stand behind those of microTVM."""
    kept = [m for m in wanted if m.partition(":")[0] not in WITHOUT.get(struct, ())]
    wrong = []
    for number, member in enumerate(kept):
        name, _, kind = member.partition(": ")
        kind = str(DIFFERENT.get(f"{struct}.{name}", (kind,))[0])
        is_there = number < len(found) and _expanded(found[number]) == _expanded(f"{name}: {kind}")
        wrong += [] if is_there else [f"{struct}.{name} is missing, or no {kind}"]
    return wrong


def _expanded(member: str) -> str:
    """Return a member as the preprocessor leaves it."""
    for macro, value in {
        "TVM_CRT_MAX_ARGS": "10",
        "TVM_CRT_MAX_STRLEN_FUNCTION_NAME": "120",
    }.items():
        member = member.replace(macro, value)
    return member


def test_nothing_is_listed_that_is_there(ours: Mapping[str, Mapping[str, Any]]) -> None:
    """The lists are those of what is missing, by names that microTVM had; each has its reason."""
    known = {name for _, _, name, _ in cases()}
    assert set(LEFT_OUT) <= known
    assert {name.partition(".")[0] for name in DIFFERENT} <= known
    declared_here = {name for named in ours.values() for name in named}
    assert not set(LEFT_OUT) & declared_here
    members = {text.partition(":")[0] for text in ours["structs"]["TVMGraphExecutor"]}
    assert not set(WITHOUT["TVMGraphExecutor"]) & members
    assert all(LEFT_OUT.values())


def test_every_function_that_is_declared_is_defined() -> None:
    """In the C files of the runtime, but for what applications or generated code define."""
    hooks = set(FACTS["tvm/runtime/crt/platform.h"]["functions"])
    hooks |= {"TVMLogf", "TVMSystemLibEntryPoint"}
    sources = "\n".join(p.read_text() for p in (RUNTIME / "microtvm").rglob("*.c"))
    missing = [
        name
        for _, kind, name, _ in cases()
        if kind == "functions" and name not in LEFT_OUT and name not in hooks
        if f" {name}(" not in sources and f"*{name}(" not in sources
    ]
    assert not missing
