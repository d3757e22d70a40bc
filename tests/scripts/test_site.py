"""The site of the pages: its hook, what finds faults of built pages, and what it lists."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from microtir.report.summary import headline
from scripts.models.shapes import SHAPES
from scripts.product import messages, options
from scripts.product.gallery import EXHIBITS, PAGE, PLACE, shown
from scripts.product.links import problems
from scripts.product.pages import OUTSIDE, ROOT, relinked
from scripts.product.picture import PICTURE, drawn, styles


@pytest.mark.parametrize(
    ("source", "link", "there"),
    [
        ("README.md", "docs/boards.md", "boards.md"),
        ("README.md", "docs/decisions/README.md#x", "decisions/README.md#x"),
        ("README.md", "CHANGELOG.md", "changes.md"),
        ("README.md", "templates/studio/icon.svg", "logo.svg"),
        ("docs/runtime.md", "../runtime_crt/MISRA.md", "misra.md"),
        ("docs/projects/cmake.md", "../../examples/wine/README.md", "../examples/wine.md"),
        ("docs/projects/cmake.md", "../boards.md#labels", "../boards.md#labels"),
        ("examples/wine/README.md", "../../docs/onnx.md", "../onnx.md"),
        ("docs/report.md", "https://example.com/docs/a.md", "https://example.com/docs/a.md"),
    ],
)
def test_links_are_those_of_the_site(source: str, link: str, there: str) -> None:
    """A link of the repository leads to the same page on the site."""
    assert relinked(f"see [that]({link}).", source) == f"see [that]({there})."


def test_every_page_has_a_place() -> None:
    """What the site lists is there, and every page but decisions is listed, once."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = [line.rpartition(": ")[2] for line in navigation.splitlines() if line.endswith(".md")]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    free = {page for page in pages if page.startswith("decisions/")} - {"decisions/README.md"}
    assert sorted(listed) == sorted({*pages, *OUTSIDE.values(), messages.PAGE, options.PAGE} - free)
    assert all((ROOT / source).is_file() for source in OUTSIDE)


def test_faults_of_built_pages_are_found(tmp_path: Path) -> None:
    """A font or a script of another host, a page that is not there, and a place in one."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "own.css").write_text("@import url(https://fonts.example.com/a.css);")
    (tmp_path / "index.html").write_text(
        '<link rel="canonical" href="https://example.com/"><link rel="stylesheet" href="own.css">'
        '<link rel="preconnect" href="https://fonts.example.com">'
        '<script src="//cdn.example.com/x.js"></script><p style="background:url(http://a.b/c)">'
        '<a href="https://example.com/elsewhere">x</a><a href="deep/a.html#here">x</a>'
        '<a href="deep/a.html#gone">x</a><a href="gone.html">x</a>'
        '<img src="data:image/png;base64,">'
    )
    (tmp_path / "deep" / "a.html").write_text('<h1 id="here"><a href="/index.html">x</a></h1>')
    assert problems(tmp_path) == [
        "index.html loads https://fonts.example.com",
        "index.html loads //cdn.example.com/x.js",
        "index.html loads http://a.b/c",
        "index.html links to deep/a.html#gone, which is not there",
        "index.html links to gone.html, which is not there",
        "own.css loads https://fonts.example.com/a.css",
    ]


def test_the_picture_is_what_is_planned_today() -> None:
    """It is one file of its own, and `python -m scripts.product.picture` writes it again."""
    picture = drawn()
    assert PICTURE.read_text("utf-8") == picture
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert picture.count("http") == 1


def test_the_picture_brings_its_styles_into_a_page() -> None:
    """Each rule is for the map alone, and colours are those of the chosen scheme."""
    rules = styles(PICTURE.read_text("utf-8"))
    selectors = re.findall(r"^([^\n{}]+)\{", rules, re.MULTILINE)
    scopes = (".live ", "[data-md-color-scheme=slate] .live ")
    assert len(selectors) > 20 and all(
        one.startswith(scopes) for selector in selectors for one in selector.split(", ")
    )
    assert not re.search(r"\bsvg(?!\.map)", rules)


def test_every_option_is_a_section() -> None:
    """An option of some verbs has their names, and one with other words elsewhere both texts."""
    sections = dict(re.findall(r"^## (--\S+)\n(.*?)(?=^## |\Z)", options.page(), re.M | re.S))
    assert {"--flash-budget", "--rename-input", "--certificate"} <= sections.keys()
    assert "`compile`" in sections["--flash-budget"]
    assert sections["--board"].count("Verbs:") > 2


def test_messages_stand_under_their_module() -> None:
    """A value that is put in is a square, a fix follows, and each folder leads to a page."""
    text = messages.page()
    section = text.partition("\n## config/target_text\n")[2].partition("\n## ")[0]
    assert "See [config](configuration.md)." in section
    assert "`target option '▪' is given twice`; `give the option once" in section
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert {*messages.TOPICS.values()} <= pages


def test_the_gallery_shows_what_is_planned_today() -> None:
    """The smallest network: figures of its report, a picture of its own, a link to the report."""
    assert (ROOT / "docs" / PAGE).read_text("utf-8").splitlines().count(PLACE) == 1
    names = [exhibit.name for exhibit in EXHIBITS]
    assert len({*names}) == len(names) and {*names} <= {"digits", *SHAPES}
    small = shown(EXHIBITS[names.index("perceptron")])
    card = ET.fromstring(small.card)
    assert {link.get("href") for link in card.iter("a")} == {"gallery/perceptron.html"}
    figures = ["".join(item.itertext()) for item in card.findall("ul/li")]
    assert figures == [" ".join(pair) for pair in headline(small.report)]
    assert ET.fromstring(small.picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert small.picture.count("http") == 1 and "<text" not in small.picture
