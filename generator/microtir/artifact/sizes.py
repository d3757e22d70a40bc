"""Checks sizes and shapes in metadata that were read: they fit each other, and memory."""

from __future__ import annotations

import math

from microtir.codegen import Metadata
from microtir.codegen.metadata import PortData, StateData, StateMemberData
from microtir.dtype import DType
from microtir.support.reading import WrongDataError, check, parse_json
from microtir.tir.memory_plan import StateLayout

MAX_RANK = 16
MAX_TENSOR = 256 * 2**20  # bytes: no archive has more
MAX_PORTS = 1000


def read_metadata(content: bytes) -> Metadata:
    """Return what `metadata.json` of exported sources, or of a project's model, holds.

    Raises:
        WrongDataError: a value is not what microtir writes there.
    """
    return checked_metadata(parse_json(content))


def checked_metadata(value: object, place: str = "") -> Metadata:
    """Return the metadata that a value of JSON is.

    Raises:
        WrongDataError: it is not what microtir writes there; `place` is where it stands.
    """
    facts: Metadata = check(value, Metadata, place)
    check_sizes(facts)
    return facts


def check_sizes(facts: Metadata) -> None:
    """Check what types cannot say of the tensors that a program takes and gives.

    Raises:
        WrongDataError: names the port.
    """
    if len(facts.ports) > MAX_PORTS:
        raise WrongDataError(f"there are {len(facts.ports)} ports", legal=f"up to {MAX_PORTS}")
    for number, port in enumerate(facts.ports):
        _check_port(port, facts, f"ports[{number}]")
    if facts.state is not None:
        _check_state(facts.state)


def _check_state(state: StateData) -> None:
    """Check that the members lie in the struct as C lays it out."""
    if len(state.members) > MAX_PORTS:
        raise WrongDataError(f"the state has {len(state.members)} members",
                             legal=f"up to {MAX_PORTS}")  # fmt: skip
    for number, member in enumerate(state.members):
        _check_tensor(member, f"state.members[{number}]")
    layout = StateLayout.of([(m.alignment, m.bytes) for m in state.members])
    offsets = tuple(member.offset for member in state.members)
    if (offsets, state.size, state.alignment) != (layout.offsets, layout.size, layout.alignment):
        legal = f"{layout.size} bytes aligned to {layout.alignment}"
        raise WrongDataError("'state' is not a struct of its members", legal=legal)


def _check_tensor(tensor: PortData | StateMemberData, place: str) -> int:
    if len(tensor.shape) > MAX_RANK:
        raise WrongDataError(f"'{place}.shape' has {len(tensor.shape)} extents",
                             legal=f"at most {MAX_RANK}")  # fmt: skip
    # Of sixteen extents of 31 bits; larger products would only make the reader slow.
    size = math.prod(tensor.shape) * DType(tensor.dtype).bytes
    if size != tensor.bytes or size > MAX_TENSOR:
        raise WrongDataError(
            f"'{place}' is a tensor of {size} bytes, and 'bytes' is {tensor.bytes}",
            legal=f"the same number, at most {MAX_TENSOR}",
        )
    return size


def _check_port(port: PortData, facts: Metadata, place: str) -> None:
    size, several = _check_tensor(port, place), port.channel_quantization
    if several is not None:
        extents = [*port.shape[several.axis : several.axis + 1], len(several.zero_points)]
        if extents != [len(several.scales)] * 2:
            raise WrongDataError(f"'{place}.channel_quantization' has {len(several.scales)} scales",
                                 legal="one for each index of 'axis'")  # fmt: skip
    if port.offset is None:
        return
    pools = facts.memory.pools if facts.memory else []
    sizes = {pool.name: pool.size for pool in pools}
    if port.pool not in sizes or port.offset + size > sizes[port.pool]:
        raise WrongDataError(f"'{place}' does not lie in a pool of the workspace")
