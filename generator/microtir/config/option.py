"""One option: its place, domain, default and help, and the checks of a value against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from microtir.config.domains import Domain, Flag, Value
from microtir.errors import ConfigError
from microtir.support.shown import shown


class Section(Enum):
    """The place of an option: (words for messages, path of the field, form of the flag)."""

    CONFIG = ("option", "", "--{name}")
    TARGET = ("target option", "target.", '--target "c -{name}=VALUE"')
    EXECUTOR_AOT = ("aot executor option", "executor.", "--executor-aot-{name}")
    EXECUTOR_GRAPH = ("graph executor option", "executor.", "--executor-graph-{name}")
    EXECUTOR_DEBUG = ("debug executor option", "executor.", "--executor-debug-{name}")
    RUNTIME_CRT = ("crt runtime option", "runtime.", "--runtime-crt-{name}")
    BUDGET = ("budget", "budget.", "--{name}-budget")
    WORKSPACE_POOL = ("workspace pool property", "workspace_pools.", "--workspace-pools-{name}")
    CONSTANT_POOL = ("constant pool property", "constant_pools.", "--constant-pools-{name}")
    PASS = ("pass_config option", "pass_config.", "--pass-config {raw}=VALUE")

    def __init__(self, label: str, path: str, flag: str) -> None:
        self.label = label
        self.path = path
        self.flag = flag


class UnknownOptionError(ConfigError, KeyError):
    """An option was named that does not exist; a KeyError, too, for what is used as a mapping."""


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One row of the table; rows are compared by identity.

    Attributes:
        section: what the option belongs to.
        name: as users write it.
        domain: type and legal values.
        default: the value where none is given; None where `derived` says how it follows.
        help: one sentence on what it does now.
        derived: how the value follows from others where it is not given.
        pending: legal values that are not built yet, each with what to use instead; the key
            None stands for every value but the default.
        spelling: the flag, where it does not follow from the section.
        is_quiet: whether configurations are written without it at its default. Generated files
            state their configuration, and what costs nothing when off changes none of their bytes.
    """

    section: Section
    name: str
    domain: Domain
    default: Value
    help: str
    derived: str = ""
    pending: Mapping[object, str] = field(default_factory=dict)
    spelling: str | None = None
    is_quiet: bool = False

    @property
    def flag(self) -> str:
        """Return how the command line spells it; empty where its parts have flags instead."""
        if self.spelling is not None:
            return self.spelling
        return self.section.flag.format(name=self.name.replace("_", "-"), raw=self.name)

    @property
    def path(self) -> str:
        return self.section.path + self.name

    @property
    def default_text(self) -> str:
        return self.derived if self.default in (None, "") else str(self.default)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.domain.type_name}, one of {self.legal()}; "
            f"default {self.default_text}"
        )

    def check(self, value: object) -> Value:
        """Return the stored form of `value`.

        Raises:
            ConfigError: the value is not legal.
        """
        if value is None and self.default is None and self.derived:
            return None
        problem = self.domain.problem(value)
        if problem:
            raise ConfigError(
                f"{self.section.label} '{self.name}' "
                + ("has no value" if value is None else f"is {shown(value)}, which {problem}"),
                where=self.path,
                legal=self.legal(),
            )
        return self.domain.canonical(value)

    def check_built(self, value: Value) -> None:
        """Refuse a legal value whose stage does not exist yet, rather than ignore it.

        Raises:
            ConfigError: with what to use instead.
        """
        if value == self.default:
            return
        instead = self.pending.get(value, "") or self.pending.get(None, "")
        if instead:
            raise ConfigError(
                f"{self.section.label} '{self.name}' is {shown(value)}, which microtir does not "
                "support yet",
                where=self.path,
                legal=self.legal(),
                fix=instead,
            )

    def choices(self) -> tuple[str, ...]:
        """Return the values that are built, where they can be listed."""
        return tuple(c for c in self.domain.choices() if c not in self.pending)

    def legal(self) -> str:
        """Return the legal values in words, less those that are not built yet."""
        if None in self.pending:
            return self.default_text
        choices = self.choices()
        if isinstance(self.domain, Flag):
            return ", ".join(str(v) for v in (True, False) if v not in self.pending)
        return ", ".join(choices) or self.domain.legal()


def pending(instead: str, *values: object) -> Mapping[object, str]:
    """Return legal values that are not built yet, with what to do instead."""
    return MappingProxyType(dict.fromkeys(values or (None,), instead))
