"""The libraries that a configuration can name."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.config.enums import ExternalLibrary
from microtir.config.external import External
from microtir.errors import UsageError
from microtir.external.cmsis_nn import cmsis_nn
from microtir.external.interface import Library


def library_of(external: External) -> Library:
    """Return the library that an entry of the configuration names.

    Raises:
        ToolError: its folder is missing, or is not the library's.
    """
    match external.library:
        case ExternalLibrary.CMSIS_NN:
            return cmsis_nn(external.path)


def refuse_without_layers(libraries: Sequence[Library], has_layers: bool) -> None:
    """Refuse libraries where there are no layers that they could take.

    Raises:
        UsageError: always then.
    """
    if libraries and not has_layers:
        raise UsageError(
            "this program has no model whose layers a library could compute",
            where="lower(libraries)",
            legal="a model that is not yet lowered",
        )
