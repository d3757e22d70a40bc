"""Runs samples on this machine: each begins with the state that the model file gives."""

from __future__ import annotations

from microtir.host.model import Model
from microtir.host.samples import SampleBatch
from microtir.host.tensors import Array


def run_samples(model: Model, samples: SampleBatch) -> list[dict[str, Array]]:
    """Return the outputs of every run of every sample.

    Raises:
        RunError: as for `Model.run`.
    """
    outputs = []
    for runs in samples.samples():
        model.reset()
        outputs += model.run_sequence(runs)
    return outputs
