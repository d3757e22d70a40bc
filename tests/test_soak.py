"""The first seed of the soak: given, of the sources, or drawn."""

from __future__ import annotations

from pathlib import Path

from tests.soak import first_seed, seed_of_sources


def test_a_seed_that_is_given_stands() -> None:
    """The seed of a failure repeats it, whatever the sources are."""
    assert first_seed(815, of_sources=True) == 815


def test_sources_give_a_seed_of_their_own(tmp_path: Path) -> None:
    """The content and the name of a source count; what only lies beside it does not."""
    source = tmp_path / "generator" / "a.py"
    source.parent.mkdir()
    seeds = []
    for text in ("x = 1\n", "x = 2\n"):
        source.write_text(text)
        seeds.append(seed_of_sources(tmp_path))
    (source.parent / "a.pyc").write_text("compiled")
    assert seed_of_sources(tmp_path) == seeds[-1]
    source.rename(source.with_name("b.py"))
    seeds.append(seed_of_sources(tmp_path))
    assert len(set(seeds)) == 3
