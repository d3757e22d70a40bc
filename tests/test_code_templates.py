"""Templates: errors name the template and its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.support.code_templates import TemplateError, make_environment, render


def test_missing_value_names_template_and_line() -> None:
    """A template that was given too little says where it noticed."""
    with pytest.raises(
        TemplateError, match=r"templates/c/weights\.h\.j2:2: .*'macro' is undefined"
    ):
        render("c/weights.h.j2", comment="", arrays=[])


def test_missing_value_in_an_included_template(tmp_path: Path) -> None:
    """The line is that of the included template, in which the value is used."""
    (tmp_path / "outer.j2").write_text("a\n{% include 'inner.j2' %}\n")
    (tmp_path / "inner.j2").write_text("b\nc\n{{ missing }}\n")
    with pytest.raises(TemplateError, match=r"templates/inner\.j2:3: .*'missing'"):
        render("outer.j2", make_environment(tmp_path))


def test_unknown_template() -> None:
    """A template that does not exist is named."""
    with pytest.raises(TemplateError, match=r"no template 'c/nothing\.j2'"):
        render("c/nothing.j2")


def test_malformed_template(tmp_path: Path) -> None:
    """A syntax error is reported with its line."""
    (tmp_path / "bad.j2").write_text("fine\n{% if %}\n")
    with pytest.raises(TemplateError, match=r"templates/bad\.j2:2: .*malformed"):
        render("bad.j2", make_environment(tmp_path))


def test_nothing_is_escaped(tmp_path: Path) -> None:
    """C is not HTML: operators reach the file as they are."""
    (tmp_path / "x.j2").write_text("{{ text }}\n")
    assert render("x.j2", make_environment(tmp_path), text="a < b && c") == "a < b && c\n"
