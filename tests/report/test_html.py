"""The page: well-formed, self-contained, escaped, the same every time."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from microtir.report.html import to_html
from microtir.report.profile import MeasuredProfile, with_profile
from tests.support.golden import Golden
from tests.support.report_facts import buffer, pool, report, steady, totals

_VOID = frozenset({"meta", "br", "line", "rect", "polygon"})


class Tags(HTMLParser):
    """Checks that elements close in the order in which they opened, and keeps what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(page: str) -> Tags:
    """Return the tags of a page that is well-formed."""
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def test_the_page_is_the_golden_one(golden: Golden) -> None:
    """The page of the hand-made report is the one that was looked at."""
    golden.check("page.html", to_html(report()))


def test_the_page_is_well_formed() -> None:
    """Every element closes, and a box per span and port is there."""
    tags = parsed(to_html(report()))
    spans = sum(len(b.spans) for b in pool().buffers)
    boxes = [a for t, a in tags.seen if t == "g" and a.get("class") == "tip box"]
    assert len(boxes) == spans + len(report().ports)
    assert sum(t == "title" for t, _ in tags.seen) == 1 + len(boxes) + len(report().steps) + 2


def test_the_page_needs_nothing_else() -> None:
    """Nothing is loaded from anywhere: no address, no script, style, image or font by reference."""
    page = to_html(report())
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", page)
    for tag, attributes in parsed(page).seen:
        assert tag not in ("link", "img", "iframe", "object", "base"), tag
        assert not attributes.keys() & {"src", "href", "xlink:href", "action"}, (tag, attributes)


def test_names_are_escaped() -> None:
    """A model's names cannot become markup or script."""
    evil = '</title><script>alert("1")</script>'
    bad = replace(pool(), buffers=(buffer(evil, pool().buffers[0].kind, 0, steady(0, 3, 0, 100)),))
    page = to_html(replace(report(), file=evil, model=evil, pools=(bad,)))
    assert [tag for tag, _ in parsed(page).seen].count("script") == 1
    assert "alert(" not in page.replace("alert(&#34;", "")


def test_limits_are_a_verdict() -> None:
    """The heading says whether the limits are met; without limits it says nothing."""
    found = report()
    (limit,) = found.limits
    assert '<em class="bad">does not fit</em>' in to_html(found)
    met = replace(found, limits=(replace(limit, allowed=100),))
    assert '<em class="good">fits</em>' in to_html(met)
    assert "<em" not in to_html(replace(found, limits=()))


def test_a_profile_adds_a_column() -> None:
    """Measured instructions stand beside each layer and in the section of the figures."""
    names = {layer.name: layer.operator for layer in report().layers if layer.has_code}
    rows = tuple((name, operator, 250, 400) for name, operator in names.items())
    page = to_html(
        with_profile(report(), MeasuredProfile("p.json", "net.tflite", (), totals(), rows))
    )
    assert "<h2>Measured</h2>" in page
    assert page.count(">250<") == 3
    assert '<svg class="bar"><rect width="100.0%" height="100%"/></svg><span>250</span>' in page
    assert "<h2>Measured</h2>" not in to_html(report())


def test_a_model_without_workspace_has_no_map() -> None:
    """Nothing is drawn where nothing is placed; the rest of the page is there."""
    empty = replace(pool(), size=0, lower_bound=0, buffers=())
    page = to_html(replace(report(), pools=(empty,), limits=()))
    assert '<svg class="map"' not in page
    assert "<h2>Layers</h2>" in page


def test_a_notebook_shows_what_a_model_takes() -> None:
    """The fragment is well-formed and escaped, and has no colour of its own: dark pages stay so."""
    facts = replace(report(), file="<b>&.tflite")
    shown = facts._repr_html_()
    parsed(shown)
    assert "&lt;b&gt;&amp;.tflite" in shown and "color" not in shown
    assert f"{facts.weights_bytes:,} bytes of flash" in shown
    assert f"{pool().size:,} bytes of RAM" in shown
