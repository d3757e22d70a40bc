"""Leave out formulas: an NPU's operator becomes a call of its driver before kernels are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.graph.operator import Operator
from microtir.operators.common.formula import Formula

FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType({})
