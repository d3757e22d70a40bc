"""Facts about a compiled program for other tools: what `metadata.json` holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from microtir.codegen.code_size import code_bytes
from microtir.codegen.constant_pools import ConstantPoolData, constant_pool_data
from microtir.codegen.definitions import definitions
from microtir.codegen.entry import exported_name
from microtir.codegen.kernel_data import KernelData, kernel_data
from microtir.codegen.outputs import OutputData, output_data
from microtir.codegen.parameters import alignment, file_name, file_size
from microtir.codegen.pools import workspace_pools
from microtir.codegen.program import Program
from microtir.codegen.stack import Stacks
from microtir.codegen.typed import (
    Alignment,
    ElementType,
    Extent,
    FileName,
    FilePath,
    Hexadecimal,
    Identifier,
    ModuleName,
    Natural,
    PoolName,
    SectionName,
    Size,
    Text,
)
from microtir.ir_module import Decision, ModelInfo, Port
from microtir.tir.dtype import DType
from microtir.tir.ir import Buffer, Param, PrimFunc, Var
from microtir.tir.printer import extern_functions
from microtir.version import __version__

METADATA_FILE = "metadata.json"
METADATA_VERSION = 2


class QuantizationData(TypedDict):
    scale: float
    zero_point: int


class PortData(TypedDict):
    """An input or output: `name` in the model, `member` of the C struct.

    `offset` is its place in the workspace pool `pool`, in bytes; both are null if the caller has
    other memory for it.
    `row_bytes` is the size of a row where functions of the caller hand it over row by row.
    """

    kind: Text
    name: Text
    member: Identifier
    shape: list[Extent]
    dtype: ElementType
    bytes: Size
    offset: Size | None
    pool: PoolName | None
    row_bytes: Size | None
    quantization: QuantizationData | None


class AccumulatorData(TypedDict):
    """Every sum of a layer, in whatever order, is proven to lie in [low, high].

    `bits` is the width that it adds in, 32 wherever that holds them; `spare_bits` of these stay
    unused.
    """

    bits: Natural
    spare_bits: int
    low: int
    high: int


class AlternativeData(TypedDict):
    """A kernel that a layer does not have; no figures where it cannot compute the layer."""

    kernel: Text
    reason: Text
    instructions: Natural | None
    cycles: Natural | None
    scratch_bytes: Natural | None
    code_bytes: Natural | None


class ChoiceData(TypedDict):
    """Which kernel a layer has and why; `instructions` and `cycles` of all its calls, beforehand.

    They are an estimate, or what tuning records say (`measured`).  Operators of one `group` run
    together, row by row if `by_rows`.
    """

    kernel: Text
    reason: Text
    instructions: Natural
    cycles: Natural
    scratch_bytes: Natural
    code_bytes: Natural
    measured: bool
    group: int
    by_rows: bool
    alternatives: list[AlternativeData]


class LayerData(TypedDict):
    """One layer function. `index` is the operator's position in the model file.

    An operator may have two functions; the one that leaves sums for the other has no outputs.
    `externs` are the C functions outside the program that it calls.
    `facts` are lines about its tensors: shape, type, quantisation. `weights_bytes` counts the
    constants that no layer before it reads, `scratch_bytes` the memory that lasts for one call.
    `lines` are the first and the last of the function in the C file that is named after the module.
    `macs_recomputed` of those executed are done by another function, too.
    `accumulator` is null where a layer adds no integers, or a library of others does.  `choice` is
    that of the operator, which its functions share.
    """

    name: Text
    operator: Text
    index: int
    function: Identifier
    macs: Natural
    macs_executed: Natural
    macs_recomputed: Natural
    takes_row_range: bool
    outputs: list[OutputData]
    facts: list[Text]
    weights_bytes: Size
    scratch_bytes: Size
    externs: list[Identifier]
    lines: list[Natural]
    accumulator: AccumulatorData | None
    choice: ChoiceData | None


class PoolData(TypedDict):
    """A workspace pool, in bytes; `limit` is null if it has none.

    `is_internal` if it is an array of the generated code, else the run function takes a pointer to
    it, in the order of the pools.
    """

    name: PoolName
    size: Size
    lower_bound: Size
    alignment: Alignment
    limit: Natural | None
    is_internal: bool
    section: SectionName


class PlacementData(TypedDict):
    """Where a buffer lies: `offset` counts the bytes of its pool."""

    name: Text
    pool: PoolName
    offset: Size
    size: Size
    first_step: int
    last_step: int


class MemoryData(TypedDict):
    """All in bytes; `verified` is the verdict of the independent checker.

    Sizes and bounds of the workspace are sums over its pools.
    """

    workspace_size: Size
    lower_bound: Size
    gap: int
    alignment: Alignment
    verified: bool
    pools: list[PoolData]
    placements: list[PlacementData]


class FrameData(TypedDict):
    """A function of the deepest chain of calls and the bytes of stack that count for it."""

    function: Text
    bytes: Natural


class StackData(TypedDict):
    """The stack of one call: an upper bound, in bytes, for what GCC and Clang make.

    `bytes` is for -O1, -O2 and -Os with micro-kernels in assembly, if there are some; `frames` is
    the deepest chain of calls then, the entry first, libraries last.  `bytes_in_c` has their twins
    in C instead, and `bytes_unoptimised` is for -O0.
    """

    bytes: Natural
    frames: list[FrameData]
    bytes_in_c: Natural
    bytes_unoptimised: Natural


class ModelData(TypedDict):
    name: Text
    file: Text
    sha256: Hexadecimal
    bytes: Natural


class ParameterFileData(TypedDict):
    """The file of constants: `identity` is that of the code that reads it."""

    file: FileName
    bytes: Size
    alignment: Alignment
    identity: Hexadecimal


class ParameterData(TypedDict):
    """A parameter of a user's function; a dimension is a number or the name of a parameter."""

    name: Text
    kind: Text
    dtype: ElementType
    shape: list[Extent | Text]
    is_written: bool
    alignment: Alignment
    low: int | None
    high: int | None


class FunctionData(TypedDict):
    """A function of a user's program.

    It `takes_parameters` if constants come last: the file of them, or the pools that are passed.
    """

    name: Text
    function: Identifier
    parameters: list[ParameterData]
    takes_parameters: bool


class Metadata(TypedDict):
    """Everything that holds for the generated sources; no time and no path of the machine."""

    metadata_version: int
    generator: Text
    module_name: ModuleName
    config: dict[str, object]
    weights_bytes: Size
    code_bytes_estimate: Natural
    constant_pools: list[ConstantPoolData]
    model: ModelData | None
    ports: list[PortData]
    layers: list[LayerData]
    kernels: list[KernelData]
    memory: MemoryData | None
    stack: StackData
    functions: list[FunctionData]
    parameters: ParameterFileData | None
    devices: list[Identifier]
    files: list[FilePath]


def metadata_of(program: Program, stacks: Stacks, identity: str = "") -> Metadata:
    """Describe a program, but for what is printed: `with_files` adds that.

    Args:
        program: what is to be printed.
        stacks: its bounds.
        identity: of the code that reads constants that a run is given, if there are any.
    """
    model = program.model
    return {
        "metadata_version": METADATA_VERSION,
        "generator": f"microtir {__version__}",
        "module_name": program.name,
        "config": program.config.recorded(),
        "weights_bytes": sum(array.bytes for array in program.constants),
        "code_bytes_estimate": code_bytes(program),
        "constant_pools": constant_pool_data(program, identity),
        "model": _model(model) if model else None,
        "ports": [_port(port, model) for port in model.ports] if model else [],
        "layers": [_layer(program, layer) for layer in program.layers],
        "kernels": kernel_data(program),
        "memory": _memory(program, model) if model else None,
        "stack": _stack(stacks),
        "functions": [_function(program, function) for function in program.exported],
        "parameters": _parameter_file(program, identity) if program.is_apart else None,
        "devices": [device.name for device in program.devices],
        "files": [],
    }


def with_files(metadata: Metadata, files: Sequence[str], source: str) -> Metadata:
    """The metadata of a program that was printed.

    Args:
        metadata: without files.
        files: the paths of everything that is generated.
        source: the C file, in which functions are looked for.
    """
    lines = definitions(source)
    layers: list[LayerData] = [
        {**layer, "lines": lines.get(layer["function"], [])} for layer in metadata["layers"]
    ]
    kernels: list[KernelData] = [
        {**kernel, "lines": lines.get(kernel["function"], [])} for kernel in metadata["kernels"]
    ]
    return {**metadata, "layers": layers, "kernels": kernels, "files": sorted(files)}


def _parameter_file(program: Program, identity: str) -> ParameterFileData:
    return {
        "file": file_name(program),
        "bytes": file_size(program.constants),
        "alignment": alignment(program.constants),
        "identity": identity,
    }


def _model(model: ModelInfo) -> ModelData:
    return {
        "name": model.name,
        "file": model.source_file,
        "sha256": model.source_sha256,
        "bytes": model.source_bytes,
    }


def _port(port: Port, model: ModelInfo) -> PortData:
    quantization = port.type.quantization
    whole = quantization is not None and not quantization.is_per_channel
    return {
        "kind": port.kind.value,
        "name": port.name,
        "member": port.c_name,
        "shape": list(port.type.shape),
        "dtype": port.type.dtype.value,
        "bytes": port.type.bytes,
        "offset": port.offset,
        "pool": None if port.offset is None else model.memory.pools[port.pool].name,
        "row_bytes": port.row_bytes,
        "quantization": (
            {"scale": quantization.scale, "zero_point": quantization.zero_point}
            if quantization is not None and whole
            else None
        ),
    }


def _layer(program: Program, layer: PrimFunc) -> LayerData:
    origin = layer.origin
    decision = program.model.decisions.get(layer.name) if program.model else None
    return {
        "name": origin.node if origin else layer.name,
        "operator": origin.operator if origin else "",
        "index": origin.index if origin else -1,
        "function": program.names[layer],
        "macs": origin.macs if origin else 0,
        "macs_executed": origin.macs_executed if origin else 0,
        "macs_recomputed": origin.macs_recomputed if origin else 0,
        "takes_row_range": layer.row_range is not None,
        "outputs": [output_data(b, layer) for b in program.tensors_written(layer)],
        "facts": list(origin.facts) if origin else [],
        "weights_bytes": sum(a.bytes for a in program.constants if a.users[:1] == (layer.name,)),
        "scratch_bytes": _bytes(layer.scratch) if layer.scratch is not None else 0,
        "externs": [extern.name for extern in extern_functions((layer,))],
        "lines": [],
        "accumulator": _accumulator(decision),
        "choice": _choice(decision) if decision else None,
    }


def _choice(decision: Decision) -> ChoiceData:
    return {
        "kernel": decision.kernel,
        "reason": decision.reason,
        "instructions": decision.instructions,
        "cycles": decision.cycles,
        "scratch_bytes": decision.scratch_bytes,
        "code_bytes": decision.code_bytes,
        "measured": decision.is_measured,
        "group": decision.group,
        "by_rows": decision.by_rows,
        "alternatives": [
            {
                "kernel": a.kernel,
                "reason": a.reason,
                "instructions": a.instructions,
                "cycles": a.cycles,
                "scratch_bytes": a.scratch_bytes,
                "code_bytes": a.code_bytes,
            }
            for a in decision.alternatives
        ],
    }


def _accumulator(decision: Decision | None) -> AccumulatorData | None:
    sums = decision.sums if decision else None
    if sums is None:
        return None
    bits = (DType.INT32 if sums.fits else DType.INT64).bits
    return {"bits": bits, "spare_bits": bits - sums.bits, "low": sums.low, "high": sums.high}


def _bytes(buffer: Buffer) -> int:
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    return math.prod(extents) * buffer.dtype.bytes


def _memory(program: Program, model: ModelInfo) -> MemoryData:
    memory = model.memory
    return {
        "workspace_size": memory.workspace_size,
        "lower_bound": memory.lower_bound,
        "gap": memory.gap,
        "alignment": memory.alignment,
        "verified": memory.verified,
        "pools": [
            {
                "name": pool.plan.name,
                "size": pool.size,
                "lower_bound": pool.plan.lower_bound,
                "alignment": pool.plan.alignment,
                "limit": info.size_limit,
                "is_internal": pool.is_internal,
                "section": pool.section,
            }
            for pool, info in zip(
                workspace_pools(program), program.config.workspace_pools, strict=True
            )
        ],
        "placements": [
            {
                "name": p.name,
                "pool": memory.pools[p.pool].name,
                "offset": p.offset,
                "size": p.size,
                "first_step": p.first_step,
                "last_step": p.last_step,
            }
            for p in memory.placements
        ],
    }


def _stack(stacks: Stacks) -> StackData:
    return {
        "bytes": stacks.best.bytes,
        "frames": [{"function": f.function, "bytes": f.bytes} for f in stacks.best.frames],
        "bytes_in_c": stacks.in_c.bytes,
        "bytes_unoptimised": stacks.unoptimised.bytes,
    }


def _function(program: Program, function: PrimFunc) -> FunctionData:
    written = program.written[function]
    return {
        "name": function.name,
        "function": exported_name(program, function),
        "parameters": [_parameter(p, p in written) for p in function.params],
        "takes_parameters": program.takes_constants(function),
    }


def _parameter(parameter: Param, is_written: bool) -> ParameterData:
    is_scalar = isinstance(parameter, Var)
    return {
        "name": parameter.name,
        "kind": "scalar" if is_scalar else "buffer",
        "dtype": parameter.dtype.value,
        "shape": (
            []
            if isinstance(parameter, Var)
            else [d.name if isinstance(d, Var) else d for d in parameter.shape]
        ),
        "is_written": is_written,
        "alignment": 1 if isinstance(parameter, Var) else parameter.alignment,
        "low": parameter.low if isinstance(parameter, Var) else None,
        "high": parameter.high if isinstance(parameter, Var) else None,
    }
