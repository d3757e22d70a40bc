"""State which scalar types an operator takes, as signatures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from microtir.dtype import DType


@dataclass(frozen=True, slots=True)
class TypeSignature:
    """One legal combination of types; the last input type stands for all further inputs."""

    inputs: tuple[DType, ...]
    output: DType

    def matches(self, inputs: tuple[DType, ...], outputs: tuple[DType, ...]) -> bool:
        last = len(self.inputs) - 1
        expected = tuple(self.inputs[min(i, last)] for i in range(len(inputs)))
        return inputs == expected and all(dtype is self.output for dtype in outputs)

    def __str__(self) -> str:
        return f"{', '.join(dtype.value for dtype in self.inputs)} -> {self.output.value}"


@dataclass(frozen=True, slots=True)
class TypeRule:
    """The legal combinations of scalar types of an operator; None: any."""

    signatures: tuple[TypeSignature, ...] | None

    def accepts(self, inputs: tuple[DType, ...], outputs: tuple[DType, ...]) -> bool:
        """Return whether an operator takes these types."""
        signatures = self.signatures
        return signatures is None or any(s.matches(inputs, outputs) for s in signatures)

    def restricted(self, dtypes: Iterable[DType]) -> TypeRule:
        """Return the rule for tensors of these types alone."""
        known = frozenset(dtypes)
        signatures = _ANY.signatures if self.signatures is None else self.signatures
        assert signatures is not None
        return TypeRule(tuple(s for s in signatures if known.issuperset((*s.inputs, s.output))))

    @property
    def words(self) -> str:
        """Return the signatures in words, those that differ only in one type drawn together."""
        if self.signatures is None:
            return "any"
        if any(len(signature.inputs) > 1 for signature in self.signatures):
            return "; ".join(map(str, self.signatures))
        sources: dict[DType, tuple[str, ...]] = {}
        for signature in self.signatures:
            known = sources.get(signature.output, ())
            sources[signature.output] = (*known, signature.inputs[0].value)
        if all(names == (output.value,) for output, names in sources.items()):
            return "; ".join(output.value for output in sources)
        results: dict[tuple[str, ...], list[str]] = {}
        for output, names in sources.items():
            results.setdefault(names, []).append(output.value)
        return "; ".join(f"{', '.join(a)} -> {', '.join(b)}" for a, b in results.items())


def converting(*pairs: tuple[DType, DType]) -> TypeRule:
    """Take one input of a type to an output of another."""
    return TypeRule(tuple(TypeSignature((source,), result) for source, result in pairs))


def equal_types(*dtypes: DType) -> TypeRule:
    """Take any number of inputs, and give outputs, that are all of one of these types."""
    return converting(*((dtype, dtype) for dtype in dtypes))


_F32, _I8, _I32 = DType.FLOAT32, DType.INT8, DType.INT32
_ALL = (
    _F32, _I8, DType.UINT8, DType.INT16, _I32, DType.INT64, DType.BOOL,
    DType.UINT16, DType.UINT32, DType.FLOAT64,
)  # fmt: skip
_ANY = converting(*((a, b) for b in _ALL for a in _ALL))

ANY_TYPES = TypeRule(None)
"""All types in all combinations."""

COMPUTED = equal_types(_F32, _I8)
"""What operators compute in."""

MOVED = equal_types(*_ALL)
"""What operators take that compute nothing."""

WEIGHTED = TypeRule(
    (
        TypeSignature((_I8, _I8, _I32), _I8),
        TypeSignature((_F32, _F32, _F32), _F32),
        TypeSignature((_F32, _I8, _F32), _F32),
    )
)
"""Data, weights and a bias; with float data the weights may be int8 (hybrid)."""
