"""Templates hold no arithmetic, no shape logic and no loops over elements."""

from __future__ import annotations

import pytest

from tests.layering.source import ROOT, report
from tests.layering.template_rules import encoding_violations, template_violations


def test_templates_do_not_compute() -> None:
    """No template of the repository computes anything."""
    folder = ROOT / "templates"
    paths = sorted(folder.rglob("*.j2"))
    found = [
        text
        for path in paths
        for text in template_violations(
            path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")
        )
    ]
    assert paths, "no templates found"
    assert not found, report(found)


@pytest.mark.parametrize("room", ["projects", "packages"])
def test_templates_of_users_files_encode_for_their_language(room: str) -> None:
    """Each template of a project or a package is in a known language, and encodes for it alone."""
    folder = ROOT / "templates" / room
    found = [
        text
        for path in sorted(folder.rglob("*.j2"))
        for text in encoding_violations(
            path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")
        )
    ]
    assert not found, report(found)


def test_other_language_is_found() -> None:
    """An encoder of another language, and a file of an unknown one."""
    [found] = encoding_violations("Makefile.j2", "{{ a | make_words }}\n{{ b | cmake_words }}")
    assert found == "Makefile.j2:2: 'cmake_words' encodes for CMake"
    assert encoding_violations("a.bat.j2", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ a + 1 }}", "Add"),
        ("{{ -a }}", "Neg"),
        ("{% for i in range(4) %}x{% endfor %}", "only macros are called"),
        ("{% for i in items %}{{ i * 2 }}{% endfor %}", "Mul"),
        ("{% if n > m %}x{% endif %}", "comparing sizes"),
        ("{% if n == 0 %}x{% endif %}", "comparing sizes"),
        ("{% if 0 == n %}x{% endif %}", "comparing sizes"),
        ("{{ shape[0] }}", "by position"),
        ("{{ shape[1:] }}", "by position"),
        ("{{ items | length }}", "filter 'length'"),
        ("{% if n is even %}x{% endif %}", "test 'even'"),
        ("{{ node.compute() }}", "only macros are called"),
        ("{% if %}", "Expected an expression"),
    ],
)
def test_computing_template_is_found(text: str, reason: str) -> None:
    """Each way to compute in a template is found, with file and line."""
    found = template_violations("c/x.c.j2", f"/* heading */\n{text}")
    assert found
    assert found[0].startswith("c/x.c.j2:2: ")
    assert reason in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "{{ name }} {{ layer.comment }} {{ body | indent(4) }} {{ names | join(', ') }}",
        "{% for layer in layers %}{{ layer.body }}{% if not loop.last %},{% endif %}{% endfor %}",
        "{% if interface == 'c' %}a{% elif packed %}b{% else %}c{% endif %}",
        "{% include 'license.j2' %}{% extends 'base.j2' %}",
        "{% macro field(name) %}{{ name }};{% endmacro %}{{ field('a') }}",
        "{% import 'c.j2' as c %}{% from 'd.j2' import banner as b %}{{ c.field('x') }}{{ b() }}",
    ],
)
def test_plain_template_passes(text: str) -> None:
    """Printing, choosing, looping over lists, including and macros are what templates are for."""
    assert template_violations("x.j2", text) == []
