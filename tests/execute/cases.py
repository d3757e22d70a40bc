"""Random single-operator models, compiled together and compared with the numpy reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import microtir
from microtir import CompilationConfig, Target
from microtir.graph.ir import Array
from microtir.rewrite.reference import execute
from microtir.support.names import module_name_from
from tests.support.batch import load_batch
from tests.support.operator_cases import OPERATORS, generate
from tests.support.sketch import Case

CONFIG = CompilationConfig.from_target(Target("c"))


def cases_of(operator: str, dtypes: Sequence[str], seeds: range) -> list[Case]:
    """Models of one operator over its types and seeds, which types share that are only moved."""
    shared = OPERATORS[operator].moves
    return [
        generate(operator, seed, dtype)
        for number, dtype in enumerate(dtypes)
        for seed in (seeds[number % len(seeds) :: len(dtypes)] if shared else seeds)
    ]


def compile_case(case: Case, config: CompilationConfig = CONFIG) -> microtir.Artifact:
    """The C of a case; its module is named after the case."""
    module = microtir.frontend.from_tflite(case.model, name=case.name)
    return microtir.build(module, config.with_(module_name=module_name_from(case.name)))


def _largest(arrays: Iterable[Array]) -> float:
    """Return the largest magnitude of finite floats, at least 1."""
    floats = [values for values in arrays if np.issubdtype(values.dtype, np.floating)]
    return max([1.0, *(float(np.abs(v[np.isfinite(v)]).max(initial=0)) for v in floats)])


def compare(
    cases: Sequence[Case],
    folder: Path,
    flags: Sequence[str] = (),
    config: CompilationConfig = CONFIG,
) -> None:
    """Run all cases in C and compare every output with the reference.

    Raises:
        AssertionError: names the case and the first difference.
    """
    models = load_batch([compile_case(case, config) for case in cases], folder, flags=flags)
    for case, model in zip(cases, models, strict=True):
        graph, inputs = case.graph(), case.named_inputs()
        expected = execute(graph, inputs)
        weights = _largest(t.data for t in graph.tensors() if t.data is not None)
        for name, got in model.run(inputs).items():
            want = expected[name]
            if np.issubdtype(want.dtype, np.floating):
                # A sum whose products cancel, or that an activation clamps, was larger: its
                # operands tell how large.
                largest = _largest((want, *inputs.values())) * weights
                np.testing.assert_allclose(
                    got, want, rtol=1e-5, atol=1e-6 * largest, err_msg=case.name
                )
            else:
                np.testing.assert_array_equal(got, want, err_msg=case.name)
