"""Look-ups of any int8 function of one element among its 256 results."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.arithmetic import wide
from microtir.operators.common.formula import FormulaContext
from microtir.operators.tables import lookup_table


def table(layer: FormulaContext) -> None:
    """Look the output up in the table of the operator's meaning."""
    node = layer.node
    values = lookup_table(node.op, node.inputs[0].type, node.output.type)
    # In the order of bytes without a sign: nothing is added to what is read.
    entries, x = te.constant(np.roll(values, DType.INT8.min), "table"), layer.image(0, flat=True)
    layer.rows(lambda *at: entries[wide(x.at(*at)) & DType.UINT8.max], flat=True)
