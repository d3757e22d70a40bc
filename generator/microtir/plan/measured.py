"""Measured costs of kernels, which planning prefers to estimates.

A record says what one kernel took for one operator on one target, in instructions and in cycles
that were estimated from those that ran (on an AVR, counted).  An operator is
known by its attributes and by shapes, types and zero points of its tensors: what a kernel costs
depends on nothing else that a model holds.  (The values of weights decide which kernels are legal;
what is not offered is not asked for.)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

from microtir.config import CompilationConfig
from microtir.errors import DataFileError
from microtir.graph.ir import Node, Tensor
from microtir.plan import ir
from microtir.plan.ir import Candidate
from microtir.support.reading import WrongDataError, parse_json

_FORMAT = "microtir tuning records"
_VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A kernel of an operator, and the layouts that it reads and writes."""

    operator: str
    kernel: str


@dataclass(frozen=True, slots=True)
class Cost:
    """The measured cost of a kernel; older files have no cycles."""

    instructions: int
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs by kernel and operator, on one target."""

    target: str
    costs: Mapping[Key, Cost]

    def applied(self, node: Node, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates with measured costs where there are some."""
        name = signature(node)
        return tuple(self._known(c, Key(name, c.name)) for c in candidates)

    def _known(self, candidate: Candidate, key: Key) -> Candidate:
        known = self.costs.get(key)
        if known is None:
            return candidate
        # Whatever the calls, it costs as much more as it was estimated to.
        whole = candidate.cost()
        estimate = max(whole.instructions, 1)
        cycles = known.cycles
        if cycles is None:
            cycles = known.instructions * whole.cycles // estimate

        def measured(calls: ir.Calls) -> int:
            guess = candidate.cost(calls).instructions
            return max(known.instructions, known.instructions * guess // estimate)

        return replace(
            candidate,
            costs=ir.spread(known.instructions, cycles, measured),
            is_measured=True,
        )

    def joined(self, more: Mapping[Key, Cost]) -> Measured:
        """Join more records, which replace older ones of the same kernels."""
        return Measured(self.target, MappingProxyType({**self.costs, **more}))

    def to_text(self) -> str:
        """Return the file: the same records give the same bytes."""
        records = [
            {
                "operator": key.operator,
                "kernel": key.kernel,
                "instructions": cost.instructions,
                **({} if cost.cycles is None else {"cycles": cost.cycles}),
            }
            for key, cost in sorted(self.costs.items(), key=lambda item: item[0])
        ]
        head = {"format": _FORMAT, "version": _VERSION, "target": self.target}
        return json.dumps({**head, "records": records}, indent=1) + "\n"

    @staticmethod
    def of(config: CompilationConfig, kernels: Collection[str]) -> Measured | None:
        """Return records that a configuration names, if it does.

        Arguments and errors as of `read`.
        """
        if not config.tuning_records:
            return None
        target = str(config.primary_target())
        return Measured.read(Path(config.tuning_records), target, kernels)

    @staticmethod
    def read(path: Path, target: str, kernels: Collection[str] | None = None) -> Measured:
        """Return the records in a file.

        Args:
            path: of the file.
            target: that the records must be about.
            kernels: names that the records may have; None: any.

        Raises:
            DataFileError: the file cannot be read, is of another format or target, or is damaged.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # no UTF-8, or a zero in the name
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise _refused(path, f"the tuning records cannot be read: {reason}") from None
        try:
            data = parse_json(text)
        except WrongDataError as error:
            raise _refused(path, f"the tuning records: {error.what}") from None
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise _refused(path, "the file contains no tuning records")
        if data.get("version") != _VERSION:
            raise _refused(path, f"the tuning records have version {data.get('version')}")
        if data.get("target") != target:
            raise DataFileError(
                f"the tuning records were measured for the target '{data.get('target')}'",
                where=str(path),
                legal=f"records for '{target}', the target of this compilation",
                fix="run `microtir tune` for a board with this CPU, or leave out the records",
            )
        return Measured(target, MappingProxyType(_costs(path, data.get("records"), kernels)))


def _costs(path: Path, records: object, kernels: Collection[str] | None) -> dict[Key, Cost]:
    costs: dict[Key, Cost] = {}
    for number, record in enumerate(records if isinstance(records, list) else [None]):
        values = record if isinstance(record, dict) else {}
        name, kernel = values.get("operator"), values.get("kernel")
        instructions, cycles = values.get("instructions"), values.get("cycles")
        if not isinstance(name, str) or not isinstance(kernel, str):
            raise _refused(path, f"record {number} names no operator and kernel")
        # Layouts follow the name of a kernel.
        if kernels is not None and kernel.partition(" ")[0] not in kernels:
            raise _refused(path, f"record {number} names '{kernel}', which no longer exists")
        if not _is_count(instructions):
            raise _refused(path, f"record {number} has no number of instructions")
        if cycles is not None and not _is_count(cycles):
            raise _refused(path, f"record {number} has cycles that are not numbers")
        costs[Key(name, kernel)] = Cost(instructions, cycles)
    return costs


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _refused(path: Path, what: str) -> DataFileError:
    return DataFileError(
        what,
        where=str(path),
        legal=f"a file that `microtir tune` wrote, version {_VERSION}",
        fix="write the file again with `microtir tune MODEL --board BOARD --records FILE`",
    )


def signature(node: Node) -> str:
    """Return what measured costs know an operator by."""
    tensors = [*node.inputs, *node.outputs]
    return f"{node.op!r} {' '.join(map(_described, tensors))}"


def _described(tensor: Tensor) -> str:
    type_ = tensor.type
    text = f"{type_.dtype.value}{list(type_.shape)}".replace(" ", "")
    if tensor.is_constant:
        return f"const:{text}"
    quantization = type_.quantization
    if quantization is None or quantization.is_per_channel:
        return text
    return f"{text}@{quantization.zero_point}"
