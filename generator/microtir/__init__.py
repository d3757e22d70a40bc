"""microtir turns a trained model into plain C99 for a microcontroller.

The names below are the public API.  They are loaded when they are first used: `microtir --help`
does not wait for numpy, and a program that only makes a configuration loads no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from microtir.version import __version__

if TYPE_CHECKING:
    from microtir import config, custom, frontend, host, quantise, te, tir, writers
    from microtir.artifact import Artifact, export_model_library_format, import_model_library_format
    from microtir.config import CompilationConfig, Executor, Runtime, Target
    from microtir.driver import build, lower
    from microtir.errors import MicrotirError
    from microtir.module.ir_module import IRModule
    from microtir.rewrite.extra_passes import ExtraPasses
    from microtir.schedule import Schedule

__all__ = [
    "Artifact",
    "CompilationConfig",
    "Executor",
    "ExtraPasses",
    "IRModule",
    "MicrotirError",
    "Runtime",
    "Schedule",
    "Target",
    "__version__",
    "build",
    "config",
    "custom",
    "export_model_library_format",
    "frontend",
    "host",
    "import_model_library_format",
    "lower",
    "quantise",
    "te",
    "tir",
    "writers",
]

if not TYPE_CHECKING:  # a type checker sees the imports above, and an error for any other name
    _MODULES = ("config", "custom", "frontend", "host", "quantise", "te", "tir", "writers")
    _HOMES = {
        "Artifact": "artifact",
        "CompilationConfig": "config",
        "Executor": "config",
        "ExtraPasses": "rewrite.extra_passes",
        "IRModule": "module.ir_module",
        "MicrotirError": "errors",
        "Runtime": "config",
        "Schedule": "schedule",
        "Target": "config",
        "build": "driver",
        "export_model_library_format": "artifact",
        "import_model_library_format": "artifact",
        "lower": "driver",
    }

    def __getattr__(name: str) -> object:
        """Load a public name; AttributeError if there is none."""
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def __dir__() -> list[str]:
        return sorted(__all__)
