"""Writes samples of the test set as a C header: `python samples.py digits_test.npz samples.h`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SAMPLES = 8


def main() -> None:
    """Write images, outputs of the quantised model, and labels of images that it knows."""
    data = np.load(sys.argv[1])
    known = data["outputs"].reshape(-1, 10).argmax(axis=1) == data["labels"]
    tables = []
    for name, key, length in (("images", "inputs", "[64]"), ("expected", "outputs", "[10]"),
                              ("labels", "labels", "")):  # fmt: skip
        rows = data[key][known][:SAMPLES].reshape(SAMPLES, -1)
        lines = [", ".join(map(str, row)) for row in rows]
        body = "".join(f"    {f'{{{line}}}' if length else line},\n" for line in lines)
        tables.append(f"static const int8_t {name}[SAMPLES]{length} = {{\n{body}}};\n")
    text = f"#include <stdint.h>\n\n#define SAMPLES {SAMPLES}\n\n" + "\n".join(tables)
    Path(sys.argv[2]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
