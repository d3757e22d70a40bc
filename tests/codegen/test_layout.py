"""Lines of C: width, columns, comments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from microtir.codegen.printer.layout import INDENT, WIDTH, block_comment, columns, wrap

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


def test_directives_are_continued() -> None:
    """A definition that is too wide lost its end, since no backslash joined its lines."""
    line = f"#define {'A' * 48}_INLINE static inline __attribute__((unused))"
    first, last = wrap(line)
    assert first.endswith(" \\") and len(first) <= WIDTH
    assert first[:-1].split() + last.split() == line.replace("((", "( (").split()


def test_text_without_a_break_is_left_alone() -> None:
    """A line that has no place to break stays as it is, rather than breaking a name."""
    line = "a" * 150
    assert wrap(line) == [line]


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, max_size=4).map(lambda parts: f"clamp({', '.join(parts)})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} + {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]} << {pair[1]}"),
        inner.map(lambda index: f"weights[{index}]"),
    )


EXPRESSIONS = st.recursive(
    st.sampled_from(["i", "(int32_t)x[i]", "multiply_by_quantized_multiplier"]),
    _deeper,
    max_leaves=60,
)


@given(EXPRESSIONS, st.integers(0, 5), st.integers(20, 100))
def test_wide_nested_expressions_end_and_lose_nothing(
    expression: str, levels: int, width: int
) -> None:
    """Whatever is nested, only blanks and ends of lines are new; a line that has no room breaks."""
    line = f"{INDENT * levels}y = {expression};"
    lines = wrap(line, width)
    assert "".join("".join(lines).split()) == "".join(line.split())
    assert all(each.strip() for each in lines)
    for each in lines:
        assert len(each) <= width or wrap(each, width) == [each]


def test_deep_nesting_leaves_room() -> None:
    """Continuation lines stop at the middle, however many brackets are open."""
    line = "y = " + "".join(f"f{i}(a, " for i in range(60)) + "b" + ")" * 60 + ";"
    lines = wrap(line)
    assert max(len(each) - len(each.lstrip()) for each in lines) == WIDTH // 2


def test_strings_do_not_break() -> None:
    """A line breaks before and after a string, and never at a sign inside of it."""
    first, second = '"a, b; (c = d + e) \\" , "', f'"{"(, " * 40}"'
    lines = wrap(f"    static const char *const names[] = {{{first}, {second}, NULL}};")
    assert any(first in line for line in lines)
    assert any(second in line for line in lines)


def test_block_comment_forms() -> None:
    """One line stays one line; several get a column of asterisks."""
    assert block_comment(["one"]) == ["/* one */"]
    assert block_comment(["one", "", "three"]) == ["/* one", " *", " * three", " */"]


def test_columns_are_aligned() -> None:
    """Cells start in the same column; the last one has no trailing blanks."""
    assert columns([("a", "1"), ("long", "22")]) == ["a    1", "long 22"]
