"""Definitions of operators: what makes a node legal, and the words that say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from microtir.graph.ir import Node, SumRange
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, images, linear, problem
from microtir.operators.common.quantization import EQUAL, QuantizationRule, weights
from microtir.operators.common.shapes import Shape, same_shape
from microtir.operators.common.sums import Interval
from microtir.operators.common.types import MOVED, WEIGHTED, TypeRule

SumsRule: TypeAlias = Callable[[Node, Sequence[Interval]], "SumRange | None"]

ACTIVATIONS = "fused activation NONE, RELU, RELU6 or RELU_N1_TO_1"


class Trait(Enum):
    """A property of an operator, beyond its rules, that generic passes and tables ask for."""

    ELEMENTWISE = "element i of the output depends on element i of each input, or on a broadcast"
    TABULATED = "an int8 result of one int8 input is looked up among its 256 values"
    IN_PLACE = "the output may overwrite input 0: what is there has been read; so of ELEMENTWISE"
    KEEPS = "output i, except for 0, is the new value of input i, in the same memory"
    KEEPS_LAST = "the last outputs are new values of the last inputs, in the same memory"
    MOVES_DATA = "each element of the output is one of the input, or a constant"
    STORED = "integers are taken as they are stored, whatever the scales of its tensors say"
    STATIC = "the output follows from the types of the inputs, not from their values"
    WEIGHTED = "input 1 holds weights, input 2 a bias"
    CONTROL = "it controls when others run, or gives a state its new value: it is never folded"
    OPAQUE = "its computation is not known here: it is never evaluated at compile time"


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """The rules that make a node of an operator legal, and facts that follow from its attributes.

    Args:
        op: the class of its attributes.
        types: the legal scalar types.
        quantization: what the quantisation of integer tensors must be.
        shapes: gives the shape of each output; raises a GraphError where inputs and attributes
            contradict each other.
        inputs: the fewest and the most inputs.
        outputs: the most outputs; there is one at least.
        multipliers: finds scales of int8 nodes whose ratios have no fixed-point form.
        sums: bounds the sums of a node on integers, given what its inputs hold; None where
            nothing is known.
        window: gives the sliding window of an image operator.
        one_image: gives the attributes for one of several images; elements of an elementwise
            operator are kept apart anyway, and another one without it mixes images.
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
    multipliers: problem.Rule | None = None
    sums: SumsRule | None = None
    window: Callable[[Node], attributes.SlidingWindow] | None = None
    one_image: images.OneImage | None = None
    terms: Callable[[Node], int] | None = None
    macs: Callable[[Node], int] | None = None
    traits: frozenset[Trait] = frozenset()
    limits: str = ""
    title: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        return self.title or self.op.name


def moving(
    op: type[Operator],
    shapes: Callable[[Node], tuple[Shape, ...]],
    limits: str = "",
    inputs: tuple[int, int] = (1, 1),
    outputs: int = 1,
    traits: frozenset[Trait] = frozenset(),
    types: TypeRule = MOVED,
    one_image: images.OneImage | None = None,
) -> Definition:
    """Define an operator that computes nothing: all types are legal, and nothing is rescaled."""
    return Definition(
        op,
        types=types,
        quantization=EQUAL,
        shapes=shapes,
        inputs=inputs,
        outputs=outputs,
        one_image=one_image,
        traits=frozenset({Trait.MOVES_DATA}) | traits,
        limits=limits,
    )


def weighted(
    op: type[Operator],
    shapes: Callable[[Node], tuple[Shape, ...]],
    terms: Callable[[Node], int],
    *,
    channel_axis: int = 0,
    sums: SumsRule = linear.linear_sums,
    window: Callable[[Node], attributes.SlidingWindow] | None = None,
    macs: Callable[[Node], int] | None = None,
    types: TypeRule = WEIGHTED,
    one_image: images.OneImage = images.by_first_axis,
    limits: str = "constant weights",
) -> Definition:
    """Define an operator that multiplies its input by weights, adds a bias, and clamps.

    `channel_axis` is the axis of the weights that counts the channels of the output.
    """
    return Definition(
        op,
        types=types,
        quantization=weights(channel_axis),
        shapes=shapes,
        inputs=(2, 3),
        multipliers=linear.linear_multipliers,
        sums=sums,
        window=window,
        one_image=one_image,
        terms=terms,
        macs=macs,
        traits=frozenset({Trait.WEIGHTED}),
        limits=f"{limits}; {ACTIVATIONS}",
    )
