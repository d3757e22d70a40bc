"""TIR → C text: lowered modules printed through Jinja templates."""

from __future__ import annotations

from microtir.codegen.dropin import dropin_prefix
from microtir.codegen.emit import emit
from microtir.codegen.environment import TemplateError
from microtir.codegen.joint import joint_workspace_header, joint_workspace_source
from microtir.codegen.metadata import METADATA_FILE, Metadata
from microtir.codegen.program import constants_of
from microtir.codegen.source_file import SourceFile
from microtir.codegen.stack import stack_of

__all__ = [
    "METADATA_FILE",
    "Metadata",
    "SourceFile",
    "TemplateError",
    "constants_of",
    "dropin_prefix",
    "emit",
    "joint_workspace_header",
    "joint_workspace_source",
    "stack_of",
]
