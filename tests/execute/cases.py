"""Random single-operator models, compiled together and compared with the numpy reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import microtir
from microtir import CompilationConfig, Target
from microtir.config.names import module_name_from
from tests.support.batch import load_batch
from tests.support.legal import assert_legal
from tests.support.operator_cases import generate
from tests.support.sketch import Case

CONFIG = CompilationConfig.from_target(Target("c"))


def cases_of(operator: str, dtypes: Sequence[str], seeds: range) -> list[Case]:
    """Models of one operator over its types and seeds."""
    return [generate(operator, seed, dtype) for dtype in dtypes for seed in seeds]


def compile_case(case: Case) -> microtir.Artifact:
    """The C of a case; its module is named after the case."""
    module = microtir.frontend.from_tflite(case.model, name=case.name)
    return microtir.build(module, CONFIG.with_(module_name=module_name_from(case.name)))


def compare(cases: Sequence[Case], folder: Path, flags: Sequence[str] = ()) -> None:
    """Run all cases in C and compare every output with the reference.

    Raises:
        AssertionError: names the case and the first difference.
    """
    models = load_batch([compile_case(case) for case in cases], folder, flags=flags)
    for case, model in zip(cases, models, strict=True):
        inputs = case.named_inputs()
        assert_legal(case.graph(), inputs, model.run(inputs))
