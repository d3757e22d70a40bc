"""Adds to a refusal which other options would help, as was found by trying them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microtir.errors import LimitError, MicrotirError, Resource

if TYPE_CHECKING:
    from microtir.config import CompilationConfig
    from microtir.module.ir_module import IRModule
    from microtir.profiling import BoardCompiler
    from microtir.report.data import Report, ReportedLimit
    from microtir.search.board_fit import BoardFit


def with_suggestions(
    error: LimitError, module: IRModule, board: str | None, compiler: BoardCompiler | None
) -> LimitError:
    """Return the same refusal with what other options came to.

    Args:
        error: how the model was refused.
        module: the model with its configuration.
        board: its memories may be pools.
        compiler: says how much code there is.
    """
    from microtir.search.suggestions import BoardRam, advice

    if board is None:
        return error.with_tried(advice(module, error, compiler=compiler).lines())
    from microtir.boards import load_board
    from microtir.boards.board import MemoryKind
    from microtir.lowering.ports import io_bytes, state_bytes
    from microtir.projects.capacity import workspace_room
    from microtir.rewrite.requests.requested import requested_graph

    chosen, config = load_board(board), module.require_config("refusals")
    assert module.graph is not None, "functions have no limits"
    # What is tried changes no request, so that the graph is that of all of them.
    graph = requested_graph(module.graph, config)

    def room_of(config: CompilationConfig) -> int | None:
        return workspace_room(chosen, config, io_bytes(graph, config))

    room, state = room_of(config), state_bytes(graph)
    memories = [
        BoardRam(m.name, max(room - state, 1) if m == chosen.data and room is not None else m.size)
        for m in chosen.memories
        if m.kind is MemoryKind.RAM
    ]
    is_of_board = config.budget.ram is not None and config.budget.ram == room
    suggestions = advice(
        module, error, compiler=compiler, memories=memories,
        room_of=room_of if is_of_board else None,
    )  # fmt: skip
    return error.with_tried(suggestions.lines())


def too_large(module: IRModule, config: CompilationConfig, board: str) -> tuple[MicrotirError, ...]:
    """Return that a model has no room on a board, with what would help; nothing if it has.

    Code is as large as planning estimates it, so that no compiler is needed.
    """
    from microtir.boards.errors import ModelTooLargeError

    fit = _fit_on(module, config, board)
    if fit.fits and not fit.flags:
        return ()
    what, where = "the model does not fit the board with this configuration", f"board '{board}'"
    if fit.fits:
        return (ModelTooLargeError(what, where=where, fix=f"add {fit.flags} to make it fit"),)
    at = f", even with {fit.flags}" if fit.flags else ""
    return (
        ModelTooLargeError(
            "\n".join([f"the model does not fit the board{at}:", *map("  {}".format, _lacks(fit))]),
            where=where,
            fix="`microtir fit MODEL` shows boards that the model fits",
        ),
    )


def board_remedy(module: IRModule, board: str) -> tuple[str, ...]:
    """Return the cheapest options with which a model fits a board, or what comes nearest.

    Code is as large as planning estimates it.
    """
    fit = _fit_on(module, module.require_config("refusals"), board)
    if fit.fits:
        sizes = " and ".join(f"{m.taken:,} of {m.size:,} bytes of {m.name}" for m in fit.memories)
        return (f"{fit.flags or 'nothing else'}: fits by the estimates of planning, with {sizes}",)
    nearest = f"the nearest is {fit.flags}:" if fit.flags else "as it is:"
    lines = "none of the tried options makes the model fit; `microtir fit MODEL` shows the boards"
    return (f"{lines} that have room; {nearest} {'; '.join(_lacks(fit))}",)


def _fit_on(module: IRModule, config: CompilationConfig, board: str) -> BoardFit:
    from microtir.boards import load_board
    from microtir.search.fit_plans import fit_boards

    assert module.graph is not None, "a frontend read the graph"
    [fit] = fit_boards(module.graph, config, [load_board(board)])
    return fit


def _lacks(fit: BoardFit) -> list[str]:
    return [
        f"{memory.name} would need {memory.taken:,} bytes and has {memory.size:,}"
        for memory in fit.memories
        if memory.missing
    ]


def limit_error(limit: ReportedLimit, report: Report) -> LimitError | None:
    """Return the refusal that a report's limit stands for; None for one that is no option's."""
    pools = {f"pool {pool.name}": number for number, pool in enumerate(report.pools)}
    resources = {
        "budget.ram": Resource.WORKSPACE,
        "budget.flash": Resource.FLASH,
        "budget.stack": Resource.STACK,
        **dict.fromkeys(pools, Resource.POOL),
    }
    if limit.option not in resources:
        return None
    number = pools.get(limit.option, 0)
    is_pool = limit.option in pools
    return LimitError(
        f"the {limit.what} takes {limit.used} bytes, more than its limit of {limit.allowed} bytes",
        where="workspace_pools.size_hint_bytes" if is_pool else limit.option,
        legal=f"a limit of {limit.used} bytes or more",
        fix="raise the limit",
        resource=resources[limit.option],
        taken=limit.used,
        allowed=limit.allowed,
        least=report.pools[number].lower_bound if report.pools else 0,
        pool=number,
    )
