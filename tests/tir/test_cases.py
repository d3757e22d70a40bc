"""Passes on the programs in `cases/<pass>/`; what they become is in `tests/golden/tir/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.tir.analysis.access import prove_accesses
from microtir.tir.passes import (
    LowerVectorized,
    PartitionLoops,
    Pass,
    ScalarArrays,
    Simplify,
    UnrollLoops,
)
from microtir.tir.replay import ReplayOutcome, check_pass
from microtir.tir.text import parse_function, to_text
from microtir.tir.verify import verify
from tests.support.golden import Golden

CASES = Path(__file__).parent / "cases"
PASSES: dict[str, Pass] = {
    p.name: p
    for p in (Simplify(), PartitionLoops(), UnrollLoops(), LowerVectorized(), ScalarArrays())
}
SEPARATOR = "----\n"


def names() -> list[str]:
    """Files as pass/name."""
    return sorted(f"{f.parent.name}/{f.stem}" for f in CASES.glob("*/*.tir"))


@pytest.mark.parametrize("name", names())
def test_pass_on_file(name: str, golden: Golden) -> None:
    """The pass makes exactly the golden text, of the same meaning, with proven accesses."""
    before = (CASES / f"{name}.tir").read_text(encoding="utf-8")
    tir_pass = PASSES[name.split("/", maxsplit=1)[0]]
    func = parse_function(before)
    verify(func)
    after = tir_pass(func)
    golden.check(f"{name}.tir", before + SEPARATOR + to_text(after))
    verify(after)
    assert check_pass(func, after, tir_pass.name).outcome is ReplayOutcome.EQUAL
    prove_accesses(Simplify()(after))


def test_every_pass_has_a_case() -> None:
    """No pass goes without a file."""
    assert {n.split("/")[0] for n in names()} == set(PASSES)
