"""Says in Rust what a model is: types, names, samples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from microtir.artifact import Artifact, Metadata
from microtir.config.names import macro_name
from microtir.projects.models import Models, ModelValues, PortValues
from microtir.projects.samples import SampleArray
from microtir.projects.values import Values
from microtir.support.encoding import Encoded, rust_code

_TYPES: Mapping[str, str] = MappingProxyType({
    "int8_t": "i8", "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32",
    "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "float": "f32", "double": "f64",
})  # fmt: skip

# Strict and reserved words of the edition of 2021, and those that have no raw form.
_WORDS = frozenset(
    word
    for line in (
        "as async await break const continue dyn else enum extern false fn for if impl in let loop",
        "match mod move mut pub ref return static struct trait true type unsafe use where while",
        "abstract become box do final macro override priv try typeof unsized virtual yield",
    )
    for word in line.split()
)
_NEVER_RAW = frozenset(("self", "Self", "super", "crate"))
_SUFFIX = re.compile(r"(?<=\d)(?:f|ull?|ll?)\b")  # of a number in C


@dataclass(frozen=True, slots=True)
class RustPort:
    """An input or output in Rust: `samples` are the lines of its values, of all runs."""

    label: str
    name: str
    constant: str
    type: str
    elements: int
    all_elements: int
    is_float: bool
    samples: tuple[Encoded, ...]
    tolerance: Encoded


@dataclass(frozen=True, slots=True)
class RustModel:
    """A model in Rust: whether it is given a workspace and a state, and what they are."""

    name: str
    module: str
    inputs: tuple[RustPort, ...]
    outputs: tuple[RustPort, ...]
    workspace: bool
    workspace_bytes: int
    workspace_alignment: int
    state: bool
    state_bytes: int
    state_alignment: int
    runs: int
    steps: int

    @property
    def ports(self) -> tuple[RustPort, ...]:
        return (*self.inputs, *self.outputs)


def rust_values(models: Models, artifacts: Sequence[Artifact]) -> Values:
    """Return what the templates of a crate speak of besides the common values."""
    samples = {array.name: array for array in models.sample_arrays}
    pairs = zip(models.models, artifacts, strict=True)
    return {"crate_models": [_model(model, a.metadata, samples) for model, a in pairs]}


def _model(model: ModelValues, facts: Metadata, samples: Mapping[str, SampleArray]) -> RustModel:
    pools = facts.memory.pools if facts.memory is not None else ()
    given = [pool for pool in pools if not pool.is_internal]
    return RustModel(
        name=model.name,
        module=rust_name(model.name),
        inputs=tuple(_port(port, samples) for port in model.inputs),
        outputs=tuple(_port(port, samples) for port in model.outputs),
        workspace=bool(given),
        workspace_bytes=max((pool.size for pool in given), default=0),
        workspace_alignment=max((pool.alignment for pool in given), default=1),
        state=facts.state is not None,
        state_bytes=facts.state.size if facts.state is not None else 0,
        state_alignment=facts.state.alignment if facts.state is not None else 1,
        runs=model.runs,
        steps=max(model.steps, 1),
    )


def _port(port: PortValues, samples: Mapping[str, SampleArray]) -> RustPort:
    array = samples.get(port.samples)
    return RustPort(
        label=port.label,
        name=rust_name(port.member),
        constant=macro_name(port.member),
        type=_TYPES[port.c_type],
        elements=port.elements,
        all_elements=array.elements if array is not None else 0,
        is_float=port.c_type in ("float", "double"),
        samples=rust_lines(array.lines) if array is not None else (),
        tolerance=rust_code(port.tolerance.removesuffix("f")),
    )


def rust_name(name: str) -> str:
    """Return an identifier of C as one of Rust."""
    if name in _NEVER_RAW:
        return f"{name}_"
    return f"r#{name}" if name in _WORDS else name


def rust_lines(lines: Sequence[str]) -> tuple[Encoded, ...]:
    """Return the lines of a C array's values as those of an array in Rust."""
    return tuple(rust_code(_SUFFIX.sub("", line)) for line in lines)
