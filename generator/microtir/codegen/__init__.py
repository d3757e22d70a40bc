"""Prints lowered modules as C, with finished text that Jinja templates put together."""

from __future__ import annotations

from microtir.codegen.emit import emit
from microtir.codegen.interface.joint import joint_workspace_header, joint_workspace_source
from microtir.codegen.measured import measured
from microtir.codegen.metadata import METADATA_FILE, Metadata
from microtir.codegen.microtvm.abi import abi_prefix, params_name
from microtir.codegen.source_file import DataFile, SourceFile

__all__ = [
    "METADATA_FILE",
    "DataFile",
    "Metadata",
    "SourceFile",
    "abi_prefix",
    "emit",
    "joint_workspace_header",
    "joint_workspace_source",
    "measured",
    "params_name",
]
