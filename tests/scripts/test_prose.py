"""The linter of words finds what docs/style.md does not allow, and what users read passes it."""

from __future__ import annotations

import pytest

from scripts import prose


def test_what_users_read_passes() -> None:
    """`python -m scripts.prose` has nothing to say."""
    faults = [*prose.faults_of(prose.texts()), *prose.joined_in_pages()]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "phrase",
    [
        "Before and behind a model", "Kernels of others", "what gets the rest", "legal: int8",
        "Who has none yet sees how.", "its input is no integer of one scale", "is stored less 128",
        "CompilationConfig field 'targets'", "bytes 4 to 7 are got b'o'", "is for one",
        "Times of the instructions of the twin", 'pip install "microtir[keras]"',
        "at most so many bytes", "a run gives what it gave", "scales as ONNX has them",
        "a call that has no place for a state", "strings that a loop hands on",
        "These lines come: a, b",
    ],
)  # fmt: skip
def test_a_banned_phrase_is_found(phrase: str) -> None:
    """In a page and in a message."""
    assert len([*_faults(prose.of_page("a.md", f"Words.\n\n{phrase}\n"))]) == 1
    module = f"raise UsageError({phrase!r}, where=x)"
    assert len([*_faults(prose.of_module("a.py", module))]) == 1


def test_readmes_of_templates_are_read() -> None:
    """Without statements, with code for each value."""
    bare = prose.without_jinja("{% if a %}\nThese lines come: {{ b }}\n{% endif %}\n")
    assert [text.words for text in prose.of_page("a.md.j2", bare)] == ["These lines come: CODE"]
    assert any(text.file == "templates/projects/readme/facts.md.j2" for text in prose.texts())


def test_other_words_pass() -> None:
    """What the style asks for, code in a page, and strings that nobody reads."""
    page = "Pre- and post-processing.\n\n```\nkernels of others\n```\n\n`legal: x` is code.\n"
    assert not [*_faults(prose.of_page("a.md", page))]
    assert not [*_faults(prose.of_module("a.py", 'x = "kernels of others"'))]


def test_long_sentences_are_told_with_their_line() -> None:
    """Of more than 30 words; a list of names of code is none."""
    sentence = "word " * 30 + "end."
    read = [*prose.of_page("a.md", f"{sentence}\n\nShort.\n\n- {sentence}\n")]
    assert [text.line for text in read if [*text.long_sentences()]] == [1, 5]
    assert len(prose.faults_of(read)) == 2
    names = ", ".join(["`name`"] * 40)
    assert not prose.faults_of(prose.of_page("a.md", f"| {names} | |\n"))


def test_commands_on_one_line_of_code_are_told() -> None:
    """Wrapping a page may join lines of code, whose comments then swallow the next command."""
    page = "Run:\n\n```sh\nmake a  # one\nmake b  # two make c   # three\n```\n"
    assert [*prose.joined_lines("a.md", page)] == [
        "a.md:5: commands are joined: make b  # two make c   # three"
    ]


def test_a_colon_and_a_cell_end_a_sentence() -> None:
    """So do full stops; names of code count as one word."""
    words = "word " * 20
    page = f"{words}: {words}\n\n| {words} | {words} |\n|---|---|\n"
    assert not any([*text.long_sentences()] for text in prose.of_page("a.md", page))


def _faults(read: object) -> list[str]:
    assert hasattr(read, "__iter__")
    return [fault for text in read for fault in text.faults()]
