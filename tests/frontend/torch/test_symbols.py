"""Sizes stand as texts in an archive: they are parsed by a grammar, and never run."""

from __future__ import annotations

import pytest

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.torch.symbols import Symbol, parse, symbols_of, value_of

S = "Symbol('s77', positive=True, integer=True)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Integer(3)", 3),
        ("-4", -4),
        (S, 5),
        (f"Add(Mul(Integer(3), {S}), Integer(21))", 36),
        (f"FloorDiv(Add({S}, Integer(-1)), Integer(2))", 2),
        (f"FloorDiv(Mul(Integer(-1), {S}), Integer(2))", -3),
        (f"Max(Integer(1), Min({S}, Symbol('u0')))", 4),
        (f"Pow({S}, Integer(2))", 25),
        (f"Mod({S}, Integer(3))", 2),
    ],
)
def test_expressions(text: str, value: int) -> None:
    """Each function computes what it says of integers."""
    assert value_of(parse(text, "here"), {"s77": 5, "u0": 4}, "here") == value


def test_symbols_of_an_expression() -> None:
    """What is assumed of a symbol does not matter."""
    assert parse(S, "here") == Symbol("s77")
    assert symbols_of(parse(f"Add({S}, Mul(Symbol('u0'), {S}))", "here")) == {"s77", "u0"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Integer",
        "Integer(",
        "Integer('3')",
        "Symbol(3)",
        "Symbol('a'",
        "Symbol('a', positive=True",
        "Add()",
        "Add(Integer(1), )",
        "FloorDiv(Integer(1))",
        "Integer(1) Integer(2)",
        "Integer(1);",
        "Integer(0x10)",
        "Integer(99999999999999999999999999)",
        "Add(" * 40 + "1" + ")" * 40,
        "Add(" * 2000 + "1" + ")" * 2000,
    ],
)
def test_what_is_no_expression(text: str) -> None:
    """It is refused, however deep it is."""
    with pytest.raises(ModelFileError):
        parse(text, "here")


@pytest.mark.parametrize("text", ["__import__('os')", "exec('x')", "Lambda(Symbol('x'), 1)"])
def test_other_functions_are_refused_by_name(text: str) -> None:
    """Nothing but the functions of sizes is called."""
    with pytest.raises(UnsupportedModelError, match="a size is computed with"):
        parse(text, "here")


@pytest.mark.parametrize(
    "text",
    [
        "FloorDiv(Integer(1), Integer(0))",
        "Mod(Integer(1), Integer(0))",
        "Pow(Integer(2), Integer(9999999))",
        "Pow(Integer(2), Integer(-1))",
        "Mul(Integer(9000000000000000000), Integer(9000000000000000000))",
        "Symbol('s1')",
    ],
)
def test_what_comes_to_no_size(text: str) -> None:
    """Divisions by 0, numbers without end, and symbols that nobody knows are refused."""
    with pytest.raises(MicrotirError):
        value_of(parse(text, "here"), {}, "here")
