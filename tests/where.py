"""Where an operator is tested: `python -m tests.where softmax`.

An operator is named as a model file does (`SOFTMAX`, `Softmax`) or as the graph does (`softmax`).
It is tested where all operators are, in tables of cases, and where its names stand in a test: as
identifiers, or in texts that are names of operators and nothing else.
"""

from __future__ import annotations

import ast
import difflib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from microtir.frontend.operator_table import onnx_rows, operator_rows
from microtir.operators import OPERATORS
from tests.layering.facts import Facts
from tests.layering.source import ROOT, Module, modules_below
from tests.support import operator_cases

RECORD = ROOT / "templates" / "evidence" / "operator_tests.json"
_CASES = "tests.support.operator_cases"
_USUAL, _RECURRENT = frozenset(operator_cases.OPERATORS), frozenset(operator_cases.RECURRENT)
_ONNX = frozenset(row.name for row in onnx_rows() if row.domain == "ai.onnx")
TABLES = {
    (_CASES, "OPERATORS"): _USUAL,
    (_CASES, "RECURRENT"): _RECURRENT,
    (_CASES, "operator_dtypes"): _USUAL | _RECURRENT,
    ("onnx.backend.test.case.node", "collect_testcases"): _ONNX,
}
"""What tests import that has cases of many operators, by module and name: of which ones."""


ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "tests/driver/test_row_ports.py::test_results_are_the_same": ("read_rows", "write_rows"),
    "tests/frontend/onnx/test_attention.py::test_rotary_positions": ("rotary_positions",),
    "tests/frontend/onnx/test_block_dense.py::test_layers_equal_onnxruntimes": (
        "block_dense", "MatMulNBits",
    ),
    "tests/frontend/onnx/test_node_cases.py::test_what_becomes_of_each_case": (
        "class_non_max_suppression", "FlexAttention",
    ),
    "tests/frontend/onnx/test_processing.py::test_best_boxes": ("best_boxes",),
    "tests/frontend/onnx/test_row_counts.py::test_chosen_boxes_are_those_of_onnxruntime": (
        "class_non_max_suppression",
    ),
    "tests/frontend/onnx/test_row_counts.py::test_places_of_what_is_not_zero": ("true_places",),
    "tests/frontend/onnx/test_support_vectors.py::test_classes_in_pairs": ("squared_distances",),
    "tests/frontend/onnx/test_support_vectors.py::test_probabilities": ("pairwise_coupling",),
    "tests/frontend/onnx/test_twins.py::test_the_c_of_both_formats_differs_in_names": (
        "QLinearAdd", "QLinearAveragePool", "QGemm",
    ),
    "tests/models/test_exported_onnx.py::test_equals_its_golden_file": (
        "QLinearGlobalAveragePool", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax",
    ),
    "tests/operators/test_circular_buffer.py::test_rings_equal_tflite_micro": ("countdown",),
    "tests/operators/test_hybrid.py::test_layers_equal_litert": ("dynamic_quantize",),
    "tests/rewrite/test_cut_columns.py::test_bands_compute_the_same": (
        "place_columns", "join_columns",
    ),
}  # fmt: skip
"""Tests of operators that no test names, since a rewrite or a file of others makes them."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator under all its names.

    Args:
        tflite: its names in TFLite files.
        onnx: its names in ONNX files.
        graph: its name in the graph, and that of its class.
    """

    tflite: frozenset[str]
    onnx: frozenset[str]
    graph: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Return all of them."""
        return self.tflite | self.onnx | self.graph


@dataclass(frozen=True, slots=True)
class Answer:
    """The files that test an operator, sorted.

    Args:
        tables: tests of all operators of a format, of which it is one.
        tests: tests that name it, and those of `ELSEWHERE`.
        helpers: what tests share and names it.
    """

    tables: tuple[str, ...]
    tests: tuple[str, ...]
    helpers: tuple[str, ...]


def operators() -> list[Operator]:
    """Return every operator that is read, of the graph first."""
    onnx, rows = {row.name for row in onnx_rows()}, operator_rows()
    found = []
    for record in OPERATORS:
        tflite = {row.name for row in rows if row.operator == record.name}
        graph = frozenset((record.name, record.op.__name__))
        alike = {_key(name) for name in (*tflite, *graph)}
        found.append(
            Operator(frozenset(tflite), frozenset(n for n in onnx if _key(n) in alike), graph)
        )
    known = frozenset[str]().union(*(operator.names for operator in found))
    none = frozenset[str]()
    others = [row.name for row in rows if row.name not in known]
    found += [Operator(frozenset((name,)), none, none) for name in dict.fromkeys(others)]
    return [*found, *(Operator(none, frozenset((name,)), none) for name in sorted(onnx - known))]


def _key(name: str) -> str:
    """Return what is the same for `LOG_SOFTMAX`, `LogSoftmax` and `log_softmax`."""
    return name.replace("_", "").lower()


def find(name: str, known: Iterable[Operator]) -> Operator | None:
    """Return the operator with a name in any spelling, None if there is none."""
    return next((op for op in known if _key(name) in map(_key, op.names)), None)


@dataclass(frozen=True)
class Index:
    """The names of operators in the modules of tests.

    Args:
        modules: those below `tests`.
        known: the operators.
    """

    modules: tuple[Module, ...]
    known: tuple[Operator, ...]

    @cached_property
    def named(self) -> Mapping[str, set[str]]:
        """Return the files by the names of operators in them."""
        every = frozenset[str]().union(*(operator.names for operator in self.known))
        found = defaultdict[str, set[str]](set)
        for module in self.modules:
            for name in _words(module, every):
                found[name].add(module.path)
        return found

    @cached_property
    def tables(self) -> Mapping[str, set[str]]:
        """Return the test files that draw from tables of cases, by the operators of the tables."""
        found = defaultdict[str, set[str]](set)
        for module in self.modules:
            for imported in TABLES.keys() & _imports(module) if _is_test(module.path) else ():
                for name in TABLES[imported]:
                    found[name].add(module.path)
        return found

    def answer(self, operator: Operator) -> Answer:
        """Return the files that test an operator."""
        found = set[str]().union(*(self.named.get(name, ()) for name in operator.names))
        tables = set[str]().union(*(self.tables.get(name, ()) for name in operator.names))
        tests = {path for path in found if _is_test(path)}
        elsewhere = {
            test.partition("::")[0]
            for test, names in ELSEWHERE.items()
            if not operator.names.isdisjoint(names)
        }
        others = (tests | elsewhere) - tables
        return Answer(tuple(sorted(tables)), tuple(sorted(others)), tuple(sorted(found - tests)))


def _is_test(path: str) -> bool:
    return path.rpartition("/")[2].startswith("test_")


def _words(module: Module, every: frozenset[str]) -> Iterator[str]:
    """Yield the names of operators in a module."""
    facts = Facts(module)
    for node in facts.nodes:
        if isinstance(node, ast.Name | ast.Attribute | ast.alias):
            name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", "")))
            if not name.islower() and name in every:  # `add` and `shape` are names of anything
                yield name
    for text in facts.texts:
        if (words := frozenset(text.split())) <= every:
            yield from words


def _imports(module: Module) -> set[tuple[str, str]]:
    """Return what a module imports from others, by module and name."""
    statements = (node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom))
    return {(node.module or "", alias.name) for node in statements for alias in node.names}


@cache
def index() -> Index:
    """Return the index of this repository."""
    modules = modules_below(ROOT / "tests", ROOT)
    return Index(tuple(m for m in modules if not m.path.endswith("where.py")), tuple(operators()))


def record() -> str:
    """Return the test files of each operator by its names in model files, as JSON."""
    answers = [(operator, index().answer(operator)) for operator in index().known]
    files = sorted({path for _, answer in answers for path in (*answer.tables, *answer.tests)})
    places = {path: place for place, path in enumerate(files)}
    lines = {
        name: json.dumps([places[path] for path in sorted((*answer.tables, *answer.tests))])
        for operator, answer in answers
        for name in operator.tflite | operator.onnx or operator.graph
    }
    listed = ",\n".join(f"    {json.dumps(path)}" for path in files)
    rows = ",\n".join(f"    {json.dumps(name)}: {lines[name]}" for name in sorted(lines))
    return f'{{\n  "files": [\n{listed}\n  ],\n  "operators": {{\n{rows}\n  }}\n}}\n'


def main(arguments: list[str]) -> int:
    """Print where an operator is tested; status 1 if there is none of that name.

    With `--record` it writes the record that `microtir evidence` reads.
    """
    if arguments == ["--record"]:
        RECORD.write_text(record(), "utf-8")
        return 0
    name = " ".join(arguments)
    made = index()
    operator = find(name, made.known)
    if operator is None:
        every = {_key(n): n for op in made.known for n in op.names}
        close = [every[key] for key in difflib.get_close_matches(_key(name), every)]
        hint = f"; close to it: {', '.join(close)}" if close else ""
        sys.stderr.write(f"where: no operator '{name}'{hint}\n")
        return 1
    answer = made.answer(operator)
    sys.stdout.write(f"{', '.join(sorted(operator.names))}\n")
    for title, paths in (
        ("Tests of the cases of all operators", answer.tables),
        ("Tests of its own", answer.tests),
        ("Cases and helpers that name it", answer.helpers),
    ):
        lines = "".join(f"  {path}\n" for path in paths)
        sys.stdout.write(f"{title}:\n{lines}" if paths else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
