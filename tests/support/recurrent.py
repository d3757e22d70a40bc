"""Sequences of runs for models of one recurrent layer."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array
from tests.support.sketch import Case

RUNS = 50


def steps_of(case: Case, runs: int = RUNS) -> list[Array]:
    """Inputs of some runs, of the type and shape of the case's input."""
    (x,), rng = case.inputs, np.random.default_rng(len(case.name))
    if x.dtype.kind == "f":
        return [rng.standard_normal(x.shape).astype(x.dtype) for _ in range(runs)]
    info = np.iinfo(x.dtype)
    return [rng.integers(info.min, info.max + 1, x.shape).astype(x.dtype) for _ in range(runs)]
