"""Generated C that calls C functions of somebody else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtir
from microtir.codegen import measured
from microtir.errors import RunError, UsageError
from microtir.tir.ir import ExternSource, PrimFunc, Seq, SourceKind
from tests.tir.test_externs import caller, extern

SCALED = """
int32_t scaled(const int8_t *x, int8_t *y, int32_t factor)
{
    for (int i = 0; i < 4; i++) {
        y[i] = (int8_t)(x[i] * factor);
    }
    return factor == 9 ? 41 : 0;
}
"""


def program(factor: int) -> PrimFunc:
    """Return a call of the C function above."""
    source = ExternSource("scaled.c", SCALED, SourceKind.DEFINITION)
    return caller(replace(extern(), sources=(source,)), factor)


def test_the_c_function_is_called() -> None:
    """Its file is part of the artifact, its prototype of both files, and the numbers are its."""
    artifact = microtir.build(program(3), name="row")
    assert "int32_t scaled(const int8_t *x, int8_t *y, int32_t factor);" in artifact.source(
        "default.c"
    )
    assert artifact.source("scaled.c").count("int32_t scaled(") == 2
    b = np.zeros(4, np.int8)
    microtir.host.load(artifact)["row"](np.arange(8, dtype=np.int8).reshape(2, 4), b)
    assert b.tolist() == [12, 15, 18, 21]


def test_its_failure_is_that_of_the_program() -> None:
    """A status that is not 0 comes back as a status with a text of its own."""
    model = microtir.host.load(microtir.build(program(9), name="row"))
    with pytest.raises(RunError, match="a C function outside the model reported a failure"):
        model["row"](np.zeros((2, 4), np.int8), np.zeros(4, np.int8))


def test_programs_without_externs_know_no_such_status() -> None:
    """The status costs nothing where it cannot occur."""
    quiet = replace(extern(), returns_status=False)
    artifact = microtir.build(caller(quiet), name="row")
    assert "EXTERN" not in artifact.source("default.h")
    assert "void scaled(" in artifact.source("default.c")


def test_two_meanings_of_one_name_are_refused() -> None:
    """The linker would take one of them for both."""
    first, second = program(1), caller(replace(extern(), returns_status=False))
    body = replace(second, params=first.params).body
    both = microtir.IRModule(functions=(first, replace(second, name="second", body=body)))
    with pytest.raises(UsageError, match="two C functions are called 'scaled'"):
        microtir.build(both)


def test_two_files_of_one_path_are_refused() -> None:
    """Also if one of them is generated."""
    source = ExternSource("default.c", "int x;\n")
    with pytest.raises(UsageError, match=r"two different files are called 'default\.c'"):
        microtir.build(caller(replace(extern(), sources=(source,))))


def test_each_call_is_made_once() -> None:
    """Two calls of one function share prototype and file."""
    once = program(2)
    artifact = microtir.build(replace(once, body=Seq((once.body, once.body))))
    assert artifact.source("default.c").count("int32_t scaled(") == 1
    assert [f.path for f in artifact.sources].count("scaled.c") == 1


def test_its_stack_counts() -> None:
    """What a C function declares is part of the bound of the program."""
    small, large = (
        measured(microtir.lower(caller(replace(extern(), stack_bytes=size)))).stacks.best
        for size in (0, 4096)
    )
    assert large.bytes == small.bytes + 4096
    assert [frame.name for frame in large.frames] == ["main", "scaled", "library"]
