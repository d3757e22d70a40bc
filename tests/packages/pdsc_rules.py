"""The rules of a pack's description, as the specification of CMSIS-Packs states them.

What an element may hold in this order, and how each attribute and text reads.  The format itself
takes children in any order; these packs have one, and no element that is not listed here.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path

CHILDREN: Mapping[str, tuple[str, ...]] = {
    "package": ("vendor", "name", "description", "url", "releases", "keywords", "components"),
    "releases": ("release",),
    "keywords": ("keyword",),
    "components": ("component",),
    "component": ("description", "RTE_Components_h", "files"),
    "files": ("file",),
}
REPEATED = ("release", "keyword", "component", "file")

_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+"
_PART = r"[A-Za-z0-9][A-Za-z0-9_+()'/\-\s.]{1,31}"  # of a component's identity
ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "package": {
        "schemaVersion": r"1\.[0-9]+(\.[0-9]+)?",
        "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation": r"PACK\.xsd",
    },
    "release": {"version": _VERSION},
    "component": {
        "Cvendor": r"[A-Za-z0-9][A-Za-z0-9\-\s]{1,31}",
        "Cclass": _PART,
        "Cgroup": _PART,
        "Cversion": _VERSION,
    },
    "file": {
        "category": "doc|header|include|library|object|source|linkerScript|utility|image|other",
        "name": r"[^\\]+",
    },
}
TEXTS: Mapping[str, str] = {
    "vendor": r"[\-_A-Za-z0-9]+",
    "name": r"[\-_A-Za-z0-9]+",
    "description": r".{1,256}",
    "url": r"(https?://\S+)?",  # empty where nobody serves newer versions
    "RTE_Components_h": r"#define RTE_\w+",
}


def violations(file: Path) -> list[str]:
    """Return what is wrong with the description of a pack whose files lie beside it."""
    root = ET.parse(file).getroot()
    found = [f"the root is {root.tag}"] * (root.tag != "package")
    found += _of_element(root)
    name = ".".join(root.findtext(tag) or "" for tag in ("vendor", "name"))
    if file.name != f"{name}.pdsc":
        found.append(f"{file.name} describes {name}")
    for entry in root.iter("file"):
        path = file.parent / entry.attrib.get("name", "")
        is_folder = entry.attrib.get("category") == "include"
        if not (path.is_dir() if is_folder else path.is_file()):
            found.append(f"there is no {entry.attrib.get('name')}")
        if is_folder != entry.attrib.get("name", "").endswith("/"):
            found.append(f"{entry.attrib.get('name')} ends as a folder does, or does not")
    return found


def _of_element(element: ET.Element) -> Iterator[str]:
    tags = [child.tag for child in element]
    legal = CHILDREN.get(element.tag, ())
    once = [tag for tag in tags if tag not in REPEATED]
    if [tag for tag in legal if tag in tags] != list(dict.fromkeys(tags)) or len(once) != len(
        set(once)
    ):
        yield f"<{element.tag}> holds {tags}"
    missing = [tag for tag in legal if tag not in tags]
    if missing:
        yield f"<{element.tag}> lacks {missing}"
    rules = ATTRIBUTES.get(element.tag, {})
    for name, value in element.attrib.items():
        if name not in rules or not re.fullmatch(rules[name], value):
            yield f"<{element.tag} {name}={value!r}>"
    absent = rules.keys() - element.attrib.keys()
    if absent:
        yield f"<{element.tag}> lacks the attributes {sorted(absent)}"
    if element.tag in TEXTS and not re.fullmatch(TEXTS[element.tag], element.text or ""):
        yield f"<{element.tag}> is {element.text!r}"
    for child in element:
        yield from _of_element(child)
