from __future__ import annotations

import io
import random
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import DataFileError, RunError
from microtir.graph.ir import Array, Quantization, TensorType
from microtir.host import samples
from microtir.host.samples import Fill, filled, read_golden, read_inputs
from microtir.module.ir_module import ModelInfo, Port, PortKind
from microtir.tir.memory_plan import MemoryPlan, PlannedPool
from tests.support.seeds import seeds

INT8 = TensorType((1, 4), DType.INT8, Quantization((0.5,), (3,)))
FLOAT = TensorType((2, 3), DType.FLOAT32)
LABEL = TensorType((1,), DType.INT64)


def model(*ports: tuple[PortKind, str, TensorType]) -> ModelInfo:
    """Facts about a model with these inputs and outputs."""
    return ModelInfo(
        name="m",
        ports=tuple(Port(kind, name, name.replace(":", "_"), type_) for kind, name, type_ in ports),
        source_file="m.tflite",
        source_sha256="",
        source_bytes=0,
        memory=MemoryPlan((PlannedPool("workspace", 0, 0, 1),), (), True),
    )


SINGLE = model((PortKind.INPUT, "x:0", INT8), (PortKind.OUTPUT, "y", INT8))
DOUBLE = model(
    (PortKind.INPUT, "a:0", INT8),
    (PortKind.INPUT, "b", FLOAT),
    (PortKind.OUTPUT, "y", INT8),
    (PortKind.OUTPUT, "z", FLOAT),
)


def ramp(*shape: int, dtype: str = "int8") -> Array:
    """Numbers from 0 on."""
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def save(path: Path, **arrays: Any) -> Path:
    """Write an .npz file."""
    np.savez(path, **arrays)
    return path


def test_strings_are_places_of_names(tmp_path: Path) -> None:
    """An output with names takes strings or places; a string that is none of them is an error."""
    known = model((PortKind.INPUT, "x:0", INT8), (PortKind.OUTPUT, "label", LABEL))
    named = replace(known, ports=(known.ports[0], replace(known.ports[1], names=("no", "yes"))))
    for labels in (np.array([["yes"], ["no"]]), np.array([[1], [0]])):
        path = save(tmp_path / "g.npz", inputs=ramp(2, 1, 4), outputs=labels)
        _, outputs = read_golden(path, named)
        assert [run["label"].tolist() for run in outputs.values] == [[1], [0]]
    path = save(tmp_path / "g.npz", inputs=ramp(1, 1, 4), outputs=np.array([["perhaps"]]))
    with pytest.raises(RunError, match="'perhaps', which the model never outputs") as caught:
        read_golden(path, named)
    assert caught.value.legal == "'no', 'yes'"


def test_golden_file_of_one_input(tmp_path: Path) -> None:
    """`inputs` and `outputs` are cut into samples along their first axis."""
    path = save(tmp_path / "g.npz", inputs=ramp(3, 1, 4), outputs=-ramp(3, 1, 4))
    inputs, outputs = read_golden(path, SINGLE)
    assert len(inputs) == len(outputs) == 3
    assert inputs.values[2]["x:0"].tolist() == [[8, 9, 10, 11]]
    assert outputs.values[0]["y"].tolist() == [[0, -1, -2, -3]]


def test_batch_axis_may_be_missing(tmp_path: Path) -> None:
    """Samples without the leading 1 of the model's shape are the same samples."""
    with_axis = save(tmp_path / "a.npz", inputs=ramp(3, 1, 4), outputs=ramp(3, 1, 4))
    without = save(tmp_path / "b.npz", inputs=ramp(3, 4), outputs=ramp(3, 4))
    for found, expected in zip(
        read_golden(without, SINGLE), read_golden(with_axis, SINGLE), strict=True
    ):
        for a, b in zip(found.values, expected.values, strict=True):
            assert all(np.array_equal(a[name], b[name]) and a[name].shape == (1, 4) for name in b)


@pytest.mark.parametrize("name", ["a:0", "a_0"])
def test_golden_file_of_several(tmp_path: Path, name: str) -> None:
    """`inputs.NAME` and `outputs.NAME` take the model's names or those in C; others are ignored."""
    arrays = {
        f"inputs.{name}": ramp(2, 1, 4),
        "inputs.b": ramp(2, 2, 3, dtype="float32"),
        "outputs.y": ramp(2, 1, 4),
        "outputs.z": ramp(2, 2, 3, dtype="float32"),
        "labels": ramp(2),
    }
    inputs, outputs = read_golden(save(tmp_path / "g.npz", **arrays), DOUBLE)
    assert list(inputs.values[1]) == ["a:0", "b"]
    assert outputs.values[1]["z"].tolist() == [[6, 7, 8], [9, 10, 11]]


@pytest.mark.parametrize(
    ("arrays", "error", "text"),
    [
        ({"inputs": ramp(2, 1, 4)}, DataFileError, "no array for the output 'y'; it has: inputs"),
        ({"outputs": ramp(2, 1, 4)}, DataFileError, "no array for the input 'x:0'"),
        (
            {"inputs": ramp(2, 1, 4), "outputs": ramp(3, 1, 4)},
            DataFileError,
            "2 samples of inputs, but 3 samples of outputs",
        ),
        (
            {"inputs": ramp(2, 1, 5), "outputs": ramp(2, 1, 4)},
            RunError,
            "'x:0' has the shape (2, 1, 5)\n  expected: (samples, 1, 4)",
        ),
        (
            {"inputs": ramp(0, 1, 4), "outputs": ramp(0, 1, 4)},
            RunError,
            "has the shape (0, 1, 4)",
        ),
        ({"inputs": np.int8(1), "outputs": ramp(1, 1, 4)}, RunError, "has the shape ()"),
        (
            {"inputs": ramp(2, 1, 4, dtype="uint8"), "outputs": ramp(2, 1, 4)},
            RunError,
            "'x:0' has the type uint8\n  expected: int8\n  fix:      store it with .astype('int8')",
        ),
        (
            {"inputs": ramp(2, 1, 4), "outputs": ramp(2, 1, 4, dtype="float32")},
            RunError,
            "quantise it: round(x / 0.5) + 3, clipped to int8",
        ),
    ],
)
def test_golden_file_that_does_not_fit(
    tmp_path: Path, arrays: dict[str, Array], error: type[Exception], text: str
) -> None:
    """What a golden file lacks or has otherwise is said with names, shapes and what is legal."""
    path = save(tmp_path / "g.npz", **arrays)
    with pytest.raises(error) as caught:
        read_golden(path, SINGLE)
    assert str(caught.value).startswith(f"{path}: ")
    assert text in str(caught.value)


def test_samples_of_inputs_that_differ(tmp_path: Path) -> None:
    """Inputs with different numbers of samples are refused."""
    path = save(
        tmp_path / "g.npz",
        **{"inputs.a:0": ramp(2, 1, 4), "inputs.b": ramp(3, 2, 3, dtype="float32")},
    )
    with pytest.raises(DataFileError, match="a:0 has 2, b has 3"):
        read_inputs(path, DOUBLE)


@pytest.mark.parametrize(
    "content", [b"", b"no archive", b"PK\x03\x04 cut", b"\x93NUMPY\x01\x00"], ids=len
)
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    """A file that is no archive of arrays is refused with a hint how to write one."""
    path = tmp_path / "g.npz"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="file's arrays cannot be read") as caught:
        read_golden(path, SINGLE)
    assert "allow_pickle" not in str(caught.value)  # numpy's advice, and a bad one


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    """An array of objects could run code when it is read: it is refused."""
    np.savez(tmp_path / "g.npz", inputs=np.array([{}], object), outputs=ramp(1, 1, 4))
    with pytest.raises(DataFileError, match="without pickled objects"):
        read_golden(tmp_path / "g.npz", SINGLE)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    """A missing file and a folder are named, with the system's reason."""
    for path in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(DataFileError, match="the file cannot be read") as caught:
            read_golden(path, SINGLE)
        assert str(path) in str(caught.value)


def test_one_sample_or_many(tmp_path: Path) -> None:
    """Inputs of the model's own shapes are one sample; outputs come back as they went in."""
    np.save(tmp_path / "one.npy", ramp(1, 4))
    one = read_inputs(tmp_path / "one.npy", SINGLE)
    assert (len(one), one.stacked) == (1, False)
    np.save(tmp_path / "many.npy", ramp(2, 1, 4))
    many = read_inputs(tmp_path / "many.npy", SINGLE)
    assert (len(many), many.stacked) == (2, True)
    outputs = [{"y": ramp(1, 4)}, {"y": ramp(1, 4)}]
    assert one.stack(outputs[:1])["y"].shape == (1, 4)
    assert many.stack(outputs)["y"].shape == (2, 1, 4)


def test_inputs_by_bare_names(tmp_path: Path) -> None:
    """An .npz file for `run` may name the inputs without a prefix."""
    path = save(tmp_path / "i.npz", a_0=ramp(1, 4), b=ramp(2, 3, dtype="float32"))
    assert list(read_inputs(path, DOUBLE).values[0]) == ["a:0", "b"]


@pytest.mark.parametrize("dtype", [t for t in DType if not t.is_float])
def test_random_integers_cover_their_type(dtype: DType) -> None:
    """Random integers reach both ends of the type, and are the same for the same seed."""
    (port,) = model((PortKind.INPUT, "x", TensorType((1, 4096), dtype))).inputs
    array = filled([port], 1, Fill.RANDOM, seed=5).values[0]["x"]
    assert (array.dtype, array.shape) == (np.dtype(dtype.value), (1, 4096))
    if array.dtype.itemsize == 1:
        ends = (0, 1) if dtype is DType.BOOL else (dtype.min, dtype.max)
        assert (array.min(), array.max()) == ends
    else:
        assert array.min() < dtype.min * 0.9 + dtype.max * 0.1
        assert array.max() > dtype.max * 0.9
    assert np.array_equal(array, filled([port], 1, Fill.RANDOM, seed=5).values[0]["x"])
    assert not np.array_equal(array, filled([port], 1, Fill.RANDOM, seed=6).values[0]["x"])


def test_random_floats_are_standard_normal() -> None:
    """Random floats have mean 0 and deviation 1, and differ between samples."""
    (port,) = model((PortKind.INPUT, "x", TensorType((1, 10000), DType.FLOAT32))).inputs
    a, b = (sample["x"] for sample in filled([port], 2, Fill.RANDOM).values)
    assert a.dtype == np.float32
    assert abs(a.mean()) < 0.05
    assert abs(a.std() - 1) < 0.05
    assert not np.array_equal(a, b)


@pytest.mark.parametrize(("fill", "value"), [(Fill.ZEROS, 0), (Fill.ONES, 1)])
def test_constant_fills(fill: Fill, value: int) -> None:
    """Zeros and ones are stored units, of the port's own type."""
    sample = filled(DOUBLE.inputs, 1, fill).values[0]
    assert all((array == value).all() for array in sample.values())
    assert {name: array.dtype.name for name, array in sample.items()} == {
        "a:0": "int8",
        "b": "float32",
    }


def _header(shape: str, descr: str = "'|i1'") -> bytes:
    """Return the start of an .npy file that claims a shape."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def _packed(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def test_arrays_in_columns_come_back(tmp_path: Path) -> None:
    """Whatever order numpy stored an array in, its elements are where they were; packed, too."""
    stored = np.asfortranarray(ramp(5, 4))
    np.savez_compressed(tmp_path / "g.npz", inputs=stored, outputs=stored)
    inputs, _ = read_golden(tmp_path / "g.npz", SINGLE)
    assert inputs.values[4]["x:0"].tolist() == [[16, 17, 18, 19]]
    np.save(tmp_path / "x.npy", stored)
    assert read_inputs(tmp_path / "x.npy", SINGLE).values[1]["x:0"].tolist() == [[4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("(60_000_000_000, 4)", "more than 2147483648 bytes"),
        ("(2147483647, 2147483647, 2147483647, 2147483647)", "more than 2147483648 bytes"),
        ("(-4, 4)", "has the shape"),
        ("(1,) * 3", "arrays cannot be read"),
        ("(1.5, 4)", "arrays cannot be read"),
        ("(100, 4)", "16 bytes of the 400"),
        ("(" * 90 + "1" + ")" * 90, "arrays cannot be read"),
        ("(" + "1," * 33 + ")", "has the shape"),
    ],
)
@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_what_a_header_claims_is_not_believed(
    tmp_path: Path, shape: str, text: str, suffix: str
) -> None:
    """A file of some bytes claimed gigabytes, or a shape that is none; nothing is unpacked."""
    content = _header(shape) + bytes(16)
    path = tmp_path / f"g.{suffix}"
    if suffix == "npz":
        _packed(path, {"inputs": content, "outputs": content})
    else:
        path.write_bytes(content)
    with pytest.raises(DataFileError, match=text):
        read_inputs(path, SINGLE)


def test_members_together_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many arrays that are small each are counted together, and so is their number."""
    monkeypatch.setattr(samples, "MAX_BYTES", 1000)
    path = _packed(tmp_path / "g.npz", {f"a{i}": _header("(400,)") + bytes(400) for i in range(3)})
    with pytest.raises(DataFileError, match="more than 1000 bytes"):
        read_inputs(path, SINGLE)
    monkeypatch.setattr(samples, "MAX_ARRAYS", 2)
    with pytest.raises(DataFileError, match="3 arrays, more than 2"):
        read_inputs(path, SINGLE)


def test_damage_inside_a_member(tmp_path: Path) -> None:
    """Compressed bytes that are none, objects, and members with a password: one diagnostic each."""
    content = bytearray(_packed(tmp_path / "g.npz", {"inputs": _header("(1, 4)") + bytes(4)})
                        .read_bytes())  # fmt: skip
    content[45:60] = bytes(15)
    (tmp_path / "g.npz").write_bytes(content)
    with pytest.raises(DataFileError, match="arrays cannot be read"):
        read_inputs(tmp_path / "g.npz", SINGLE)
    stored = io.BytesIO()
    np.save(stored, np.array([{}], dtype=object), allow_pickle=True)
    path = _packed(tmp_path / "o.npz", {"inputs": stored.getvalue()})
    with pytest.raises(DataFileError, match="objects of Python"):
        read_inputs(path, SINGLE)


_DTYPES = (
    "'<f4'", "'|O'", "'<M8[s]'", "'|V0'", "'|S0'", "[('a','<f4',(999999999,))]", "[('a','|O')]",
    "'a5'", "('<f4',(2,))", "'>i2'", "'<q8'", "''", "'f4,i4'", "[]", "3", "None", "{}",
)  # fmt: skip
_SHAPES = (
    "(2, 3)", "(-1,)", "(10**9,)", "(99999999999999999999, 3)", "(True,)", "(2.0,)", "()", "(0,)",
    "(2,(2,(2,", "[2]", "'x'", f"({'1,' * 70})", "(0, 99999999999999999999)", "(2L, 3L)", "'''(2",
)  # fmt: skip
_INSERTED = (b"(((", b"'''", b"\\", b"\n", b"{", b"L", b"#", b"\0")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def _odd_header(rng: random.Random) -> bytes:
    """Return a file whose header says something that no array is."""
    order = rng.choice(("False", "True", "1", "None"))
    text = (
        f"{{'descr': {rng.choice(_DTYPES)}, 'fortran_order': {order}, "
        f"'shape': {rng.choice(_SHAPES)}, }}"
    ).encode()
    version = rng.choice((1, 2, 3, 9))
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes((version, 0)) + length + text + bytes(64)


def _damaged(rng: random.Random) -> bytes:
    """Return a file with bytes changed, left out or put in; sometimes within an archive."""
    stored = io.BytesIO()
    np.save(stored, ramp(2, 3))
    content = bytearray(rng.choice((stored.getvalue(), _odd_header(rng))))
    if rng.random() < 0.5:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", rng.choice(_METHODS)) as archive:
            archive.writestr("inputs.npy", bytes(content))
        content = bytearray(packed.getvalue())
    for _ in range(rng.randrange(4)):
        at = rng.randrange(max(len(content), 1))
        match rng.randrange(4):
            case 0:
                content[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                content[at:at] = rng.choice(_INSERTED)
            case 2:
                del content[at : at + rng.randrange(1, 20)]
            case _:
                del content[at + 1 :]
    return bytes(content)


@pytest.mark.soak
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", seeds(0, 5))
def test_any_damage_is_a_diagnostic(seed: int, tmp_path: Path) -> None:
    """Whatever a file says or lacks: its arrays, or one sentence, and no warning of numpy's."""
    rng, path, refused = random.Random(seed), tmp_path / "g.npz", 0
    for _ in range(200):
        path.write_bytes(_damaged(rng))
        try:
            samples.read_arrays(path)
        except DataFileError:
            refused += 1
    assert 50 < refused < 200


def test_a_header_is_not_unpacked_beyond_what_one_has(tmp_path: Path) -> None:
    """A small archive can claim a header of 4 GiB, and hold it."""
    claim = b"\x93NUMPY\x02\0" + (1 << 31).to_bytes(4, "little")
    path = _packed(tmp_path / "g.npz", {"inputs": claim + bytes(1 << 20)})
    with pytest.raises(DataFileError, match="a header of 2147483648 bytes"):
        read_inputs(path, SINGLE)


def test_python_2_wrote_long_integers(tmp_path: Path) -> None:
    """They are read as they were meant."""
    text = b"{'descr': '<i4', 'fortran_order': False, 'shape': (2L, 2L), }\n"
    path = tmp_path / "g.npy"
    path.write_bytes(b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + bytes(16))
    assert samples.read_arrays(path)["inputs"].tolist() == [[0, 0], [0, 0]]
