"""Changing the bytes of a model file in a known place."""

from __future__ import annotations

import struct


class Patched:
    """A model file whose fields can be found and overwritten.

    Tables are found by paths of slots from the root table: a slot of a table, or the index of an
    element of a vector of tables where the step before was a vector.
    """

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def number(self, position: int, form: str = "<I") -> int:
        return int(struct.unpack_from(form, self.data, position)[0])

    def root(self) -> int:
        """Position of the root table."""
        return self.number(0)

    def layout(self, table: int) -> int:
        """Position of a table's layout (its vtable)."""
        return table - self.number(table, "<i")

    def field(self, table: int, slot: int) -> int:
        """Position of a field that is stored."""
        offset = self.number(self.layout(table) + 4 + 2 * slot, "<H")
        assert offset
        return table + offset

    def target(self, table: int, slot: int) -> int:
        """Position of what a field refers to."""
        position = self.field(table, slot)
        return position + self.number(position)

    def item(self, table: int, slot: int, index: int) -> int:
        """Position of an element of a vector of tables."""
        position = self.target(table, slot) + 4 + 4 * index
        return position + self.number(position)

    def graph(self) -> int:
        return self.item(self.root(), 2, 0)

    def tensor(self, index: int) -> int:
        return self.item(self.graph(), 0, index)

    def operator(self, index: int) -> int:
        return self.item(self.graph(), 3, index)

    def put(self, position: int, value: float, form: str = "<I") -> Patched:
        """Overwrite one number."""
        struct.pack_into(form, self.data, position, value)
        return self

    @property
    def bytes(self) -> bytes:
        return bytes(self.data)
