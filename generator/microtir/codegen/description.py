"""Describes a program: makes what `metadata.json` holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from microtir.codegen.interface.constant_pools import constant_pool_data
from microtir.codegen.interface.entry import exported_name
from microtir.codegen.interface.parameters import alignment, file_name, file_size
from microtir.codegen.interface.pools import workspace_pools
from microtir.codegen.kernel_data import kernel_data
from microtir.codegen.metadata import (
    METADATA_VERSION,
    AccumulatorData,
    AlternativeData,
    ChoiceData,
    FrameData,
    FunctionData,
    LayerData,
    MemoryData,
    Metadata,
    ModelData,
    ParameterData,
    ParameterFileData,
    PlacementData,
    PoolData,
    PortData,
    QuantizationData,
    StackData,
)
from microtir.codegen.outputs import output_data
from microtir.codegen.printer.definitions import definitions
from microtir.codegen.program import CProgram
from microtir.decisions import Decision
from microtir.ir_module import ModelInfo, Port
from microtir.measure import Figures, Frame, Stacks
from microtir.tir.dtype import DType
from microtir.tir.ir import Buffer, Param, PrimFunc, Var
from microtir.tir.printer import extern_functions
from microtir.version import __version__


def metadata_of(program: CProgram, figures: Figures, identity: str = "") -> Metadata:
    """Describe a program, but for what is printed: `with_files` adds that.

    Args:
        program: what is to be printed.
        figures: what it takes.
        identity: of the code that reads constants that a run is given, if there are any.
    """
    model = program.model
    return Metadata(
        metadata_version=METADATA_VERSION,
        generator=f"microtir {__version__}",
        module_name=program.name,
        config=program.config.recorded(),
        weights_bytes=sum(array.bytes for array in program.constants),
        code_bytes_estimate=figures.flash.code,
        constant_pools=constant_pool_data(program, identity),
        model=_model(model) if model else None,
        ports=tuple(_port(port, model) for port in model.ports) if model else (),
        layers=tuple(_layer(program, layer) for layer in program.layers),
        kernels=kernel_data(program),
        memory=_memory(program, model) if model else None,
        stack=_stack(program, figures.stacks),
        functions=tuple(_function(program, function) for function in program.exported),
        parameters=_parameter_file(program, identity) if program.has_external_params else None,
        devices=tuple(device.name for device in program.devices),
        files=(),
    )


def with_files(metadata: Metadata, files: Sequence[str], source: str) -> Metadata:
    """Return the metadata of a program that was printed.

    Args:
        metadata: without files.
        files: the paths of everything that is generated.
        source: the C file, in which functions are looked for.
    """
    lines = definitions(source)
    return replace(
        metadata,
        layers=tuple(replace(m, lines=lines.get(m.function, ())) for m in metadata.layers),
        kernels=tuple(replace(k, lines=lines.get(k.function, ())) for k in metadata.kernels),
        files=tuple(sorted(files)),
    )


def _parameter_file(program: CProgram, identity: str) -> ParameterFileData:
    return ParameterFileData(
        file=file_name(program),
        bytes=file_size(program.constants),
        alignment=alignment(program.constants),
        identity=identity,
    )


def _model(model: ModelInfo) -> ModelData:
    return ModelData(
        name=model.name,
        file=model.source_file,
        sha256=model.source_sha256,
        bytes=model.source_bytes,
    )


def _port(port: Port, model: ModelInfo) -> PortData:
    quantization = port.type.quantization
    whole = quantization is not None and not quantization.is_per_channel
    return PortData(
        kind=port.kind.value,
        name=port.name,
        member=port.c_name,
        shape=port.type.shape,
        dtype=port.type.dtype.value,
        bytes=port.type.bytes,
        offset=port.offset,
        pool=None if port.offset is None else model.memory.pools[port.pool].name,
        row_bytes=port.row_bytes,
        quantization=(
            QuantizationData(quantization.scale, quantization.zero_point)
            if quantization is not None and whole
            else None
        ),
    )


def _layer(program: CProgram, layer: PrimFunc) -> LayerData:
    origin = layer.origin
    decision = program.model.decisions.get(layer.name) if program.model else None
    return LayerData(
        name=origin.node if origin else layer.name,
        operator=origin.operator if origin else "",
        index=origin.index if origin else -1,
        function=program.names[layer],
        macs=origin.macs if origin else 0,
        macs_executed=origin.macs_executed if origin else 0,
        macs_recomputed=origin.macs_recomputed if origin else 0,
        takes_row_range=layer.row_range is not None,
        outputs=tuple(output_data(b, layer) for b in program.tensors_written(layer)),
        facts=origin.facts if origin else (),
        weights_bytes=sum(a.bytes for a in program.constants if a.users[:1] == (layer.name,)),
        scratch_bytes=_bytes(layer.scratch) if layer.scratch is not None else 0,
        externs=tuple(extern.name for extern in extern_functions((layer,))),
        lines=(),
        accumulator=_accumulator(decision),
        choice=_choice(decision) if decision else None,
    )


def _choice(decision: Decision) -> ChoiceData:
    return ChoiceData(
        kernel=decision.kernel,
        reason=decision.reason,
        instructions=decision.instructions,
        cycles=decision.cycles,
        scratch_bytes=decision.scratch_bytes,
        code_bytes=decision.code_bytes,
        measured=decision.is_measured,
        group=decision.group,
        by_rows=decision.by_rows,
        alternatives=tuple(
            AlternativeData(
                kernel=a.kernel,
                reason=a.reason,
                instructions=a.instructions,
                cycles=a.cycles,
                scratch_bytes=a.scratch_bytes,
                code_bytes=a.code_bytes,
            )
            for a in decision.alternatives
        ),
    )


def _accumulator(decision: Decision | None) -> AccumulatorData | None:
    sums = decision.sums if decision else None
    if sums is None:
        return None
    bits = (DType.INT32 if sums.fits else DType.INT64).bits
    return AccumulatorData(bits=bits, spare_bits=bits - sums.bits, low=sums.low, high=sums.high)


def _bytes(buffer: Buffer) -> int:
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    return math.prod(extents) * buffer.dtype.bytes


def _memory(program: CProgram, model: ModelInfo) -> MemoryData:
    memory = model.memory
    return MemoryData(
        workspace_size=memory.workspace_size,
        lower_bound=memory.lower_bound,
        gap=memory.gap,
        alignment=memory.alignment,
        verified=memory.verified,
        pools=tuple(
            PoolData(
                name=pool.plan.name,
                size=pool.size,
                lower_bound=pool.plan.lower_bound,
                alignment=pool.plan.alignment,
                limit=info.size_limit,
                is_internal=pool.is_internal,
                section=pool.section,
            )
            for pool, info in zip(
                workspace_pools(program), program.config.workspace_pools, strict=True
            )
        ),
        placements=tuple(
            PlacementData(
                name=p.name,
                pool=memory.pools[p.pool].name,
                offset=p.offset,
                size=p.size,
                first_step=p.first_step,
                last_step=p.last_step,
            )
            for p in memory.placements
        ),
    )


def _frame_name(program: CProgram, frame: Frame) -> str:
    """Return the name in C of a function on the stack."""
    is_entry = program.model is not None and frame.function is program.entry
    return frame.name if frame.function is None or is_entry else program.names[frame.function]


def _stack(program: CProgram, stacks: Stacks) -> StackData:
    return StackData(
        bytes=stacks.best.bytes,
        frames=tuple(FrameData(_frame_name(program, f), f.bytes) for f in stacks.best.frames),
        bytes_in_c=stacks.in_c.bytes,
        bytes_unoptimised=stacks.unoptimised.bytes,
    )


def _function(program: CProgram, function: PrimFunc) -> FunctionData:
    written = program.written[function]
    return FunctionData(
        name=function.name,
        function=exported_name(program, function),
        parameters=tuple(_parameter(p, p in written) for p in function.params),
        takes_parameters=program.takes_constants(function),
    )


def _parameter(parameter: Param, is_written: bool) -> ParameterData:
    is_scalar = isinstance(parameter, Var)
    return ParameterData(
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
