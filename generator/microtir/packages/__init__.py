"""Makes packages of models: libraries in the forms that the tools of others install."""

from __future__ import annotations

from microtir.packages.formats import PackageFormat, all_formats
from microtir.packages.generate import generate
from microtir.packages.manifest import PackageManifest
from microtir.packages.options import PackageOptions

__all__ = [
    "PackageFormat",
    "PackageManifest",
    "PackageOptions",
    "all_formats",
    "generate",
]
