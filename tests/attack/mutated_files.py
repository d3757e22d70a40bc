"""Damaged files of every kind that is read: each gives a result or a diagnostic, within limits.

    python -m tests.attack.mutated_files 500       # of each kind, from a seed that is printed

A child process reads the files one after the other, with a limit of memory for all and one of time
for each.  A file that ends it, or that raises anything but a `MicrotirError`, is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import resource
import secrets
import shutil
import signal
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

import h5py
import numpy as np
import onnx
from onnx import external_data_helper

import microtir
from microtir import (
    CompilationConfig,
    Target,
    export_model_library_format,
    import_model_library_format,
)
from microtir.boards.board import read_board
from microtir.conform.spec import built_in_specs, load_spec
from microtir.errors import MicrotirError
from microtir.frontend import check
from microtir.frontend.onnx.node import TOO_LARGE
from microtir.host.samples import read_arrays
from microtir.plan.measured import Measured
from microtir.studio.asks import read_ask
from tests.attack.joined import draw_steps, join
from tests.attack.onnx_graphs import draw_onnx_steps, join_onnx
from tests.attack.shrink import REPRODUCERS
from tests.certificate.mutants import CHECKER
from tests.certificate.mutants import program as certified_program
from tests.frontend.keras.test_hostile_files import DENSE, archive
from tests.frontend.torch.test_hostile import layer

ROOT = Path(__file__).resolve().parents[2]

SECONDS = 20
"""The longest time that reading one file may take; most take some milliseconds."""

ROOM = 1 << 30
"""How many bytes a process may take beyond what it has before it reads."""

RESULTS = ("read", "refused")
ARCHIVE = b"PK"
_NUMBERS = (b"\x00", b"\xff", b"\x7f", b"\x80")


class TookTooLongError(Exception):
    """A file was not read within `SECONDS`."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Args:
        name: of the kind.
        files: makes good files below a folder, of which the first is the one that is damaged.
        read: reads it.
        count: how many damaged files a test reads: fewer where each starts a process.
    """

    name: str
    files: Callable[[int], Mapping[str, bytes]]
    read: Callable[[Path], object]
    count: int = 40


@dataclass(frozen=True)
class Found:
    """A file that was neither read nor refused in words."""

    kind: str
    what: str
    file: Path


@dataclass(frozen=True)
class Count:
    """What became of the files of a kind."""

    read: int
    refused: int
    found: tuple[Found, ...]


# --- damage -------------------------------------------------------------------------------------


def damaged(generator: random.Random, data: bytes, other: bytes) -> bytes:
    """Change one to four places of a file; `other` is another good file of its kind.

    Of an archive it is mostly a member that changes: its checksum would tell of any other change.
    """
    if data.startswith(ARCHIVE) and other.startswith(ARCHIVE) and generator.random() < 0.7:
        others = _members(other)
        return with_member(
            generator, data, lambda name, old: damaged(generator, old, others.get(name, old))
        )
    content = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 4))):
        if not content:
            break
        generator.choice(_DAMAGES)(generator, content, other)
    return bytes(content)


def with_member(
    generator: random.Random, data: bytes, change: Callable[[str, bytes], bytes]
) -> bytes:
    """Return an archive of which one member is changed; nothing changes what is none any more."""
    try:
        members = _members(data)
    except Exception:  # noqa: BLE001  # zipfile raises a dozen kinds for damaged archives
        return data
    if members:
        name = generator.choice(sorted(members))
        members[name] = change(name, members[name])
    return _archive(members)


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _archive(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _flip(generator: random.Random, content: bytearray, other: bytes) -> None:
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)


def _extreme(generator: random.Random, content: bytearray, other: bytes) -> None:
    size = generator.choice((1, 2, 4, 8))
    start = generator.randrange(len(content))
    start -= start % size
    content[start : start + size] = generator.choice(_NUMBERS) * size


def _number(generator: random.Random, content: bytearray, other: bytes) -> None:
    start = generator.randrange(len(content)) & ~3
    value = generator.choice(
        (1, 2, 255, 1 << 16, (1 << 31) - 1, 1 << 31, generator.getrandbits(32))
    )
    content[start : start + 4] = struct.pack("<I", value)


def _cut(generator: random.Random, content: bytearray, other: bytes) -> None:
    del content[generator.randrange(len(content)) :]


def _delete(generator: random.Random, content: bytearray, other: bytes) -> None:
    start = generator.randrange(len(content))
    del content[start : start + generator.randint(1, 16)]


def _repeat(generator: random.Random, content: bytearray, other: bytes) -> None:
    start = generator.randrange(len(content))
    piece = content[start : start + generator.randint(1, 64)]
    content[start:start] = piece * generator.choice((1, 2, 50))


def _splice(generator: random.Random, content: bytearray, other: bytes) -> None:
    start, size = generator.randrange(max(1, len(other))), generator.randint(1, 64)
    place = generator.randrange(len(content))
    content[place : place + size] = other[start : start + size]


_DAMAGES = (_flip, _flip, _extreme, _number, _cut, _delete, _repeat, _splice)


# --- kinds --------------------------------------------------------------------------------------


def _legal(path: Path) -> None:
    """Read a model; a problem that `check` returns is a diagnostic as one that is raised."""
    for problem in check(path):
        raise problem


@cache
def _tflite(seed: int) -> Mapping[str, bytes]:
    return {"m.tflite": join("m", draw_steps(seed)).model}


@cache
def _c_array(seed: int) -> Mapping[str, bytes]:
    data = ",".join(map(hex, join("m", draw_steps(seed)[:2]).model))
    return {"m.cc": f"const unsigned char m[] = {{{data}}};\n".encode()}


@cache
def _onnx(seed: int) -> Mapping[str, bytes]:
    return {"m.onnx": join_onnx(draw_onnx_steps(seed)).model}


@cache
def _onnx_beside(seed: int) -> Mapping[str, bytes]:
    model = onnx.load_model_from_string(join_onnx(draw_onnx_steps(seed)).model)
    with tempfile.TemporaryDirectory() as folder:
        external_data_helper.convert_model_to_external_data(
            model, all_tensors_to_one_file=True, location="m.bin", size_threshold=0
        )
        onnx.save(model, f"{folder}/m.onnx")
        return {name: Path(folder, name).read_bytes() for name in ("m.onnx", "m.bin")}


def _keras(seed: int) -> Mapping[str, bytes]:
    return {"m.keras": archive()}


def _torch(seed: int) -> Mapping[str, bytes]:
    return {"m.pt2": layer().archive()}


def _npz(seed: int) -> Mapping[str, bytes]:
    generator, stream = np.random.default_rng(seed), io.BytesIO()
    packed = np.savez_compressed if seed % 2 else np.savez
    packed(stream, x=generator.random((2, 3), np.float32), y=generator.integers(0, 9, 4))
    return {"m.npz": stream.getvalue()}


def _npy(seed: int) -> Mapping[str, bytes]:
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(seed).random((2, 3), np.float32))
    return {"m.npy": stream.getvalue()}


@cache
def _library_archive(seed: int) -> Mapping[str, bytes]:
    module = microtir.frontend.from_tflite(join("m", draw_steps(7)).model, name="m")
    built = microtir.build(module, CompilationConfig.from_target(Target("c")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.tar")
        export_model_library_format(built, path)
        return {"m.tar": path.read_bytes()}


def _board(seed: int) -> Mapping[str, bytes]:
    boards = sorted((ROOT / "boards").glob("*/board.toml"))
    folder = boards[seed % len(boards)].parent
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir(), key=lambda path: path.name != "board.toml")
        if path.is_file()
    }


def _tuning_records(seed: int) -> Mapping[str, bytes]:
    return {"m.json": json.dumps(_RECORDS).encode()}


def _request(seed: int) -> Mapping[str, bytes]:
    plan = {"model": 1, "optimize": "balanced", "board": "mps2_an386", "ram_budget": 65536}
    return {"ask.json": json.dumps({"plan": plan} if seed % 2 else {"model": 1}).encode()}


def _keras_2(seed: int) -> Mapping[str, bytes]:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.attrs["keras_version"] = "2.15.0"
        file.attrs["model_config"] = json.dumps(DENSE)
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = [b"d"]
        layer_group = group.create_group("d")
        layer_group.attrs["weight_names"] = [b"d/kernel:0", b"d/bias:0"]
        layer_group["d/kernel:0"] = np.ones((3, 2), np.float32)
        layer_group["d/bias:0"] = np.zeros(2, np.float32)
    return {"m.h5": stream.getvalue()}


def _configuration(seed: int) -> Mapping[str, bytes]:
    return {"m.json": CompilationConfig.from_target(Target("c")).to_json().encode()}


def _configure(path: Path) -> None:
    CompilationConfig.from_json(path.read_text("utf-8", "replace"))


def _specification(seed: int) -> Mapping[str, bytes]:
    name = built_in_specs()[seed % len(built_in_specs())]
    return {"m.toml": (ROOT / "templates" / "conform" / f"{name}.toml").read_bytes()}


@cache
def _certified() -> Mapping[str, bytes]:
    files = certified_program()
    texts = {name: text.encode() for name, text in files[0].items()}
    listed = [
        {"path": name, "bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        for name, text in texts.items()
    ]
    return {"m.certificate.json": json.dumps({**files[1], "files": listed}).encode(), **texts}


def _certificate(seed: int) -> Mapping[str, bytes]:
    return _certified()


def _certified_c(seed: int) -> Mapping[str, bytes]:
    """Return the same files, of which the C of the layers is damaged."""
    source = next(name for name in _certified() if name.endswith(".c") and "weights" not in name)
    return {source: _certified()[source], **_certified()}


def _prove(path: Path) -> None:
    """Run the checker as a program does: it ends with a status, whatever the files hold."""
    with contextlib.redirect_stdout(io.StringIO()):
        status = CHECKER["main"]([str(path.parent / "m.certificate.json")])
    if status:
        raise CertificateRefusedError("not proven")


def _prove_c(path: Path) -> None:
    """Run the checker with the digest of the damaged C, so that it reads more than the digest."""
    certificate = path.parent / "m.certificate.json"
    facts = json.loads(certificate.read_bytes())
    content = path.read_bytes()
    for file in facts["files"]:
        if file["path"] == path.name:
            file.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    certificate.write_text(json.dumps(facts), "utf-8")
    _prove(path)


class CertificateRefusedError(MicrotirError):
    """The checker said in words what is not proven."""


def _ask(path: Path) -> None:
    """Read what the page sends as the question that it was, or nearly."""
    body = path.read_bytes()
    read_ask("plan" if b"plan" in body else "inspect", body)


_RECORD = {"operator": "o", "kernel": "k", "instructions": 12}
_RECORDS = {"format": "microtir tuning records", "version": 1, "target": "c", "records": [_RECORD]}

KINDS = (
    Kind("TFLite", _tflite, _legal),
    Kind("C array", _c_array, _legal),
    Kind("ONNX", _onnx, _legal),
    Kind("ONNX with external data", _onnx_beside, _legal),
    Kind("Keras", _keras, _legal, 8),
    Kind("PyTorch", _torch, _legal),
    Kind("samples, npz", _npz, read_arrays),
    Kind("samples, npy", _npy, read_arrays),
    Kind("Model Library Format", _library_archive, import_model_library_format),
    Kind("board", _board, lambda path: read_board(path.parent)),
    Kind("tuning records", _tuning_records, lambda path: Measured.read(path, "c")),
    Kind("request to the studio", _request, _ask),
    Kind("Keras 2", _keras_2, _legal, 8),
    Kind("configuration", _configuration, _configure),
    Kind("specification of kernels", _specification, lambda path: load_spec(str(path))),
    Kind("certificate", _certificate, _prove),
    Kind("C of a certificate", _certified_c, _prove_c),
)


# --- the attack ---------------------------------------------------------------------------------


def attack(kind: Kind, seed: int, count: int) -> Count:
    """Read damaged files in children, each of which goes on until a file ends it."""
    read = refused = begun = 0
    found: list[Found] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "one_board")
        folder.mkdir()
        while begun < count:
            outcome = _in_child(kind, seed, range(begun, count), folder)
            read, refused = read + outcome.read, refused + outcome.refused
            begun += outcome.tried
            if outcome.problem is not None:
                found.append(_kept(kind, seed, begun - 1, outcome.problem, folder))
    return Count(read, refused, tuple(found))


@dataclass(frozen=True)
class _Outcome:
    tried: int
    read: int
    refused: int
    problem: str | None


def _in_child(kind: Kind, seed: int, numbers: Sequence[int], folder: Path) -> _Outcome:
    """Read files until all are read or one is a problem; the child says what it saw, in lines."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        with os.fdopen(sender, "w", buffering=1) as said:
            said.writelines(f"{line}\n" for line in _results(kind, seed, numbers, folder))
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as stream:
        lines = stream.read().splitlines()
    _, status = os.waitpid(child, 0)
    read, refused = lines.count("read"), lines.count("refused")
    problem = None
    if lines and lines[-1] not in RESULTS:
        problem = lines[-1]
    elif len(lines) < len(numbers):
        problem = f"the process ended with status {status}"
    return _Outcome(read + refused + (problem is not None), read, refused, problem)


def _results(kind: Kind, seed: int, numbers: Sequence[int], folder: Path) -> Iterator[str]:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, _too_long)
    for number in numbers:
        path = _write(kind, seed, number, folder)
        signal.alarm(SECONDS)
        try:
            result = result_of(kind, path)
        finally:
            signal.alarm(0)
        yield result
        if result not in RESULTS:
            return


def result_of(kind: Kind, path: Path) -> str:
    """Read a file; return whether it was "read" or "refused", or what was raised else."""
    try:
        kind.read(path)
    except MicrotirError as error:
        if TOO_LARGE in str(error):  # a reader had made an array before it checked its size
            return f"MemoryError: {TOO_LARGE}"
        return "refused"
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is a problem
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
    return "read"


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TookTooLongError(f"{SECONDS} s")


def _write(kind: Kind, seed: int, number: int, folder: Path) -> Path:
    """Write the damaged file with a number, and the good ones beside it; return its path."""
    generator = random.Random(f"{kind.name} {seed} {number}")
    # A few good files serve many damages: it takes longer to make one than to read it.
    files, others = kind.files(seed + number % 7), kind.files(seed + (number + 1) % 7)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    first = next(iter(files))
    other = others.get(first, files[first])
    (folder / first).write_bytes(damaged(generator, files[first], other))
    return folder / first


def _kept(kind: Kind, seed: int, number: int, problem: str, folder: Path) -> Found:
    path = _write(kind, seed, number, folder)
    target = REPRODUCERS / f"{kind.name.replace(' ', '_')}_{seed}_{number}"
    shutil.copytree(folder, target, dirs_exist_ok=True)
    return Found(kind.name, problem, target / path.name)


def main(arguments: Sequence[str]) -> int:
    """Attack each kind, print what became of its files, return 1 if something was found."""
    count = int(arguments[0])
    seed = int(arguments[1]) if arguments[1:] else secrets.randbelow(1 << 30)
    lines, total = [f"seed {seed}; {count} files of each kind"], 0
    for kind in KINDS:
        outcome = attack(kind, seed, count)
        found = outcome.found
        lines.append(
            f"{kind.name}: {outcome.read} read, {outcome.refused} refused, {len(found)} found"
        )
        lines += [f"  {one.what}\n  {one.file.relative_to(ROOT)}" for one in found]
        total += len(found)
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
