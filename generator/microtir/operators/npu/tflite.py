"""Read the operators that compilers for NPUs write into TFLite files."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.graph.names import brief
from microtir.operators.common.tflite_operands import MANY, Converted, Operands, TfliteReader
from microtir.operators.npu.definition import EthosU

ETHOS_U = "ethos-u"
"""The name that Vela gives its operator."""

COMMANDS, WEIGHTS, SCRATCH, FAST_SCRATCH, FIRST_INPUT = range(5)
"""The inputs of the operator, as Vela writes them."""

_PAYLOAD = b"COP1"
_OTHER_PAYLOAD = b"COP2"
_KIND = 1  # of the custom operator: commands for an Ethos-U


def ethos_u(operands: Operands) -> Converted:
    """Read commands, weights, scratch and fast scratch, and then the inputs of the layers."""
    _check_kind(operands)
    commands = _commands(operands)
    weights = operands.input(WEIGHTS)
    if weights.data is None:
        raise operands.malformed(f"its weights {brief(weights.name)!r} are not constant")
    has_weights = weights.type.bytes > 0
    inputs = operands.present[FIRST_INPUT:]
    if operands.variables:
        raise operands.unsupported(
            "it reads a variable tensor, which the NPU would have to change",
            "NPU operators without state",
            "keep layers with state on the CPU (--ignore-ops of Vela)",
        )
    op = EthosU(
        scratch=_scratch(operands, SCRATCH),
        fast_scratch=_fast_scratch(operands),
        has_weights=has_weights,
        operands=tuple(_place(operands, n + FIRST_INPUT, t) for n, t in enumerate(inputs)),
        results=tuple(
            _place(operands, n + len(operands.inputs), t) for n, t in enumerate(operands.outputs)
        ),
    )
    return Converted(op, (commands, *([weights] if has_weights else []), *inputs))


def _check_kind(operands: Operands) -> None:
    """Check the options: one number in FlexBuffers' format, which ends in its type and width."""
    options = operands.custom_options
    is_integer = len(options) >= 3 and options[-2] >> 2 in (1, 2)
    if not is_integer or int.from_bytes(options[:-2], "little") != _KIND:
        raise operands.malformed(f"its options are {options[:8].hex(' ') or 'empty'}", "01 04 01")


def _commands(operands: Operands) -> Tensor:
    commands = operands.input(COMMANDS)
    if commands.data is None or commands.dtype is not DType.UINT8:
        raise operands.malformed(
            f"its commands {brief(commands.name)!r} are {commands.dtype.value}"
            f"{'' if commands.is_constant else ', and no constant'}",
            "a constant of uint8",
        )
    start = commands.data.tobytes()[: len(_PAYLOAD)]
    if start == _OTHER_PAYLOAD:
        raise operands.unsupported(
            "its payload is COP2", "COP1", "run Vela without --cop-format COP2"
        )
    if start != _PAYLOAD:
        raise operands.malformed(f"its payload begins with {start!r}", repr(_PAYLOAD))
    return commands


def _scratch(operands: Operands, index: int) -> int:
    tensor = operands.input(index)
    if tensor.dtype not in (DType.UINT8, DType.INT8) or (
        tensor.type.elements and tensor.is_constant
    ):
        raise operands.malformed(
            f"its scratch {brief(tensor.name)!r} is {tensor.dtype.value}"
            f"{', and a constant' if tensor.is_constant else ''}",
            "bytes without content before a run",
        )
    return tensor.type.bytes


def _fast_scratch(operands: Operands) -> int:
    """Return the bytes of the fast scratch; 0 where it is the scratch."""
    if operands.input(FAST_SCRATCH) is operands.input(SCRATCH):
        return 0
    return _scratch(operands, FAST_SCRATCH)


def _place(operands: Operands, position: int, tensor: Tensor) -> int:
    """Return the byte of the scratch at which Vela placed a tensor."""
    offset = operands.offsets[position] if position < len(operands.offsets) else -1
    if offset < 0:
        raise operands.malformed(
            f"the file does not say where {brief(tensor.name)!r} lies in the scratch",
            "the metadata OfflineMemoryAllocation, which Vela writes",
        )
    return offset


READERS = (TfliteReader(EthosU, ETHOS_U, ethos_u, inputs=(FIRST_INPUT + 1, MANY), outputs=MANY),)
