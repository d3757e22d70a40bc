"""Names the tests of microtir that execute an operator, as recorded from their sources."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from microtir.support.resources import templates


def recorded_tests(operator: str) -> tuple[str, ...]:
    """Return the test files of an operator by its name in a model file; none for an unknown one.

    The name may have a domain of ONNX in front: `com.microsoft.QGemm`.
    """
    record = _record()
    numbers = record["operators"].get(operator.rpartition(".")[2], ())
    return tuple(record["files"][number] for number in numbers)


@cache
def _record() -> dict[str, Any]:
    # `python -m tests.where --record` writes it.
    text = (templates() / "evidence" / "operator_tests.json").read_text("utf-8")
    record: dict[str, Any] = json.loads(text)
    return record
