"""Imports an archive in Model Library Format that microtir wrote."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microtir.artifact.artifact import Artifact
from microtir.artifact.mlf.archive import checked_path, damaged, members_of, metadata_in, modules_in
from microtir.artifact.mlf.layout import METADATA, parameter_places
from microtir.artifact.mlf.metadata import EXTRA
from microtir.artifact.sizes import check_sizes
from microtir.codegen import METADATA_FILE, DataFile, Metadata, SourceFile, params_name
from microtir.codegen.metadata import MemoryData, ModelData, PortData, StateData, StateMemberData
from microtir.codegen.microtvm.params import from_params
from microtir.codegen.typed import FilePath, ModuleName
from microtir.config import CompilationConfig
from microtir.config.enums import Compatibility
from microtir.dtype import DType
from microtir.errors import ConfigError, GraphError, UsageError
from microtir.graph.ir import Quantization, TensorType
from microtir.module.ir_module import IRModule, ModelInfo, Port, PortKind, StatePort
from microtir.support.arguments import checked_arguments
from microtir.support.reading import WrongDataError, check
from microtir.support.shown import shown
from microtir.tir.memory_plan import BufferPlacement, MemoryPlan, PlannedPool


@dataclass(frozen=True, slots=True)
class _ModuleData:
    """The metadata of a program and the place of its sources, for which the format has no field."""

    metadata: Metadata
    layout: Mapping[FilePath, FilePath]


@dataclass(frozen=True, slots=True)
class _JointData:
    """The modules that may run at the same time; what else is written follows from that."""

    together: tuple[tuple[ModuleName, ...], ...]
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
    members = members_of(file)
    metadata = metadata_in(file, members)
    modules = modules_in(file, metadata)
    concurrent = _concurrent(file, metadata)
    return tuple(_artifact(file, members, module[EXTRA], concurrent) for module in modules)


def _concurrent(file: Path, metadata: dict[str, Any]) -> tuple[frozenset[str], ...]:
    """Return the sets of modules that may run at the same time; one program has none."""
    if "modules" not in metadata:
        return ()
    extra = metadata.get(EXTRA)
    joint = extra.get("joint_workspace") if isinstance(extra, dict) else None
    try:
        known: _JointData = check(joint, _JointData, "joint_workspace")
    except WrongDataError:
        raise damaged(file, f"{METADATA} does not say which modules run together") from None
    return tuple(map(frozenset, known.together))


def _artifact(
    file: Path,
    members: Mapping[str, bytes],
    written: dict[str, Any],
    concurrent: tuple[frozenset[str], ...],
) -> Artifact:
    try:
        module: _ModuleData = check(written, _ModuleData)
        facts = module.metadata
        check_sizes(facts)
        sources = _sources(file, members, module.layout)
        files = (*sources, SourceFile(METADATA_FILE, facts.text))
        sets = tuple(names for names in concurrent if facts.module_name in names)
        data = _parameters(file, members, facts)
        return Artifact(_ir_module(facts), files, facts, data, sets)
    except ConfigError as error:
        raise damaged(file, f"the configuration is not valid: {error.what}") from None
    except (WrongDataError, GraphError) as error:
        what = f"{error.what}, not {error.legal}" if error.legal else error.what
        raise damaged(file, f"{METADATA} lacks a field, or a field is wrong: {what}") from None
    except UsageError as error:
        raise damaged(file, f"{error.where}: {error.what}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged(file, f"{METADATA} lacks a field, or a field is wrong: {error}") from None


def _sources(
    file: Path, members: Mapping[str, bytes], layout: Mapping[str, str]
) -> list[SourceFile]:
    sources = []
    for path, place in layout.items():
        if place not in members:
            raise damaged(file, f"{shown(place)} is missing")
        sources.append(SourceFile(checked_path(file, path), members[place].decode()))
    return sources


def _parameters(file: Path, members: Mapping[str, bytes], facts: Metadata) -> tuple[DataFile, ...]:
    names = [pool.file for pool in facts.constant_pools if pool.file is not None]
    if facts.parameters is not None:
        names.append(facts.parameters.file)
        is_microtvm = facts.config.get("compatibility") == str(Compatibility.MICROTVM)
        names += [params_name(facts.module_name)] * is_microtvm
    files = []
    for name, place in parameter_places(facts.module_name, names).items():
        if place not in members:
            raise damaged(file, f"'{place}' is missing")
        files.append(DataFile(checked_path(file, name), members[place]))
        if name == params_name(facts.module_name):
            from_params(members[place], f"{file}: {place}")  # or it is refused
    return tuple(files)


def _ir_module(facts: Metadata) -> IRModule:
    config = CompilationConfig.from_dict(facts.config)
    return IRModule(config=config, model=model_info(facts), is_lowered=True)


def model_info(facts: Metadata) -> ModelInfo | None:
    """Return a model's facts as the compiler has them; None for a user's functions."""
    if facts.model is None or facts.memory is None:
        return None
    return _model(facts.model, facts.ports, facts.memory, facts.state)


def _model(
    model: ModelData, ports: tuple[PortData, ...], memory: MemoryData, state: StateData | None
) -> ModelInfo:
    return ModelInfo(
        name=model.name,
        ports=tuple(_port(port, memory) for port in ports),
        source_file=model.file,
        source_sha256=model.sha256,
        source_bytes=model.bytes,
        quantised_sha256=model.quantised_sha256 or "",
        memory=_memory(memory, state.size if state else 0),
        states=tuple(map(_state, state.members)) if state else (),
    )


def _state(member: StateMemberData) -> StatePort:
    return StatePort(member.name, member.member, _type(member), None, member.alignment)


def _memory(memory: MemoryData, state_size: int) -> MemoryPlan:
    numbers = {pool.name: number for number, pool in enumerate(memory.pools)}
    return MemoryPlan(
        pools=tuple(PlannedPool(p.name, p.size, p.lower_bound, p.alignment) for p in memory.pools),
        placements=tuple(
            BufferPlacement(
                p.name,
                p.offset,
                p.size,
                p.first_step,
                p.last_step,
                pool=numbers[p.pool],
            )
            for p in memory.placements
        ),
        verified=memory.verified,
        state_size=state_size,
    )


def _port(port: PortData, memory: MemoryData) -> Port:
    pools = [pool.name for pool in memory.pools]
    return Port(
        PortKind(port.kind),
        port.name,
        port.member,
        _type(port),
        port.offset,
        port.row_bytes,
        pools.index(port.pool) if port.pool is not None else 0,
        names=port.names,
        aliases=port.aliases,
    )


def _type(tensor: PortData | StateMemberData) -> TensorType:
    quant = tensor.quantization
    quantization = Quantization((quant.scale,), (quant.zero_point,)) if quant else None
    if isinstance(tensor, PortData) and tensor.channel_quantization is not None:
        several = tensor.channel_quantization
        quantization = Quantization(several.scales, several.zero_points, several.axis)
    return TensorType(tuple(tensor.shape), DType(tensor.dtype), quantization)
