"""The table of operators by type is current, and what it says is held by tests."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from microtir.frontend.operator_table import operator_rows
from microtir.operators.common.tflite_schema import BuiltinOperator
from tests.frontend.models import Value, model, refusal
from tests.frontend.test_older_quantization import OPERATORS as OLDER
from tests.support.golden import Golden
from tests.support.operator_cases import HYBRID, OPERATORS, RECURRENT, Oracle, generate
from tests.support.operator_table import PROOFS, Proof, Standing, renewed, rows
from tests.support.resolver import BUILT_IN, CUSTOM
from tests.support.tflm import run_tflm

ROOT = Path(__file__).parents[2]
TABLE = {row.name: row for row in rows(OLDER)}
KINDS = {**OPERATORS, **RECURRENT}


def test_the_page_is_current(golden: Golden) -> None:
    """`make golden` writes it."""
    docs = Golden(ROOT / "docs", golden.update)
    docs.check("operators.md", renewed((docs.folder / "operators.md").read_text(), OLDER))


def test_every_type_of_the_resolver_is_equal() -> None:
    """All 100 built-in operators and 18 custom ones of tflite-micro, in every type they have."""
    assert (len(BUILT_IN), len(CUSTOM)) == (100, 18)
    missing = [
        (name, dtype)
        for name, dtypes in (*BUILT_IN.items(), *CUSTOM.items())
        for dtype in dtypes
        if TABLE[name].cells[dtype] is not Standing.MICRO
    ]
    assert missing == []


def test_every_operator_that_is_read_is_in_the_table() -> None:
    """No operator is taken that no test compares with anything."""
    read = {row.name for row in operator_rows()}
    assert read == set(TABLE)
    compared = {name for name, row in TABLE.items() if set(row.cells.values()) - {Standing.NOWHERE}}
    assert compared == set(TABLE)


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: f"{proof.names[0]}-{proof.types[0]}")
def test_proofs_are_where_the_table_says(proof: Proof) -> None:
    """A test that was moved or lost its operator leaves the table."""
    source = (ROOT / proof.test).read_text()
    assert [name for name in proof.names if name not in source] == []


def test_cases_for_tflite_micro_have_its_types() -> None:
    """What is compared with it is what its resolver has, and nothing else."""
    for name, kind in KINDS.items():
        by_micro = {t for t in kind.dtypes if kind.oracle(t) is Oracle.TFLITE_MICRO} - {HYBRID}
        assert by_micro <= set(BUILT_IN.get(name, ())), name


BY_LITERT = [
    (name, dtype) for name, kind in KINDS.items() for dtype in kind.by_litert if name in BUILT_IN
]


MISREAD = [("GREATER", "int16")]
"""What the wheel runs by parameters that it never sets: the result is always false."""


def _ask(name: str, dtype: str) -> None:
    """End with status 0 if the wheel runs a case, and otherwise in another way."""
    case = generate(name, 0, dtype)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    run_tflm(case.oracle_model, *case.inputs, outputs=case.outputs)


@pytest.mark.tools
def test_the_wheel_lacks_what_is_compared_with_litert() -> None:
    """Each case runs in a process of its own: the wheel may end it, or never end."""
    context, ran = multiprocessing.get_context("fork"), []
    for name, dtype in (("ADD", "int8"), *BY_LITERT):  # the first one it has
        process = context.Process(target=_ask, args=(name, dtype))
        process.start()
        process.join(20)
        if process.is_alive():
            process.kill()
        if process.exitcode == 0:
            ran.append((name, dtype))
    assert ran == [("ADD", "int8"), *MISREAD]


I16, I32 = np.int16, np.int32
X = Value((1, 2, 2, 2), I16, None, (0.5,), (0,))
WEIGHTS = Value((1, 1, 1, 2), np.int8, np.ones((1, 1, 1, 2), np.int8), (0.5,), (0,))
BIAS = Value((2,), I32, np.zeros(2, np.int32), (0.25,), (0,))


def test_what_tflite_micro_misreads_is_refused() -> None:
    """A bias of int32 where its kernel reads one of int64."""
    layer = model(BuiltinOperator.DEPTHWISE_CONV_2D, [X, WEIGHTS, BIAS], [X])
    assert "int32" in refusal(layer)
