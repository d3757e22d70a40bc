"""The record of an operator: everything that the package knows of it.

A family of operators is a folder of sibling files that do not know each other's answers: the
definition (attributes and rules), the meaning in numpy, the formula in tensor expressions, and the
readers of model formats.  The folder's `__init__` joins them; whoever verifies, evaluates, reads or
compiles operators takes all that it knows of one from its record.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.graph.operator import Operator
from microtir.operators.common import arrays, tflite_operands
from microtir.operators.common.formula import Formula, WrittenFunction
from microtir.operators.definition import Definition, Trait

_IN_PLACE = (Trait.ELEMENTWISE, Trait.IN_PLACE, Trait.KEEPS, Trait.KEEPS_LAST)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OperatorRecord:
    """One operator: what is legal, what it means, how it is computed, how it is read.

    Args:
        definition: attributes and rules.
        meaning: in numpy; it says which bits are right.
        formula: what computes it on any target; an operator whose results are looked up in a table
            of its meaning needs none for int8, and one that is a view needs none at all.
        tflite: readers of the operators of TFLite files that become this one.
        function: what computes it in the place of a formula, if the whole function is written.
        onnx: the operator of ONNX files that becomes this one as it is, if it has a row.
    """

    definition: Definition
    meaning: arrays.Meaning
    formula: Formula | None = None
    tflite: tuple[tflite_operands.TfliteReader, ...] = ()
    function: WrittenFunction | None = None
    onnx: str = ""

    @property
    def op(self) -> type[Operator]:
        """Return the class of its attributes."""
        return self.definition.op

    @property
    def name(self) -> str:
        return self.definition.name

    def has(self, trait: Trait) -> bool:
        return trait in self.definition.traits

    @property
    def is_in_place(self) -> bool:
        """Return whether an output may take the place of an input of its type, by the formula."""
        return any(map(self.has, _IN_PLACE))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class UserOperator(Operator):
    """Base of the attributes of operators that are defined outside of the package.

    No table of the package lists them: each knows its record.
    """

    @abstractmethod
    def own_record(self) -> OperatorRecord:
        """Return the record of the operator, the same every time."""


def join(
    definitions: Sequence[Definition],
    computed: Mapping[type[Operator], tuple[arrays.Meaning, Formula | WrittenFunction | None]],
    tflite: Sequence[tflite_operands.TfliteReader] = (),
) -> tuple[OperatorRecord, ...]:
    """Return a record for each definition of a family, with its meaning and formula."""
    assert len(computed) == len(definitions)
    records = []
    for definition in definitions:
        meaning, formula = computed[definition.op]
        records.append(
            OperatorRecord(
                definition,
                meaning,
                formula if isinstance(formula, Formula) else None,
                tuple(reader for reader in tflite if reader.op is definition.op),
                formula if isinstance(formula, WrittenFunction) else None,
            )
        )
    return tuple(records)
