"""What makes a node of an operator legal: the vocabulary of the definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from microtir.graph.ir import Node, SumRange
from microtir.graph.operator import Operator
from microtir.operators.common.attributes import SlidingWindow
from microtir.operators.common.linear import linear_multipliers, linear_sums
from microtir.operators.common.problem import Rule
from microtir.operators.common.quantization import EQUAL, QuantizationRule, weights
from microtir.operators.common.shapes import Shape, same_shape
from microtir.operators.common.sums import Interval
from microtir.operators.common.types import MOVED, WEIGHTED, TypeRule

SumsRule: TypeAlias = Callable[[Node, Sequence[Interval]], "SumRange | None"]

ACTIVATIONS = "fused activation NONE, RELU, RELU6 or RELU_N1_TO_1"


class Trait(Enum):
    """What generic passes and tables need to know of an operator besides its rules."""

    ELEMENTWISE = "element i of the output depends on element i of each input, or on a broadcast"
    TABULATED = "an int8 result of one int8 input is looked up among its 256 values"
    MOVES_DATA = "each element of the output is one of the input, or a constant"
    WEIGHTED = "input 1 holds weights, input 2 a bias"


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """What makes a node of an operator legal, and facts that follow from its attributes.

    Args:
        op: the class of its attributes.
        types: the legal scalar types.
        quantization: what the quantisation of integer tensors must be.
        shapes: gives the shape of each output; raises a GraphError where inputs and attributes
            contradict each other.
        inputs: the fewest and the most inputs.
        outputs: the most outputs; there is one at least.
        multipliers: finds scales of int8 nodes whose ratios have no fixed-point form.
        sums: bounds the integer sums of an int8 node, given what its inputs hold; None where
            nothing is known.
        window: gives the sliding window of an image operator.
        terms: counts the values that are added up for one element of the output.
        macs: counts multiply-accumulates; by default `terms` for each element of the output of an
            operator with weights, and none for another.
        traits: what else is known of it.
        limits: in words, what is asked for beyond types and quantisation.
        title: what it is called; by default the name of the class of its attributes.
        label: part of the names of functions in C, where the attributes do not give one.
    """

    op: type[Operator]
    types: TypeRule
    quantization: QuantizationRule
    shapes: Callable[[Node], tuple[Shape, ...]] = same_shape
    inputs: tuple[int, int] = (1, 1)
    outputs: int = 1
    multipliers: Rule | None = None
    sums: SumsRule | None = None
    window: Callable[[Node], SlidingWindow] | None = None
    terms: Callable[[Node], int] | None = None
    macs: Callable[[Node], int] | None = None
    traits: frozenset[Trait] = frozenset()
    limits: str = ""
    title: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        """Return what the operator is called."""
        return self.title or self.op.name


def moving(
    op: type[Operator],
    shapes: Callable[[Node], tuple[Shape, ...]],
    limits: str = "",
    inputs: tuple[int, int] = (1, 1),
    outputs: int = 1,
) -> Definition:
    """Define an operator that computes nothing: all types are legal, and nothing is rescaled."""
    return Definition(
        op,
        types=MOVED,
        quantization=EQUAL,
        shapes=shapes,
        inputs=inputs,
        outputs=outputs,
        traits=frozenset({Trait.MOVES_DATA}),
        limits=limits,
    )


def weighted(
    op: type[Operator],
    shapes: Callable[[Node], tuple[Shape, ...]],
    terms: Callable[[Node], int],
    *,
    channel_axis: int = 0,
    sums: SumsRule = linear_sums,
    window: Callable[[Node], SlidingWindow] | None = None,
    macs: Callable[[Node], int] | None = None,
    limits: str = "constant weights",
) -> Definition:
    """Define an operator that multiplies its input by weights, adds a bias, and clamps.

    `channel_axis` is the axis of the weights that counts the channels of the output.
    """
    return Definition(
        op,
        types=WEIGHTED,
        quantization=weights(channel_axis),
        shapes=shapes,
        inputs=(2, 3),
        multipliers=linear_multipliers,
        sums=sums,
        window=window,
        terms=terms,
        macs=macs,
        traits=frozenset({Trait.WEIGHTED}),
        limits=f"{limits}; {ACTIVATIONS}",
    )
