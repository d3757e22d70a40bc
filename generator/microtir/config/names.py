"""Names that reach C: checked or mapped here, once, so that no later stage meets a bad one.

A module name is checked, since users write it in their own code; names of tensors come from
model files and are mapped. Both end up in identifiers, macros, struct members and file names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MAX_MODULE_NAME = 48
MAX_C_NAME = 63  # significant initial characters that C99 guarantees (5.2.4.1)

_C_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union unsigned
void volatile while
"""
# The generated header is included from C++17, too.
_CPP_KEYWORDS = """
alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl const_cast
constexpr decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public reinterpret_cast static_assert
static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor
xor_eq
"""
# Object-like macros of C's headers, of gcc in GNU mode and of Arduino's core: as a struct member
# they are replaced by the preprocessor, and the header does not compile where they are defined.
_MACROS = """
NULL EOF I errno stdin stdout stderr complex imaginary unix linux i386
INPUT OUTPUT HIGH LOW PI HALF_PI TWO_PI EULER DEFAULT EXTERNAL INTERNAL CHANGE FALLING RISING
DEC HEX OCT BIN SERIAL DISPLAY LSBFIRST MSBFIRST
"""
KEYWORDS = frozenset((_C_KEYWORDS + _CPP_KEYWORDS).split())
RESERVED_WORDS = KEYWORDS | frozenset(_MACROS.split())

# A generated `string.h` beside the application would be found instead of the C library's.
_STANDARD_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time
uchar wchar wctype
"""
# Windows cannot create a file of these names, whatever the suffix.
_DEVICE_FILES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_START = re.compile(r"__|_[A-Z]")


def is_identifier(name: str) -> bool:
    """Whether `name` is spelt like a C identifier (ASCII only; C99 allows more, linkers less)."""
    return _IDENTIFIER.fullmatch(name) is not None


_MAPPED = str.maketrans("-.", "__")


def pool_name_problem(name: str) -> str:
    """What is wrong with the name of a memory, which may hold `-` and `.`, or an empty string."""
    if name and not is_identifier(name.translate(_MAPPED)):
        return "is no name for a memory"
    return "is a reserved word or a macro of C" if name in RESERVED_WORDS else ""


def module_name_problem(name: str) -> str:
    """What is wrong with `name` as a module name, or an empty string.

    `default` is a C keyword and yet legal: microTVM's name for a module without one, and only
    ever the first part of an identifier.
    """
    if not is_identifier(name):
        return f"is not a C identifier: did you mean '{module_name_from(name)}'?"
    if len(name) > MAX_MODULE_NAME:
        return f"has {len(name)} characters, more than {MAX_MODULE_NAME}"
    if name.startswith("_") or "__" in name:
        return f"is reserved in C or C++: did you mean '{module_name_from(name)}'?"
    if name != "default" and name in RESERVED_WORDS:
        return "is a reserved word or a macro"
    if name.lower() in _STANDARD_HEADERS.split():
        return f"would hide the standard header <{name.lower()}.h>"
    if name.lower() in _DEVICE_FILES:
        return "is not a file name on Windows"
    return ""


def module_name_from(text: str) -> str:
    """A legal module name for any text, such as the stem of a model file's name."""
    name = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9]", "_", text)).strip("_")
    name = name[:MAX_MODULE_NAME].rstrip("_")
    if not name:
        return "model"
    if name[0].isdigit() or module_name_problem(name):
        name = f"model_{name}"[:MAX_MODULE_NAME].rstrip("_")
    return name


def c_name(text: str) -> str:
    """A legal C identifier for any text; existing identifiers stay as they are.

    Every character that C does not allow becomes an underscore, as microTVM did, so that an
    application finds the struct members it knows. Case is kept.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    if not name.strip("_"):
        return "unnamed"
    if name[0].isdigit() or _RESERVED_START.match(name):
        name = f"t_{name.lstrip('_')}"
    if name in RESERVED_WORDS:
        name += "_"
    return name[:MAX_C_NAME]


def c_names(texts: Sequence[str], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Legal and distinct C identifiers, one per text, in order.

    Texts that are legal and alone of their spelling keep it; the others give way, with the
    lowest free number as a suffix. Distinct means distinct in upper case, too, since each name
    is also the stem of macros. `taken` lists names that none of the results may equal.
    """
    used = {name.upper() for name in taken}
    names: list[str | None] = [None] * len(texts)
    for index, text in enumerate(texts):
        if c_name(text) == text and text.upper() not in used:
            names[index] = text
            used.add(text.upper())
    result = []
    for text, kept in zip(texts, names, strict=True):
        name = kept if kept is not None else _free(c_name(text), used)
        used.add(name.upper())
        result.append(name)
    return tuple(result)


def macro_name(name: str) -> str:
    """The macro spelling of an identifier."""
    return name.upper()


def workspace_macro(module: str, pool: str, *, is_alone: bool) -> str:
    """What the macros about a workspace pool begin with, and the one that declares memory for it.

    Args:
        module: the module's name.
        pool: the pool's name.
        is_alone: whether it is the only one, and the application passes it.
    """
    if is_alone:
        return f"{macro_name(module)}_WORKSPACE"
    return f"{macro_name(module)}_{macro_name(c_name(pool))}_WORKSPACE_POOL"


def constants_macro(module: str, pool: str) -> str:
    """The same for a constant pool."""
    return f"{macro_name(module)}_{macro_name(c_name(pool))}_CONSTANT_POOL"


def _free(stem: str, used: set[str]) -> str:
    name, number = stem, 1
    while name.upper() in used:
        number += 1
        suffix = f"_{number}"
        name = stem[: MAX_C_NAME - len(suffix)] + suffix
    return name
