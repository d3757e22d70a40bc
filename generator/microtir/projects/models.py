"""Describes the models of a project as the templates of the application see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.artifact import (
    C_TYPES,
    Artifact,
    ConcurrentModules,
    Footprint,
    OutputData,
    PoolData,
    PoolShare,
    footprint,
    joint_pool,
    joint_workspace,
)
from microtir.boards.errors import ProjectError
from microtir.errors import nearest
from microtir.graph.port_names import by_own_names
from microtir.module.ir_module import ModelInfo, Port, PortKind
from microtir.projects.calls import RunCall, call_of
from microtir.projects.options import ProjectOptions, Samples
from microtir.projects.pools import (
    ConstantValues,
    PoolValues,
    SharedPool,
    constant_values,
    pool_values,
    shared_pools,
)
from microtir.projects.samples import SampleArray, arbitrary_samples, sample_array
from microtir.support.arrays import Array
from microtir.support.encoding import Encoded, c_code
from microtir.support.float_text import float32_text
from microtir.support.names import macro_name

NO_SAMPLES = "NULL"  # what C has for an array that is not there
ELEMENT_BYTES = 8  # of the largest element, and its alignment at most
MAX_RUNS = 65535  # the application counts them in 16 bits


@dataclass(frozen=True, slots=True)
class PortValues:
    """An input or output: texts that the templates print as they are.

    `place` is a pointer to it; where `is_own` is false it points into the workspace.
    """

    label: str
    member: str
    c_type: str
    element: str
    elements: int
    bytes: int
    samples: str
    tolerance: str
    place: Encoded
    is_own: bool
    shape: tuple[int, ...]
    scale: str  # empty unless one belongs to the whole tensor
    zero_point: int
    row_bytes: int | None = None  # of a tensor that is handed over row by row
    names: tuple[str, ...] = ()  # which the values are places in, as they are

    @property
    def by_rows(self) -> bool:
        return self.row_bytes is not None


@dataclass(frozen=True, slots=True)
class PortGroup:
    """All inputs or all outputs, and the C table that lists them."""

    kind: str
    ports: tuple[PortValues, ...]
    table: str
    count: int


@dataclass(frozen=True, slots=True)
class Places:
    """The first byte of each part that a model has of what models share.

    `pools` are offsets by the C name of a pool, `tensors` is that of its inputs and outputs, `io`
    what it would be if the application had no memory for those that are handed over row by row.
    """

    pools: Mapping[str, int]
    tensors: int
    io: int


@dataclass(frozen=True, slots=True)
class ModelValues:
    """The values of one model for templates: names, ports, and sizes in bytes.

    `internal` are the workspace pools that are its own arrays, `constants` all constant pools,
    `places` where its parts of what models share begin.  Of `steps` runs each a sample consists, of
    a model that keeps something from one to the next.
    """

    name: str
    macro: str
    file: str
    inputs: tuple[PortValues, ...]
    outputs: tuple[PortValues, ...]
    sample_count: int
    steps: int
    pools: tuple[PoolValues, ...]
    internal: tuple[PoolData, ...]
    constants: tuple[ConstantValues, ...]
    weights_bytes: int
    stack_bytes: int
    source_bytes: int
    layer_count: int
    layer_bytes: tuple[int, ...]
    uses_math: bool
    call: RunCall
    places: Places
    ram: Footprint

    @property
    def has_state(self) -> bool:
        """Return whether it keeps something from one run to the next."""
        return self.ram.state > 0

    @property
    def is_called_plainly(self) -> bool:
        """Return whether arrays, and pointers to them, are all that a call needs."""
        own = all(port.is_own and not port.by_rows for port in self.ports)
        return own and not (self.call.packed or self.call.parameters or self.call.devices)

    @property
    def runs(self) -> int:
        """Return the runs that its samples are: the steps of all."""
        return self.sample_count * max(self.steps, 1)

    @property
    def layer_table(self) -> str:
        """Return the C table of `layer_bytes`; a model without layers has none."""
        return f"bytes_of_{self.name}" if self.layer_bytes else "NULL"

    @property
    def workspace_bytes(self) -> int:
        return self.ram.planned

    @property
    def internal_bytes(self) -> int:
        return sum(pool.size for pool in self.internal)

    @property
    def given_constants(self) -> tuple[ConstantValues, ...]:
        """Return the constant pools that the application has arrays for."""
        return tuple(pool for pool in self.constants if pool.memory and pool.bytes)

    @property
    def ports(self) -> tuple[PortValues, ...]:
        return (*self.inputs, *self.outputs)

    @property
    def groups(self) -> tuple[PortGroup, ...]:
        """Return inputs, then outputs: a model without inputs has no table of them."""
        return tuple(
            PortGroup(kind, ports, f"{self.name}_{kind}_tensors" if ports else "NULL", len(ports))
            for kind, ports in (("input", self.inputs), ("output", self.outputs))
        )

    @property
    def own_ports(self) -> tuple[PortValues, ...]:
        """Return the ports that the application has memory for."""
        return tuple(port for port in self.ports if port.is_own)


@dataclass(frozen=True, slots=True)
class Models:
    """All models of a project, the arrays of their samples, and the memory that they share.

    The program `has_checks` where it watches the bytes around that memory.
    """

    models: tuple[ModelValues, ...]
    sample_arrays: tuple[SampleArray, ...]
    shared_pools: tuple[SharedPool, ...]
    concurrent: ConcurrentModules
    has_checks: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.models)

    @property
    def workspace_bytes(self) -> int:
        """Return the bytes of workspaces: what is shared, and what each model has for itself."""
        inside = sum(model.internal_bytes for model in self.models)
        return sum(pool.bytes for pool in self.shared_pools) + inside

    @property
    def io_bytes(self) -> int:
        ends = (model.places.io + model.ram.io for model in self.models if model.ram.io)
        return max(ends, default=0)

    @property
    def tensor_bytes(self) -> int:
        """Return the bytes of inputs and outputs, with those handed over row by row.

        The application has them as a whole, since samples and computers have no rows to give.
        """
        sizes = [(m.places.tensors, sum(port.bytes for port in m.own_ports)) for m in self.models]
        return max((start + size for start, size in sizes if size), default=0)

    def footprint(self, *, data: int, stack: int, reserve: int) -> Footprint:
        """Return what all models take together; those that take turns share memory."""
        # The scratch of one of several lies where others have their workspace.
        scratch = self.models[0].ram.scratch if len(self.models) == 1 else 0
        workspace = self.workspace_bytes - scratch
        state = sum(model.ram.state for model in self.models)  # each keeps its own
        return Footprint(workspace, scratch, self.io_bytes, state, data, stack, reserve)

    @property
    def weights_bytes(self) -> int:
        return sum(model.weights_bytes for model in self.models)


def describe_models(artifacts: Sequence[Artifact], options: ProjectOptions) -> Models:
    """Describe the models for templates.

    Raises:
        ProjectError: an artifact is no model, two have one name, or samples do not fit.
        UsageError: options.together names something else than several models.
    """
    names = [artifact.metadata.module_name for artifact in artifacts]
    for name in names:
        if names.count(name) > 1:
            raise ProjectError(
                f"there are {names.count(name)} models with the module name '{name}'",
                where="project.generate(artifact)",
                fix="give each model a different module_name in its configuration",
            )
    for name in options.samples:
        if name not in names:
            raise ProjectError(
                f"there is no model '{name}'", where="options.samples", legal=", ".join(names)
            )
    arrays: list[SampleArray] = []
    concurrent = ConcurrentModules.of(options.together, artifacts, "options.together")
    places = _places(artifacts, concurrent)
    models = tuple(
        _model(artifact, options, arrays, place)
        for artifact, place in zip(artifacts, places, strict=True)
    )
    pools = shared_pools(pool for model in models for pool in model.pools)
    return Models(models, tuple(arrays), pools, concurrent, options.debug_checks)


def _places(artifacts: Sequence[Artifact], concurrent: ConcurrentModules) -> list[Places]:
    """Return where each model's parts of shared memory begin: 0 if all take turns."""
    pools = joint_workspace(artifacts, concurrent)
    tensors, io = (_tensor_places(artifacts, concurrent, with_rows=rows) for rows in (True, False))
    return [
        Places(
            {pool.name: pool.offsets[name] for pool in pools if name in pool.offsets}, at, io[name]
        )
        for name, at in tensors.items()
    ]


def _tensor_places(
    artifacts: Sequence[Artifact], concurrent: ConcurrentModules, *, with_rows: bool
) -> Mapping[str, int]:
    """Return where each model's inputs and outputs begin, by its name."""
    shares = {}
    for artifact in artifacts:
        model = artifact.module.model
        own = [port for port in model.ports if port.offset is None] if model else []
        whole = [port for port in own if with_rows or port.row_bytes is None]
        size = sum(-(-port.type.bytes // ELEMENT_BYTES) * ELEMENT_BYTES for port in whole)
        shares[artifact.metadata.module_name] = PoolShare(size, ELEMENT_BYTES)
    return joint_pool("tensors", shares, concurrent).offsets if shares else {}


def _largest_output(outputs: Sequence[OutputData]) -> int:
    """Return bytes of the largest tensor that a layer writes."""
    sizes = (o.rows * o.row_elements * np.dtype(o.dtype).itemsize for o in outputs)
    return max(sizes, default=0)


def _model(
    artifact: Artifact, options: ProjectOptions, arrays: list[SampleArray], places: Places
) -> ModelValues:
    """Return the values of one model, and add the arrays of its samples to `arrays`."""
    facts = artifact.metadata
    name = facts.module_name
    model = _info(artifact)
    samples = options.samples.get(name)
    if samples is None:
        samples = Samples({}) if options.server else arbitrary_samples(model.inputs)
    inputs = _by_port(samples.inputs, model.inputs, f"inputs of '{name}'")
    outputs = _by_port(samples.outputs, model.outputs, f"outputs of '{name}'")
    steps = _steps(model, {**inputs, **outputs})
    missing = [port.name for port in model.inputs if port.name not in inputs]
    if missing and not options.server:
        where = f"samples: inputs of '{name}'"
        raise ProjectError(f"there are no values for '{missing[0]}'", where=where)
    memory = facts.memory
    assert memory is not None  # it is a model
    pools = pool_values(name, memory, places.pools, are_watched=options.debug_checks)
    constants = constant_values(name, facts.constant_pools)
    passed_pools = [pool for pool in constants if pool.memory]
    passed = {pool.name: pool.place for pool in pools}
    in_pools = [passed.get(pool.name, "") for pool in memory.pools]
    own = f"tensors.of_{name}{'.own' * (places.tensors > 0)}"
    at = [_place(own, port, in_pools) for port in model.ports]
    ports: dict[PortKind, list[PortValues]] = {PortKind.INPUT: [], PortKind.OUTPUT: []}
    for port, place in zip(model.ports, at, strict=True):
        values = (inputs if port.kind is PortKind.INPUT else outputs).get(port.name)
        number = len(ports[port.kind])
        array = None
        if values is not None:
            array = sample_array(f"{name}_{port.kind.value}{number}_samples", port, values, steps)
            arrays.append(array)
        ports[port.kind].append(_port(port, array, samples.rtol, place))
    code = [file for file in artifact.sources if file.path == f"{name}.c"]
    return ModelValues(
        name=name,
        macro=macro_name(name),
        file=model.source_file,
        inputs=tuple(ports[PortKind.INPUT]),
        outputs=tuple(ports[PortKind.OUTPUT]),
        sample_count=_sample_count(name, [*inputs.values(), *outputs.values()], steps),
        steps=steps,
        pools=pools,
        internal=tuple(pool for pool in memory.pools if pool.is_internal),
        constants=constants,
        weights_bytes=facts.weights_bytes,
        stack_bytes=facts.stack.bytes_in_c,
        source_bytes=sum(len(file.text) for file in code),
        layer_count=len(facts.layers),
        layer_bytes=tuple(_largest_output(row.outputs) for row in facts.layers),
        uses_math=any("#include <math.h>" in file.text for file in code),
        call=call_of(artifact, list(zip(model.ports, at, strict=True)), pools, passed_pools),
        places=places,
        ram=footprint(facts),
    )


def _info(artifact: Artifact) -> ModelInfo:
    """Return what the interface of a model says.

    Raises:
        ProjectError: the artifact holds functions of a user.
    """
    model = artifact.module.model
    if model is None:
        raise ProjectError(
            f"'{artifact.metadata.module_name}' contains only functions, and no model that can run",
            where="project.generate(artifact)",
            fix="build the project from a model, or use the exported sources in your own project",
        )
    return model


def _by_port(arrays: Mapping[str, Array], ports: Sequence[Port], where: str) -> dict[str, Array]:
    """Return the arrays by port; a name that no port has is refused."""
    names = [port.name for port in ports]
    own = {alias: port.name for port in ports for alias in (*port.aliases, port.name)}
    arrays = by_own_names(arrays, lambda name: own.get(name, name), f"samples: {where}")
    for name in arrays:
        if name not in names:
            hint = nearest(name, names)
            what = f"there is no '{name}'"
            raise ProjectError(
                f"{what}: {hint}" if hint else what,
                where=f"samples: {where}",
                legal=", ".join(names),
            )
    return arrays


def _steps(model: ModelInfo, arrays: Mapping[str, Array]) -> int:
    """Return the runs of each sample: of a model with a state the second axis may count them."""
    if not model.states:
        return 1
    elements = {port.name: port.type.elements for port in model.ports}
    counted = {
        array.shape[1] if array.ndim > 1 and array.size != len(array) * elements[name] else 1
        for name, array in arrays.items()
    }
    if len(counted) > 1 or 0 in counted:
        raise ProjectError(
            "the arrays contain sequences of different lengths "
            f"({' and '.join(map(str, sorted(counted)))} steps)",
            where=f"samples of '{model.name}'",
            legal="the same number for every input and output, 1 or more",
        )
    return max(counted, default=1)


def _sample_count(name: str, arrays: list[Array], steps: int) -> int:
    counts = sorted({len(array) if array.ndim else 0 for array in arrays}) or [1]
    if len(counts) > 1 or not 1 <= counts[0] * steps <= MAX_RUNS:
        raise ProjectError(
            f"the arrays hold {' and '.join(map(str, counts))} samples"
            + f" of {steps} steps" * (steps > 1),
            where=f"samples of '{name}'",
            legal=f"the same number for every input and output, 1 to {MAX_RUNS // steps}",
        )
    return counts[0]


def _port(port: Port, array: SampleArray | None, rtol: float, place: str) -> PortValues:
    quantization = port.type.quantization
    is_whole = quantization is not None and not quantization.is_per_channel
    return PortValues(
        label=_c_text(port.name),
        member=port.c_name,
        c_type=C_TYPES[port.type.dtype],
        element=f"ELEMENT_{port.type.dtype.value.upper()}",
        elements=port.type.elements,
        bytes=port.type.bytes,
        samples=array.name if array else NO_SAMPLES,
        tolerance=f"{rtol!r}f",
        place=c_code(place),
        is_own=port.offset is None,
        shape=port.type.shape,
        scale=float32_text(quantization.scale) if quantization and is_whole else "",
        zero_point=quantization.zero_point if quantization and is_whole else 0,
        row_bytes=port.row_bytes,
        names=port.names,
    )


def _place(own: str, port: Port, pools: Sequence[str]) -> str:
    """Return a pointer to a tensor, in the application's `own` or in one of its pools."""
    if port.offset is None:
        return f"{own}.{port.c_name}"
    return f"(void *)&{pools[port.pool]}[{port.offset}]"


def _c_text(name: str) -> str:
    """Return a tensor's name for a C string: one word, whatever characters it has."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_./:;-") else "_" for c in name)
