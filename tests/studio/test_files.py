"""The files of the page: whole by themselves, with no script or style in the page itself."""

from __future__ import annotations

import re

from microtir.studio.assets import PAGE, assets
from tests.support.studio_server import Page

TEXTS = {name: asset.content.decode() for name, asset in assets().items()}
SCRIPTS = {name: text for name, text in TEXTS.items() if name.endswith(".js")}


def test_every_file_is_served_as_what_it_is(page: Page) -> None:
    """Scripts as scripts: browsers are told not to guess."""
    for name, asset in assets().items():
        answer = page.get("/" if name == PAGE else f"/static/{name}")
        assert (answer.status, answer.body) == (200, asset.content)
        assert answer.headers["content-type"] == asset.type


def test_the_page_loads_its_own_files_only() -> None:
    """What it names is there, and nothing is of another host or written into the page."""
    page = TEXTS[PAGE]
    named = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert [n for n in named if not n.startswith(("/static/", "#"))] == []
    assert {n.removeprefix("/static/") for n in named if n.startswith("/")} <= TEXTS.keys()
    assert "style=" not in page and "<style" not in page
    assert not re.search(r"\son\w+=", page) and not re.search(r"<script[^>]*>[^<]", page)
    for name, text in TEXTS.items():
        known = text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|url\(|eval\(|innerHTML", known), name


def test_scripts_import_what_is_exported() -> None:
    """Each name that a script takes from another is one that it gives."""
    for name, text in SCRIPTS.items():
        for names, other in re.findall(r'import \{([^}]*)\} from "\./([^"]+)"', text):
            given = set(re.findall(r"^export (?:async )?(?:function|class|const) (\w+)",
                                   SCRIPTS[other], re.MULTILINE))  # fmt: skip
            assert {n.strip() for n in names.split(",") if n.strip()} <= given, (name, other)


def test_scripts_find_what_they_look_for() -> None:
    """Each element that a script names is in the page, or is made by a script."""
    known = set(re.findall(r'\bid="([\w-]+)"', TEXTS[PAGE]))
    for name, text in SCRIPTS.items():
        wanted = set(re.findall(r'byId\("([\w-]+)"\)', text))
        assert wanted <= known, (name, wanted - known)


def test_controls_have_names() -> None:
    """Each field has a label, and each button a text."""
    page = TEXTS[PAGE]
    labelled = set(re.findall(r'<label[^>]* for="([\w-]+)"', page))
    fields = re.findall(r"<(?:input|select)[^>]*>", page)
    assert {re.findall(r'id="([\w-]+)"', field)[0] for field in fields} <= labelled
    assert all(text.strip() for text in re.findall(r"<button[^>]*>([^<]*)<", page))
