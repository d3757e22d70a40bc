"""Renders Jinja templates: one set of rules for all that are printed, and pages of HTML and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import jinja2

from microtir import resources

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
