"""Makes any text a part of a file in another language, so that the file means the same with it.

Names come from models, archives, board files and users. Each language has characters that end a
comment or a string, start a command or call a function; for each place that a text may stand in
there is one function here, and the templates of projects print nothing that has not gone through
one, or consists of characters without a meaning anywhere (`plain`).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from types import MappingProxyType
from xml.sax.saxutils import escape

from microtir.errors import MicrotirError


class EncodingError(MicrotirError):
    """A text has no form in the language that it should be printed in."""


class Language(Enum):
    """A language that files of a project are written in."""

    C = "C"
    CMAKE = "CMake"
    INI = "an INI file"
    JSON = "JSON"
    KCONFIG = "Kconfig"
    LINKER = "a linker script"
    MAKE = "make"
    MARKDOWN = "Markdown"
    PROPERTIES = "a file of properties"
    RUST = "Rust"
    TOML = "TOML"
    XML = "XML"
    YAML = "YAML"


_SUFFIXES = {
    ".c": Language.C,
    ".h": Language.C,
    ".cpp": Language.C,
    ".ino": Language.C,
    ".cmake": Language.CMAKE,
    ".ini": Language.INI,
    ".json": Language.JSON,
    ".conf": Language.KCONFIG,
    ".defaults": Language.KCONFIG,
    ".ld": Language.LINKER,
    ".md": Language.MARKDOWN,
    ".mk": Language.MAKE,
    ".pdsc": Language.XML,
    ".properties": Language.PROPERTIES,
    ".rs": Language.RUST,
    ".toml": Language.TOML,
    ".yml": Language.YAML,
    ".yaml": Language.YAML,
}
_NAMES = {
    "CMakeLists.txt": Language.CMAKE,
    "Kconfig": Language.KCONFIG,
    "Makefile": Language.MAKE,
    "keywords.txt": Language.PROPERTIES,
}

_PLAIN = re.compile(r"[A-Za-z0-9_./:=+-]*")
_UNPRINTED = "has a character that cannot be printed, or a line break"


class Encoded(str):
    """Text that is finished for one language."""

    __slots__ = ("language",)
    language: Language | None

    def __new__(cls, text: str, language: Language | None) -> Encoded:
        encoded = super().__new__(cls, text)
        encoded.language = language
        return encoded


@dataclass(frozen=True, slots=True)
class Encoder:
    """A place in a language, with the function that writes a text, or a list of texts, there."""

    language: Language
    encode: Callable[[str], str] | Callable[[Iterable[str]], str]

    def __call__(self, value: object) -> Encoded:
        encode: Callable[..., str] = self.encode
        return Encoded(encode(value), self.language)


def language_of(path: str) -> Language | None:
    """Return a file's language, or that of the template `X.j2` it is made from; None if unknown."""
    pure = PurePosixPath(path.removesuffix(".j2"))
    return _NAMES.get(pure.name) or _SUFFIXES.get(pure.suffix)


def is_plain(text: str) -> bool:
    """Return whether no character of a text has a meaning in any of the languages."""
    return _PLAIN.fullmatch(text) is not None


def c_code(text: str) -> Encoded:
    """Mark a piece of C that was put together from identifiers and numbers."""
    return Encoded(text, Language.C)


def cmake_code(text: str) -> Encoded:
    """Mark a piece of CMake that was put together from encoded texts."""
    return Encoded(text, Language.CMAKE)


def rust_code(text: str) -> Encoded:
    """Mark a piece of Rust that was put together from identifiers and numbers."""
    return Encoded(text, Language.RUST)


def make_code(text: str) -> Encoded:
    """Mark a piece of a Makefile that was put together from encoded texts."""
    return Encoded(text, Language.MAKE)


def c_comment(text: str) -> str:
    """Encode text inside of a C comment: model files hold any characters.

    A comment sign inside a comment ends it or warns; other than ASCII breaks old compilers.
    """
    safe = text.encode("ascii", "backslashreplace").decode()
    safe = "".join(c if c.isprintable() else " " for c in safe)
    safe = re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)", " ", safe)
    return safe.replace("??/", "?? /").rstrip()


def c_string(text: str) -> str:
    """Encode a string literal of C with its quotes: the same bytes on every compiler.

    They are those of UTF-8. Escapes are octal and have three digits, which cannot take in a digit
    behind them; a question mark has one, since two of them begin a trigraph.
    """
    return f'"{"".join(map(_in_c_string, text.encode("utf-8", "replace")))}"'


def _in_c_string(byte: int) -> str:
    if chr(byte) in '"\\?':
        return f"\\{chr(byte)}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def comment_line(text: str) -> str:
    """Encode the rest of a comment line; a last backslash would continue it."""
    return f"{text}." if _printed(text).endswith("\\") else text


def shell_words(words: Iterable[str]) -> str:
    """Encode arguments of a command, as a shell takes them."""
    return " ".join(shlex.quote(_printed(word)) for word in words)


def make_recipe(words: Iterable[str]) -> str:
    """Encode arguments in the recipe of a rule, which make reads before the shell does."""
    return shell_words(words).replace("$", "$$")


def make_words(words: Iterable[str]) -> str:
    """Encode arguments as a variable's value in recipes: there a # begins a comment."""
    return re.sub(r"(\\*)#", r"\1\1\\#", make_recipe(words))


def cmake_words(words: Iterable[str]) -> str:
    """Encode arguments of a CMake command."""
    return " ".join(w if is_plain(w) and w else f'"{_in_cmake(w)}"' for w in words)


def cmake_flags(words: Iterable[str]) -> str:
    """Encode arguments of a compiler, inside of a quoted argument of CMake.

    CMake hands the text on to make, which would read a dollar sign once more.
    """
    return _in_cmake(_refused(shell_words(words), "$#;", "CMake's flags for a compiler"))


def _in_cmake(text: str) -> str:
    return re.sub(r'([\\"$])', r"\\\1", _refused(_printed(text), ";", "CMake's lists"))


def kconfig_text(text: str) -> str:
    """Encode text inside of Kconfig's quotes, where a dollar sign calls a function."""
    return re.sub(r'([\\"])', r"\\\1", _refused(_printed(text), "$", "Kconfig"))


def ini_words(words: Iterable[str]) -> str:
    """Encode compiler flags in PlatformIO's file, which SCons splits as a shell does."""
    text = shell_words(words)
    return _refused(text, "$;#%", "PlatformIO's file") if not is_plain(text) else text


def json_text(text: str) -> str:
    """Encode text inside of double quotes of JSON."""
    return json.dumps(_printed(text))[1:-1]


def quoted_text(text: str) -> str:
    """Encode text inside of double quotes of TOML and YAML, where no escape is half a character."""
    return json.dumps(_printed(text), ensure_ascii=False)[1:-1]


def rust_string(text: str) -> str:
    """Encode a string literal of Rust with its quotes."""
    return f'"{quoted_text(text)}"'


def rust_name_string(text: str) -> str:
    """Encode any text as a string literal of Rust, what cannot be printed by its number."""
    return f'"{"".join(map(_in_rust_string, text))}"'


def _in_rust_string(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\u{{{ord(character):x}}}"


def xml_text(text: str) -> str:
    """Encode text of an element, or inside of an attribute's double quotes."""
    return escape(_printed(text), {'"': "&quot;"})


def properties_text(text: str) -> str:
    """Encode a value of properties; Arduino's ends with its line and has no escapes."""
    return _printed(text)


def markdown_text(text: str) -> str:
    """Encode text in a paragraph or a cell of a table."""
    return re.sub(r"([\\`*\[\]<>|&])", r"\\\1", _printed(text))


def markdown_code(text: str) -> str:
    """Encode text between two backticks, or in a line of indented code."""
    return _printed(text).replace("`", "'")


def _printed(text: str) -> str:
    if not text.isprintable():
        raise EncodingError(f"{text[:80]!r} {_UNPRINTED}", legal="one line of printable text")
    return text


def _refused(text: str, characters: str, where: str) -> str:
    for character in characters:
        if character in text:
            raise EncodingError(f"{text[:80]!r} has a '{character}', which {where} would read")
    return text


def _by_name() -> Mapping[str, Encoder]:
    lines = {
        "cmake_comment": Language.CMAKE,
        "ini_comment": Language.INI,
        "kconfig_comment": Language.KCONFIG,
        "make_comment": Language.MAKE,
        "rust_comment": Language.RUST,
        "toml_comment": Language.TOML,
    }
    encoders = {name: Encoder(language, comment_line) for name, language in lines.items()}
    return MappingProxyType({
        **encoders,
        "c_comment": Encoder(Language.C, c_comment),
        "c_string": Encoder(Language.C, c_string),
        "cmake_flags": Encoder(Language.CMAKE, cmake_flags),
        "cmake_words": Encoder(Language.CMAKE, cmake_words),
        "ini_words": Encoder(Language.INI, ini_words),
        "json_text": Encoder(Language.JSON, json_text),
        "kconfig_text": Encoder(Language.KCONFIG, kconfig_text),
        "make_recipe": Encoder(Language.MAKE, make_recipe),
        "make_words": Encoder(Language.MAKE, make_words),
        "markdown_code": Encoder(Language.MARKDOWN, markdown_code),
        "markdown_shell": Encoder(Language.MARKDOWN, shell_words),
        "markdown_text": Encoder(Language.MARKDOWN, markdown_text),
        "properties_text": Encoder(Language.PROPERTIES, properties_text),
        "rust_string": Encoder(Language.RUST, rust_string),
        "toml_text": Encoder(Language.TOML, quoted_text),
        "xml_text": Encoder(Language.XML, xml_text),
        "yaml_text": Encoder(Language.YAML, quoted_text),
    })  # fmt: skip


ENCODERS = _by_name()
"""The filters of the templates of projects, by name."""
