"""Finds frameworks that no package brings, and names the commands that get them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from microtir.boards.errors import MissingToolError
from microtir.support.texts import LINE, TEXT, WORD
from microtir.support.toml_table import TomlTable

_CMAKE_VARIABLES = ("CMAKE_PREFIX_PATH", "CMAKE_MODULE_PATH")


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework that a build needs besides programs: where it is, and how to get it.

    Where `{vendor}` and `{core}` stand, the first two parts of the framework's name for the board
    go: `arduino:avr:mega` has the core `avr` of the vendor `arduino`.

    Args:
        name: for messages.
        file: that it has, below its folder.
        variable: of the environment or of the build command, which names the folder.
        places: folders where it usually is.
        registry: name under which CMake knows its place.
        get: the commands that get it.
        signs: what a build says, as regular expressions, if a part of it is missing.
    """

    name: Annotated[str, LINE]
    file: Annotated[str, LINE]
    variable: Annotated[str, WORD]
    places: tuple[Annotated[str, LINE], ...]
    registry: Annotated[str, WORD] | None
    get: Annotated[str, TEXT]
    signs: tuple[Annotated[str, LINE], ...]

    def for_board(self, board: str) -> Framework:
        """Return the framework with the parts of the board's name filled in."""
        vendor, core = [*board.split(":"), ""][:2]

        def filled(text: str) -> str:
            return text.replace("{vendor}", vendor).replace("{core}", core)

        return replace(self, name=filled(self.name), file=filled(self.file), get=filled(self.get))

    def is_here(self, arguments: Sequence[str] = ()) -> bool:
        """Return whether a build with these arguments may find the framework."""
        named = os.environ.get(self.variable)
        if any(self.variable in argument for argument in arguments):
            return True
        if self.registry is not None and self._is_registered():
            return True
        places = (*self.places, *([named] if named else []))
        return any((Path(place) / self.file).is_file() for place in places)

    def _is_registered(self) -> bool:
        """Return whether CMake's list of packages in the user's home names it."""
        if any(os.environ.get(v) for v in (f"{self.registry}_DIR", *_CMAKE_VARIABLES)):
            return True
        folder = Path.home() / ".cmake" / "packages" / str(self.registry)
        if not folder.is_dir():
            return False
        entries = [f.read_text("utf-8", "replace").strip() for f in folder.iterdir() if f.is_file()]
        return any(Path(entry).is_dir() for entry in entries)

    def missing(self) -> MissingToolError:
        named = os.environ.get(self.variable)
        what = "is not on this machine"
        if named:
            what = f"is not in '{named}', which the environment names: there is no {self.file}"
        return MissingToolError(f"{self.name} {what}", where=self.variable, fix=self.get)

    def incomplete(self, said: str) -> MissingToolError:
        """Return the diagnostic for a framework of which a part is missing, as a build said."""
        what = f"{self.name} is installed only in part: {said}"
        return MissingToolError(what, where=self.variable, fix=self.get)

    def explains(self, output: str) -> bool:
        """Return whether a failed build says that a part of it is missing."""
        return any(re.search(sign, output) for sign in self.signs)


def read_framework(table: TomlTable | None) -> Framework | None:
    """Read the table `framework` of a step."""
    if table is None:
        return None
    result = Framework(
        name=table.required_text("name", LINE),
        file=table.required_text("file", LINE),
        variable=table.required_text("variable", WORD),
        places=table.texts("places", LINE),
        registry=table.text("registry", WORD),
        get=table.required_text("get", TEXT),
        signs=table.texts("signs", LINE),
    )
    table.done()
    return result
