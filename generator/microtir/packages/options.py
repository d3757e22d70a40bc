"""Defines what a caller may say of a package: what no model knows of itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from microtir.errors import UsageError
from microtir.projects import ProjectOptions, Samples
from microtir.support.names import module_name_problem
from microtir.support.texts import line_problem

MAX_SUMMARY = 200  # characters: package managers show it in one line
DEFAULT_HOMEPAGE = "https://pypi.org/project/microtir/"
DEFAULT_AUTHOR = "the author of the models"
DEFAULT_VENDOR = "microtir"

_VERSION = re.compile(r"(0|[1-9]\d{0,8})(\.(0|[1-9]\d{0,8})){2}")
_LICENCE = re.compile(r"\(*[A-Za-z0-9.+-]+\)*( (AND|OR|WITH) \(*[A-Za-z0-9.+-]+\)*)*")
_VENDOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{1,31}")
_HOMEPAGE = re.compile(r"https?://[A-Za-z0-9._~/%?=+:@-]{1,300}")


@dataclass(frozen=True, slots=True, eq=False)
class PackageOptions:
    """The facts that a package states about itself; every field is honoured or refused.

    Args:
        name: of the package, a C identifier; None makes it from the names of the models.
        version: three numbers.
        summary: one line of what it is; None makes it from the names of the models.
        author: who answers for it.
        licence: an SPDX expression of the models' licence; None says nothing.
        homepage: an address; where a format needs one, None takes microtir's. In a CMSIS-Pack it is
            the folder from which newer versions are fetched, and None says that there is none.
        vendor: who publishes a CMSIS-Pack; None takes microtir.
        definitions: macros for the compiler, `NAME` or `NAME=value`.
        samples: what the example runs on and compares, by module name; a model without any gets one
            of arbitrary values.
        together: sets of names of models that may run at the same time in the example.

    Raises:
        UsageError: a value is not legal.
    """

    name: str | None = None
    version: str = "1.0.0"
    summary: str | None = None
    author: str | None = None
    licence: str | None = None
    homepage: str | None = None
    vendor: str | None = None
    definitions: Sequence[str] = ()
    samples: Mapping[str, Samples] = field(default_factory=lambda: MappingProxyType({}))
    together: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        for name, problem, legal in _RULES:
            value: str | None = getattr(self, name)
            if value is not None and (said := problem(value)):
                raise UsageError(
                    f"{value[:80]!r} {said}", where=f"PackageOptions({name})", legal=legal
                )
        _ = self.for_application  # which checks the rest

    @property
    def for_application(self) -> ProjectOptions:
        """Return the options of the example, which is the application of projects."""
        return ProjectOptions(
            samples=self.samples, together=self.together, definitions=self.definitions
        )


def _summary_problem(text: str) -> str:
    if not text.strip():
        return "says nothing"
    return line_problem(text) or f"has {len(text)} characters" * (len(text) > MAX_SUMMARY)


def _author_problem(text: str) -> str:
    return line_problem(text) or "names nobody" * (not text.strip())


def _matching(pattern: re.Pattern[str], problem: str) -> Callable[[str], str]:
    return lambda text: "" if pattern.fullmatch(text) else problem


_RULES: tuple[tuple[str, Callable[[str], str], str], ...] = (
    ("name", module_name_problem, "a C identifier of at most 48 characters, such as 'kws_models'"),
    ("version", _matching(_VERSION, "is no version"), "three numbers, such as 1.0.0"),
    ("summary", _summary_problem, f"one line of at most {MAX_SUMMARY} printable characters"),
    ("author", _author_problem, "one line of printable characters"),
    (
        "licence",
        _matching(_LICENCE, "is no SPDX expression"),
        "such as Apache-2.0, or MIT OR Apache-2.0",
    ),
    (
        "homepage",
        _matching(_HOMEPAGE, "is no address"),
        "https://… of letters, digits and ._~/%?=+:@-",
    ),
    ("vendor", _matching(_VENDOR, "names no vendor"), "2 to 32 letters, digits and -"),
)
