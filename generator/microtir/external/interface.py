"""The interface of a library of kernels, or of a code generator of others.

A Library is data: patterns of operators with the conditions under which it computes them, an
estimate of what that costs, and the C that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from microtir.config.target import Target
from microtir.errors import UsageError
from microtir.graph.ir import Array, Node, Tensor
from microtir.graph.operator import Operator
from microtir.rewrite.facts.macs import macs
from microtir.support.names import c_name
from microtir.tir.extern import CTemplate, Device, ExternSource


@dataclass(frozen=True, slots=True)
class Pattern:
    """An operator, and what makes its inputs.

    Args:
        operator: the type of the node's operator.
        inputs: in the order of the operator's inputs: a pattern where the producer belongs to the
            match, None where the input comes from outside. Fewer than the operator has leave the
            rest to the outside; the two inputs of Add and Mul match in either order.
    """

    operator: type[Operator]
    inputs: tuple[Pattern | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """The nodes that a pattern fits, in the order of the graph.

    Only the output of the last one is read outside.
    """

    nodes: tuple[Node, ...]
    target: Target

    @property
    def first(self) -> Node:
        return self.nodes[0]

    @property
    def last(self) -> Node:
        return self.nodes[-1]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return what comes from outside and is not constant, each once."""
        inside = {t for node in self.nodes for t in node.outputs}
        read = (t for node in self.nodes for t in node.inputs)
        return tuple(dict.fromkeys(t for t in read if t not in inside and not t.is_constant))

    @property
    def output(self) -> Tensor:
        return self.last.output

    @property
    def macs(self) -> int:
        return sum(macs(node) for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Code:
    """The C of one call.

    Args:
        body: statements, indented once, that leave 0 or an error in the `int32_t status`, which is
            0 before. They see the inputs as `x` (`x0`, `x1`, … if there are several), the output
            as `y`, the constants by their names, and `uint8_t *scratch`; all are pointers. Of a
            CTemplate they are printed when the program is.
        constants: arrays that are stored with the weights.
        scratch_bytes: of the workspace, aligned to 8 bytes, for this call alone.
        includes: headers in the quotes of C, as paths beside the generated sources.
        sources: whole files to compile with the program, headers among them.
        stack_bytes: what the call takes on the stack.
    """

    body: str | CTemplate
    constants: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    scratch_bytes: int = 0
    includes: tuple[str, ...] = ()
    sources: tuple[ExternSource, ...] = ()
    stack_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that a library computes in one call.

    Args:
        pattern: operators, each of which reads the output of the one before, or a Pattern where
            branches come together.
        emit: the C of a match.
        accepts: whether the library computes exactly what these nodes mean.
        cost: estimated instructions, for the choice between this and other kernels.
    """

    pattern: tuple[type[Operator], ...] | Pattern
    emit: Callable[[Match], Code]
    cost: Callable[[Match], int]
    accepts: Callable[[Match], bool] = lambda _match: True


@dataclass(frozen=True, slots=True)
class Hooks:
    """C functions ``int32_t f(void)`` around every call: to wake a device and to put it to sleep.

    `close` is called whether the call succeeded or not, but not if `open` failed.
    """

    open: str
    close: str


def device(name: str, prefix: str | None = None) -> Device:
    """Declare a device whose state an application passes to a run in the struct of devices.

    Its driver is four C functions ``int32_t f(void *context)``, named as in microTVM:
    `TVMDevice<Name>Activate`, `...Open`, `...Close` and `...Deactivate`.

    Args:
        name: lower case, for example `ethos-u`; as member of the struct, `-` becomes `_`.
        prefix: of the functions, instead of `TVMDevice<Name>`.

    Raises:
        UsageError: what becomes of the name is not a C identifier.
    """
    member = name.replace("-", "_")
    if c_name(member) != member:
        raise UsageError(
            f"'{name}' is not a valid name for a device",
            where="external.device(name)",
            legal="a C identifier, in which '-' may stand for '_'",
        )
    camel = "".join(part[:1].upper() + part[1:] for part in member.split("_"))
    stem = f"TVMDevice{camel}" if prefix is None else prefix
    return Device(member, *(f"{stem}{end}" for end in ("Activate", "Open", "Close", "Deactivate")))


@dataclass(frozen=True, slots=True)
class Library:
    """A library of kernels.

    Args:
        name: lower case; in names of C functions and files, `-` becomes `_`.
        rules: longer patterns first, and of equal ones the preferred first.
        hooks: C functions around every call that need no state of the application.
        device: what its calls run on, which the application passes to a run; they see the
            application's state of it as `void *device`.

    Raises:
        UsageError: it has hooks and a device.
    """

    name: str
    rules: tuple[Rule, ...]
    hooks: Hooks | None = None
    device: Device | None = None

    def __post_init__(self) -> None:
        if self.hooks is not None and self.device is not None:
            raise UsageError(
                f"the library '{self.name}' has both hooks and a device",
                where="external.Library",
                legal="only hooks, or only a device",
            )
