"""Frama-C's Eva over the example: no alarm for any input, and annotations that hold."""

from __future__ import annotations

from pathlib import Path

import microtir
from microtir import CompilationConfig
from tests.formal.eva import analyse

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def test_example_has_no_alarm(tmp_path: Path) -> None:
    """Any image and any old bytes of the workspace: Eva proves each operation and annotation.

    But one: that the sum of a softmax is positive follows from its maximum being one of the
    elements, whose exponential is the greatest.  Values of Eva do not relate the two.
    """
    config = CompilationConfig(targets="c", annotations="acsl", module_name="digits")
    artifact = microtir.build(microtir.frontend.from_tflite(MODEL), config)
    verdict = analyse(artifact.export(tmp_path / "c"), artifact.metadata)
    assert verdict.alarms == 0, verdict.said
    assert verdict.unproven == ("assertion magnitude",), verdict.said
