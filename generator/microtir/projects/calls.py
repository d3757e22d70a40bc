"""Describes how a project's application calls a model: by structs, or with packed arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.artifact import Artifact, Metadata, runtime_dtype
from microtir.config.enums import CallingConvention
from microtir.dtype import DType
from microtir.module.ir_module import Port
from microtir.projects.pools import ConstantValues, PoolValues
from microtir.support.encoding import Encoded, c_code

_BYTES_PER_LINE = 16


@dataclass(frozen=True, slots=True)
class PackedTensor:
    """A tensor among packed arguments: texts of C."""

    data: Encoded
    rank: int
    dtype: Encoded
    shape: Encoded


@dataclass(frozen=True, slots=True)
class RunCall:
    """The arguments that the application passes to a run of a model.

    Args:
        arguments: of the C interface.
        alone: the same, for an application with one model.
        packed: of the packed interface; empty where the model has the other.
        parameters: whether the weights are a file, which becomes a part of the program.
        devices: whether a struct of devices is passed.
    """

    arguments: Encoded
    alone: Encoded
    packed: tuple[PackedTensor, ...]
    parameters: bool
    devices: bool

    @property
    def resource(self) -> Encoded:
        """Return what a packed function is given besides its tensors."""
        return c_code("(void *)(uintptr_t)&devices" if self.devices else "NULL")


def call_of(
    artifact: Artifact,
    ports: Sequence[tuple[Port, str]],
    pools: Sequence[PoolValues],
    constants: Sequence[ConstantValues],
) -> RunCall:
    """Describe how a model is called.

    Args:
        artifact: the model.
        ports: its tensors, and for each a pointer to it as text of C.
        pools: the memories that it is given.
        constants: the constant pools that it is given.
    """
    config = artifact.module.require_config("project")
    facts, name = artifact.metadata, artifact.metadata.module_name
    is_external = facts.parameters is not None
    rest = [pool.argument for pool in constants]
    rest += [f"{name}_parameters"] * is_external + ["&devices"] * bool(facts.devices)
    rest += [str(facts.images)] * config.executor.batch_count  # all entries of the batch
    rest += ["NULL"] * config.executor.guard_inputs  # counts nothing
    packed = config.entry_calling_convention() is CallingConvention.PACKED
    has_state = facts.state is not None
    arguments = ["&inputs", "&outputs", *[f"&state_of_{name}"] * has_state]
    alone = ["&inputs", "&outputs", *["&state"] * has_state]
    return RunCall(
        c_code(", ".join([*arguments, *(pool.place for pool in pools), *rest])),
        c_code(", ".join([*alone, *(pool.argument for pool in pools), *rest])),
        tuple(_packed(facts, ports, pools, constants)) if packed else (),
        is_external,
        bool(facts.devices),
    )


def _packed(
    facts: Metadata,
    ports: Sequence[tuple[Port, str]],
    pools: Sequence[PoolValues],
    constants: Sequence[ConstantValues],
) -> Iterator[PackedTensor]:
    name, parameters = facts.module_name, facts.parameters
    for port, place in ports:
        shape = c_code(", ".join(map(str, port.type.shape)))
        yield PackedTensor(
            c_code(place), len(port.type.shape), c_code(runtime_dtype(port.type.dtype)), shape
        )
    byte = c_code(runtime_dtype(DType.UINT8))
    if facts.state is not None:
        yield PackedTensor(c_code(f"&state_of_{name}"), 1, byte, c_code(str(facts.state.size)))
    for pool in pools:
        yield PackedTensor(c_code(pool.place), 1, byte, c_code(str(max(pool.bytes, 1))))
    passed = [(pool.argument, pool.bytes) for pool in constants]
    if parameters is not None:
        passed.append((f"{name}_parameters", parameters.bytes))
    for place, size in passed:
        data = c_code(f"(void *)(uintptr_t){place}")
        yield PackedTensor(data, 1, byte, c_code(str(max(size, 1))))


def byte_lines(content: bytes) -> list[Encoded]:
    """Return the elements of an array of bytes, in lines."""
    rows = (content[i : i + _BYTES_PER_LINE] for i in range(0, len(content), _BYTES_PER_LINE))
    return [c_code(" ".join(f"{byte}," for byte in row)) for row in rows]
