"""Holds the state of one user of a model: what a run leaves for the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from microtir.artifact import StateData
from microtir.errors import RunError
from microtir.host.backend import Backend
from microtir.host.tensors import Array, aligned

_POISON = 0xA5  # what memory holds before the C initialises it


@dataclass(slots=True)
class Instance:
    """A state in memory of its own; of a model that keeps nothing it has none.

    Runs that share it take turns.

    Args:
        backend: calls the C functions of the state.
        facts: the struct, None for a model that keeps nothing.
        name: of the module, for diagnostics.
    """

    backend: Backend
    facts: StateData | None
    name: str
    _memory: Array | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def used(self) -> Iterator[Array | None]:
        """Have the state for a run, and nobody else; None for a model that keeps nothing."""
        if self.facts is None:
            yield None
            return
        with self._turn:
            yield self._begun(self.facts)

    def reset(self) -> None:
        """Forget what was seen."""
        with self._turn:
            self._memory = None

    def save(self) -> bytes:
        """Return the state as bytes; none of a model that keeps nothing."""
        if self.facts is None:
            return b""
        saved = np.full(self.facts.saved_size, _POISON, np.uint8)
        with self._turn:
            self._call("save", self._begun(self.facts), saved)
        return saved.tobytes()

    def values(self) -> dict[str, Array]:
        """Return the values that the state holds, by their members of the C struct."""
        if self.facts is None:
            return {}
        with self._turn:
            memory = self._begun(self.facts)
            return {
                member.member: memory[member.offset : member.offset + member.bytes]
                .view(member.dtype)
                .reshape(member.shape)
                .copy()
                for member in self.facts.members
            }

    def restore(self, saved: bytes) -> None:
        """Take a state that was saved.

        Raises:
            RunError: it is that of another model, or none.
        """
        if self.facts is None:
            if saved:
                raise RunError(
                    "the model has no state",
                    where=f"Model.restore of {self.name}",
                    legal="no bytes",
                )
            return
        stored = np.frombuffer(saved or b"\0", np.uint8).copy()
        memory = self._empty(self.facts)
        with self._turn:
            self._call("restore", memory, stored, len(saved))
            self._memory = memory

    def _begun(self, facts: StateData) -> Array:
        """Return the memory of the state, which the C initialises when it is first used."""
        if self._memory is None:
            memory = self._empty(facts)
            self._call("init", memory)
            self._memory = memory
        return self._memory

    @staticmethod
    def _empty(facts: StateData) -> Array:
        return aligned(facts.size, facts.alignment, _POISON)

    def _call(self, operation: str, *arguments: Array | int) -> None:
        status = self.backend.call_state(operation, arguments)
        if status != 0:
            raise RunError(
                f"the state was refused with status {status}: {self.backend.status_text(status)}",
                where=f"{self.name}_state_{operation}",
                legal="a state that this model saved",
            )
