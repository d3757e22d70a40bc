"""Parameters as TVM serialises them: byte by byte, back again, and read by generated firmware."""

from __future__ import annotations

import importlib
import importlib.util
import struct
import tarfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microtir
from microtir import CompilationConfig, export_model_library_format, import_model_library_format
from microtir.codegen.microtvm.params import from_params, to_params
from microtir.errors import ModelFileError
from tests.support.small_models import module_of, quantised_graph

GRAPH = CompilationConfig(
    targets="c", executor="graph", compatibility="microtvm", module_name="net"
)
TYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "float64")


def test_the_file_is_that_of_the_definition() -> None:
    """Two arrays, written out by hand: the numbers of TVM's NDArray and of its list of them."""
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "w": np.array([[1, -2, 3]], np.int8),
        "bias": np.array(0.5, np.float32),
    }
    wanted = (
        bytes.fromhex("b79c04054f8de5f7") + bytes(8)  # a list
        + bytes.fromhex("0200000000000000")
        + bytes.fromhex("0400000000000000") + b"bias"
        + bytes.fromhex("0100000000000000") + b"w"
        + bytes.fromhex("0200000000000000")
        + bytes.fromhex("3fa1b496f0405edd") + bytes(8)  # an array
        + bytes.fromhex("0100000000000000")  # the processor
        + bytes.fromhex("0000000002200100")  # no dimension, float, 32 bits, one lane
        + bytes.fromhex("04000000000000000000003f")
        + bytes.fromhex("3fa1b496f0405edd") + bytes(8)
        + bytes.fromhex("0100000000000000")
        + bytes.fromhex("0200000000080100")
        + bytes.fromhex("01000000000000000300000000000000")
        + bytes.fromhex("030000000000000001fe03")
    )  # fmt: skip
    assert to_params(arrays) == wanted
    assert to_params({}) == bytes.fromhex("b79c04054f8de5f7") + bytes(24)


@st.composite
def array_files(draw: st.DrawFn) -> dict[str, npt.NDArray[np.generic]]:
    """Some arrays of any type and shape by name."""
    names = draw(st.lists(st.text(max_size=6), max_size=4, unique=True))
    made: dict[str, npt.NDArray[np.generic]] = {}
    for name in names:
        shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
        values = np.random.default_rng(len(made)).integers(0, 100, shape)
        made[name] = np.asarray(values).astype(draw(st.sampled_from(TYPES)))
    return made


@given(array_files())
def test_what_is_written_is_read(arrays: dict[str, npt.NDArray[np.generic]]) -> None:
    """Names, types, shapes and values."""
    found = from_params(to_params(arrays), "a file")
    assert sorted(found) == sorted(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)


SMALL = to_params({"w": np.arange(3, dtype=np.int16)})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "ends too early, at byte 0"),
        (b"MTIP" + SMALL[4:], "does not begin like a list"),
        (SMALL[:-1], "ends too early"),
        (SMALL + b"\0", "1 bytes follow the last array"),
        (SMALL[:16] + struct.pack("<Q", 2**60) + SMALL[24:], "claims"),
        (SMALL[:41] + b"\0" + SMALL[42:], "no array begins"),
        (SMALL[:33] + struct.pack("<Q", 2) + SMALL[41:], "number of arrays than of names"),
        (SMALL[:65] + struct.pack("<i", 2**30) + SMALL[69:], "dimensions"),
        (SMALL[:73] + struct.pack("<q", 4) + SMALL[81:], "cannot have"),
        (SMALL[:32] + b"\xff" + SMALL[33:], "not text"),
    ],
)
def test_damaged_files_are_refused(content: bytes, problem: str) -> None:
    """With what is wrong with them, and nothing is believed."""
    with pytest.raises(ModelFileError, match=problem):
        from_params(content, "a file")


def archive_members(folder: Path) -> dict[str, bytes]:
    """The files of parameters in the archive of a model whose weights are a file."""
    artifact = microtir.build(module_of(quantised_graph()), GRAPH)
    path = export_model_library_format(artifact, folder / "module.tar")
    with tarfile.open(path) as tar:
        names = [n for n in tar.getnames() if n.startswith("./parameters/")]
        streams = {name.removeprefix("./parameters/"): tar.extractfile(name) for name in names}
        return {name: stream.read() for name, stream in streams.items() if stream is not None}


def test_an_archive_holds_the_weights_in_both_forms(tmp_path: Path) -> None:
    """What TVM reads, by the names of the C arrays, and what code reads where it lies."""
    files = archive_members(tmp_path)
    assert sorted(files) == ["net.in_place.params", "net.params"]
    assert files["net.in_place.params"][:4] == b"MTIP"
    arrays = from_params(files["net.params"], "net.params")
    artifact = microtir.build(module_of(quantised_graph()), GRAPH)
    assert artifact.metadata.weights_bytes == sum(array.nbytes for array in arrays.values())
    assert all(files["net.in_place.params"].count(a.tobytes()) for a in arrays.values())
    [again] = import_model_library_format(tmp_path / "module.tar")
    assert again.data == artifact.data
    copy = export_model_library_format(again, tmp_path / "copy.tar")
    assert import_model_library_format(copy)[0].data == artifact.data


if importlib.util.find_spec("tvm") is not None:  # opt-in: pip install apache-tvm

    def test_tvm_reads_the_file(tmp_path: Path) -> None:
        """What its own load_param_dict makes of the file of an archive."""
        tvm = importlib.import_module("tvm")
        content = archive_members(tmp_path)["net.params"]
        found = tvm.runtime.load_param_dict(content)
        wanted = from_params(content, "net.params")
        assert sorted(found) == sorted(wanted)
        for name, array in wanted.items():
            assert np.array_equal(found[name].numpy(), array)
            assert found[name].numpy().dtype == array.dtype
