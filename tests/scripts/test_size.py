"""The lines of the package and their limit."""

from __future__ import annotations

from pathlib import Path

from scripts.size import LIMIT, excess, table


def test_the_package_is_within_its_limit() -> None:
    """More lines than that are asked for where the limit stands."""
    over = excess()
    assert over == 0, f"{over} lines more than LIMIT in scripts/size.py: what are they for?"


def test_lines_are_counted_by_folder(tmp_path: Path) -> None:
    """Modules of the root are one row, as each folder is; templates do not count."""
    package = tmp_path / "generator" / "microtir"
    for name, text in (("a.py", "x = 1\n"), ("b.py", "y = 1\n\nz = 1"), ("ir/deep/c.py", "# c\n")):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    (package / "ir" / "notes.md").write_text("not Python\n")
    (tmp_path / "templates" / "c").mkdir(parents=True)
    (tmp_path / "templates" / "c" / "a.c.j2").write_text("int a;\nint b;\n")
    rows = [line.split() for line in table(tmp_path, limit=4).splitlines()]
    assert rows == [
        ["(root)", "4"],
        ["ir", "1"],
        ["total", "5"],
        ["limit", "4"],
        ["templates,", "apart", "2"],
    ]
    assert [excess(tmp_path, limit) for limit in (4, 5)] == [1, 0]
    assert LIMIT % 500 == 0
