"""Find the tensors of a TFLite file that stand for memory in which an NPU works."""

from __future__ import annotations

from microtir.frontend.tflite_file import FileGraph
from microtir.operators.npu.tflite import ETHOS_U, FAST_SCRATCH, SCRATCH


def scratch_of_npus(graph: FileGraph) -> frozenset[int]:
    """Return the tensors that hold nothing before an NPU works in them: nobody makes them."""
    produced = {index for operator in graph.operators for index in operator.outputs}
    scratch = {
        operator.inputs[position]
        for operator in graph.operators
        if operator.custom_name == ETHOS_U
        for position in (SCRATCH, FAST_SCRATCH)
        if position < len(operator.inputs)
    }
    return frozenset(
        index
        for index in scratch - produced - set(graph.inputs)
        if index >= 0 and graph.tensors[index].data is None
    )
