"""Archives are hostile until they are checked: whatever is wrong with one is a diagnostic."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import check, from_torch
from tests.support.torch_programs import TorchProgram, ref, zipped

CONFIG = "data/weights/model_weights_config.json"
PROGRAM = "models/model.json"


def layer() -> TorchProgram:
    """Return a dense layer and a clamp."""
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = TorchProgram({"x": ((1, 3), "float32")}, {"w": weights})
    y = program.add("aten.linear.default", "y", (1, 2), input="x", weight="b_w")
    program.outputs = [program.add("aten.relu.default", "z", (1, 2), self=y)]
    return program


def test_the_archive_is_read() -> None:
    """The one that all others here are made from."""
    graph = from_torch(layer().archive()).graph
    assert graph is not None
    assert [tensor.shape for tensor in (*graph.inputs, *graph.outputs)] == [(1, 3), (1, 2)]


def refusal(data: bytes) -> MicrotirError:
    """Return why an archive is refused."""
    with pytest.raises(MicrotirError) as caught:
        from_torch(data)
    assert check(data)
    return caught.value


def with_entry(**changes: Any) -> bytes:
    """Return the archive with another entry of the table of weights."""
    members = layer().members()
    table = json.loads(members[CONFIG])
    entry = table["config"]["w"]
    for name, value in changes.items():
        target = entry if name in entry else entry["tensor_meta"]
        target[name] = value
    return zipped({**members, CONFIG: json.dumps(table).encode()})


ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "a pickle": ({"use_pickle": True}, "pickled object"),
    "a script object": ({"tensor_meta": None}, "pickled object"),
    "sizes beyond the member": ({"sizes": [{"as_int": 9}, {"as_int": 3}]}, "last element"),
    "an offset beyond it": ({"storage_offset": {"as_int": 1}}, "last element"),
    "a stride beyond it": ({"strides": [{"as_int": 4}, {"as_int": 1}]}, "last element"),
    "a stride below 0": ({"strides": [{"as_int": -3}, {"as_int": 1}]}, "'strides'"),
    "a size below 0": ({"sizes": [{"as_int": -1}, {"as_int": 3}]}, "'sizes'"),
    "an absurd size": ({"sizes": [{"as_int": 1 << 62}, {"as_int": 3}]}, "'sizes'"),
    "repeated elements": (
        {"sizes": [{"as_int": 1 << 20}, {"as_int": 1 << 20}],
         "strides": [{"as_int": 0}, {"as_int": 0}]}, "more than is allowed",
    ),
    "a symbol": ({"sizes": [{"as_expr": {"expr_str": "Symbol('s0')"}}] * 2}, "'sizes'"),
    "a truth value": ({"sizes": [{"as_int": True}, {"as_int": 3}]}, "'sizes'"),
    "too many axes": ({"sizes": [{"as_int": 1}] * 99, "strides": [{"as_int": 1}] * 99}, "sizes"),
    "fewer strides": ({"strides": [{"as_int": 1}]}, "sizes"),
    "another layout": ({"layout": 2}, "sizes"),
    "complex numbers": ({"dtype": 10}, "complex64"),
    "an unknown type": ({"dtype": 77}, "number 77"),
    "a type that is none": ({"dtype": "float"}, "'dtype'"),
    "no such member": ({"path_name": "../../etc/passwd"}, "does not contain it"),
    "no name": ({"path_name": None}, "'path_name'"),
}  # fmt: skip


def test_an_entry_without_numbers() -> None:
    """A field that is missing is named."""
    members = layer().members()
    table = json.loads(members[CONFIG])
    del table["config"]["w"]["tensor_meta"]
    changed = zipped({**members, CONFIG: json.dumps(table).encode()})
    assert "'tensor_meta' is missing" in str(refusal(changed))


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_of_weights(name: str) -> None:
    """Offsets, strides and sizes are checked against the member."""
    changes, text = ENTRIES[name]
    assert text in str(refusal(with_entry(**changes)))


def test_tensors_may_share_a_member() -> None:
    """Each with an offset and strides of its own, which may overlap."""
    program = TorchProgram(
        {"x": ((1, 2), "float32")},
        {"a": np.zeros((2, 2), np.float32), "b": np.zeros((2, 2), np.float32)},
    )
    y = program.add("aten.linear.default", "y", (1, 2), input="x", weight="b_a")
    program.outputs = [program.add("aten.linear.default", "z", (1, 2), input=y, weight="b_b")]
    members = program.members()
    table = json.loads(members[CONFIG])
    for name, offset, strides in (("a", 1, (1, 2)), ("b", 0, (2, 1))):
        entry = table["config"][name]
        entry["path_name"] = "shared"
        entry["tensor_meta"]["storage_offset"] = {"as_int": offset}
        entry["tensor_meta"]["strides"] = [{"as_int": stride} for stride in strides]
    members[CONFIG] = json.dumps(table).encode()
    members["data/weights/shared"] = np.arange(5, dtype=np.float32).tobytes()
    graph = from_torch(zipped(members)).graph
    assert graph is not None
    stored = [t.data.tolist() for t in graph.tensors() if t.data is not None and t.data.ndim == 2]
    assert stored == [[[1, 3], [2, 4]], [[0, 1], [2, 3]]]


def test_big_endian_weights() -> None:
    """The archive says in which order the bytes are."""
    members = layer().members()
    members["byteorder"] = b"big"
    members["data/weights/weight_0"] = np.arange(6, dtype=">f4").tobytes()
    graph = from_torch(zipped(members)).graph
    assert graph is not None
    (weights,) = (t.data for t in graph.tensors() if t.data is not None and t.data.ndim == 2)
    assert weights.tolist() == [[0, 1, 2], [3, 4, 5]]


def with_program(change: Callable[[Any], None]) -> bytes:
    """Return the archive with another program."""
    members = layer().members()
    document = json.loads(members[PROGRAM])
    change(document)
    return zipped({**members, PROGRAM: json.dumps(document).encode()})


def _node(document: Any, place: int = 0) -> Any:
    return document["graph_module"]["graph"]["nodes"][place]


def _nested(depth: int) -> dict[str, Any]:
    graph: dict[str, Any] = {
        "inputs": [], "outputs": [], "nodes": [], "tensor_values": {}, "sym_int_values": {},
    }  # fmt: skip
    for _ in range(depth):
        inner = {"name": "g", "arg": {"as_graph": {"name": "g", "graph": graph}}}
        node = {"target": "x", "inputs": [inner], "outputs": []}
        graph = {**graph, "nodes": [node]}
    return graph


PROGRAMS: dict[str, tuple[Callable[[Any], None], str]] = {
    "another version": (lambda d: d["schema_version"].update(major=9), "has version 9"),
    "no version": (lambda d: d.pop("schema_version"), "'schema_version' is missing"),
    "no graph": (lambda d: d["graph_module"].pop("graph"), "'graph' is missing"),
    "a list as the graph": (lambda d: d["graph_module"].update(graph=[]), "an object"),
    "no target": (lambda d: _node(d).pop("target"), "'target' is missing"),
    "an unknown operator": (lambda d: _node(d).update(target="my::op"), "my::op is not supported"),
    "a value before it is computed": (
        lambda d: _node(d)["inputs"][0]["arg"].update(ref("z")), "has no earlier node",
    ),
    "an argument twice": (
        lambda d: _node(d)["inputs"].append(_node(d)["inputs"][0]), "occurs twice",
    ),
    "an argument of later versions": (
        lambda d: _node(d)["inputs"].append({"name": "new", "arg": {"as_int": 1}}), "'new'",
    ),
    "an object": (
        lambda d: _node(d)["inputs"].append(
            {"name": "bias", "arg": {"as_custom_obj": {"name": "o", "class_fqn": "C"}}}
        ),
        "of the kind as_custom_obj",
    ),
    "a union of two": (
        lambda d: _node(d)["inputs"][0]["arg"].update(as_int=1), "it has 2 entries",
    ),
    "another shape": (
        lambda d: d["graph_module"]["graph"]["tensor_values"]["y"].update(
            sizes=[{"as_int": 1}, {"as_int": 7}]
        ),
        "as the file states",
    ),
    "a size that is code": (
        lambda d: d["graph_module"]["graph"]["tensor_values"]["x"].update(
            sizes=[{"as_expr": {"expr_str": "exec('import os')"}}]
        ),
        "a size is computed with",
    ),
    "graphs without end": (
        lambda d: d["graph_module"].update(graph=_nested(99)), "16 deep",
    ),
    "an output that is not there": (
        lambda d: d["graph_module"]["signature"]["output_specs"][0]["user_output"].update(
            arg=ref("nothing")
        ),
        "has no earlier node",
    ),
    "a script object": (
        lambda d: d["graph_module"]["signature"]["input_specs"].insert(
            0, {"custom_obj": {"arg": {"name": "o", "class_fqn": "C"}, "custom_obj_name": "o"}}
        ),
        "of the kind custom_obj",
    ),
    "an input that is written to": (
        lambda d: d["graph_module"]["signature"]["output_specs"].append(
            {"user_input_mutation": {"arg": {"name": "y"}, "user_input_name": "x"}}
        ),
        "writes in place to 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """What contradicts the format, or is not done, is said by name."""
    change, text = PROGRAMS[name]
    assert text in str(refusal(with_program(change)))


def test_errors_name_the_operator_and_the_users_line() -> None:
    """The file alone, no path of somebody's machine."""
    error = refusal(with_program(lambda d: _node(d, 1).update(target="torch.ops.aten.foo.default")))
    assert isinstance(error, UnsupportedModelError)
    (problem,) = error.problems
    assert problem.where == "model: operator 1 aten.foo.default ('z', net.py line 7)"
    assert "somewhere" not in str(error)


def test_views_of_themselves_are_refused() -> None:
    """Names that are parts of each other have no memory that is theirs."""
    program = TorchProgram({"x": ((2, 2), "float32")})
    for name, source in (("a", "x"), ("b", "a"), ("a", "b"), ("b", "b")):
        program.add("aten.slice.Tensor", name, (2, 2), self=source, dim=0)
    program.add("aten.relu_.default", "c", (2, 2), self="b")
    program.outputs = ["c"]
    assert "computed twice" in str(refusal(program.archive()))


def test_problems_come_all_at_once() -> None:
    """Those of nodes that depend on each other, too, but for what follows from them."""
    program = layer()
    program.add("aten.foo.default", "a", (1, 2), self="z")
    program.add("aten.relu.default", "b", (1, 2), self="a")
    program.outputs += [program.add("aten.bar.default", "c", (1, 2), self="x"), "b"]
    assert [problem.what for problem in check(program.archive())] == [
        "the operator aten.foo.default is not supported",
        "the operator aten.bar.default is not supported",
    ]


def _twice() -> bytes:
    stream = io.BytesIO(layer().archive())
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("model/byteorder", b"little")
    return stream.getvalue()


def _overlapping() -> bytes:
    """Return an archive whose directory has one large member a hundred times, by as many names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in layer().members().items():
            archive.writestr(f"model/{name}", data)
        archive.writestr("model/large", bytes(10_000))
        known = archive.getinfo("model/large")
        for place in range(100):
            entry = zipfile.ZipInfo(f"model/{place}")
            entry.header_offset, entry.CRC = known.header_offset, known.CRC
            entry.file_size = entry.compress_size = known.file_size
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
    return stream.getvalue()


ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "compressed": (lambda: zipped(layer().members(), zipfile.ZIP_DEFLATED), "compressed"),
    "truncated": (lambda: layer().archive()[:-40], "zip archive is damaged"),
    "without a program": (
        lambda: zipped({"archive_format": b"pt2", "byteorder": b"little"}), "holds no program",
    ),
    "compiled": (
        lambda: zipped({"archive_format": b"pt2", "data/aotinductor/model/m.so": b""}),
        "only a compiled program",
    ),
    "with two programs": (
        lambda: zipped({**layer().members(), "models/other.json": b"{}"}), "2 programs",
    ),
    "another byte order": (
        lambda: zipped({**layer().members(), "byteorder": b"middle"}), "byte order",
    ),
    "no JSON": (lambda: zipped({**layer().members(), PROGRAM: b"{"}), "not JSON"),
    "deep JSON": (lambda: zipped({**layer().members(), PROGRAM: b"[" * 100_000}), "deep"),
    "a number without end": (
        lambda: zipped({**layer().members(), PROGRAM: b'{"a": ' + b"9" * 5000 + b"}"}), "digits",
    ),
    "no number": (lambda: zipped({**layer().members(), PROGRAM: b'{"a": NaN}'}), "not a number"),
    "of older versions": (
        lambda: zipped({"serialized_exported_program.json": b"{}", "version": b"1"}), "no program",
    ),
    "with a member twice": (_twice, "are not all in one folder"),
    "with members that overlap": (_overlapping, "larger than the file"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives(name: str) -> None:
    """What is no such archive is refused before anything of it is believed."""
    made, text = ARCHIVES[name]
    assert text in str(refusal(made()))


def test_pickles_in_the_archive_are_not_opened() -> None:
    """Sample inputs are a pickle always; this one would run a command."""
    assert b"system" in layer().members()["data/sample_inputs/model.pt"]
    assert from_torch(layer().archive()).graph is not None


def test_another_source_is_refused() -> None:
    """Neither a path, nor bytes, nor a program."""
    with pytest.raises(MicrotirError, match="the source is of the type int"):
        from_torch(3)


@pytest.mark.parametrize("seed", range(40))
def test_changed_bytes(seed: int) -> None:
    """Bytes of JSON and of the directory that are others give a model or a diagnostic."""
    generator = random.Random(seed)
    members = layer().members()
    for name in (PROGRAM, CONFIG):
        data = bytearray(members[name])
        for _ in range(3):
            data[generator.randrange(len(data))] = generator.choice(b'0129-"{}[],:az')
        members[name] = bytes(data)
    archive = bytearray(zipped(members))
    if seed % 2:
        archive[generator.randrange(len(archive))] ^= 1 << generator.randrange(8)
    problems = check(bytes(archive))
    assert all(isinstance(problem, MicrotirError) for problem in problems)


@pytest.mark.parametrize("seed", range(60))
def test_changed_values(seed: int) -> None:
    """Values of the program that are others give a model or a diagnostic."""
    generator = random.Random(seed)
    document = layer().document()

    def change(value: Any) -> Any:
        if generator.random() < 0.02:
            return generator.choice([None, -1, 1 << 62, "", "x", [], {}, True, 0.5, [[]]])
        if isinstance(value, dict):
            return {name: change(inner) for name, inner in value.items()}
        return [change(inner) for inner in value] if isinstance(value, list) else value

    members = {**layer().members(), PROGRAM: json.dumps(change(document)).encode()}
    for problem in check(zipped(members)):
        assert isinstance(problem, ModelFileError | UnsupportedModelError | MicrotirError)
