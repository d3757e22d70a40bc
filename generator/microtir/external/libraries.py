"""The libraries that a configuration can name."""

from __future__ import annotations

from microtir.config.enums import ExternalLibrary
from microtir.config.external import External
from microtir.external.cmsis_nn import cmsis_nn
from microtir.external.interface import Library


def library_of(external: External) -> Library:
    """The library that an entry of the configuration names.

    Raises:
        ToolError: its folder is missing, or is not the library's.
    """
    match external.library:
        case ExternalLibrary.CMSIS_NN:
            return cmsis_nn(external.path)
