"""Names that reach C: checked or mapped here, once, so that no later stage meets a bad one.

A module name is checked, since users write it in their own code; names of tensors come from
model files and are mapped. Both end up in identifiers, macros, struct members and file names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

MAX_MODULE_NAME = 48
MAX_C_NAME = 63  # significant initial characters that C99 guarantees (5.2.4.1)

_C_KEYWORDS = """
alignas alignof asm auto bool break case char const constexpr continue default do double else enum
extern false float for goto if inline int long nullptr register restrict return short signed sizeof
static static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned
void volatile while
"""
# The generated header is included from C++, too.
_CPP_KEYWORDS = """
and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield compl
concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend mutable
namespace new noexcept not not_eq operator or or_eq private protected public reinterpret_cast
requires static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq
"""
# The macros of C's headers that are spelt like a variable and stand for something else, and those
# that GNU C has of old for systems. All other macros have capitals: `c_name` knows them by that.
_SMALL_MACROS = """
complex errno i386 imaginary linux math_errhandling noreturn signgam stderr stdin stdout unix
"""
KEYWORDS = frozenset((_C_KEYWORDS + _CPP_KEYWORDS).split())
RESERVED_WORDS = KEYWORDS | frozenset(_SMALL_MACROS.split())

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
    """Return whether `name` is a C identifier (ASCII only; C99 allows more, linkers less)."""
    return _IDENTIFIER.fullmatch(name) is not None


UNNAMED = "default"
"""Name of a module that nobody has named: microTVM's word for it."""

_MAPPED = str.maketrans("-.", "__")


def pool_name_problem(name: str) -> str:
    """Return what is wrong with a pool's name, which may hold `-` and `.`, or an empty string."""
    if name and not is_identifier(name.translate(_MAPPED)):
        return "is not a name for a memory"
    return "is a reserved word or a macro of C" if name in RESERVED_WORDS else ""


def module_name_problem(name: str) -> str:
    """Return what is wrong with `name` as a module name, or an empty string.

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


def wanted_name_problem(name: str) -> str:
    """Return what is wrong with the name that a configuration asks for; it may ask for none."""
    return module_name_problem(name) if name else ""


def module_name_from(text: str) -> str:
    """Return a legal module name for any text, such as the stem of a model file's name."""
    name = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9]", "_", text)).strip("_")
    name = name[:MAX_MODULE_NAME].rstrip("_")
    if not name:
        return "model"
    if name[0].isdigit() or module_name_problem(name):
        name = f"model_{name}"[:MAX_MODULE_NAME].rstrip("_")
    return name


@lru_cache(maxsize=4096)  # printing asks for the same few names again and again
def c_name(text: str, limit: int = MAX_C_NAME) -> str:
    """Return a legal C identifier for any text that is no macro; most identifiers stay as they are.

    Every character that C does not allow becomes an underscore, as microTVM did, so that an
    application finds the struct members it knows. Case is kept. The preprocessor replaces a macro
    wherever it stands, and any header may define more of them. So whatever is spelt like a macro,
    like a name of the implementation or like a type gets a form that none of them has: `t_` in
    front. Words of the languages, which are not spelt in any way of their own, get a `_` behind.

    Args:
        text: what a model, or its user, calls something.
        limit: of the result's length.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:limit]
    if not name.strip("_"):
        return "unnamed"
    is_foreign = _RESERVED_START.match(name) or _is_macro_like(name) or name.endswith("_t")
    if name[0].isdigit() or (is_foreign and not name.startswith("t_")):
        name = f"t_{name.lstrip('_')}"
    if name in RESERVED_WORDS:
        name += "_"
    return name[:limit]


def _is_macro_like(name: str) -> bool:
    """Return whether a name is spelt like a macro, with capitals: INT8_MAX, PRId8, INT0_vect_num.

    One letter is no macro, nor are X_2 and X_scale: exporters call inputs so, and headers leave
    such names to applications.
    """
    capitals, first = sum(map(str.isupper, name)), name.partition("_")[0]
    if capitals == len(first) == 1:
        return False
    return first.isupper() or 0 < capitals >= sum(map(str.islower, name))


def c_names(
    texts: Sequence[str], taken: Iterable[str] = (), limit: int = MAX_C_NAME
) -> tuple[str, ...]:
    """Return legal and distinct C identifiers, one per text, in order.

    Texts that are legal and alone of their spelling keep it; the others give way, with the
    lowest free number as a suffix. Distinct means distinct in upper case, too, since each name
    is also the stem of macros. `taken` lists names that none of the results may equal; `limit`
    is that of their length.
    """
    used = {name.upper() for name in taken}
    names: list[str | None] = [None] * len(texts)
    for index, text in enumerate(texts):
        if c_name(text, limit) == text and text.upper() not in used:
            names[index] = text
            used.add(text.upper())
    result = []
    for text, chosen in zip(texts, names, strict=True):
        name = chosen if chosen is not None else _free(c_name(text, limit), used, limit)
        used.add(name.upper())
        result.append(name)
    return tuple(result)


def macro_name(name: str) -> str:
    """Return the macro spelling of an identifier."""
    return name.upper()


def workspace_macro(module: str, pool: str, *, is_alone: bool) -> str:
    """Return how the macros of a workspace pool begin, and the name of the one that declares it.

    Args:
        module: the module's name.
        pool: the pool's name.
        is_alone: whether it is the only one, and the application passes it.
    """
    if is_alone:
        return f"{macro_name(module)}_WORKSPACE"
    return f"{macro_name(module)}_{macro_name(c_name(pool))}_WORKSPACE_POOL"


def constants_macro(module: str, pool: str) -> str:
    """Return how the macros of a constant pool begin."""
    return f"{macro_name(module)}_{macro_name(c_name(pool))}_CONSTANT_POOL"


def _free(stem: str, used: set[str], limit: int) -> str:
    name, number = stem, 1
    while name.upper() in used:
        number += 1
        suffix = f"_{number}"
        name = stem[: limit - len(suffix)] + suffix
    return name
