"""An operator of the user by itself: a model of one node, compared with its meaning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir import driver, host
from microtir.config import CompilationConfig, Target
from microtir.dtype import DType
from microtir.errors import RunError
from microtir.graph.ir import Array, Graph, Node, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.host.compare import compare
from microtir.host.tolerance import rounding_of
from microtir.module.ir_module import IRModule
from microtir.operators import OperatorRecord, UserOperator, record_of
from microtir.operators.custom.definition import Custom
from microtir.rewrite import reference
from microtir.support.arguments import checked_arguments
from microtir.tir.replay import random_array

_LARGEST = 100  # of integers above 8 bits: sums and products of them stay in their types


@checked_arguments
def as_model(
    operator: OperatorRecord | UserOperator,
    inputs: Sequence[TensorType | Array],
    outputs: Sequence[TensorType],
    options: bytes = b"",
) -> IRModule:
    """Make a model of one operator.

    Args:
        operator: attributes of one, or a record: of its class, without attributes of its own.
        inputs: a type for each input of the model; an array is a constant.
        outputs: types of the outputs.
        options: as a model file would have them.
    """
    tensors = [
        Tensor(f"x{i}", array)
        if isinstance(array, TensorType)
        else Tensor(f"x{i}", TensorType(array.shape, DType(array.dtype.name)), array)
        for i, array in enumerate(inputs)
    ]
    results = tuple(Tensor(f"y{i}", type_) for i, type_ in enumerate(outputs))
    op = _attributes(operator, options)
    name = record_of(op).name
    source = SourceLocation("", 0, f"CUSTOM '{name}'")
    node = Node(op, tuple(tensors), results, name, source)
    free = tuple(tensor for tensor in tensors if not tensor.is_constant)
    return IRModule(graph=Graph(name, free, results, (node,)))


@checked_arguments
def check(
    operator: OperatorRecord | UserOperator,
    inputs: Sequence[TensorType | Array],
    outputs: Sequence[TensorType],
    *,
    options: bytes = b"",
    samples: int = 10,
    seed: int = 0,
    config: CompilationConfig | Target | None = None,
) -> None:
    """Compile an operator for this machine, run it under sanitizers, compare it with its meaning.

    Args:
        operator: as for `as_model`.
        inputs: as for `as_model`; those that are not constant get random values.
        outputs: as for `as_model`.
        options: as a model file would have them.
        samples: how many times.
        seed: of the random values.
        config: as for `build`.

    Raises:
        RunError: an output differs (integers at all, floats by more than
            float32 sums of as many terms as there are inputs), the
            C function reported a failure, or a sanitizer objected.
        MicrotirError: the operator cannot be compiled.
    """
    module = as_model(operator, inputs, outputs, options)
    graph = module.graph
    assert graph is not None
    model = host.load(driver.build(module, config), sanitize=True)
    generator = np.random.default_rng(seed)
    for number in range(samples):
        values = {t.name: _random(generator, t) for t in graph.inputs}
        expected = reference.execute(graph, values)
        result = compare([expected], [model.run(values)], rounding_of(graph, [values]))
        if result.differences:
            first = result.differences[0]
            raise RunError(
                f"sample {number}: the C code computes {first.got} for '{first.output}' at "
                f"{list(first.index)}, but the numpy function returns {first.expected}",
                where=f"the operator '{graph.name}'",
                fix="correct the operator, or its numpy function",
            )


def _random(generator: np.random.Generator, tensor: Tensor) -> Array:
    limit = None if tensor.dtype.bits <= 8 else _LARGEST
    return random_array(generator, tensor.shape, tensor.dtype, limit)


def _attributes(operator: OperatorRecord | UserOperator, options: bytes) -> Operator:
    if isinstance(operator, UserOperator):
        return operator
    return Custom(operator, options) if operator.op is Custom else operator.op()
