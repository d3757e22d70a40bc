"""Executor: how the operators of a model are called, and through which interface."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.config.enums import ExecutorKind, InterfaceApi
from microtir.config.option import Option, Section
from microtir.config.optionmap import OptionMap, checked, described, store
from microtir.config.options import find
from microtir.errors import ConfigError
from microtir.support.arguments import checked_arguments

SECTIONS: Mapping[ExecutorKind, Section] = MappingProxyType(
    {
        ExecutorKind.AOT: Section.EXECUTOR_AOT,
        ExecutorKind.GRAPH: Section.EXECUTOR_GRAPH,
        ExecutorKind.DEBUG: Section.EXECUTOR_DEBUG,
    }
)


class Executor(OptionMap):
    """An executor and its options: ``Executor("aot", {"interface-api": "c"})``.

    Args:
        name: `aot`, `graph` or `debug`.
        options: see `Executor.list_registered_options(name)`.

    Raises:
        ConfigError: an unknown name or option, an illegal value, or a contradiction.
    """

    __slots__ = ()

    def __init__(
        self, name: str | ExecutorKind, options: Mapping[str, object] | None = None
    ) -> None:
        kind = _kind(name)
        values = checked(SECTIONS[kind], options, "executor")
        if kind is ExecutorKind.AOT:
            is_c = values["interface-api"] == InterfaceApi.C.value
            if is_c and values["unpacked-api"] is False:
                raise ConfigError(
                    "aot executor option 'unpacked-api' is False, which cannot be combined "
                    "with 'interface-api' = 'c'",
                    where="executor.unpacked-api",
                    legal="True with interface-api 'c'",
                    fix="leave unpacked-api out, or choose interface-api 'packed'",
                )
            if values["unpacked-api"] is None:
                values["unpacked-api"] = is_c
        store(self, section=SECTIONS[kind], settings=tuple(values.values()))

    @property
    def kind(self) -> ExecutorKind:
        return next(kind for kind, section in SECTIONS.items() if section is self.section)

    @property
    def name(self) -> str:
        return str(self.kind)

    @property
    def interface_api(self) -> InterfaceApi:
        """Return the C interface of the entry function; an executor without the choice has `c`."""
        if self.kind is not ExecutorKind.AOT:
            return InterfaceApi.C
        return InterfaceApi(self["interface-api"])

    @property
    def unpacked_api(self) -> bool:
        """Return whether operators take plain C arguments."""
        return self.kind is not ExecutorKind.AOT or self._flag("unpacked-api")

    @property
    def link_params(self) -> bool:
        """Return whether weights are emitted as C arrays."""
        return self._flag("link-params")

    @property
    def row_fed_inputs(self) -> bool:
        """Return whether the application hands over inputs row by row."""
        return self.kind is ExecutorKind.AOT and self._flag("row-fed-inputs")

    @property
    def row_drained_outputs(self) -> bool:
        """Return whether the application takes outputs row by row."""
        return self.kind is ExecutorKind.AOT and self._flag("row-drained-outputs")

    @property
    def steps(self) -> bool:
        """Return whether the application may run the model step by step."""
        return self.kind is ExecutorKind.AOT and self._flag("steps")

    @property
    def guard_inputs(self) -> bool:
        """Return whether a run counts the elements of inputs that calibration did not see."""
        return self.kind is ExecutorKind.AOT and self._flag("guard-inputs")

    @property
    def batch_count(self) -> bool:
        """Return whether a run is told how many entries of its batch there are."""
        return self.kind is ExecutorKind.AOT and self._flag("batch-count")

    @property
    def workspace_byte_alignment(self) -> int | None:
        """Return the alignment in bytes, or None where it follows from the target."""
        return self._number("workspace-byte-alignment") if self.kind is ExecutorKind.AOT else None

    @property
    def constant_byte_alignment(self) -> int | None:
        """Return the alignment in bytes, or None where it follows from the target."""
        return self._number("constant-byte-alignment") if self.kind is ExecutorKind.AOT else None

    @checked_arguments
    def with_options(self, options: Mapping[str, object]) -> Executor:
        """Return a copy with some options changed; what follows from them is derived again."""
        mine: dict[str, object] = dict(self.known())
        if "interface-api" in options:
            mine.pop("unpacked-api", None)
        return Executor(self.kind, {**mine, **options})

    def __repr__(self) -> str:
        return f"Executor({self.name!r}, {self.known()!r})"

    @staticmethod
    def list_registered() -> tuple[str, ...]:
        """Return names of all executors."""
        return tuple(str(kind) for kind in ExecutorKind)

    @staticmethod
    @checked_arguments
    def list_registered_options(name: str | ExecutorKind) -> Mapping[str, Option]:
        """Return the options of an executor, each with type, default, legal values and help."""
        return described(SECTIONS[_kind(name)])


def _kind(name: object) -> ExecutorKind:
    return ExecutorKind(find(Section.CONFIG, "executor").check(name))
