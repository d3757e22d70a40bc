"""The forms a target is written in: target string, JSON text, mapping → attributes by name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from microtir.config.cores import NATIVE_NAME
from microtir.config.option import Section
from microtir.config.options import find
from microtir.errors import ConfigError, nearest_part
from microtir.instruction_sets import ARCHITECTURES, CPUS, is_architecture
from microtir.support.shown import shown

_FORMS = (
    "a target string such as 'c -mcpu=cortex-m4', the name of a CPU or an architecture, JSON, a "
    "mapping with 'kind', or a Target"
)


def attributes_of(spec: object) -> dict[str, object]:
    """Return the attributes that `spec` spells, each of a known name.

    Raises:
        ConfigError: `spec` is none of the forms, or names an unknown option.
    """
    if isinstance(spec, str):
        text = spec.strip()
        return _from_json(text) if text.startswith("{") else _from_words(text)
    if isinstance(spec, Mapping):
        return _named(dict(spec), shown(dict(spec)))
    raise ConfigError(f"{shown(spec)} is not a target", where="target", legal=_FORMS)


def _from_json(text: str) -> dict[str, object]:
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{shown(text)} is not a target: {error}", where="target", legal=_FORMS
        ) from None
    return _named(spec, shown(text))


def _from_words(text: str) -> dict[str, object]:
    kind, *words = text.split() or [""]
    if not kind or kind.startswith("-"):
        raise ConfigError(
            f"{shown(text)} does not start with a target kind",
            where="target.kind",
            legal=_FORMS,
            fix=f"write 'c {text}'" if text else "write 'c' for portable code",
        )
    option = processor_option(kind)
    if option is None and kind not in find(Section.TARGET, "kind").choices():
        hint = nearest_part(kind, (*CPUS, *ARCHITECTURES, NATIVE_NAME))
        raise ConfigError(
            f"{shown(kind)} is not a known target: {hint}".removesuffix(": "),
            where="target.kind",
            legal="c, or the name of a processor, which `microtir targets` lists",
        )
    result: dict[str, object] = {"kind": "c", option: kind} if option else {"kind": kind}
    for word in words:
        name, equals, value = word.removeprefix("-").partition("=")
        if not word.startswith("-"):
            raise ConfigError(
                f"{shown(text)} contains the word {shown(word)}, which is not an option",
                where="target",
                fix="write options as -name=value, without spaces in the value",
            )
        find(Section.TARGET, name)
        if not equals or not value:
            raise ConfigError(
                f"target option '{name}' has no value",
                where=f"target.{name}",
                fix=f"write -{name}=VALUE, without spaces",
            )
        if name in result:
            raise ConfigError(
                f"target option '{name}' is given twice",
                where=f"target.{name}",
                fix="give the option once. -mattr accepts several features, separated by commas",
            )
        result[name] = value
    return result


def processor_option(word: str) -> str | None:
    """Return the option whose value a word is if it names a processor, else None.

    Its name alone is a target, which can only be of the one kind that there is.
    """
    name = word.partition("+")[0]
    if name in (*CPUS, NATIVE_NAME):
        return "mcpu"
    return "march" if is_architecture(name) else None


def _named(spec: Mapping[str, object], text: str) -> dict[str, object]:
    for name in spec:
        find(Section.TARGET, name)
    if "kind" not in spec:
        raise ConfigError(f"{text} has no 'kind'", where="target.kind", legal=_FORMS)
    return dict(spec)
