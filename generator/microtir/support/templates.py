"""Renders Jinja templates: one set of rules for all that are printed, and pages of HTML and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import CodeType, MappingProxyType
from typing import Any

import jinja2
from jinja2.bccache import Bucket

from microtir.support import resources

RULES: Mapping[str, Any] = MappingProxyType({
    "undefined": jinja2.StrictUndefined,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
    "newline_sequence": "\n",
})  # fmt: skip
"""The arguments of an environment that every template is written for."""


def render_page(template: str, **values: object) -> str:
    """Fill in a template of HTML or SVG, in which every value is escaped.

    Args:
        template: path below the folder of templates.
        values: what the template may speak of.
    """
    return _pages().get_template(template).render(values)


@lru_cache(maxsize=1)
def _pages() -> jinja2.Environment:
    # Names come from the model's file, so every value is escaped.
    loader = jinja2.FileSystemLoader(resources.templates(), encoding="utf-8")
    return jinja2.Environment(loader=loader, autoescape=True, **RULES)


class CompiledTemplates(jinja2.BytecodeCache):
    """Keeps the code of templates for environments that are made anew, in this process.

    A project has an environment of its own, since folders of a user may replace files of it, and
    compiling the same templates again is most of what a project costs.  jinja2 asks by the name and
    the text of a template, so that a file which has changed is compiled.
    """

    def __init__(self) -> None:
        self._codes: dict[str, tuple[str, CodeType]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill in the code of a template, if it is there for this text."""
        checksum, code = self._codes.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        if bucket.code is not None:
            self._codes[bucket.key] = (bucket.checksum, bucket.code)
