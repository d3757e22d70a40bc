"""Prints the function that runs a model step by step, and what each step costs."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from microtir.codegen.interface.checks import model_checks, null_check
from microtir.codegen.interface.entry import (
    MainFrame,
    main_frame,
    run_name,
    run_parameters,
    separated,
    with_devices,
)
from microtir.codegen.interface.guard import guard_call
from microtir.codegen.interface.parts import Draft, Part, Place
from microtir.codegen.interface.state import next_turn
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.functions import FunctionText, c_function
from microtir.codegen.printer.layout import WIDTH, block_comment, indent
from microtir.codegen.program import CProgram
from microtir.module.ir_module import ModelInfo
from microtir.plan.decisions import Decision
from microtir.tir.execution import calls
from microtir.tir.ir import For, IntImm, Stmt
from microtir.tir.visitor import invokes_of, statements_of, variables_used


@dataclass(frozen=True, slots=True)
class StepPart:
    """A statement of main as `count` steps: turns of a loop over rows, or the whole as one.

    `loop` is the statement in the first case, whose variable begins at `start`.
    """

    statement: Stmt
    count: int = 1
    loop: For | None = None
    start: int = 0


def parts_of(program: CProgram) -> tuple[StepPart, ...]:
    """Return what the steps of an image are, in the order of execution."""
    parts = map(_part, statements_of(program.entry.body))
    return tuple(part for part in parts if part.count > 0)


def _part(statement: Stmt) -> StepPart:
    match statement:
        case For(var, IntImm(start), IntImm(stop), body) if var in variables_used(body):
            return StepPart(statement, stop - start, statement, start)
        case _:
            return StepPart(statement)


def step_instructions(program: CProgram, model: ModelInfo) -> tuple[int, ...]:
    """Return the estimated instructions of each step.

    A plan knows those of all calls of a layer together: each call has the share of its rows.
    """
    by_rows = {
        model.decisions[layer.name]
        for layer in program.layers
        if layer.row_range is not None and layer.name in model.decisions
    }
    image = [
        _rows_by_layer(program, model, _turn_of(part, turn), by_rows)
        for part in parts_of(program)
        for turn in range(part.count)
    ]
    totals: Counter[Decision] = Counter()
    for rows in image:
        totals.update(rows)
    costs = (
        sum(layer.instructions * n / max(totals[layer], 1) for layer, n in rows.items())
        for rows in image
    )
    images = program.entry.images
    return tuple(round(cost / images) for cost in costs) * images


def _rows_by_layer(
    program: CProgram, model: ModelInfo, step: Stmt, by_rows: Container[Decision]
) -> Counter[Decision]:
    """Return how many rows of each layer a step computes; 1 of one that knows no rows."""
    counts: Counter[Decision] = Counter()
    for call, scalars in calls(step, idle_turns=1):
        decision = model.decisions.get(call.function)
        if decision is not None:
            by_range = program.callee(call.function).row_range is not None
            first, last = scalars[-2:] if by_range else (0, 0)
            # What ends a sum over rows has no decision: it is a small part of its layer.
            counts[decision] += max(0, last - first) if decision in by_rows else 1
    return counts


def _turn_of(part: StepPart, turn: int) -> Stmt:
    """Return the statement of one step: a turn is a loop that has no other."""
    loop = part.loop
    if loop is None:
        return part.statement
    first, dtype = part.start + turn, loop.var.dtype
    return replace(loop, start=IntImm(first, dtype), stop=IntImm(first + 1, dtype))


def _macros(program: CProgram, model: ModelInfo) -> str:
    """Return how many steps a run has, and the instructions of each, as macros."""
    costs = step_instructions(program, model)
    values = textwrap.wrap(", ".join(map(str, costs)), WIDTH - 8, break_long_words=False)
    rows = [f"#define {program.macro}_STEP_INSTRUCTIONS {{", *indent(values)]
    target = program.config.primary_target()
    comment = f"The steps of a run, and the estimated instructions of each step for {target}."
    return "\n".join(
        [
            *block_comment(textwrap.wrap(comment, WIDTH - 4)),
            f"#define {program.macro}_STEP_COUNT {len(costs)}",
            *(f"{row} \\" for row in rows),
            "}",
        ]
    )


def _parameters(program: CProgram) -> list[str]:
    return [*run_parameters(program), "int32_t *next"]


def _prototype(program: CProgram) -> str:
    count = f"{program.macro}_STEP_COUNT"
    text = [
        "Runs one step of the model: an operator, or one iteration over rows of several operators.",
        "",
        "  next    0 before the first step; each step adds 1. The run is complete when it is",
        f"          {count}",
        "",
        *textwrap.wrap(
            f"The other arguments are those of {run_name(program)}(), and the same in all steps of "
            "a run. Nothing else may use the memory between steps. A step that returns an error "
            "does not change next, and can be run again.",
            WIDTH - 4,
        ),
    ]
    step = c_function(f"int32_t {program.name}_step", _parameters(program), comment=text)
    return step.declaration


def entries(program: CProgram, requirements: Requirements) -> list[FunctionText]:
    """Return the function that runs a step; with devices, what it does while they are active."""
    model = program.model
    assert model is not None
    lines = _step_lines(program, model, requirements)
    return with_devices(program, f"{program.name}_step", _parameters(program), lines)


def _step_lines(program: CProgram, model: ModelInfo, requirements: Requirements) -> list[str]:
    parts = parts_of(program)
    frame = main_frame(program, model, requirements, ("next",), _blocks(parts))
    step, count = frame.names.reserve("step"), f"{program.macro}_STEP_COUNT"
    chain = _chain(frame, parts, step)
    position = []
    per_image = sum(part.count for part in parts)
    if frame.image:
        position.append(f"const int32_t {frame.image} = *next / {per_image};")
    if per_image > 1:
        value = f"*next % {per_image}" if frame.image else "*next"
        position.append(f"const int32_t {step} = {value};")
    outside = f"if (*next < 0 || *next >= {count}) {{"
    checks = [
        *model_checks(program, model, requirements),
        *null_check(program, ["next"]),
        outside,
        *indent([f"return {program.macro}_ERROR_ARGUMENT_RANGE;"]),
        "}",
    ]
    end = ["*next += 1;"]
    if last := next_turn(model):
        end += [f"if (*next == {count}) {{", *indent(last), "}"]
    end.append(f"return {program.macro}_OK;")
    counts = guard_call(program, "*next == 0")
    return separated(
        checks, counts, [*position, *frame.of_all(), *frame.of_image()], [*chain, *end]
    )


def _blocks(parts: Sequence[StepPart]) -> list[int]:
    """Return the number of the part in which each call of main is."""
    counts = [len(invokes_of(part.statement)) for part in parts]
    return [number for number, n in enumerate(counts) for _ in range(n)]


def _chain(frame: MainFrame, parts: Sequence[StepPart], step: str) -> list[str]:
    """Return the branches, one for each part."""
    lines: list[str] = []
    first = 0
    for number, part in enumerate(parts):
        with frame.names.block():
            body = _part_lines(frame, part, step, first)
        first += part.count
        is_last = number == len(parts) - 1
        head = "{" if is_last else f"if ({step} < {first}) {{"
        if lines:
            head = f"{lines.pop()} else {head}"
        lines += [head, *indent(body), "}"]
    return lines


def _part_lines(frame: MainFrame, part: StepPart, step: str, first: int) -> list[str]:
    """Return what the steps of a part do; the variable of a loop follows from the step."""
    if part.loop is None:
        lines = frame.printer.lines(part.statement)
    else:
        more = part.start - first
        sign = "-" if more < 0 else "+"
        lines = frame.printer.turn_lines(part.loop, f"{step} {sign} {abs(more)}" if more else step)
    return lines[1:] if lines and not lines[0] else lines


def parts(draft: Draft) -> Iterator[Part]:
    """Yield what each step costs, and the function that runs one."""
    program, model = draft.program, draft.model
    yield Part(Place.STEPS, _macros(program, model))
    yield Part(Place.PROTOTYPES, _prototype(program))
