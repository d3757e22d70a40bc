"""Lines of C: width, columns, comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.codegen.layout import block_comment, columns, comment_text, wrap

TERMS = " + ".join(f"x[(row * 10 + col) * {n}]" for n in range(12))


def test_wide_lines_break_at_the_outermost_operator() -> None:
    """Lines stay within the width, break outside brackets, and lose nothing."""
    lines = wrap(f"    y = {TERMS};")
    assert all(len(line) <= 100 for line in lines)
    assert " ".join(line.strip() for line in lines) == f"y = {TERMS};"
    assert all(line.startswith("            + x[") for line in lines[1:])


def test_nested_calls_break_where_they_bind_least() -> None:
    """Arguments of the outer call come apart first; an argument that is too wide breaks again."""
    inner = "multiply_by_quantized_multiplier"
    line = (
        f"    const int32_t scaled = {inner}("
        f"{inner}(x0[(row * 16 + col) * 32 + ch] * 1048576, 1, 2)"
        f" + {inner}(x1[(row * 16 + col) * 32 + ch] * 1048576, 3, 4), 1140768826, -17) - 128;"
    )
    assert wrap(line) == [
        f"    const int32_t scaled = {inner}(",
        f"            {inner}(x0[(row * 16 + col) * 32 + ch] * 1048576, 1, 2)",
        f"                + {inner}(x1[(row * 16 + col) * 32 + ch] * 1048576, 3, 4),",
        "            1140768826, -17)",
        "            - 128;",
    ]


def test_short_lines_stay() -> None:
    """A line that fits is not touched."""
    assert wrap("    y = 1;") == ["    y = 1;"]


def test_text_without_a_break_is_left_alone() -> None:
    """A line that has no place to break stays as it is, rather than breaking a name."""
    line = "a" * 150
    assert wrap(line) == [line]


@given(st.text(max_size=80))
def test_comment_text_cannot_end_a_comment(text: str) -> None:
    """Whatever a model file holds, its text neither ends nor nests a comment, and is ASCII."""
    safe = comment_text(text)
    assert "*/" not in safe
    assert "/*" not in safe
    assert safe.isascii()
    assert "\n" not in safe


@pytest.mark.parametrize("text", ["/*/", "*/*", "**//", "a\rb", "??/"])
def test_awkward_comment_text(text: str) -> None:
    """Overlapping comment signs, carriage returns and trigraphs are defused, too."""
    safe = comment_text(text)
    assert "*/" not in safe
    assert "/*" not in safe
    assert "??/" not in safe
    assert safe.isprintable()


def test_block_comment_forms() -> None:
    """One line stays one line; several get a column of asterisks."""
    assert block_comment(["one"]) == ["/* one */"]
    assert block_comment(["one", "", "three"]) == ["/* one", " *", " * three", " */"]


def test_columns_are_aligned() -> None:
    """Cells start in the same column; the last one has no trailing blanks."""
    assert columns([("a", "1"), ("long", "22")]) == ["a    1", "long 22"]
