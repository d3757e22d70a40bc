"""TIR → C text: lowered modules printed through Jinja templates."""

from __future__ import annotations

from microtir.codegen.code_size import FlashUse, flash_of
from microtir.codegen.emit import Printed, emit
from microtir.codegen.interface.joint import joint_workspace_header, joint_workspace_source
from microtir.codegen.metadata import METADATA_FILE, Metadata
from microtir.codegen.printer.environment import TemplateError
from microtir.codegen.program import constant_use
from microtir.codegen.source_file import DataFile, SourceFile
from microtir.codegen.stack import layer_stacks, stack_of
from microtir.compat.microtvm.abi import abi_prefix

__all__ = [
    "METADATA_FILE",
    "DataFile",
    "FlashUse",
    "Metadata",
    "Printed",
    "SourceFile",
    "TemplateError",
    "abi_prefix",
    "constant_use",
    "emit",
    "flash_of",
    "joint_workspace_header",
    "joint_workspace_source",
    "layer_stacks",
    "stack_of",
]
