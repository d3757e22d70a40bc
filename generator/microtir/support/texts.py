"""Rules for texts that come from files of others: what each kind of them may consist of.

Archives, board files, project files and profiles are read by code that knows for every text which
of these it is. What has passed a rule that leaves no character with a meaning to `make`, CMake, a
shell or C can be printed anywhere; `LINE` and `TEXT` can not, and `encoding` has the ways to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from microtir.support.names import is_identifier, module_name_problem, pool_name_problem

MAX_PATH = 240  # characters: less than the shortest limit of a file system in use
MAX_LINE = 1000

# Not the dash: a file name that begins with one is an option to most tools.
_COMPONENT = re.compile(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]*")
_WORD = re.compile(r"[A-Za-z0-9_.+/=:@%,~-]+")
_SECTION = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]{0,62}")
_HEXADECIMAL = re.compile(r"(0x)?[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for a text.

    Args:
        meaning: the legal texts in words.
        problem: says what is wrong with a text, or nothing.
    """

    meaning: str
    problem: Callable[[str], str]


def path_problem(path: str) -> str:
    """Return what is wrong with `path` as one of a generated file, or an empty string.

    No character of it means anything to make, CMake, a shell, C or a linker script, and no system
    reads it as a place outside of the folder that it is relative to.
    """
    parts = path.split("/")
    if not path or "" in parts or "." in parts or ".." in parts:
        return "lies outside of its folder, or names none"
    if any(not _COMPONENT.fullmatch(part) for part in parts):
        return "has a character that file names of a project cannot have"
    return "" if len(path) <= MAX_PATH else f"has more than {MAX_PATH} characters"


def line_problem(text: str) -> str:
    """Return what is wrong with `text` as one line that people read, or an empty string."""
    if len(text) > MAX_LINE:
        return f"has {len(text)} characters, more than {MAX_LINE}"
    return "" if text.isprintable() else "has a character that cannot be printed, or a line break"


def section_problem(name: str) -> str:
    """Return what is wrong with the name of a section of a program, or an empty string."""
    return "" if not name or _SECTION.fullmatch(name) else "is not a name of a section"


def _file_name(text: str) -> str:
    return "is not a name of a file" if "/" in text else path_problem(text)


def _identifier(text: str) -> str:
    return "" if is_identifier(text) else "is not a C identifier"


def _word(text: str) -> str:
    return "" if _WORD.fullmatch(text) else "has a character that a tool could misread"


def _words(text: str) -> str:
    return next(filter(None, map(_word, text.split(" "))), "")


def _command_word(text: str) -> str:
    return line_problem(text) or ("" if text.isascii() else "is not ASCII")


def _hexadecimal(text: str) -> str:
    return "" if _HEXADECIMAL.fullmatch(text) else "is no hexadecimal number"


def _text(text: str) -> str:
    # JSON can spell half of a character, which no file can hold.
    is_whole = not any("\ud800" <= character <= "\udfff" for character in text)
    return "" if is_whole else "has half of a character"


_LETTERS = "letters, digits and _ . + -"

IDENTIFIER = Rule("a C identifier", _identifier)
MODULE_NAME = Rule("a module name, such as 'kws'", module_name_problem)
POOL_NAME = Rule("a name for a memory, such as 'sram'", pool_name_problem)
SECTION = Rule("letters, digits, underscores and dots; empty for none", section_problem)
PATH = Rule(f"a path below its folder, of {_LETTERS}", path_problem)
FILE_NAME = Rule(f"a file name of {_LETTERS}", _file_name)
WORD = Rule("letters, digits and _ . + / = : @ % , ~ -", _word)
WORDS = Rule("words of letters, digits and _ . + / = : @ % , ~ -, one blank between", _words)
COMMAND_WORD = Rule("one line of printable ASCII", _command_word)
LINE = Rule(f"one line of at most {MAX_LINE} printable characters", line_problem)
HEXADECIMAL = Rule("a hexadecimal number", _hexadecimal)
TEXT = Rule("text", _text)
