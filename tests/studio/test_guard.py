"""Who may ask the server: its own page, with the token, under its own name."""

from __future__ import annotations

import pytest

from microtir.studio.guard import TOKEN_HEADER
from tests.support.studio_server import Page


def test_the_address_has_the_token_where_no_server_sees_it(page: Page) -> None:
    """It stands behind the #, is long, and is none that another server has."""
    before, token = page.access.address.split("#")
    assert before == f"http://127.0.0.1:{page.access.port}/"
    assert token == page.access.token and len(token) >= 43


@pytest.mark.parametrize("token", ["", "wrong", "ä" * 43])
def test_without_the_token_nothing_is_told(page: Page, token: str) -> None:
    """Neither what there is nor a job, nor is a file taken; the page says what to do."""
    headers = {TOKEN_HEADER: token.encode().decode("latin-1")} if token else {}
    for method, path in (("GET", "/api/start"), ("POST", "/api/plan"), ("POST", "/api/models")):
        answer = page.send(method, path, headers=headers)
        assert answer.status == 403
        assert b"open the one that the terminal shows" in answer.body


@pytest.mark.parametrize(
    "path", ["/api/start/", "//api/start", "/%61pi/start", "/API/start", "/api", "/other"]
)
def test_no_spelling_of_an_address_gets_round_the_token(page: Page, path: str) -> None:
    """All but the page and its files needs it, whether there is something or not."""
    assert page.send("GET", path).status == 403


def test_a_websocket_is_no_way_in(page: Page) -> None:
    """A browser lets any page open one: it is a request like others, and needs the token."""
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    assert page.send("GET", "/api/start", headers=upgrade).status == 403
    elsewhere = {**upgrade, "Origin": "http://evil.example"}
    assert page.send("GET", "/", headers=elsewhere).status == 403


@pytest.mark.parametrize(
    ("header", "value", "reason"),
    [
        ("Host", "evil.example", b"answers to no other name"),
        ("Host", "evil.example:80", b"answers to no other name"),
        ("Host", "127.0.0.1", b"answers to no other name"),
        ("Origin", "http://evil.example", b"another page"),
        ("Origin", "null", b"another page"),
        ("Origin", "http://127.0.0.1:1", b"another page"),
        ("Sec-Fetch-Site", "cross-site", b"another site"),
    ],
)
def test_other_pages_are_refused_with_the_token(
    page: Page, header: str, value: str, reason: bytes
) -> None:
    """A name that leads here, and a page of another server, are refused whatever they know."""
    answer = page.send(
        "GET", "/api/start", headers={TOKEN_HEADER: page.access.token, header: value}
    )
    assert answer.status == 403 and reason in answer.body


def test_the_page_itself_is_let_in(page: Page) -> None:
    """With its Origin, by either name of this machine."""
    for name in page.access.hosts:
        headers = {
            TOKEN_HEADER: page.access.token, "Host": name, "Origin": f"http://{name}",
            "Sec-Fetch-Site": "same-origin",
        }  # fmt: skip
        assert page.send("GET", "/api/start", headers=headers).status == 200


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/static/nothing", "/api/start", "/no"])
def test_every_response_tells_browsers_what_the_page_may_do(page: Page, path: str) -> None:
    """Refusals, too: no script in the page, none from elsewhere, nothing kept, no frames."""
    for answer in (page.get(path), page.send("GET", path, headers={"Host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/static/../guard.py", "/static/..%2f..%2fpyproject.toml", "/static/%2fetc%2fpasswd"]
)
def test_no_path_leads_to_another_file(page: Page, path: str) -> None:
    """Files are found by name in a table."""
    assert page.get(path).status == 404
