"""Reads a model and tells what it is, or everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.frontend import inspect
from microtir.frontend.inspect import TensorSummary
from microtir.studio.events import Emit
from microtir.studio.models import ModelFile


@dataclass(frozen=True, slots=True)
class Inspection:
    """A look at a model file."""

    model: ModelFile

    def run(self, emit: Emit) -> None:
        """Tell sizes, inputs and outputs; of integers that were made here also what they cost."""
        inspection = inspect(self.model.read())
        facts = [
            f"{inspection.source_bytes:,} bytes",
            f"{len(inspection.layers):,} layers",
            f"{inspection.parameters:,} parameters",
            f"{inspection.macs:,} multiply-accumulates",
            *(f"input {_text(tensor)}" for tensor in inspection.inputs),
            *(f"output {_text(tensor)}" for tensor in inspection.outputs),
        ]
        cost = self.model.cost.read_text("utf-8") if self.model.origin is not None else None
        emit({"event": "model", "facts": facts, "cost": cost})


def _text(tensor: TensorSummary) -> str:
    extents = "x".join(map(str, tensor.shape)) or "scalar"
    return f"{tensor.name}: {tensor.dtype} {extents}"
