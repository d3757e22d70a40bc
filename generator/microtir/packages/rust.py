"""Says in Rust what a model is: types, names, samples."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from microtir.artifact import Artifact, Metadata
from microtir.projects.models import Models, ModelValues, PortValues
from microtir.projects.samples import SampleArray
from microtir.projects.values import Values
from microtir.support.encoding import Encoded, rust_code, rust_name_string
from microtir.support.names import macro_name

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
_ROOT = ("Error",)  # what stands in the root of a crate beside its models
_SUFFIX = re.compile(r"(?<=\d)(?:f|ull?|ll?)\b")  # of a number in C


@dataclass(frozen=True, slots=True)
class RustPort:
    """An input or output in Rust: `samples` are the lines of its values, of all runs."""

    label: str
    name: Encoded
    constant: str
    type: str
    elements: int
    shape: tuple[int, ...]
    scale: str
    zero_point: int
    all_elements: int
    is_float: bool
    samples: tuple[Encoded, ...]
    tolerance: Encoded
    names: tuple[Encoded, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class RustModel:
    """A model in Rust: whether it is given a workspace and a state, and what they are."""

    name: str
    module: Encoded
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
    def has_sequences(self) -> bool:
        """Return whether a sample is several runs, of a model with a state."""
        return self.steps > 1

    @property
    def ports(self) -> tuple[RustPort, ...]:
        return (*self.inputs, *self.outputs)


def rust_values(models: Models, artifacts: Sequence[Artifact]) -> Values:
    """Return what the templates of a crate speak of besides the common values."""
    samples = {array.name: array for array in models.sample_arrays}
    rows = zip(models.models, artifacts, rust_names(models.names, _ROOT), strict=True)
    entries = [_model(model, module, each.metadata, samples) for model, each, module in rows]
    return {"crate_models": entries}


def _model(
    model: ModelValues, module: Encoded, facts: Metadata, samples: Mapping[str, SampleArray]
) -> RustModel:
    pools = facts.memory.pools if facts.memory is not None else ()
    passed = [pool for pool in pools if not pool.is_internal]
    return RustModel(
        name=model.name,
        module=module,
        inputs=_ports(model.inputs, samples),
        outputs=_ports(model.outputs, samples),
        workspace=bool(passed),
        workspace_bytes=max((pool.size for pool in passed), default=0),
        workspace_alignment=max((pool.alignment for pool in passed), default=1),
        state=facts.state is not None,
        state_bytes=facts.state.size if facts.state is not None else 0,
        state_alignment=facts.state.alignment if facts.state is not None else 1,
        runs=model.runs,
        steps=max(model.steps, 1),
    )


def _ports(ports: Sequence[PortValues], samples: Mapping[str, SampleArray]) -> tuple[RustPort, ...]:
    names = rust_names([port.member for port in ports])
    return tuple(_port(port, name, samples) for port, name in zip(ports, names, strict=True))


def _port(port: PortValues, name: Encoded, samples: Mapping[str, SampleArray]) -> RustPort:
    array = samples.get(port.samples)
    return RustPort(
        label=port.label,
        name=name,
        constant=macro_name(port.member),
        type=_TYPES[port.c_type],
        elements=port.elements,
        shape=port.shape,
        scale=port.scale,
        zero_point=port.zero_point,
        all_elements=array.elements if array is not None else 0,
        is_float=port.c_type in ("float", "double"),
        samples=rust_lines(array.lines) if array is not None else (),
        tolerance=rust_code(port.tolerance.removesuffix("f")),
        names=tuple(rust_code(rust_name_string(name)) for name in port.names),
    )


def rust_name(name: str) -> Encoded:
    """Return an identifier of C as one of Rust."""
    if name in _NEVER_RAW:
        return rust_code(f"{name}_")
    return rust_code(f"r#{name}" if name in _WORDS else name)


def rust_names(names: Sequence[str], taken: Collection[str] = ()) -> tuple[Encoded, ...]:
    """Return distinct identifiers of C as distinct ones of Rust, none of which is `taken`.

    What stands in a module or a struct of its own may be called as a name of the library or as a
    type, `core`, `Result` or `u8`: nothing else is looked up there.
    """
    used = {*taken, *names}
    all_names = []
    for each in names:
        name = rust_name(each)
        if each in (*taken, *_NEVER_RAW):
            name = rust_code(next(longer for longer in _lengthened(each) if longer not in used))
            used.add(name)
        all_names.append(name)
    return tuple(all_names)


def _lengthened(name: str) -> Iterator[str]:
    while True:
        name = f"{name}_"
        yield name


def rust_lines(lines: Sequence[str]) -> tuple[Encoded, ...]:
    """Return the lines of a C array's values as those of an array in Rust."""
    return tuple(rust_code(_SUFFIX.sub("", line)) for line in lines)
