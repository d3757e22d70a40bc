"""Operators that are written in microtir's own languages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from microtir import te
from microtir.custom.operands import activations, constant
from microtir.errors import UsageError
from microtir.graph.ir import Node
from microtir.operators import OperatorRecord
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.custom import Reference, custom_record
from microtir.support.arguments import checked_arguments
from microtir.tir.ir import Buffer, Param, PrimFunc, Var
from microtir.tir.visitor import substitute


@checked_arguments
def from_te(
    name: str,
    compute: Callable[..., te.Tensor | tuple[te.Tensor, ...]],
    reference: Reference,
    *,
    schedule: Callable[..., None] | None = None,
) -> OperatorRecord:
    """Define an operator as tensor expressions.

    Args:
        name: of the operator, as model files call it.
        compute: is given the node and a te.Tensor for each of its inputs, in their shapes, and
            returns its output, or a tuple of them.
        reference: the same in numpy, on arrays.
        schedule: makes it fast: is given the Schedule, and each output to name loops by.
    """

    def build(node: Node, function_name: str) -> PrimFunc:
        placeholders = {
            t: te.placeholder(t.shape, t.dtype, f"x{i}") for i, t in enumerate(activations(node))
        }
        parameters = [
            te.constant(t.data, f"constant{i}") if t.data is not None else placeholders[t]
            for i, t in enumerate(node.inputs)
        ]
        result = compute(node, *parameters)
        outputs = result if isinstance(result, tuple) else (result,)
        steps = te.create_schedule(outputs)
        if schedule is not None:
            schedule(steps, *outputs)
        return steps.primfunc(args=[*placeholders.values(), *outputs], name=function_name)

    return custom_record(name, reference, WrittenFunction(build))


@checked_arguments
def from_tir(
    name: str, write: PrimFunc | Callable[[Node], PrimFunc], reference: Reference
) -> OperatorRecord:
    """Define an operator as a TIR function.

    Args:
        name: of the operator, as model files call it.
        write: the function, or what writes it for a node; a buffer parameter for each input, and
            then for each output. Those of constant inputs are replaced by the constants.
        reference: the same in numpy.
    """

    def build(node: Node, function_name: str) -> PrimFunc:
        function = write if isinstance(write, PrimFunc) else write(node)
        tensors = (*node.inputs, *node.outputs)
        if len(function.params) != len(tensors):
            raise UsageError(
                f"the function of the operator '{name}' has {len(function.params)} parameters",
                where=str(node.source),
                legal=f"{len(tensors)}: one for each input, then one for each output",
            )
        stand_in: dict[Var | Buffer, Buffer] = {}
        params: dict[object, Param] = {}
        for tensor, param in zip(tensors, function.params, strict=True):
            if not isinstance(param, Buffer):
                raise UsageError(
                    f"the parameter '{param.name}' of the operator '{name}' is not a buffer",
                    where=str(node.source),
                )
            if tensor.data is not None:
                shape = tuple(extent for extent in param.shape if isinstance(extent, int))
                stand_in[param] = constant(tensor, param.name, shape)
            elif tensor in params:
                first = params[tensor]
                assert isinstance(first, Buffer)
                stand_in[param] = first
            else:
                params[tensor] = param
        body = substitute(function.body, stand_in)
        return replace(function, name=function_name, params=tuple(params.values()), body=body)

    return custom_record(name, reference, WrittenFunction(build))
