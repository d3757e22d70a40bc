"""Runtime: the C runtime that generated code belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.config.enums import RuntimeKind
from microtir.config.option import Option, Section
from microtir.config.optionmap import OptionMap, checked, described, store
from microtir.config.options import find
from microtir.support.arguments import checked_arguments

_SECTIONS: Mapping[RuntimeKind, Section] = MappingProxyType({RuntimeKind.CRT: Section.RUNTIME_CRT})


class Runtime(OptionMap):
    """A runtime and its options: ``Runtime("crt", {"system-lib": True})``.

    Args:
        name: `crt`.
        options: see `Runtime.list_registered_options(name)`.

    Raises:
        ConfigError: an unknown name or option, or an illegal value.
    """

    __slots__ = ()

    def __init__(
        self, name: str | RuntimeKind, options: Mapping[str, object] | None = None
    ) -> None:
        section = _SECTIONS[_kind(name)]
        values = checked(section, options, "runtime")
        store(self, section=section, settings=tuple(values.values()))

    @property
    def kind(self) -> RuntimeKind:
        return next(kind for kind, section in _SECTIONS.items() if section is self.section)

    @property
    def name(self) -> str:
        return str(self.kind)

    @property
    def system_lib(self) -> bool:
        """Return whether the entry function is registered by name."""
        return self._flag("system-lib")

    @checked_arguments
    def with_options(self, options: Mapping[str, object]) -> Runtime:
        """Return a copy with some options changed."""
        return Runtime(self.kind, {**self.known(), **options})

    def __repr__(self) -> str:
        return f"Runtime({self.name!r}, {self.known()!r})"

    @staticmethod
    def list_registered() -> tuple[str, ...]:
        """Return names of all runtimes."""
        return tuple(str(kind) for kind in RuntimeKind)

    @staticmethod
    @checked_arguments
    def list_registered_options(name: str | RuntimeKind) -> Mapping[str, Option]:
        """Return the options of a runtime, each with type, default, legal values and help."""
        return described(_SECTIONS[_kind(name)])


def _kind(name: object) -> RuntimeKind:
    return RuntimeKind(find(Section.CONFIG, "runtime").check(name))
