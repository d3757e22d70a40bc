"""Where operators are tested: the answers, and that each operator has one."""

from __future__ import annotations

import pytest

from tests.layering.source import ROOT, parse
from tests.support.operator_table import PROOFS
from tests.where import ELSEWHERE, Answer, Index, Operator, find, index, main


@pytest.mark.parametrize("name", ["SOFTMAX", "Softmax", "softmax", "soft_max"])
def test_an_operator_is_found_under_all_its_names(name: str) -> None:
    """As in TFLite, in ONNX, in the graph, in any spelling: one operator."""
    operator = find(name, index().known)
    assert operator is not None
    assert operator.names == {"SOFTMAX", "Softmax", "softmax"}
    answer = index().answer(operator)
    assert "tests/execute/test_operators.py" in answer.tables
    assert "tests/frontend/onnx/test_node_cases.py" in answer.tables
    assert "tests/frontend/test_tflite_pointwise.py" in answer.tests
    assert "tests/support/cases_pointwise.py" in answer.helpers


def test_every_operator_is_tested_somewhere() -> None:
    """In a table of cases, by name, or where `ELSEWHERE` says."""
    answers = [(operator, index().answer(operator)) for operator in index().known]
    unknown = [sorted(op.names) for op, answer in answers if not (answer.tables or answer.tests)]
    assert unknown == []


def test_the_list_of_others_is_short_and_true() -> None:
    """Each name is an operator's that no test but those names, and each test is there."""
    for test, names in ELSEWHERE.items():
        path, _, function = test.partition("::")
        assert f"\ndef {function}(" in (ROOT / path).read_text("utf-8"), test
        for name in names:
            operator = find(name, index().known)
            assert operator is not None, name
            found = set[str]().union(*(index().named.get(n, ()) for n in operator.names))
            assert not any(p.rpartition("/")[2].startswith("test_") for p in found), (name, found)


def test_answers_hold_the_proofs_of_the_table_of_operators() -> None:
    """What docs/operators.md relies on is among the answers."""
    for proof in PROOFS:
        for name in proof.names:
            operator = find(name, index().known)
            assert operator is not None, name
            answer = index().answer(operator)
            assert proof.test in (*answer.tables, *answer.tests, *answer.helpers), name


def test_names_are_read_as_names() -> None:
    """Identifiers and texts of names alone; docstrings and sentences do not count."""
    texts = {
        "tests/test_code.py": "from microtir.operators import Pad\nnode(Pad())",
        "tests/test_text.py": 'NAMES = "PAD ADD".split()',
        "tests/test_words.py": '"""Of PAD."""\nprint("the Pad is there")\npad = 1',
        "tests/support/cases.py": 'CASES = {"PAD": 1}',
        "tests/test_all.py": "from tests.support.operator_cases import OPERATORS",
    }
    known = [
        Operator(frozenset((name,)), frozenset(), frozenset((graph, graph.lower())))
        for name, graph in (("PAD", "Pad"), ("ADD", "Add"))
    ]
    modules = tuple(parse(path, text) for path, text in texts.items())
    answers = [Index(modules, tuple(known)).answer(operator) for operator in known]
    named = ("tests/test_code.py", "tests/test_text.py")
    assert answers[0] == Answer(("tests/test_all.py",), named, ("tests/support/cases.py",))
    assert answers[1] == Answer(("tests/test_all.py",), named[1:], ())


def test_the_command_prints_files_and_suggests_names(capsys: pytest.CaptureFixture[str]) -> None:
    """The names, then files by the way in which they test it; what is near an unknown name."""
    assert main(["Elu"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ELU, Elu, elu\n") and "\n  tests/execute/test_operators.py\n" in out
    assert main(["sofmax"]) == 1
    assert "no operator 'sofmax'; close to it: " in capsys.readouterr().err
