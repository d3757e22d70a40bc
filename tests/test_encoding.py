"""Encoders: any text comes back from the reader of its language, and starts nothing there."""

from __future__ import annotations

import configparser
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.errors import MicrotirError
from microtir.support import encoding
from microtir.support.encoding import ENCODERS, EncodingError, Language, language_of

HOSTILE = (
    "$(shell touch owned)",
    "${owned}",
    "$ENV{HOME}",
    "`touch owned`",
    "a; touch owned #",
    'say "hello" \\',
    "it's",
    "50 % of {all} & more | less > owned",
    "back\\#slash",
    "*.c ~ [a-z] !1",
    "-rf",
    "",
)
"""Texts that are commands, functions, comments or patterns where they are not encoded."""

BREAKS = ("one\ntwo", "one\rtwo", "nul\0", "bell\a", "line\u2028separator")


def test_a_shell_sees_the_words(tmp_path: Path) -> None:
    """Each word is one argument of a command, unchanged; nothing is run or expanded."""
    script = f"printf '%s\\n' {encoding.shell_words(HOSTILE)}"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{text}\n" for text in HOSTILE)
    assert not list(tmp_path.iterdir())


def test_make_passes_the_words_on(tmp_path: Path) -> None:
    """In a variable and in a recipe make calls no function, and its shell gets the same words."""
    (tmp_path / "Makefile").write_text(
        f"# {encoding.comment_line('a title that ends with a backslash: ' + chr(92))}\n"
        f"WORDS := {encoding.make_words(HOSTILE)}\n"
        "all:\n"
        "\t@printf '%s\\n' $(WORDS)\n"
        f"\t@printf '%s\\n' {encoding.make_recipe(HOSTILE)}\n"
    )
    done = subprocess.run(["make", "-s"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{text}\n" for text in HOSTILE) * 2
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]


def test_cmake_sees_the_words(tmp_path: Path) -> None:
    """Arguments come as they are, variables are not read, and what a list would cut is refused."""
    words = [text for text in HOSTILE if text and ";" not in text]
    (tmp_path / "words.cmake").write_text(
        f"# {encoding.comment_line('title ]]')}\n"
        f"foreach(word {encoding.cmake_words(words)})\n"
        '  execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${word}")\n'
        "endforeach()\n"
    )
    done = subprocess.run(
        ["cmake", "-P", "words.cmake"], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout.decode() == "".join(f"{text}\n" for text in words)
    with pytest.raises(EncodingError, match="';'"):
        encoding.cmake_words(["a;b"])


@pytest.mark.parametrize("text", ["-DX=$(shell touch owned)", "-DX=a#b", "-DX=a;b"])
def test_cmake_flags_have_no_functions_of_make(text: str) -> None:
    """CMake prints a compiler's flags into a Makefile as they are, so that make would read them."""
    with pytest.raises(EncodingError, match="CMake's flags"):
        encoding.cmake_flags(["-O2", text])


@pytest.mark.parametrize("text", HOSTILE)
def test_data_files_hold_the_text(text: str) -> None:
    """JSON, Kconfig and INI read it back, or it is refused."""
    inside = encoding.json_text(text)
    assert json.loads(f'"{inside}"') == text
    if "$" in text:
        with pytest.raises(EncodingError, match="Kconfig"):
            encoding.kconfig_text(text)
    else:
        assert encoding.kconfig_text(text).replace("\\\\", "").count('"') == text.count('"')
    if set(text) & set("$;#%"):
        with pytest.raises(EncodingError, match="PlatformIO"):
            encoding.ini_words([text])
        return
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#", ";"))
    parser.read_string(
        f"; {encoding.comment_line(text)}\n[x]\nflags = {encoding.ini_words([text])}"
    )
    assert parser["x"]["flags"] == encoding.shell_words([text])


@pytest.mark.parametrize("name", [name for name in ENCODERS if not name.startswith("c_")])
@pytest.mark.parametrize("text", BREAKS)
def test_no_text_breaks_a_line(name: str, text: str) -> None:
    """A line break would end a comment, a recipe, a value: it is refused wherever lines count."""
    takes_words = name.endswith(("_words", "_recipe", "_flags", "_shell"))
    with pytest.raises(MicrotirError, match="line break"):
        ENCODERS[name]([text] if takes_words else text)


@given(st.text(max_size=80))
def test_a_comment_of_c_ends_where_it_should(text: str) -> None:
    """Whatever a model file holds, its text neither ends nor nests a comment, and is ASCII."""
    safe = encoding.c_comment(text)
    assert "*/" not in safe
    assert "/*" not in safe
    assert safe.isascii()
    assert "\n" not in safe


@pytest.mark.parametrize("text", ["/*/", "*/*", "**//", "a\rb", "??/"])
def test_awkward_comments_of_c(text: str) -> None:
    """Overlapping comment signs, carriage returns and trigraphs are defused, too."""
    safe = encoding.c_comment(text)
    assert "*/" not in safe
    assert "/*" not in safe
    assert "??/" not in safe
    assert safe.isprintable()


def test_strings_of_c_hold_the_bytes(tmp_path: Path) -> None:
    """A compiler without GNU's extensions reads each name as it is in the model, byte for byte."""
    texts = [*HOSTILE, *BREAKS, "??/ ??=", "\x7f1", "\u00e4\u6f22", '"', "%s%n"]
    (tmp_path / "names.c").write_text(
        "#include <stdio.h>\nint main(void)\n{\n"
        + "".join(
            f"    fwrite({s}, 1, sizeof {s}, stdout);\n" for s in map(encoding.c_string, texts)
        )
        + "    return 0;\n}\n"
    )
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wtrigraphs", "-Werror"]
    subprocess.run(["gcc", *flags, "names.c", "-o", "names"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "names"], capture_output=True, check=True)
    assert done.stdout == b"".join(text.encode() + b"\0" for text in texts)


def test_markdown_has_no_tags() -> None:
    """A title is neither HTML nor code nor a link in a README."""
    text = encoding.markdown_text("<script>`x`</script> [a](b) | *")
    assert text == "\\<script\\>\\`x\\`\\</script\\> \\[a\\](b) \\| \\*"
    assert encoding.markdown_code("a`b") == "a'b"


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("board/link.ld.j2", Language.LINKER),
        ("Makefile.j2", Language.MAKE),
        ("a/CMakeLists.txt.j2", Language.CMAKE),
        ("prj.conf", Language.KCONFIG),
        ("a.unknown", None),
    ],
)
def test_files_say_their_language(path: str, language: Language | None) -> None:
    """By name or suffix, with or without that of a template."""
    assert language_of(path) is language
