"""What compilers say about a C file, and the objects they make of it, kept for the whole session.

Hundreds of programs bring the same runtime, and each is compiled and linked by itself.  An object
depends on the compiler, its flags, the file and what that includes: these are the key, so that each
file is compiled once by any of the workers.  Where a macro of the command may count, what the
preprocessor makes of the file says whether it does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

VARIABLE = "MICROTIR_TEST_OBJECTS"
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:(["<])([^">\n]+)[">]|(\w))', re.MULTILINE)
# Names that begin with an underscore are those of the system's headers, which nobody reads here.
_OWN_MACRO = re.compile(r"-D([A-Za-z]\w*)")
_ASKS_FOR_TEXT = frozenset(("-E", "-S", "-M", "-MM", "-x", "-save-temps"))
# Clang warns of what the step at hand does not need.
_OF_LINKING = ("-l", "-L", "-Wl,", "-T", "-shared", "-static", "-nostart")
_OF_BOTH = ("-f", "-m", "-g", "-O", "-pthread", "--target", "--specs")
_TIMEOUT = 300.0  # seconds


@dataclass(frozen=True)
class Command:
    """A call of a compiler, taken apart: what is said to it for every unit, and the rest."""

    compiler: str
    flags: tuple[str, ...]  # for each unit
    units: tuple[str, ...]
    links: tuple[str, ...]  # objects and libraries
    output: str | None

    @property
    def is_link(self) -> bool:
        return "-c" not in self.flags and "-fsyntax-only" not in self.flags


def compiler_output(command: Sequence[str], folder: Path) -> str:
    """Return what a compiler says that refuses; an empty string if it accepts.

    The result of each unit comes from the cache where that holds it.
    """
    taken = _taken_apart(command)
    root = os.environ.get(VARIABLE)
    if taken is None or root is None:
        return _run(command, folder)
    keys = {unit: _key(taken, unit, folder) for unit in taken.units}
    if not all(keys.values()):
        return _run(command, folder)
    objects = {
        unit: _place(taken, unit, folder, Path(root) / str(key)) for unit, key in keys.items()
    }
    said = "".join(_compiled(taken, unit, folder, kept) for unit, kept in objects.items())
    if said:
        return said
    if taken.is_link:
        output = () if taken.output is None else ("-o", taken.output)
        linked = [str(kept / "unit.o") for kept in objects.values()]
        flags = [flag for flag in taken.flags if flag.startswith(_OF_BOTH)]
        return _run([taken.compiler, *flags, *linked, *taken.links, *output], folder)
    if "-c" in taken.flags and taken.output != os.devnull:
        for unit, kept in objects.items():
            shutil.copyfile(kept / "unit.o", folder / (taken.output or f"{Path(unit).stem}.o"))
    return ""


def _taken_apart(command: Sequence[str]) -> Command | None:
    """Return the parts of a command; None if it asks for more than objects of C files."""
    if any(a in _ASKS_FOR_TEXT or a.startswith(("-M", "-Wp,", "@")) for a in command[1:]):
        return None
    flags, units, links = list[str](), list[str](), list[str]()
    output = None
    arguments = iter(command[1:])
    for argument in arguments:
        if argument == "-o":
            output = next(arguments)
        elif argument in ("-include", "-isystem", "-I", "-D", "-U"):
            flags += [argument, next(arguments)]
        elif argument.startswith(_OF_LINKING) or argument.endswith((".o", ".a")):
            links.append(argument)
        elif argument.startswith("-"):
            flags.append(argument)
        elif argument.endswith((".c", ".cpp", ".cc")):
            units.append(argument)
        else:
            return None
    several = len(units) > 1 and output is not None and "-c" in flags
    if not units or several:
        return None
    return Command(command[0], tuple(flags), tuple(units), tuple(links), output)


def _place(command: Command, unit: str, folder: Path, kept: Path) -> Path:
    """Return where the object of a unit lies: `kept`, or where one of the same text lies."""
    if (kept / "said").is_file() or not any(map(_OWN_MACRO.match, command.flags)):
        return kept
    flags = [f for f in command.flags if f not in ("-c", "-fsyntax-only")]
    done = subprocess.run(
        [command.compiler, *flags, "-E", unit],
        cwd=folder, capture_output=True, timeout=_TIMEOUT, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return kept
    others = (flag for flag in command.flags if not flag.startswith(("-D", "-I")))
    digest = hashlib.sha256(done.stdout)
    for part in (_identity(command.compiler), *others, unit):
        digest.update(f"{len(part)}:{part}".encode())
    return kept.parent / digest.hexdigest()[:40]


def _compiled(command: Command, unit: str, folder: Path, kept: Path) -> str:
    """Return what the compiler says of a unit, whose object is in the folder `kept` then."""
    if not (kept / "said").is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as scratch:
            new = Path(scratch, "new")
            new.mkdir()
            is_object = "-fsyntax-only" not in command.flags
            more = [
                *(["-c"] if command.is_link else []),
                *(["-o", str(new / "unit.o")] * is_object),
            ]
            said = _run([command.compiler, *command.flags, *more, unit], folder)
            (new / "said").write_text(said, encoding="utf-8")
            try:
                new.rename(kept)
            except OSError:  # another worker was faster, with the same content
                assert (kept / "said").is_file()
    return (kept / "said").read_text(encoding="utf-8")


def _key(command: Command, unit: str, folder: Path) -> str | None:
    """Return a digest of all that an object depends on; None if a macro says what is included.

    A macro of the command counts where the unit or what it includes has its name.
    """
    texts = list(_closure(command, folder / unit, folder))
    if any(is_macro for _, text in texts for _, _, is_macro in _INCLUDE.findall(text)):
        return None
    digest = hashlib.sha256()
    for flag in (_identity(command.compiler), *command.flags, unit):
        name = _OWN_MACRO.match(flag)
        if name is None or any(name[1].encode() in text for _, text in texts):
            digest.update(f"{len(flag)}:{flag}".encode())
    for path, text in texts:
        digest.update(f"{path}:{len(text)}:".encode())
        digest.update(text)
    return digest.hexdigest()[:40]


def _closure(command: Command, unit: Path, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the unit and every file that it may include, with their names and text.

    A header that is found in none of the folders that the command names is the compiler's own.
    """
    flags = command.flags
    places = [folder / f[2:] for f in flags if f.startswith("-I") and f != "-I"]
    places += [folder / b for a, b in pairwise(flags) if a in ("-I", "-isystem")]
    forced = [b for a, b in pairwise(flags) if a == "-include"]
    waiting = [unit, *(p for name in forced for p in _places(name, [folder, *places]))]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        text = path.read_bytes()
        yield os.path.relpath(path, folder), text
        for _, name, _ in _INCLUDE.findall(text):
            waiting += _places(name.decode(), [path.parent, *places])


def _places(name: str, folders: Sequence[Path]) -> list[Path]:
    """Every file of that name: which one is read may depend on macros of the platform."""
    return [folder / name for folder in folders if (folder / name).is_file()]


@lru_cache(maxsize=64)
def _identity(compiler: str) -> str:
    """Return a compiler's path and version."""
    said = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    return f"{shutil.which(compiler)} {said}"


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        list(command), cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT, check=False
    )
    return "" if done.returncode == 0 else done.stderr or f"status {done.returncode}"
