"""Digests of all that is written for two models, to compare interpreters.

python -m tests.artifact.digests
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import microtir
from microtir import CompilationConfig, Target, export_model_library_format
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.operators.activations.definition import Tanh
from microtir.operators.arithmetic.definition import Mul
from microtir.packages import PackageFormat, generate
from tests.support.graphs import constant, graph, node, tensor
from tests.support.small_models import module_of, quantised_graph


def _floats() -> Graph:
    """Return a model with numbers that versions of numpy spell in other ways."""
    x, y, z = (tensor(name, (1, 3), DType.FLOAT32) for name in "xyz")
    factors = constant("factors", np.asarray([1e12, 12582912.0, 1e-5], np.float32))
    return graph([node(Mul(), (x, factors), y), node(Tanh(), (y,), z)], [x], [z])


def digests() -> dict[str, str]:
    """Return the SHA-256 of each file and archive."""
    contents: dict[str, bytes] = {}
    for name, graph_ in (("integers", quantised_graph()), ("floats", _floats())):
        config = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
        artifact = microtir.build(module_of(graph_), config.with_(module_name="m"))
        contents |= {f"{name} {file.path}": file.content for file in artifact.files}
        with TemporaryDirectory() as folder:
            archive, package = Path(folder, "m.tar"), Path(folder, "p.zip")
            export_model_library_format(artifact, archive)
            generate(artifact, PackageFormat.ARDUINO, package)
            contents[f"{name}.tar"] = archive.read_bytes()
            contents[f"{name}.zip"] = package.read_bytes()
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests()))
