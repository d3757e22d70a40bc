"""Checks that the texts of a model are texts: the package `onnx` gives bytes where they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from microtir.errors import ModelFileError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

_UNREAD = "doc_string"


def check_texts(model: Message, file: str) -> None:
    """Refuse a model with a name or another text that is no UTF-8.

    Raises:
        ModelFileError: names the field.
    """
    for message, field, text in _texts(model):
        if isinstance(text, bytes):
            raise ModelFileError(
                f"{message.DESCRIPTOR.name}: the field '{field}' is not text: {text[:40]!a}",
                where=file,
                legal="UTF-8",
                fix="export or download the model again; the file is damaged",
            )


def _texts(message: Message) -> Iterator[tuple[Message, str, str | bytes]]:
    for name, is_message, is_repeated in _fields(message.DESCRIPTOR):
        if not is_repeated and not message.HasField(name):
            continue
        value = getattr(message, name)
        for item in value if is_repeated else (value,):
            if is_message:
                yield from _texts(item)
            else:
                yield message, name, item


@cache
def _fields(kind: Descriptor) -> Sequence[tuple[str, bool, bool]]:
    """Return the fields of a kind that are texts, or messages which may hold some."""
    rows: list[tuple[str, bool, bool]] = []
    fields: Sequence[Any] = kind.fields
    for field in fields:
        is_message = field.type == field.TYPE_MESSAGE
        if (is_message or field.type == field.TYPE_STRING) and field.name != _UNREAD:
            # In the second version of the language, only what is repeated has no presence.
            rows.append((field.name, is_message, not field.has_presence))
    return tuple(rows)
