"""Files that lie about what they hold are refused by name, and nothing of them is run."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError, UsageError
from microtir.frontend import from_keras, keras
from tests.journeys.keras_layers import RECORDED

DENSE = {
    "class_name": "Sequential",
    "config": {
        "name": "net",
        "layers": [
            {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [None, 3]}},
            {"class_name": "Dense", "config": {"name": "d", "units": 2, "activation": "relu"}},
        ],
    },
}


def weights(kernel: Any = None) -> bytes:
    """Weights of a dense layer as Keras 3 stores them."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", data=np.ones((3, 2), np.float32) if kernel is None else kernel)
        group.create_dataset("1", data=np.zeros(2, np.float32))
    return stream.getvalue()


def archive(
    config: Any = None, stored: bytes | None = None, *, packed: int = zipfile.ZIP_STORED
) -> bytes:
    """A model file; the configuration is JSON, or text as it stands."""
    config = DENSE if config is None else config
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packed) as file:
        text = config if isinstance(config, str) else json.dumps(config)
        file.writestr("config.json", text)
        file.writestr("model.weights.h5", weights() if stored is None else stored)
    return stream.getvalue()


def with_layer(entry: Mapping[str, Any]) -> bytes:
    """A model with one layer behind its input."""
    return archive({"class_name": "Sequential", "config": {"name": "n", "layers": [
        {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [None, 3]}}, entry,
    ]}})  # fmt: skip


def test_a_batch_may_be_a_range() -> None:
    """The model is read with the most entries, and nothing else follows from their number."""
    graph = from_keras(archive(), dims={"batch": range(1, 5)}).graph
    assert graph is not None
    assert [port.shape for port in (*graph.arguments, *graph.results)] == [(4, 3), (4, 2)]


def test_a_field_that_no_reader_looks_at_is_refused() -> None:
    """A later Keras may give a layer a field that changes what it computes."""
    entry: Any = {"class_name": "Dense", "config": {"name": "d", "units": 2, "is_twisted": True}}
    with pytest.raises(UnsupportedModelError, match="its field 'is_twisted' is True"):
        from_keras(with_layer(entry))
    entry["config"]["is_twisted"] = False
    assert from_keras(with_layer(entry)).graph is not None


def test_the_base_of_these_tests_is_read() -> None:
    """What is changed below is a model."""
    graph = from_keras(archive()).graph
    assert graph is not None
    assert [(port.name, port.shape) for port in graph.results] == [("d", (1, 2))]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (archive("{" * 100), "is not JSON"),
        (archive('{"a":' + "[" * 500 + "]" * 500 + "}"), "nested"),
        (archive("[" * 100_000), "nested too deep"),
        (archive(stored=weights()[:300]), "the HDF5 file is damaged"),
        (archive([]), "is not a JSON object"),
        (archive({"class_name": "Sequential", "config": {"layers": []}}), "has no layers"),
        (b"PK\x03\x04config.json" + bytes(30), "the archive is damaged"),
        (b"\x89HDF\r\n\x1a\n" + bytes(64), "the HDF5 file is damaged"),
        (weights(), "weights and no model"),
        (archive(stored=weights(np.ones((4, 2), np.float32))), "a kernel of shape (4, 2)"),
        (archive(stored=weights(np.array([b"text"]))), "has the type"),
    ],
)
def test_damage_is_named(data: bytes, what: str) -> None:
    """Each is an error of one line, whatever the file claims."""
    with pytest.raises(MicrotirError) as caught:
        from_keras(data)
    assert what in str(caught.value)


def test_a_member_that_unpacks_to_much_is_named() -> None:
    """A few bytes stand for any size; they are packed here, for others import this module."""
    bomb = archive(packed=zipfile.ZIP_DEFLATED, config='"' + " " * (1 << 28) + '"')
    with pytest.raises(MicrotirError, match="more than"):
        from_keras(bomb)


def _linked(link: Any) -> bytes:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_group("layers/dense/vars")["0"] = link
    return archive(stored=stream.getvalue())


def test_links_and_arrays_elsewhere_are_refused(tmp_path: Path) -> None:
    """Nothing outside of the file is opened: links, virtual arrays, external ones."""
    for link in (h5py.ExternalLink(str(tmp_path / "other.h5"), "/x"), h5py.SoftLink("/layers")):
        with pytest.raises(ModelFileError, match="a link to another object or file"):
            from_keras(_linked(link))
    layout = h5py.VirtualLayout((3, 2), "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (3, 2))
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_virtual_dataset("layers/dense/vars/0", layout)
    with pytest.raises(ModelFileError, match="are in other files"):
        from_keras(archive(stored=stream.getvalue()))
    path = tmp_path / "outside.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "layers/dense/vars/0", (3, 2), "f4", external=[(str(tmp_path / "raw"), 0, 24)]
        )
    with pytest.raises(ModelFileError, match="are in other files"):
        from_keras(archive(stored=path.read_bytes()))


def test_huge_and_filtered_arrays_are_refused() -> None:
    """A few bytes can state an array of any size, and a filter makes one of them."""
    for arguments, what in (
        ({"shape": (1 << 30, 4), "dtype": "f4"}, "have room"),
        ({"data": np.zeros((3, 2), np.float32), "compression": "gzip"}, "use HDF5 filters"),
    ):
        stream = io.BytesIO()
        with h5py.File(stream, "w") as file:
            file.create_dataset("layers/dense/vars/0", **arguments)
        with pytest.raises(ModelFileError, match=what):
            from_keras(archive(stored=stream.getvalue()))


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"class_name": "Lambda", "config": {"name": "f", "function": ["4wEA", None, None]}},
         "holds code"),
        ({"class_name": "Mine", "module": "own.layers", "registered_name": "own>Mine",
          "config": {"name": "m"}}, "not a layer of Keras"),
        ({"class_name": "Dense", "module": "builtins", "config": {"name": "d"}},
         "not a layer of Keras"),
        ({"class_name": "TextVectorization", "config": {"name": "t"}}, "looks up values"),
        ({"class_name": "Dense", "config": {"name": "d", "units": 2, "dtype": {
            "class_name": "QuantizedDTypePolicy", "config": {"name": "int8_from_float32"}}}},
         "quantised by Keras"),
        ({"class_name": "Activation", "config": {"name": "a", "activation": "os.system"}},
         "activation 'os.system'"),
        ({"class_name": "Dense", "config": {"name": "d", "units": 2, "activation": {
            "class_name": "function", "config": "mine", "registered_name": "own>mine"}}},
         "activation 'mine'"),
    ],
)  # fmt: skip
def test_code_is_refused_by_name(entry: Mapping[str, Any], what: str) -> None:
    """Bytecode, classes and functions of a user: the message says what to write instead."""
    with pytest.raises(UnsupportedModelError) as caught:
        from_keras(with_layer(entry))
    (problem,) = keras.check_keras(with_layer(entry))
    assert what in str(caught.value) and what in str(problem)
    assert problem.fix


def test_all_problems_are_told_at_once() -> None:
    """One layer that is not read does not hide another."""
    config = json.loads(json.dumps(DENSE))
    call = {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}
    layers = [{**config["config"]["layers"][0], "name": "x", "inbound_nodes": []}]
    layers += [
        {"class_name": kind, "name": kind, "config": {"name": kind},
         "inbound_nodes": [{"args": [call], "kwargs": {}}]}
        for kind in ("Lambda", "Hashing")
    ]  # fmt: skip
    model = {"class_name": "Functional", "config": {
        "name": "m", "layers": layers, "input_layers": [["x", 0, 0]],
        "output_layers": [["Lambda", 0, 0], ["Hashing", 0, 0]],
    }}  # fmt: skip
    assert len(keras.check_keras(archive(model))) == 2


def test_open_extents_are_asked_for_by_name() -> None:
    """The fix is a flag that does it."""
    config = json.loads(json.dumps(DENSE))
    config["config"]["layers"][0]["config"]["batch_shape"] = [None, None, 3]
    with pytest.raises(UnsupportedModelError) as caught:
        from_keras(archive(config))
    assert "--dim x_1=16" in str(caught.value) or "x_1" in str(caught.value)
    graph = from_keras(archive(config), dims={"x_1": 5}).graph
    assert graph is not None and graph.results[0].shape == (1, 5, 2)
    graph = from_keras(archive(config), input_shapes={"x": (2, 4, 3)}).graph
    assert graph is not None and graph.results[0].shape == (2, 4, 2)
    with pytest.raises(UsageError):
        from_keras(archive(), dims={"nothing": 4})


def _mutants(count: int) -> list[bytes]:
    """Recorded models with bytes changed, or configurations with values changed."""
    rng = random.Random(0)
    with zipfile.ZipFile(RECORDED) as recorded:
        names = [name for name in recorded.namelist() if not name.endswith(".npz")]
        files = [recorded.read(rng.choice(names)) for _ in range(count)]
    mutants = []
    for data in files:
        if data[:2] == b"PK" and rng.random() < 0.7:
            with zipfile.ZipFile(io.BytesIO(data)) as file:
                text, stored = file.read("config.json"), file.read("model.weights.h5")
            mutants.append(archive(json.dumps(_changed(json.loads(text), rng)), stored))
            continue
        changed = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        mutants.append(bytes(changed))
    return mutants


def _changed(value: Any, rng: random.Random) -> Any:
    """Return JSON with about one value of another kind."""
    if rng.random() < 0.02:
        return rng.choice([None, -1, 0, 1 << 40, 1.5, "same", [], {}, [1, 2], True])
    if isinstance(value, dict):
        return {key: _changed(item, rng) for key, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, rng) for item in value]
    return value


def _is_read(data: bytes) -> bool:
    """Whether a file is read; False if it is refused, and any other exception comes through."""
    try:
        from_keras(data)
    except MicrotirError:
        return False
    return True


def test_mutants_are_read_or_refused() -> None:
    """No exception of Python or numpy comes through, and a crash of the HDF5 library is one."""
    outcomes = [_is_read(data) for data in _mutants(40)]
    assert outcomes.count(True) > 3 and outcomes.count(False) > 3
