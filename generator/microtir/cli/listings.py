"""`microtir options | operators | targets | explain` print what there is, as tables."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.choice import check_choice
from microtir.cli.models import AsJson
from microtir.cli.output import write, write_json, write_table
from microtir.cli.source_line import explain_line
from microtir.config import ExecutorKind, host
from microtir.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from microtir.frontend.operator_table import OnnxRow, TorchRow
    from microtir.lowering.stages import Stage

PIPELINE = "pipeline"


def options(as_json: AsJson = False) -> ExitCode:
    """Lists the options of a configuration, with their defaults and values."""
    from microtir.config.reference import option_rows

    rows = option_rows()
    if as_json:
        write_json(rows)
        return ExitCode.DONE
    for number, section in enumerate(dict.fromkeys(row["section"] for row in rows)):
        write(f"{section}\n" if number == 0 else f"\n{section}\n")
        write_table(
            ("option", "default", "values", "what it does", "flag"),
            [
                (row["option"], row["default"], row["legal"], row["help"], row["flag"])
                for row in rows
                if row["section"] == section
            ],
        )
    return ExitCode.DONE


def operators(
    as_json: AsJson = False,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Lists operators of ONNX instead of TFLite.")
    ] = False,
    torch: Annotated[
        bool, typer.Option("--torch", help="Lists operators of PyTorch instead of TFLite.")
    ] = False,
) -> ExitCode:
    """Lists the operators that can be compiled."""
    from microtir.frontend.operator_table import onnx_rows, operator_rows, torch_rows

    if torch:
        return _torch_operators(torch_rows(), as_json)
    if onnx:
        return _onnx_operators(onnx_rows(), as_json)
    rows = operator_rows()
    if as_json:
        write_json([asdict(row) for row in rows])
        return ExitCode.DONE
    write_table(
        ("format", "operator", "types", "quantisation", "limits"),
        [(row.format, row.name, row.types, row.quantization, row.limits) for row in rows],
    )
    return ExitCode.DONE


def _onnx_operators(rows: Sequence[OnnxRow], as_json: bool) -> ExitCode:
    if as_json:
        write_json([asdict(row) for row in rows])
        return ExitCode.DONE
    write_table(
        ("domain", "operator", "inputs", "attributes"),
        [(row.domain, row.name, row.inputs, ", ".join(row.attributes)) for row in rows],
    )
    return ExitCode.DONE


def _torch_operators(rows: Sequence[TorchRow], as_json: bool) -> ExitCode:
    if as_json:
        write_json([asdict(row) for row in rows])
        return ExitCode.DONE
    write_table(("operator", "arguments"), [(row.name, ", ".join(row.arguments)) for row in rows])
    return ExitCode.DONE


def targets(as_json: AsJson = False) -> ExitCode:
    """Lists the CPUs and architectures of --target."""
    from microtir.instruction_sets import ARCHITECTURES, CPUS
    from microtir.instruction_sets.features import in_order

    rows = [
        {
            "name": core.name,
            "option": f"-{option}={core.name}",
            "family": str(core.family),
            "march": core.march,
            "features": [str(feature) for feature in in_order(core.features)],
            "optional": [str(feature) for feature in in_order(core.optional)],
        }
        for option, table in (("mcpu", CPUS), ("march", ARCHITECTURES))
        for core in table.values()
    ]
    if as_json:
        write_json(rows)
        return ExitCode.DONE
    write_table(
        ("target", "family", "architecture", "features", "optional"),
        [
            (
                f"c {row['option']}",
                row["family"],
                row["march"],
                " ".join(row["features"] or ()),
                " ".join(row["optional"] or ()),
            )
            for row in rows
        ],
    )
    write(
        "\nFor RISC-V, name the architecture: c -march=rv32imac. Kernels use the extensions M, F, "
        "D and Zbb.\nFor portable C, the target is: c"
    )
    return ExitCode.DONE


_EXECUTORS = tuple(map(str, ExecutorKind))
_PLACE = re.compile(r"(.*\.[ch]):([^:]*)(?::\d+)?", re.DOTALL)


def explain(
    topic: Annotated[
        str,
        typer.Argument(
            metavar=f"{PIPELINE}|FILE.c:LINE",
            help="`pipeline` shows the stages and passes between model and C. FILE.c:LINE names "
            "the layer that a line of generated C belongs to.",
        ),
    ] = PIPELINE,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="|".join(_EXECUTORS),
            help="The executor whose pipeline is shown.",
        ),
    ] = _EXECUTORS[0],
    as_json: AsJson = False,
) -> ExitCode:
    """Explains how a model becomes C, or names the layer that a line of C belongs to."""
    from microtir.lowering.stages import pipeline, reading

    place = _PLACE.fullmatch(topic)
    if place is not None:
        return explain_line(Path(place[1]), place[2], as_json=as_json)
    check_choice("topic", topic, (PIPELINE, "FILE.c:LINE"), "microtir explain")
    check_choice("executor", executor, _EXECUTORS, "microtir explain")
    stages = (reading(), *pipeline(host().with_(executor=executor)))
    if as_json:
        write_json({"executor": executor, "stages": [_stage(stage) for stage in stages]})
        return ExitCode.DONE
    write(f"The steps from a model to C with executor {executor}, in order:\n")
    write_table(
        ("stage", "pass", "what it does"),
        [
            row
            for stage in stages
            for row in (
                (stage.name, "", stage.summary),
                *(("", name, summary) for name, summary in stage.passes),
            )
        ],
    )
    return ExitCode.DONE


def _stage(stage: Stage) -> dict[str, object]:
    passes = [{"name": name, "summary": summary} for name, summary in stage.passes]
    return {"name": stage.name, "summary": stage.summary, "passes": passes}
