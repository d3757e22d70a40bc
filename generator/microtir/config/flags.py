"""The command line's form of the option table: flags, and one configuration built from them.

`FLAGS` is all that a command line needs to declare its options; what it collected goes to
`config_from_flags` as it is. So no verb builds a configuration in a way of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from microtir.config.assemble import assemble
from microtir.config.compilation import CompilationConfig
from microtir.config.creators import MODELS, host, micro, microcontroller
from microtir.config.flag import Flag, FlagValue
from microtir.config.option import Option, Section
from microtir.config.options import OPTIONS, find
from microtir.config.serial import from_text
from microtir.config.tvmc_flags import TVMC_FLAGS, from_tvmc, from_tvmc_file
from microtir.errors import ConfigError, ConfigFileError, nearest
from microtir.support.arguments import checked_arguments
from microtir.support.shown import shown

_POOLS = (Section.WORKSPACE_POOL, Section.CONSTANT_POOL)
_MANY = ("targets", "workspace_pools", "constant_pools", "external")


def _flag_of(option: Option) -> Flag:
    choices = option.choices()
    metavar = "|".join(choices) or option.domain.type_name.upper()
    if option.section in _POOLS:
        metavar, choices = f"POOL:{metavar}", ()
    elif option.name in _MANY:
        metavar = {"targets": "TARGET", "external": "LIBRARY=FOLDER"}.get(option.name, "NAME")
    elif option.name == "target_host":
        metavar = "TARGET"
    return Flag(
        option.flag,
        metavar,
        f"{option.help} Values: {option.legal()}. Default: {option.default_text}.",
        repeatable=option.section in _POOLS or option.name in _MANY,
        choices=choices,
        summary=option.help,
    )


def _all_flags() -> tuple[Flag, ...]:
    keys = [option.name for option in OPTIONS if option.section is Section.PASS]
    return (
        Flag(
            "--config",
            "FILE.json|NAME",
            "Reads a configuration file, or uses that of a named part. Other flags override it.",
        ),
        *(
            _flag_of(option)
            for option in OPTIONS
            if option.flag and option.section not in (Section.TARGET, Section.PASS)
        ),
        Flag(
            "--pass-config",
            "KEY=VALUE",
            f"Sets an option of a pass. Keys: {', '.join(keys)}.",
            repeatable=True,
        ),
    )


FLAGS: tuple[Flag, ...] = _all_flags()


@checked_arguments
def config_from_flags(
    typed: Mapping[str, FlagValue], base: CompilationConfig | None = None
) -> CompilationConfig:
    """Return the one configuration that a command line stands for.

    Args:
        typed: flag → value as the parser collected it; a flag is named as typed or by its
            `dest`, None and an empty sequence mean that it was not given.
        base: what the flags change: the board's configuration, for example. `--config` takes
            its place; without either it is `microcontroller()`.

    Raises:
        ConfigError: an unknown flag, an illegal value, or a contradiction.
        ConfigFileError: `--config` names a file that cannot be read.
    """
    flags = {flag.dest: flag for flag in (*FLAGS, *TVMC_FLAGS)}
    texts: dict[str, tuple[object, ...]] = {}
    for key, value in typed.items():
        dest = key.removeprefix("--").replace("-", "_")
        if dest not in flags:
            hint = nearest(f"--{dest}".replace("_", "-"), [flag.name for flag in flags.values()])
            raise ConfigError(f"the flag '{key}' is unknown: {hint}".removesuffix(": "), where=key)
        if value is not None and value != () and value != []:
            texts[dest] = _values(flags[dest], value)
    file = texts.pop("config", None)
    if file is not None:
        base = _base(str(file[0]), base)
    texts = from_tvmc(texts)
    values: dict[Option, object] = {}
    values.update(_pass_option(assignment) for assignment in texts.pop("pass_config", ()))
    for option in OPTIONS:
        dest = option.flag.removeprefix("--").replace("-", "_")
        if dest in texts:
            values[option] = _parsed(option, texts[dest])
    return assemble(values, microcontroller() if base is None else base)


def _base(text: str, base: CompilationConfig | None) -> CompilationConfig:
    """Return the configuration that `--config` names: a file, or a part as microTVM's did."""
    names = ("default", *MODELS)
    if text not in names or Path(text).exists():
        hint = "" if Path(text).suffix or Path(text).exists() else nearest(text, names)
        if hint:
            raise ConfigFileError(
                f"there is no configuration '{text}': {hint}",
                where="--config",
                legal=f"a file, or one of {', '.join(names)}",
            )
        return config_from_file(Path(text))
    if text == "default":  # what a command line means that names none
        return microcontroller() if base is None else base
    chosen = host() if text == "host" else micro(text)
    return chosen if base is None else chosen.with_(module_name=base.module_name)


@checked_arguments
def config_from_file(path: str | Path) -> CompilationConfig:
    """Return the configuration in a JSON file, as `--dump-config` and `to_json`, or tvmc, have it.

    Raises:
        ConfigFileError: the file cannot be read.
        ConfigError: its content is no configuration; the message names the file.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigFileError(
            f"the configuration cannot be read: {reason}", where=str(path)
        ) from None
    try:
        return CompilationConfig.from_dict(from_tvmc_file(from_text(text)))
    except ConfigError as error:
        raise ConfigError(
            error.what,
            where=f"{path}: {error.where}" if error.where else str(path),
            legal=error.legal,
            fix=error.fix,
        ) from None


def _values(flag: Flag, value: object) -> tuple[object, ...]:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(values) > 1 and not flag.repeatable:
        raise ConfigError(
            f"the flag '{flag.name}' is given {len(values)} times",
            where=flag.name,
            fix="give the flag only once",
        )
    return values


def _parsed(option: Option, values: tuple[object, ...]) -> object:
    if option.section in _POOLS:
        return dict(_per_pool(option, value) for value in values)
    if option.name in ("workspace_pools", "constant_pools"):
        # microTVM's flag took several names in one argument, separated by commas.
        return tuple(name for value in values for name in str(value).split(","))
    if option.name in _MANY:
        return values
    return _read(option, values[0])


def _per_pool(option: Option, value: object) -> tuple[str, object]:
    name, colon, text = str(value).rpartition(":")
    if not colon:
        raise ConfigError(
            f"flag '{option.flag}' is {shown(value)}, which names no pool",
            where=option.flag,
            legal="POOL:VALUE",
        )
    return name, _read(option, text)


def _pass_option(assignment: object) -> tuple[Option, object]:
    key, equals, text = str(assignment).partition("=")
    option = find(Section.PASS, key.strip())
    if not equals:
        raise ConfigError(
            f"flag '--pass-config' is '{key}' without a value",
            where=option.path,
            fix=f"write --pass-config {key}=VALUE, with VALUE one of: {option.legal()}",
        )
    return option, _read(option, text.strip())


def _read(option: Option, value: object) -> object:
    return option.domain.from_text(value) if isinstance(value, str) else value
