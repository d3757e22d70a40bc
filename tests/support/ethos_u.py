"""Models as Vela writes them, with commands for the stand-in of the tests in the place of an NPU's.

The layout is that of Vela 3 to 5: an operator `ethos-u` whose inputs are commands, weights,
scratch, fast scratch (or the scratch again) and then the inputs of its layers; the metadata
`OfflineMemoryAllocation` says where tensors lie.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.writers.tflite import TfliteBuilder

Bytes: TypeAlias = npt.NDArray[np.uint8]
Floats: TypeAlias = npt.NDArray[np.float32]

SHAPE = (1, 4, 6)
SCALE = 0.5
WEIGHTS = np.arange(3, 10, dtype=np.uint8)
OPTIONS = b"\x01\x04\x01"


@dataclass(frozen=True)
class NpuModel:
    """A QUANTIZE, an operator of the NPU, and a DEQUANTIZE.

    Args:
        scratch: bytes.
        fast: bytes of a fast scratch of its own; None where the scratch is given again.
        given: where the input lies, in bytes.
        result: where the output lies.
        payload: how the commands begin.
        options: of the custom operator.
        weights: of the operator.
        has_plan: whether the file says where tensors lie.
        calls: how many operators of the NPU there are, one behind the other.
    """

    scratch: int = 128
    fast: int | None = None
    given: int = 16
    result: int = 64
    payload: bytes = b"COP1"
    options: bytes = OPTIONS
    weights: Bytes = field(default_factory=lambda: WEIGHTS)
    has_plan: bool = True
    calls: int = 1

    def file(self) -> bytes:
        """Return the bytes of the file."""
        builder = TfliteBuilder("Vela Optimised")
        places: dict[int, int] = {}
        x = builder.tensor("x", SHAPE, np.float32)
        tensors = [
            builder.tensor(
                "read_only", self.weights.shape, np.uint8,
                self.weights if self.weights.size else None,
            ),
            builder.tensor("scratch", (self.scratch,), np.uint8),
        ]  # fmt: skip
        places[tensors[1]] = 0
        if self.fast is None:
            tensors.append(tensors[1])
        else:
            tensors.append(builder.tensor("scratch_fast", (self.fast,), np.uint8))
            places[tensors[2]] = 0
        now = builder.tensor("given", SHAPE, np.int8, scales=SCALE)
        builder.operator(BuiltinOperator.QUANTIZE, [x], [now])
        before, after = self.given, self.result
        places[now] = before
        for number in range(self.calls):
            commands = self._commands(before, after)
            stream = builder.tensor(f"commands_{number}", commands.shape, np.uint8, commands)
            made = builder.tensor(f"made_{number}", SHAPE, np.int8, scales=SCALE)
            places[made] = after
            builder.custom_operator("ethos-u", [stream, *tensors, now], [made], self.options)
            now, before, after = made, after, before
        y = builder.tensor("y", SHAPE, np.float32)
        builder.operator(BuiltinOperator.DEQUANTIZE, [now], [y])
        count = y + 1
        plan = [0, 1, count, *(places.get(index, -1) for index in range(count))]
        if self.has_plan:
            builder.metadata("OfflineMemoryAllocation", np.array(plan, "<i4").tobytes())
        return builder.build([x], [y])

    def _commands(self, before: int, after: int) -> Bytes:
        code = [*self.payload, before // 16, after // 16, int(np.prod(SHAPE))]
        return np.array(code, np.uint8)


def expected(model: NpuModel, x: Floats) -> Floats:
    """Return what the stand-in makes of an input."""
    stored = np.clip(np.rint(x.reshape(-1) / SCALE), -128, 127).astype(np.int8)
    for _ in range(model.calls):
        stored = (stored.view(np.uint8) ^ np.resize(model.weights, stored.size)).view(np.int8)
    made: Floats = stored.astype(np.float32) * np.float32(SCALE)
    return made.reshape(SHAPE)
