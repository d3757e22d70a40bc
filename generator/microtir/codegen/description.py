"""Describes a program: makes the facts that `metadata.json` holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from microtir.codegen import metadata
from microtir.codegen.interface import state
from microtir.codegen.interface.constant_pools import constant_pool_data
from microtir.codegen.interface.entry import exported_name
from microtir.codegen.interface.parameters import alignment, file_name, file_size
from microtir.codegen.interface.pools import workspace_pools
from microtir.codegen.printer.definitions import definitions
from microtir.codegen.program import CProgram
from microtir.dtype import DType
from microtir.measure import Figures, StackFrame, Stacks
from microtir.measure.functions import kernels_of
from microtir.module.ir_module import ModelInfo, Port, StatePort
from microtir.plan.decisions import Decision
from microtir.tir.function import Origin
from microtir.tir.ir import Buffer, Param, PrimFunc, Var
from microtir.tir.printer import extern_functions
from microtir.version import __version__

Data = TypeVar("Data")


def metadata_of(program: CProgram, figures: Figures, identity: str = "") -> metadata.Metadata:
    """Describe a program, but for what is printed: `with_files` adds that.

    Args:
        program: what is to be printed.
        figures: what it takes.
        identity: of the code that reads constants that a run is given, if there are any.
    """
    model = program.model
    return metadata.Metadata(
        metadata_version=metadata.METADATA_VERSION,
        generator=f"microtir {__version__}",
        module_name=program.name,
        config=program.config.recorded(),
        weights_bytes=sum(array.bytes for array in program.constants),
        code_bytes_estimate=figures.flash.code,
        constant_pools=constant_pool_data(program, identity),
        model=_model(model) if model else None,
        ports=tuple(_port(port, model) for port in model.ports) if model else (),
        layers=tuple(_layer(program, layer) for layer in program.layers),
        kernels=_kernels(program),
        memory=_memory(program, model) if model else None,
        stack=_stack(program, figures.stacks),
        functions=tuple(_function(program, function) for function in program.exported),
        parameters=_parameter_file(program, identity) if program.has_external_params else None,
        devices=tuple(device.name for device in program.devices),
        files=(),
        state=_state(program),
        images=program.entry.images if model else 1,
    )


def with_files(
    described: metadata.Metadata, files: Sequence[str], source: str
) -> metadata.Metadata:
    """Return the metadata of a program that was printed.

    Args:
        described: without files.
        files: the paths of everything that is generated.
        source: the C file, in which functions are looked for.
    """
    lines = definitions(source)
    return replace(
        described,
        layers=tuple(replace(m, lines=lines.get(m.function, ())) for m in described.layers),
        kernels=tuple(replace(k, lines=lines.get(k.function, ())) for k in described.kernels),
        files=tuple(sorted(files)),
    )


def _copied(kind: type[Data], source: object, **others: object) -> Data:
    """Return facts of a kind: what `others` says, else the attributes of `source` by their names.

    What the compiler and `metadata.json` call alike is so written down once for each of them; a
    fact that the source does not have is an AttributeError in every build.
    """
    names = [name for name in kind.__annotations__ if name not in others]
    return kind(**others, **{name: getattr(source, name) for name in names})


def _parameter_file(program: CProgram, identity: str) -> metadata.ParameterFileData:
    return metadata.ParameterFileData(
        file=file_name(program),
        bytes=file_size(program.constants),
        alignment=alignment(program.constants),
        identity=identity,
    )


def _model(model: ModelInfo) -> metadata.ModelData:
    return metadata.ModelData(
        name=model.name,
        file=model.source_file,
        sha256=model.source_sha256,
        bytes=model.source_bytes,
        quantised_sha256=model.quantised_sha256 or None,
    )


def _state(program: CProgram) -> metadata.StateData | None:
    """Return the struct of a model's state; None for one without."""
    if not program.states:
        return None
    layout = state.layout(program)
    return metadata.StateData(
        size=layout.size,
        alignment=layout.alignment,
        saved_size=state.saved_size(program),
        identity=state.identity(program),
        members=tuple(
            metadata.StateMemberData(
                name=port.name,
                member=port.c_name,
                shape=port.type.shape,
                dtype=port.type.dtype.value,
                bytes=port.type.bytes,
                offset=offset,
                alignment=port.alignment,
                quantization=_quantization(port),
            )
            for port, offset in zip(program.states, layout.offsets, strict=True)
        ),
    )


def _quantization(port: Port | StatePort) -> metadata.QuantizationData | None:
    """Return the quantisation of a whole tensor; None if it has another, or none."""
    quantization = port.type.quantization
    if quantization is None or quantization.is_per_channel:
        return None
    return metadata.QuantizationData(quantization.scale, quantization.zero_point)


def _channels(port: Port) -> metadata.ChannelQuantizationData | None:
    quant = port.type.quantization
    if quant is None or quant.axis is None:
        return None
    return metadata.ChannelQuantizationData(quant.scales, quant.zero_points, quant.axis)


def _port(port: Port, model: ModelInfo) -> metadata.PortData:
    return metadata.PortData(
        kind=port.kind.value,
        name=port.name,
        member=port.c_name,
        shape=port.type.shape,
        dtype=port.type.dtype.value,
        bytes=port.type.bytes,
        offset=port.offset,
        pool=None if port.offset is None else model.memory.pools[port.pool].name,
        row_bytes=port.row_bytes,
        quantization=_quantization(port),
        names=port.names,
        aliases=port.aliases,
        channel_quantization=_channels(port),
    )


def _layer(program: CProgram, layer: PrimFunc) -> metadata.LayerData:
    origin = layer.origin or Origin(operator="", node=layer.name, index=-1)
    decision = program.model.decisions.get(layer.name) if program.model else None
    return _copied(
        metadata.LayerData,
        origin,
        name=origin.node,
        function=program.names[layer],
        takes_row_range=layer.row_range is not None,
        outputs=tuple(_output(b, layer) for b in program.tensors_written(layer)),
        weights_bytes=sum(a.bytes for a in program.constants if a.users[:1] == (layer.name,)),
        scratch_bytes=_bytes(layer.scratch) if layer.scratch is not None else 0,
        externs=tuple(extern.name for extern in extern_functions((layer,))),
        lines=(),
        accumulator=_accumulator(decision),
        choice=_choice(decision) if decision else None,
    )


def _output(buffer: Param, layer: PrimFunc) -> metadata.OutputData:
    """Return what a layer writes into one of its parameters: how its rows lie in memory."""
    assert isinstance(buffer, Buffer)
    rows, *extents = [extent for extent in buffer.shape if isinstance(extent, int)] or [1]
    planes = None
    if (rows_of := layer.plane_rows) is not None:
        planes = metadata.PlanesData(extents[0], rows_of.before, rows_of.width, rows_of.dtype.value)
    return metadata.OutputData(buffer.dtype.value, rows, math.prod(extents), planes)


def _kernels(program: CProgram) -> tuple[metadata.KernelData, ...]:
    """Return the micro-kernels in printing order, with the layers that call them."""
    users: dict[str, list[str]] = {}
    for layer in program.layers:
        for kernel in dict.fromkeys(kernels_of(layer)):
            users.setdefault(program.names[kernel], []).append(program.names[layer])
    printed = [program.names[function] for function in program.functions]
    return tuple(
        metadata.KernelData(name, lines=(), layers=tuple(users[name]))
        for name in printed if name in users
    )  # fmt: skip


def _choice(decision: Decision) -> metadata.ChoiceData:
    return _copied(
        metadata.ChoiceData,
        decision,
        measured=decision.is_measured,
        alternatives=tuple(_copied(metadata.AlternativeData, a) for a in decision.alternatives),
    )


def _accumulator(decision: Decision | None) -> metadata.AccumulatorData | None:
    sums = decision.sums if decision else None
    if sums is None:
        return None
    bits = (DType.INT32 if sums.fits else DType.INT64).bits
    return metadata.AccumulatorData(
        bits=bits, spare_bits=bits - sums.bits, low=sums.low, high=sums.high
    )


def _bytes(buffer: Buffer) -> int:
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    return math.prod(extents) * buffer.dtype.bytes


def _memory(program: CProgram, model: ModelInfo) -> metadata.MemoryData:
    memory = model.memory
    return _copied(
        metadata.MemoryData,
        memory,
        pools=tuple(
            _copied(
                metadata.PoolData,
                pool.plan,
                limit=info.size_limit,
                is_internal=pool.is_internal,
                section=pool.section,
            )
            for pool, info in zip(
                workspace_pools(program), program.config.workspace_pools, strict=True
            )
        ),
        placements=tuple(
            _copied(metadata.PlacementData, p, pool=memory.pools[p.pool].name)
            for p in memory.placements
        ),
    )


def _frame_name(program: CProgram, frame: StackFrame) -> str:
    """Return the name in C of a function on the stack."""
    is_entry = program.model is not None and frame.function is program.entry
    return frame.name if frame.function is None or is_entry else program.names[frame.function]


def _stack(program: CProgram, stacks: Stacks) -> metadata.StackData:
    return metadata.StackData(
        bytes=stacks.best.bytes,
        frames=tuple(
            metadata.FrameData(_frame_name(program, f), f.bytes) for f in stacks.best.frames
        ),
        bytes_in_c=stacks.in_c.bytes,
        bytes_unoptimised=stacks.unoptimised.bytes,
    )


def _function(program: CProgram, function: PrimFunc) -> metadata.FunctionData:
    written = program.written[function]
    return metadata.FunctionData(
        name=function.name,
        function=exported_name(program, function),
        parameters=tuple(_parameter(p, p in written) for p in function.params),
        takes_parameters=program.takes_constants(function),
    )


def _parameter(parameter: Param, is_written: bool) -> metadata.ParameterData:
    is_scalar = isinstance(parameter, Var)
    return metadata.ParameterData(
        name=parameter.name,
        kind="scalar" if is_scalar else "buffer",
        dtype=parameter.dtype.value,
        shape=(
            ()
            if isinstance(parameter, Var)
            else tuple(d.name if isinstance(d, Var) else d for d in parameter.shape)
        ),
        is_written=is_written,
        alignment=1 if isinstance(parameter, Var) else parameter.alignment,
        low=parameter.low if isinstance(parameter, Var) else None,
        high=parameter.high if isinstance(parameter, Var) else None,
    )
