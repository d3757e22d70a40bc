"""State which scalar types an operator takes, as signatures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from microtir.dtype import DType


@dataclass(frozen=True, slots=True)
class TypeSignature:
    """One legal combination of types; the last input type stands for all further inputs.

    `more` are the types of further outputs; without them all outputs have one type.
    """

    inputs: tuple[DType, ...]
    output: DType
    more: tuple[DType, ...] = ()

    def matches(self, inputs: tuple[DType, ...], outputs: tuple[DType, ...]) -> bool:
        last = len(self.inputs) - 1
        expected = tuple(self.inputs[min(i, last)] for i in range(len(inputs)))
        results = (self.output, *self.more) if self.more else (self.output,) * len(outputs)
        return inputs == expected and outputs == results

    def __str__(self) -> str:
        return f"{_listed(self.inputs)} -> {_listed((self.output, *self.more))}"


def _listed(dtypes: tuple[DType, ...]) -> str:
    """Return names of types; many equal ones in a row are counted."""
    runs = [(dtype.value, len(tuple(run))) for dtype, run in groupby(dtypes)]
    return ", ".join(
        f"{count} {name}" if count > _MOST_LISTED else ", ".join([name] * count)
        for name, count in runs
    )


_MOST_LISTED = 3


@dataclass(frozen=True, slots=True)
class TypeRule:
    """The legal combinations of scalar types of an operator; None: any.

    Inputs from number `indices_from` on are indices, of which the signatures do not speak.
    """

    signatures: tuple[TypeSignature, ...] | None
    indices_from: int | None = None
    indices: tuple[DType, ...] = ()

    def accepts(self, inputs: tuple[DType, ...], outputs: tuple[DType, ...]) -> bool:
        """Return whether an operator takes these types."""
        signatures = self.signatures
        data, indices = inputs[: self.indices_from], inputs[len(inputs[: self.indices_from]) :]
        if any(dtype not in self.indices for dtype in indices):
            return False
        return signatures is None or any(s.matches(data, outputs) for s in signatures)

    def restricted(self, dtypes: Iterable[DType]) -> TypeRule:
        """Return the rule for tensors of these types alone."""
        known = frozenset(dtypes)
        signatures = _ANY.signatures if self.signatures is None else self.signatures
        assert signatures is not None
        allowed = tuple(s for s in signatures if known.issuperset((*s.inputs, s.output, *s.more)))
        return replace(self, signatures=allowed)

    def indexed(self, first: int, *dtypes: DType) -> TypeRule:
        """Return the rule with inputs from number `first` on that are indices of these types."""
        return replace(self, indices_from=first, indices=dtypes)

    def also(self, *signatures: TypeSignature) -> TypeRule:
        """Return the rule with further signatures."""
        assert self.signatures is not None
        return replace(self, signatures=(*self.signatures, *signatures))

    @property
    def words(self) -> str:
        """Return the signatures in words, those that differ only in one type drawn together."""
        if self.indices_from is not None:
            data = replace(self, indices_from=None, indices=())
            return f"{data.words}; indices {' or '.join(dtype.value for dtype in self.indices)}"
        if self.signatures is None:
            return "any"
        if any(len(s.inputs) > 1 or s.more for s in self.signatures):
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


_F32, _I8, _I16, _I32, _I64 = (
    DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
)  # fmt: skip
ALL_TYPES = (
    _F32, _I8, DType.UINT8, _I16, _I32, _I64, DType.BOOL,
    DType.UINT16, DType.UINT32, DType.UINT64, DType.FLOAT64,
)  # fmt: skip
_ANY = converting(*((a, b) for b in ALL_TYPES for a in ALL_TYPES))

QUANTISED = frozenset({_I8, DType.INT16})
"""Types whose values stand for real ones; wider integers are counts and indices."""

ANY_TYPES = TypeRule(None)
"""All types in all combinations."""

COMPUTED = equal_types(_F32, _I8)
"""Types that operators compute in."""

COMPUTED_16 = equal_types(_F32, _I8, _I16)
"""Types of operators that compute in int16 activations, too."""

MOVED = equal_types(*ALL_TYPES)
"""Types of operators that only move data."""

WEIGHTED_LONG = TypeRule(
    (
        TypeSignature((_I8, _I8, _I32), _I8),
        TypeSignature((_I8, _I16, _I32), _I8),
        TypeSignature((_F32, _F32, _F32), _F32),
        TypeSignature((_F32, _I8, _F32), _F32),
        TypeSignature((_I16, _I8, _I64), _I16),
    )
)
"""Types of data, weights and a bias; with float data the weights may be int8 (hybrid).

Weights of int16 are such of 8 bits less a zero point: see `common.centred_weights`.
"""

WEIGHTED = WEIGHTED_LONG.also(TypeSignature((_I16, _I8, _I32), _I16))
"""Types of WEIGHTED_LONG; int16 data may have an int32 bias, and are then added in 32 bits."""

WEIGHTED_TRANSPOSED = TypeRule(
    (
        TypeSignature((_I8, _I8, _I32), _I8),
        TypeSignature((_I8, _I16, _I32), _I8),
        TypeSignature((_F32, _F32, _F32), _F32),
        TypeSignature((_I16, _I8, _I64), _I16),
        TypeSignature((_I16, _I8, _I16), _I16),
    )
)
"""Types of WEIGHTED_LONG without hybrid forms; int16 data may have an int16 bias."""
