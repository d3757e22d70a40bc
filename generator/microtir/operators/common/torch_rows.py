"""Rows of readers of ATen: one function, the arguments it looks at, the operators it reads."""

from __future__ import annotations

from collections.abc import Callable

from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader, TorchValue

NO_MEANING = "dtype layout device pin_memory memory_format"
"""Arguments of operators that make tensors: but for the type, which results state, places."""


def readers(
    read: Callable[[TorchNode], TorchValue],
    arguments: str,
    *names: str,
    alias: Alias = Alias.NONE,
    takes_complex: bool = False,
) -> tuple[TorchReader, ...]:
    """Return the readers of several operators that one function reads.

    Args:
        read: emits the nodes.
        arguments: of all of them, with spaces between them.
        names: of the operators, without "aten."; a name without an overload has "default".
        alias: the memory of the results.
        takes_complex: whether it is made for complex numbers.
    """
    stated = tuple(arguments.split())
    full = (name if "." in name else f"{name}.default" for name in names)
    return tuple(TorchReader(f"aten.{name}", read, stated, alias, takes_complex) for name in full)
