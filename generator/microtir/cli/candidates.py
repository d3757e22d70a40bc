"""Finds the words that may come next on a command line: for the completion of shells.

What the value of an option or an argument may be is read off its metavar, as the help shows it:
`speed|ram` are words to choose from, `MODEL` is a model file or an example.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from microtir.cli.help import is_shown
from microtir.cli.model import EXAMPLE, EXAMPLES

_MODEL_FILES = frozenset({".tflite", ".onnx", ".pt2", ".tar"})
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]*")


def candidates(root: Any, line: str) -> list[str]:
    """Return the words that may stand where a command line ends; none where any file may.

    Args:
        root: the command of the whole program.
        line: what was typed, the program's name first; its last word may be begun only.
    """
    words, begun = _split(line)
    command, pending, arguments = _walk(root, words)
    if pending is not None:
        return _beginning(_values(pending, begun), begun)
    option, sign, value = begun.partition("=")
    if sign and option.startswith("--"):
        named = _option(command, option)
        values = [] if named is None else _beginning(_values(named, value), value)
        return [f"{option}={legal}" for legal in values]
    if begun.startswith("-"):
        return _beginning(_options(command, begun), begun)
    if _is_group(command):
        verbs = [name for name, verb in command.commands.items() if not verb.hidden]
        return _beginning(verbs, begun)
    return [] if arguments is None else _beginning(_values(arguments, begun), begun)


def _split(line: str) -> tuple[list[str], str]:
    """Return the whole words behind the program's name, and the one that is begun."""
    words: list[str] = []
    for closing in ("", "'", '"'):  # of the last word, if a quote is open
        try:
            words = shlex.split(line + closing)
            break
        except ValueError:
            continue
    is_whole = not words or line.endswith((" ", "\t"))
    return (words[1:], "") if is_whole or len(words) < 2 else (words[1:-1], words[-1])


def _walk(root: Any, words: list[str]) -> tuple[Any, Any, Any]:
    """Return the verb, the option that waits for its value, and the argument that comes next."""
    command, pending, positionals = root, None, 0
    for word in words:
        if pending is not None:
            pending = None
        elif word.startswith("-"):
            option = _option(command, word)
            pending = None if option is None or option.is_flag else option
        elif _is_group(command):
            command = command.commands.get(word, command)
        else:
            positionals += 1
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    many = bool(arguments) and arguments[-1].nargs == -1
    if positionals < len(arguments):
        return command, pending, arguments[positionals]
    return command, pending, arguments[-1] if many else None


def _is_group(command: Any) -> bool:
    return hasattr(command, "commands")


def _option(command: Any, name: str) -> Any:
    """Return the option of this name, or None."""
    return next((p for p in command.params if name in (*p.opts, *p.secondary_opts)), None)


def _options(command: Any, begun: str) -> list[str]:
    """Return the options of a verb: of all those of a configuration, the daily ones at first."""
    whole = begun not in ("-", "--")
    known = [
        p for p in command.params
        if p.param_type_name == "option" and not p.hidden and (whole or is_shown(p))
    ]  # fmt: skip
    names = [name for p in known for name in (*p.opts, *p.secondary_opts)]
    return [name for name in [*names, "--help"] if name.startswith("--")]


def _beginning(words: list[str], begun: str) -> list[str]:
    return [word for word in words if word.startswith(begun)]


def _values(parameter: Any, begun: str) -> list[str]:
    """Return the values that a parameter may have, as far as they can be listed."""
    metavar = str(parameter.metavar or "").strip("[]")  # an argument may be left out
    listed = _LISTED.get(metavar)
    if listed is not None:
        return listed(begun)
    return [word for word in metavar.split("|") if _WORD.fullmatch(word)]


def _models(begun: str) -> list[str]:
    """Return the examples, the model files and archives of a folder, and the folders in it."""
    folder, slash, _ = begun.rpartition("/")
    places = Path(folder + slash) if slash else Path()
    try:
        inside = sorted(places.iterdir())
    except OSError:
        inside = []
    files = [
        f"{folder}{slash}{path.name}{'/' * path.is_dir()}" for path in inside
        if not path.name.startswith(".") and (path.is_dir() or path.suffix in _MODEL_FILES)
    ]  # fmt: skip
    return [*(EXAMPLE + name for name in EXAMPLES), *files]


def _boards(_: str) -> list[str]:
    from microtir.boards.search import board_names

    return board_names()


def _targets(_: str) -> list[str]:
    from microtir.instruction_sets import ARCHITECTURES, CPUS

    return ["native", *CPUS, *ARCHITECTURES]


_LISTED: Mapping[str, Callable[[str], list[str]]] = MappingProxyType(
    {
        "AFTER": _models,
        "BEFORE": _models,
        "BOARD": _boards,
        "MODEL": _models,
        "TARGET": _targets,
    }
)
