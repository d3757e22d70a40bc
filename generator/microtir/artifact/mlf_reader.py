"""Import of an archive in Model Library Format that microtir wrote."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypedDict, cast

from microtir.arguments import checked_arguments
from microtir.artifact.folder import whose
from microtir.artifact.mlf_layout import METADATA, PARAMETERS, VERSION
from microtir.artifact.mlf_metadata import EXTRA
from microtir.artifact.sizes import check_sizes
from microtir.codegen import METADATA_FILE, DataFile, Metadata, SourceFile
from microtir.codegen.metadata import METADATA_VERSION, MemoryData, ModelData, PortData
from microtir.codegen.typed import FilePath, ModuleName
from microtir.config import CompilationConfig
from microtir.config.option import shown
from microtir.config.texts import path_problem
from microtir.errors import ConfigError, GraphError, ModelFileError, UsageError
from microtir.graph.ir import Quantization, TensorType
from microtir.ir_module import (
    BufferPlacement,
    IRModule,
    MemoryPlan,
    ModelInfo,
    PlannedPool,
    Port,
    PortKind,
)
from microtir.reading import WrongDataError, check, parse_json
from microtir.tir.dtype import DType

if TYPE_CHECKING:
    from microtir.artifact.artifact import Artifact

MAX_BYTES = 256 * 2**20  # of an archive: far more than any microcontroller has flash
MAX_FILES = 10_000
MAX_MODULES = 64


class _ModuleData(TypedDict):
    """What version 7 has no place for: the program's metadata, and where its sources lie."""

    metadata: Metadata
    layout: dict[FilePath, FilePath]


class _JointData(TypedDict):
    """Which modules may run at the same time; what else is written follows from that."""

    together: list[list[ModuleName]]
    size_bytes: object
    alignment: object
    pools: object


@checked_arguments
def import_model_library_format(path: str | os.PathLike[str]) -> tuple[Artifact, ...]:
    """Read the programs of an archive that `export_model_library_format` wrote.

    Nothing is unpacked: no name in the archive becomes a path of this machine.

    Returns:
        One artifact per module, in the order of the archive. Their modules hold configuration and
        facts of the model, and no functions.

    Raises:
        ModelFileError: the file is missing, damaged, or of another program or version.
    """
    file = Path(path)
    members = _members(file)
    metadata = _metadata(file, members)
    modules = _modules(file, metadata)
    together = _together(file, metadata)
    return tuple(_artifact(file, members, module[EXTRA], together) for module in modules)


def programs_of(path: Path) -> tuple[str, ...] | None:
    """Read the programs of a Model Library Format archive; None if microtir did not write it."""
    try:
        modules = _modules(path, _metadata(path, _members(path)))
        return tuple(whose(module[EXTRA]["metadata"]) for module in modules)
    except (ModelFileError, KeyError, TypeError):
        return None


def _together(file: Path, metadata: dict[str, Any]) -> tuple[frozenset[str], ...]:
    """Return the sets of modules that may run at the same time; one program has none."""
    if "modules" not in metadata:
        return ()
    extra = metadata.get(EXTRA)
    joint = extra.get("joint_workspace") if isinstance(extra, dict) else None
    try:
        check(joint, _JointData, "joint_workspace")
    except WrongDataError:
        raise _damaged(file, f"{METADATA} does not say which modules run together") from None
    return tuple(map(frozenset, cast("_JointData", joint)["together"]))


def _artifact(
    file: Path,
    members: Mapping[str, bytes],
    written: dict[str, Any],
    together: tuple[frozenset[str], ...],
) -> Artifact:
    from microtir.artifact.artifact import Artifact

    try:
        check(written, _ModuleData)
        facts = cast("Metadata", written["metadata"])
        check_sizes(facts)
        sources = _sources(file, members, written["layout"])
        text = json.dumps(facts, indent=2) + "\n"
        files = (*sources, SourceFile(METADATA_FILE, text))
        name = facts["module_name"]
        sets = tuple(names for names in together if name in names)
        return Artifact(_ir_module(facts), files, _parameters(file, members, facts), sets)
    except ConfigError as error:
        raise _damaged(file, f"the configuration is not legal: {error.what}") from None
    except (WrongDataError, GraphError) as error:
        what = f"{error.what}, not {error.legal}" if error.legal else error.what
        raise _damaged(file, f"{METADATA} lacks a fact, or has a wrong one: {what}") from None
    except UsageError as error:
        raise _damaged(file, f"{error.where}: {error.what}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _damaged(file, f"{METADATA} lacks a fact, or has a wrong one: {error}") from None


def _damaged(file: Path, what: str) -> ModelFileError:
    return ModelFileError(
        what,
        where=str(file),
        legal="an archive in Model Library Format that microtir wrote",
        fix="compile the model again with --output-format mlf",
    )


def _members(file: Path) -> dict[str, bytes]:
    """Read contents of the files by path: plain files and folders below the root only."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _damaged(file, f"the file has more than {MAX_BYTES} bytes")
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            return dict(_read_members(file, tar, len(content)))
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise _damaged(file, f"the file is no tar archive: {error}") from None
    except OSError as error:
        raise ModelFileError(
            f"the archive cannot be read: {error.strerror or error}", where=str(file)
        ) from None


def _read_members(file: Path, tar: tarfile.TarFile, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield the plain files, as long as they are as small as such an archive can hold.

    A sparse member claims bytes that the archive does not have, and a member may lie where another
    lies, too: what is read is counted, whatever the headers say.
    """
    found: set[str] = set()
    left = size
    headers = 0
    while (member := tar.next()) is not None:
        headers += 1
        # Behind a member of a negative size Python would find the same header once more.
        left -= member.size if member.isreg() else 0
        if headers > MAX_FILES or left < 0 or member.size < 0:
            raise _damaged(file, f"it claims more than {MAX_FILES} files, or than its own bytes")
        path = _checked_path(file, member.name)
        if member.isdir():
            continue
        if not member.isreg() or member.issparse():
            raise _damaged(file, f"{shown(member.name)} is neither a plain file nor a folder")
        if path in found:
            raise _damaged(file, f"{shown(member.name)} is there twice")
        found.add(path)
        stream = tar.extractfile(member)
        content = stream.read(member.size) if stream is not None else b""
        if len(content) != member.size:
            raise _damaged(file, f"{shown(member.name)} is cut off")
        yield path, content


def _checked_path(file: Path, name: str) -> str:
    """Return the path below the archive's root, which no member may leave."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise _damaged(file, f"{shown(name)} lies outside of the archive")
    short = path.as_posix()
    if short != "." and (problem := path_problem(short)):
        raise _damaged(file, f"{shown(name)} {problem}")
    return short


def _metadata(file: Path, members: Mapping[str, bytes]) -> dict[str, Any]:
    if METADATA not in members:
        raise _damaged(file, f"the archive has no {METADATA}")
    try:
        data = parse_json(members[METADATA])
    except WrongDataError as error:
        raise _damaged(file, f"{METADATA}: {error.what}") from None
    if not isinstance(data, dict):
        raise _damaged(file, f"{METADATA} is no object")
    if data.get("version") != VERSION:
        raise _damaged(file, f"{METADATA} has version {shown(data.get('version'))}, not {VERSION}")
    return data


def _modules(file: Path, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the facts of each module; a program of style "operator" stands at the top."""
    modules = metadata.get("modules", {metadata.get("model_name"): metadata})
    if not isinstance(modules, dict) or not modules:
        raise _damaged(file, f"{METADATA} lists no module")
    if len(modules) > MAX_MODULES:
        raise _damaged(file, f"{METADATA} lists {len(modules)} modules, more than {MAX_MODULES}")
    for name, module in modules.items():
        if not isinstance(module, dict) or not isinstance(module.get(EXTRA), dict):
            raise _damaged(file, f"the module {shown(name)} was written by another program")
        written = module[EXTRA].get("metadata")
        version = written.get("metadata_version") if isinstance(written, dict) else None
        if version != METADATA_VERSION:
            raise _damaged(
                file, f"the module {shown(name)} was written by another version of microtir"
            )
        if written.get("module_name") != name:
            raise _damaged(file, f"the module {shown(name)} has another name inside")
    return list(modules.values())


def _sources(
    file: Path, members: Mapping[str, bytes], layout: Mapping[str, str]
) -> list[SourceFile]:
    sources = []
    for path, place in layout.items():
        if place not in members:
            raise _damaged(file, f"{shown(place)} is missing")
        sources.append(SourceFile(_checked_path(file, path), members[place].decode()))
    return sources


def _parameters(file: Path, members: Mapping[str, bytes], facts: Metadata) -> tuple[DataFile, ...]:
    """Return the constants that are no arrays of the code."""
    names = [pool["file"] for pool in facts["constant_pools"] if pool["file"] is not None]
    names += [facts["parameters"]["file"]] if facts["parameters"] is not None else []
    found = []
    for name in names:
        if f"{PARAMETERS}/{name}" not in members:
            raise _damaged(file, f"'{PARAMETERS}/{name}' is missing")
        found.append(DataFile(_checked_path(file, name), members[f"{PARAMETERS}/{name}"]))
    return tuple(found)


def _ir_module(facts: Metadata) -> IRModule:
    config = CompilationConfig.from_dict(facts["config"])
    return IRModule(config=config, model=model_info(facts), is_lowered=True)


def model_info(facts: Metadata) -> ModelInfo | None:
    """Return a model's facts as the compiler has them; None for a user's functions."""
    if facts["model"] is None or facts["memory"] is None:
        return None
    return _model(facts["model"], facts["ports"], facts["memory"])


def _model(model: ModelData, ports: list[PortData], memory: MemoryData) -> ModelInfo:
    return ModelInfo(
        name=model["name"],
        ports=tuple(_port(port, memory) for port in ports),
        source_file=model["file"],
        source_sha256=model["sha256"],
        source_bytes=model["bytes"],
        memory=_memory(memory),
    )


def _memory(memory: MemoryData) -> MemoryPlan:
    numbers = {pool["name"]: number for number, pool in enumerate(memory["pools"])}
    return MemoryPlan(
        pools=tuple(
            PlannedPool(p["name"], p["size"], p["lower_bound"], p["alignment"])
            for p in memory["pools"]
        ),
        placements=tuple(
            BufferPlacement(
                p["name"],
                p["offset"],
                p["size"],
                p["first_step"],
                p["last_step"],
                pool=numbers[p["pool"]],
            )
            for p in memory["placements"]
        ),
        verified=memory["verified"],
    )


def _port(port: PortData, memory: MemoryData) -> Port:
    pools = [pool["name"] for pool in memory["pools"]]
    given = port["quantization"]
    quantization = Quantization((given["scale"],), (given["zero_point"],)) if given else None
    kind = TensorType(tuple(port["shape"]), DType(port["dtype"]), quantization)
    return Port(
        PortKind(port["kind"]),
        port["name"],
        port["member"],
        kind,
        port["offset"],
        port["row_bytes"],
        pools.index(port["pool"]) if port["pool"] is not None else 0,
    )
