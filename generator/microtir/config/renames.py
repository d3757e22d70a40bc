"""Other names for inputs and outputs of a model, as an application should see them."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.support.names import c_name


@dataclass(frozen=True, slots=True)
class Rename:
    """An input or output by a name of the model, and the name that it gets."""

    old: str
    new: str


def renames_problem(text: str) -> str:
    """Return what is wrong with a list of renames, or an empty text."""
    parts = [part.strip() for part in text.split(",")] if text else []
    for part in parts:
        old, _, new = (side.strip() for side in part.rpartition("="))
        if not old or not new:
            return f"contains '{part}', which is not NAME=NEW"
        if c_name(new) != new:
            return (
                f"contains '{part}', but '{new}' is not a valid name in C. '{c_name(new)}' is valid"
            )
    for names in ([r.old for r in renames(text)], [r.new for r in renames(text)]):
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            return f"names '{repeated[0]}' twice"
    return ""


def renames(text: str) -> tuple[Rename, ...]:
    """Return the renames of a list; a name of a model may have a `=` in it, a new one has none."""
    sides = (part.rpartition("=") for part in text.split(",")) if text else ()
    return tuple(Rename(old.strip(), new.strip()) for old, _, new in sides)
