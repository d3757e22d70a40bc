"""Real programs with other arguments give a model or a diagnostic, whatever they ask for."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from microtir.errors import MicrotirError
from microtir.frontend import check
from tests.support.torch_programs import zipped

PROGRAM = "models/model.json"
NAMES = ("cnn", "streaming_buffer", "gather", "control_cond", "squeeze_excite_pt2e_int8", "shapes")

VALUES: tuple[dict[str, Any], ...] = (
    {"as_none": True}, {"as_int": -1}, {"as_int": 7}, {"as_int": 1 << 40}, {"as_float": "NaN"},
    {"as_float": 1e30}, {"as_ints": []}, {"as_ints": [-1, 3]}, {"as_ints": [1 << 31]},
    {"as_string": "reflect"}, {"as_bool": True}, {"as_tensors": []},
)  # fmt: skip


def mutated(generator: random.Random, document: Any) -> Any:
    """Change a few nodes: an argument, what it names, or the operator."""
    nodes = document["graph_module"]["graph"]["nodes"]
    for _ in range(generator.choice((1, 1, 2, 4))):
        node = generator.choice(nodes)
        if not node["inputs"]:
            continue
        item = generator.choice(node["inputs"])
        kind = generator.randrange(4)
        if kind == 0:
            item["arg"] = generator.choice(VALUES)
        elif kind == 1:
            names = [out for other in nodes for out in other["outputs"] if "as_tensor" in out]
            item["arg"] = generator.choice(names)
        elif kind == 2:
            node["inputs"].remove(item)
        else:
            node["target"] = generator.choice(nodes)["target"]
    return document


EACH = [pytest.param(name, marks=pytest.mark.model(f"torch/{name}")) for name in NAMES]


@pytest.mark.parametrize("name", EACH)
def test_mutated_programs(models_dir: Path, name: str) -> None:
    """Nothing but diagnostics comes out, and soon."""
    with zipfile.ZipFile(models_dir / "torch" / f"{name}.pt2") as archive:
        members = {
            entry.filename.partition("/")[2]: archive.read(entry) for entry in archive.infolist()
        }
    generator = random.Random(name)
    problems = 0
    for _ in range(40):
        document = mutated(generator, json.loads(members[PROGRAM]))
        found = check(zipped({**members, PROGRAM: json.dumps(document).encode()}))
        assert all(isinstance(problem, MicrotirError) for problem in found)
        problems += bool(found)
    assert problems > 10
