"""The lines of the package: of Python by folder, and of the templates, which do not count.

    python -m scripts.size

Status 1 if the package has more lines of Python than `LIMIT`.  Physical lines are counted, blank
ones and comments with them, as `make format` lays them out.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "generator/microtir"
TEMPLATES = "templates"

# What growth has to ask for: a change that needs more lines raises it and says what they are for.
# The goal is 122,000; whatever makes the package shorter lowers it.
# It is 25,000 more than it was, for models of PyTorch and Keras, for quantising float models and
# the search over widths, for kernels of four-bit weights and of recurrent and normalising layers
# with Helium, for tables in written TFLite files, for certificates and the indices that they state
# of arrays of any size, for canaries, for masks that take the same instructions for all data, and
# for the static count of instructions from machine code.
LIMIT = 175_000

_OF_ROOT = "(root)"


def lines(folder: Path, suffix: str) -> Counter[str]:
    """Return the lines of files with a suffix by the first folder below `folder`, sorted."""
    counted: Counter[str] = Counter()
    for path in sorted(folder.rglob(f"*{suffix}")):
        if path.is_file():
            first, *rest = path.relative_to(folder).parts
            counted[first if rest else _OF_ROOT] += len(path.read_text("utf-8").splitlines())
    return counted


def excess(root: Path = ROOT, limit: int = LIMIT) -> int:
    """Return by how many lines of Python the package is over the limit, 0 if it is not."""
    return max(0, lines(root / PACKAGE, ".py").total() - limit)


def table(root: Path = ROOT, limit: int = LIMIT) -> str:
    """Return the lines by folder as text, a line for each folder."""
    package = lines(root / PACKAGE, ".py")
    rows = [(name, package[name]) for name in sorted(package)]
    total = package.total()
    rows += [("total", total), ("limit", limit)]
    rows.append((f"{TEMPLATES}, apart", lines(root / TEMPLATES, "").total()))
    return "".join(f"{name:20}{count:9,}\n" for name, count in rows)


if __name__ == "__main__":
    sys.stdout.write(table())
    if over := excess():
        sys.exit(f"size: {over:,} lines of Python more than LIMIT in scripts/size.py")
