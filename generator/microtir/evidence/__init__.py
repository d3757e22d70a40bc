"""Makes the folder of evidence of a compiled model: what is shown, and what that rests on."""

from __future__ import annotations

from microtir.evidence.folder import PARTS, evidence_of
from microtir.evidence.part import Evidence

__all__ = ["PARTS", "Evidence", "evidence_of"]
