"""`microtir profile` measures what an inference costs on a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.board_options import Board, FiguresFile, Timeout
from microtir.cli.building import Built, build_model
from microtir.cli.model import Model, read_model
from microtir.cli.output import cell, facts, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import ExitCode

if TYPE_CHECKING:
    from microtir.boards import Board as BoardFacts
    from microtir.module.program import Program
    from microtir.plan.decisions import Alternative, Decision
    from microtir.profiling.profile import LayerCost, Profile
    from microtir.tir.analysis.timing import Cause


Extremes = Annotated[
    bool,
    typer.Option(
        "--extremes",
        help="Also runs inputs that are all low, all high, alternating or arbitrary, and compares "
        "the instruction counts.",
    ),
]


Static = Annotated[
    bool, typer.Option("--static", help="Also counts from the machine code of an Arm Cortex-M.")
]


def profile(
    model: Model,
    config: CompilationConfig,
    board: Board,
    json: FiguresFile = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Shows the kernel of each layer, and why it was chosen."),
    ] = False,
    choose_external: Annotated[
        bool,
        typer.Option(
            "--choose-external",
            help="Measures each layer with and without the library of --external, and recommends "
            "the layers that the library should compute.",
        ),
    ] = False,
    extremes: Extremes = False,
    static: Static = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="DIR", help="Keeps the project in DIR, which is deleted first."
        ),
    ] = None,
    timeout: Timeout = 300.0,
) -> ExitCode:
    """Measures instructions, cycles, flash, RAM and stack on an emulated board.

    The figures are those of one inference, for each layer and in total.
    """
    from microtir.boards import load_board
    from microtir.profiling import extreme_instructions
    from microtir.profiling.profile import profile as profile_on

    chosen = load_board(board)
    if choose_external:
        return _choose_external(model, config, chosen, timeout)
    with Progress() as progress:
        built = build_model(model, config, progress, board)
        progress.show(f"building and running on {board}")
        result = profile_on(built.artifact, chosen, folder=keep, static=static, timeout=timeout)
        counts = extreme_instructions(built.artifact, chosen, timeout=timeout) if extremes else {}
        whole: Profile | None = None
        if config.stream_axis:
            unlimited = config.without_stream()
            other = build_model(model, unlimited, progress, board)
            progress.show(f"building and running the whole window on {board}")
            whole = profile_on(other.artifact, chosen, timeout=timeout)
    if json is not None:
        more = ({"extremes": dict(counts)} if counts else {}) | (_whole(whole) if whole else {})
        write_json(result.to_dict() | more, json)
    if str(json) != "-":
        beside = [*_static(result), *_extremes(counts)]
        beside += _beside(result, whole, built) if whole else []
        _print(result, chosen, for_processors(config.targets), beside)
        if explain:
            _explain(result, built.program)
            _reasons(built.program.decisions)
    return ExitCode.DONE


def _whole(whole: Profile) -> dict[str, object]:
    """Return what a run of the whole window costs as values of JSON."""
    known = ("instructions", "cycles_estimate", "flash", "ram")
    return {"whole": {key: value for key, value in whole.to_dict().items() if key in known}}


def _beside(result: Profile, whole: Profile, built: Built) -> list[tuple[str, object]]:
    """Return what a push costs beside a run of the whole window."""
    from microtir.report.data import WholeRun
    from microtir.report.pushes import push_facts, pushes_of

    graph = built.artifact.module.graph
    assert graph is not None and graph.stream is not None, "a stream was asked for"
    run = WholeRun(whole.instructions, whole.ram.of_model, is_measured=True)
    pushes = pushes_of(graph.stream, run)
    return list(push_facts(pushes, result.instructions, result.ram.of_model))


def _extremes(counts: Mapping[str, int]) -> list[tuple[str, object]]:
    """Return the instructions of extreme inputs, as one number where all are equal."""
    if not counts:
        return []
    kinds = ", ".join(counts)
    if len(set(counts.values())) == 1:
        return [("extremes", f"{cell(next(iter(counts.values())))} instructions each: {kinds}")]
    return [("extremes", ", ".join(f"{kind} {cell(n)}" for kind, n in counts.items()))]


def _static(result: Profile) -> list[tuple[str, object]]:
    """Return what was counted from the machine code, beside what ran."""
    count = result.static
    if count is None:
        return []
    if count.problem:
        return [("static count", f"none: {count.problem}")]
    excess = count.instructions / max(result.instructions, 1) - 1
    text = f"{cell(count.instructions)} instructions, {excess:+.2%} of those that ran"
    if not count.branches:
        return [("static count", text)]
    named = "; ".join((*count.branches[:3], "and others")[: len(count.branches)])
    return [("static count", f"{cell(count.least)} to {text}"), ("depends on data", named)]


def _time(result: Profile) -> list[tuple[str, object]]:
    """Return whether time depends on data, with the causes and the layers that have them."""
    causes: dict[Cause, list[str]] = {}
    varying: dict[str, list[str]] = {}
    for layer in result.layers:
        for cause in layer.causes:
            causes.setdefault(cause, []).append(layer.name)
        for mnemonic, count in layer.varying.items():
            varying.setdefault(mnemonic, []).append(f"{layer.name} {cell(count)}")
    texts = [f"{cause.time}: {cause.what} in {', '.join(names)}" for cause, names in causes.items()]
    branches = result.static is not None and result.static.branches
    if branches:
        texts.append("the compiler made branches on data")
    return [
        ("time", "; ".join(texts) or "the same instructions for every input"),
        *(("cycles by operands", f"{m}: {', '.join(varying[m])}") for m in varying),
    ]


def _choose_external(
    model: Model, config: CompilationConfig, board: BoardFacts, timeout: float
) -> ExitCode:
    """Print what each layer costs either way, and the flag that takes the cheaper ones."""
    from microtir.rewrite.requests.requested import completed
    from microtir.search.external import choose_external

    with Progress() as progress:
        module = read_model(model, config)
        progress.show(f"measuring twice on {board.name}")
        choice = choose_external(module, config, board, timeout)
    where = f"{for_processors(config.targets)} on {board.name}"
    measure = completed(config, module.graph).measure
    write(f"{measure.value} of each layer, {where}\n")
    write_table(
        ("operator", "layer", "own", "external", "chosen"),
        [
            (c.operator, c.name, c.own, c.external, "external" if c.is_external else "own")
            for c in choice.layers
        ],
        right=("operator", "own", "external"),
    )
    flags = " ".join(f"--external {library}" for library in choice.config.external)
    write(f"\n{flags or 'no layer is cheaper with the library, so leave out --external'}")
    return ExitCode.DONE


def _print(
    result: Profile,
    board: BoardFacts,
    processors: str,
    beside: Sequence[tuple[str, object]],
) -> None:
    emulator = "simavr" if result.cycles_are_exact else "QEMU"
    kind = "cycles on simavr" if result.cycles_are_exact else "estimated cycles"
    ram, bound = result.ram, result.stack_bound
    milliseconds = f"{result.cycles / board.clock_hz * 1e3:.4g} ms" if board.clock_hz else ""
    stack = f"{cell(ram.stack)} bytes touched, {cell(bound.bytes)} by the call graph"
    code, weights = cell(result.code), cell(result.weights)
    state = f"state {cell(ram.state)}, " if ram.state else ""
    variables = (
        f"{cell(ram.total)} bytes: workspace {cell(ram.workspace)}, scratch {cell(ram.scratch)}, "
        f"inputs and outputs {cell(ram.io)}, {state}data {cell(ram.data)}, stack {cell(ram.stack)}"
        + (f", reserve of the board {cell(ram.reserve)}" if ram.reserve else "")
    )
    facts(
        [
            ("model", f"{result.model} {processors} on {result.board}"),
            ("compiler", result.compiler),
            (f"instructions on {emulator}", result.instructions),
            (kind, f"{cell(result.cycles)}, {milliseconds} at {board.clock_hz / 1e6:g} MHz"),
            (
                "flash",
                f"{cell(result.code + result.weights)} bytes: code {code}, weights {weights}",
            ),
            ("RAM", variables),
            ("stack", "; ".join((stack, *bound.unknown))),
            *_time(result),
            *([("recomputed", _recomputed(result))] if result.macs_recomputed else []),
            *_per_mac(result),
            *beside,
        ]
    )
    write("")
    cycles = "cycles" if result.cycles_are_exact else "est. cycles"
    write_table(
        (
            *("#", "layer", "operator", "MACs", "instructions", "share", "per MAC"),
            *(cycles, "per MAC", "code"),
        ),
        [_row(layer, result) for layer in result.layers],
        right=("#", "MACs", "instructions", "share", cycles, "per MAC", "code"),
    )
    if result.kernels:
        write("")
        write_table(
            ("micro-kernel", "code", "layers"),
            [(k.function, k.code, ", ".join(k.layers)) for k in result.kernels],
            right=("code",),
        )


def _recomputed(result: Profile) -> str:
    """Return what bands of columns cost: work done twice, and the copies between bands."""
    macs = sum(layer.macs_executed for layer in result.layers) - result.macs_recomputed
    share = result.macs_recomputed / max(macs, 1)
    cost = result.recomputing
    return (
        f"{cell(result.macs_recomputed)} multiply-accumulates, {share:.1%} more; with copies about "
        f"{cell(cost)} instructions, {cost / max(result.instructions, 1):.1%} of all"
    )


def _per_mac(result: Profile) -> list[tuple[str, object]]:
    """Return what one multiply-accumulate costs, and one of the model's where fewer run."""
    model = sum(layer.macs for layer in result.layers)
    executed = sum(layer.macs_executed for layer in result.layers)
    known = {"executed": executed, "of the model": model} if model != executed else {"": executed}
    texts = [
        f"{result.instructions / macs:.2f} instructions and {result.cycles / macs:.2f} cycles"
        + (f" for each {kind}" if kind else "")
        for kind, macs in known.items()
        if macs
    ]
    return [("per MAC", "; ".join(texts))] if texts else []


def _row(layer: LayerCost, result: Profile) -> tuple[object, ...]:
    def per_mac(count: int) -> str:
        return f"{count / layer.macs_executed:.2f}" if layer.macs_executed else ""

    return (
        layer.index,
        layer.name,
        layer.operator,
        layer.macs_executed or None,
        layer.instructions,
        f"{layer.instructions / max(result.instructions, 1):.1%}",
        per_mac(layer.instructions),
        layer.cycles,
        per_mac(layer.cycles),
        layer.code,
    )


def _explain(result: Profile, program: Program) -> None:
    """Print a table of what the plan chose, beside what came out of it."""
    plan = program.plan
    expected = {(d.index, d.layer): d.instructions for d in program.decisions.values()}
    measured: dict[str, int] = {}
    for layer in result.layers:
        measured[layer.name] = measured.get(layer.name, 0) + layer.instructions
    rows: list[tuple[object, ...]] = []
    for group_number, group in enumerate(plan.groups):
        for operator in group.operators:
            candidate, node = operator.candidate, operator.node
            layouts = [plan.layouts[tensor] for tensor in (*operator.inputs, *node.outputs)]
            texts = [f"{layout.kind.value} x{layout.rows}" for layout in layouts]
            split = len(operator.inputs)
            rows.append(
                (
                    node.source.index if node.source.index >= 0 else None,
                    node.name,
                    candidate.kernel,
                    f"{group_number}, row by row" if group.nest else group_number,
                    ", ".join(texts[:split]),
                    ", ".join(texts[split:]),
                    candidate.scratch_bytes or None,
                    expected.get((node.source.index, node.name)),
                    measured.get(node.name),
                )
            )
    write("\nChoices of the plan; a layout states the number of rows that are kept in memory\n")
    write_table(
        ("#", "layer", "kernel", "group", "reads", "writes", "scratch", "est. instr.", "measured"),
        rows,
        right=("#", "scratch", "est. instr.", "measured"),
    )


def _reasons(decisions: Mapping[str, Decision]) -> None:
    """Print the kernels of each layer: the chosen one, then the others and why not."""
    rows: list[tuple[object, ...]] = []
    for decision in decisions.values():
        index = decision.index if decision.index >= 0 else None
        known: list[tuple[int | None, str, str, Decision | Alternative]]
        known = [(index, decision.layer, decision.kernel, decision)]
        known += [(None, "", f"not {other.kernel}", other) for other in decision.alternatives]
        rows += [
            (index, name, kernel, d.instructions, d.cycles, d.scratch_bytes or None, d.reason)
            for index, name, kernel, d in known
        ]
    write("\nReason, and other candidates\n")
    write_table(
        ("#", "layer", "kernel", "est. instr.", "est. cycles", "scratch", "reason"),
        rows,
        right=("#", "est. instr.", "est. cycles", "scratch"),
    )
