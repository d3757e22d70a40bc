"""The table of docs/operators.md: which operator equals which oracle, by type.

It is made of the cases that tests draw (`operator_cases`), of the operators that are tested by
models of their own (`PROOFS`), and of what tflite-micro's resolver has (`resolver`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tests.support.operator_cases import HYBRID, OPERATORS, RECURRENT, Oracle
from tests.support.resolver import BUILT_IN, CUSTOM, WEIGHTS4

COLUMNS = (
    "float32", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "bool",
    WEIGHTS4, HYBRID,
)  # fmt: skip

_OLDER = "tests/frontend/test_older_quantization.py"
_SIGNAL = "tests/operators/test_framing.py"
_BANKS = "tests/operators/test_filter_bank.py"
_SPECTRA = "tests/operators/test_spectrum.py"


class Standing(Enum):
    """What is known of an operator with a type."""

    MICRO = "="
    LITERT = "L"
    WIDENED = "w"
    DEFINITION = "d"
    ABSENT = "**-**"
    NOWHERE = ""


_STANDING = {Oracle.TFLITE_MICRO: Standing.MICRO, Oracle.LITERT: Standing.LITERT}


@dataclass(frozen=True)
class Proof:
    """Operators that a test compares with an oracle by models of its own.

    Args:
        names: of the file format.
        types: those that it draws.
        standing: whose results they equal.
        test: the file, which names the operators.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    standing: Standing
    test: str


def _proof(names: str, types: str, test: str, standing: Standing = Standing.MICRO) -> Proof:
    return Proof(tuple(names.split()), tuple(types.split()), standing, test)


PROOFS = (
    _proof(
        "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED",
        WEIGHTS4,
        "tests/support/cases_weighted.py",
    ),
    _proof(
        "CALL_ONCE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE",
        "float32 int8 int16 int32 bool",
        "tests/support/stateful.py",
    ),
    _proof("WHILE IF", "bool", "tests/frontend/test_variables_in_control.py"),
    _proof("CIRCULAR_BUFFER", "int8", "tests/operators/test_circular_buffer.py"),
    _proof(
        "TFLM_DECODE", "float32 int8 int16 int32 int64 bool", "tests/frontend/test_decoding.py"
    ),
    _proof("TFLite_Detection_PostProcess", "float32", "tests/operators/test_detection.py"),
    _proof("SignalWindow SignalFramer SignalStacker SignalDelay", "int16", _SIGNAL),
    _proof("SignalOverlapAdd", "float32 int16", _SIGNAL),
    _proof("SignalRfft SignalIrfft", "float32 int16 int32", _SPECTRA),
    _proof("SignalFftAutoScale SignalEnergy", "int16", _SPECTRA),
    _proof("SignalFilterBank SignalFilterBankSpectralSubtraction SignalPCAN", "uint32", _BANKS),
    _proof("SignalFilterBankSquareRoot", "uint64", _BANKS),
    _proof("SignalFilterBankLog", "uint32", _BANKS),
    _proof("WHERE", "float32 int8 uint8 int32 int64 bool", "tests/operators/test_conditions.py",
           Standing.LITERT),
    _proof("DENSIFY", "float32 int8", "tests/frontend/test_tflite_sparsity.py", Standing.LITERT),
    _proof("GELU", "float32 int8 int16", "tests/operators/test_gelu.py", Standing.LITERT),
    _proof(
        "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5", "float32",
        "tests/operators/test_detection.py", Standing.LITERT,
    ),
    _proof(
        "Convolution2DTransposeBias MaxPoolingWithArgmax2D MaxUnpooling2D", "float32",
        "tests/operators/test_mediapipe.py", Standing.DEFINITION,
    ),
    _proof("RELU_N1_TO_1", "int8", "tests/rewrite/test_execute.py", Standing.DEFINITION),
    _proof(
        "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED SVDF UNIDIRECTIONAL_SEQUENCE_LSTM", HYBRID,
        "tests/operators/test_hybrid.py", Standing.LITERT,
    ),
    _proof("ethos-u", "int8", "tests/support/ethos_u.py", Standing.DEFINITION),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """An operator: whether tflite-micro's resolver has it, and what is known of it by type."""

    name: str
    is_resolved: bool
    cells: Mapping[str, Standing]


def rows(older: Sequence[str]) -> list[Row]:
    """Return all operators, those of tflite-micro first; `older` ones are compared in uint8."""
    known = (*BUILT_IN, *CUSTOM)
    others = dict.fromkeys((*OPERATORS, *RECURRENT, *(n for p in PROOFS for n in p.names)))
    return [_row(name, older) for name in (*known, *(n for n in others if n not in known))]


def _row(name: str, older: Sequence[str]) -> Row:
    resolved = BUILT_IN.get(name, CUSTOM.get(name))
    cells = dict.fromkeys(COLUMNS, Standing.NOWHERE)
    cells |= dict.fromkeys(resolved or (), Standing.ABSENT)
    if name in older:
        cells["uint8"] = Standing.LITERT
    cells |= dict(_proven(name))
    return Row(name, resolved is not None, cells)


def _proven(name: str) -> Iterator[tuple[str, Standing]]:
    for proof in PROOFS:
        if name in proof.names:
            yield from ((dtype, proof.standing) for dtype in proof.types)
    kind = OPERATORS.get(name) or RECURRENT.get(name)
    if kind is None:
        return
    for dtype in kind.dtypes:
        yield dtype, Standing.WIDENED if dtype == HYBRID else _STANDING[kind.oracle(dtype)]


# --- text ---------------------------------------------------------------------------------------


def renewed(page: str, older: Sequence[str]) -> str:
    """Return a page whose tables, between their comments, are those of now."""
    table = rows(older)
    made = {
        "counts": _counts(table),
        "resolver": _cells(row for row in table if row.is_resolved),
        "others": _cells(row for row in table if not row.is_resolved),
    }
    for name, text in made.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


def _counts(table: Sequence[Row]) -> str:
    lines = [f"| | operators | {' | '.join(COLUMNS)} |"]
    lines.append("|---" * (len(COLUMNS) + 2) + "|")
    groups = (
        ("built-in, of tflite-micro's resolver", [r for r in table if r.name in BUILT_IN]),
        ("custom, of tflite-micro's resolver", [r for r in table if r.name in CUSTOM]),
        ("others", [r for r in table if not r.is_resolved]),
    )
    for title, group in groups:
        for standing in Standing:
            numbers = [sum(row.cells[t] is standing for row in group) for t in COLUMNS]
            if standing is Standing.NOWHERE or not any(numbers):
                continue
            count = sum(standing in row.cells.values() for row in group)
            cells = " | ".join(str(number or "") for number in numbers)
            lines.append(f"| {title}: {standing.value} | {count} of {len(group)} | {cells} |")
    return "\n".join(lines) + "\n"


def _cells(table: Iterable[Row]) -> str:
    lines = [f"| operator | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in table:
        cells = " | ".join(row.cells[dtype].value for dtype in COLUMNS)
        lines.append(f"| {row.name} | {cells} |")
    return "\n".join(lines) + "\n"
