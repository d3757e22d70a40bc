"""Gives every verb the options of a configuration, and makes one configuration of them.

A verb that takes a configuration is written as a function with a parameter `config`.  The
decorator replaces that parameter by all flags of the table, so that no verb declares one, and
makes the configuration from them, so that no verb builds one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_type_hints

import typer

from microtir.cli import model
from microtir.cli.archive import check_flags, is_archive
from microtir.cli.output import write, write_error
from microtir.cli.panels import EXECUTOR_PANEL, PANEL, POOL_PANEL, TVMC_PANEL
from microtir.config import FLAGS, CompilationConfig, config_from_flags, microcontroller
from microtir.config.flag import Flag, FlagValue
from microtir.config.processors import unused_extensions
from microtir.config.tvmc_flags import TVMC_FLAGS, with_tvmc_defaults
from microtir.errors import ExitCode, UsageError
from microtir.support.names import UNNAMED

_PANELS = {
    "--executor-": EXECUTOR_PANEL,
    "--runtime-": EXECUTOR_PANEL,
    "--workspace-pools": POOL_PANEL,
    "--constant-pools": POOL_PANEL,
}

HELP_ALL = "--help-all"
WHOLE_HELP = "microtir.whole_help"
"""Key in the metadata of a context that says that the help of every option is asked for."""

_DUMP = "dump_config"
_ALL = "help_all"
_IS_CPU_NAMED = "is_cpu_named"

Verb = Callable[..., ExitCode]


def with_config(verb: Verb, *, tvmc: Mapping[str, object] | None = None) -> Verb:
    """Give a verb with the parameters `model` and `config` the flags of a configuration.

    The verb is not called with `--dump-config`: the configuration is printed instead. Its parameter
    `is_cpu_named`, if it has one, says whether the command line names the CPU, or leaves it to us.

    Args:
        verb: a function.
        tvmc: for a verb of `microtir tvmc`, whose configuration is tvmc's where no flag says
            something: other defaults of the verb's own parameters.
    """
    hints = get_type_hints(verb, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], default=(tvmc or {}).get(name, parameter.default))
        for name, parameter in inspect.signature(verb).parameters.items()
        if name not in ("config", _IS_CPU_NAMED)
    ]

    def command(**arguments: Any) -> ExitCode:
        flags = {flag.dest: arguments.pop(flag.dest) for flag in (*FLAGS, *TVMC_FLAGS)}
        check_flags(arguments["model"], flags)
        arguments["model"] = model.with_reading(
            arguments["model"],
            arguments.pop("signature"),
            arguments.pop("dim") or (),
            arguments.pop("input_shapes"),
        )
        is_dump = arguments.pop(_DUMP)
        del arguments[_ALL]  # the program has ended where it was given
        models = (arguments["model"], *(arguments.get("more") or ()))
        is_tvmc = tvmc is not None
        config = configuration(flags, models, arguments.get("board"), is_tvmc=is_tvmc)
        if note := unused_extensions(config.targets):
            write_error(note)
        if is_dump:
            write(config.to_json().rstrip("\n"))
            return ExitCode.DONE
        if _IS_CPU_NAMED in hints:
            arguments[_IS_CPU_NAMED] = _is_cpu_named(flags, models, arguments.get("board"))
        return verb(config=config, **arguments)

    return with_parameters(command, verb, [*own, *_flag_parameters()])


def with_parameters(command: Verb, verb: Verb, parameters: Sequence[inspect.Parameter]) -> Verb:
    """Return a function that calls a verb, with its name, its help and these parameters."""
    command.__name__ = verb.__name__
    command.__doc__ = verb.__doc__
    command.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": ExitCode}
    setattr(command, "__signature__", inspect.Signature(parameters))  # noqa: B010  # not declared
    return command


def configuration(
    flags: dict[str, FlagValue],
    models: Sequence[str],
    board: str | None = None,
    *,
    is_tvmc: bool = False,
) -> CompilationConfig:
    """Return the configuration of a command line; the first model's file names the module.

    Where no flag names a target it is the board's, or that of `microcontroller`. In a command line
    of tvmc the module is `default`, the executor `graph`, and the C interface microTVM's.

    Raises:
        ConfigError: as `config_from_flags`; an unknown board.
    """
    base = microcontroller()
    name = UNNAMED if is_tvmc else model.module_name(models[0])
    if board is not None:
        from microtir.boards.search import load_board

        base = CompilationConfig.from_target(load_board(board).target)
    board_budgets = [flag for flag in _BUDGETS if flags.get(flag) == _OF_BOARD]
    named = {**flags, **dict.fromkeys(board_budgets)}
    if is_tvmc:
        base = base.with_(executor="graph", compatibility="microtvm")
        named = with_tvmc_defaults(named)
    config = config_from_flags(named, base.with_(module_name=name))
    config = model.with_batch_count(config, models)
    if not board_budgets:
        return config
    limits = _limits_of_board(board_budgets, board, config, models)
    return config.with_(budget={**config.budget.known(), **limits})


def _is_cpu_named(flags: Mapping[str, FlagValue], models: Sequence[str], board: str | None) -> bool:
    """Return whether a board, a target or a configuration is named, or the code is there already.

    `--config default` names none: it stands for what a command line means that says nothing.
    """
    given_names = {name for name, value in flags.items() if value} - {"target_host"}
    config = flags.get("config")
    is_target = any(name.startswith("target") for name in given_names)
    is_file = config is not None and config != "default"
    return board is not None or is_target or is_file or all(map(is_archive, models))


_OF_BOARD = "board"
_BUDGETS = ("ram_budget", "flash_budget", "stack_budget")


def _limits_of_board(
    board_budgets: list[str], board: str | None, config: CompilationConfig, models: Sequence[str]
) -> dict[str, int]:
    """Return the budgets given as `board` in bytes: what it has for the models.

    Of the RAM in which the workspace lies that is what inputs, outputs, the usual stack and the
    board's reserve leave: what is in a budget then fits the board, and the other way round.

    Raises:
        UsageError: the verb was given no board, or the board has no such memory.
    """
    flag = f"--{board_budgets[0].replace('_', '-')} {_OF_BOARD}"
    if board is None:
        raise UsageError(f"{flag} needs a board", where=flag, fix="add --board, or give bytes")
    from microtir.boards.search import load_board
    from microtir.projects.capacity import workspace_room

    chosen = load_board(board)
    known: dict[str, int | None] = {}
    if "ram_budget" in board_budgets:
        known["ram"] = workspace_room(chosen, config, _io_bytes(models, config))
    if "flash_budget" in board_budgets:
        known["flash"] = chosen.flash_bytes
    if "stack_budget" in board_budgets:
        known["stack"] = chosen.usual_stack
    for name, limit in known.items():
        if limit is None or limit <= 0:
            raise UsageError(
                f"the board '{board}' has no {name} left for a model, or its amount is unknown",
                where=f"--{name}-budget {_OF_BOARD}",
                fix="give the limit as a number of bytes",
            )
    return {name: limit for name, limit in known.items() if limit}


def _io_bytes(models: Sequence[str], config: CompilationConfig) -> int:
    """Return the bytes of inputs and outputs outside of the workspace; turns share them.

    Of a model that cannot be read nothing is known: whoever compiles it says what is wrong.
    """
    from microtir.lowering.ports import io_bytes
    from microtir.rewrite.requests.requested import requested_graph

    graphs = (model.read_model(m, config).graph for m in models if not model.model_problems(m))
    read = (requested_graph(graph, config) for graph in graphs if graph is not None)
    return max((io_bytes(graph, config) for graph in read), default=0)


def _show_whole_help(context: typer.Context, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        context.meta[WHOLE_HELP] = True
        write(context.get_help())
        raise typer.Exit(ExitCode.DONE)


def _panel(flag: Flag) -> str:
    """Return the part of the help that a flag stands in: first what most people set."""
    panels = (panel for start, panel in _PANELS.items() if flag.name.startswith(start))
    return next(panels, PANEL)


def _flag_parameters() -> list[inspect.Parameter]:
    panels = [(flag, _panel(flag)) for flag in FLAGS]
    first = [_parameter(flag, panel) for flag, panel in panels if panel == PANEL]
    rest = [_parameter(flag, panel) for flag, panel in panels if panel != PANEL]
    tvmc = [_parameter(flag, TVMC_PANEL) for flag in TVMC_FLAGS]
    dump = inspect.Parameter(
        _DUMP,
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[
            bool,
            typer.Option(
                "--dump-config",
                help="Prints the configuration as JSON for --config, and then ends.",
                rich_help_panel=PANEL,
            ),
        ],
    )
    whole = inspect.Parameter(
        _ALL,
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[
            bool,
            typer.Option(
                HELP_ALL, is_eager=True, callback=_show_whole_help, help="Shows every option."
            ),
        ],
    )
    return [*_READING, *first, dump, *rest, *tvmc, whole]


def _parameter(flag: Flag, panel: str) -> inspect.Parameter:
    return inspect.Parameter(
        flag.dest,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            list[str] | None if flag.repeatable else str | None,
            typer.Option(
                *([flag.short] if flag.short else []),
                flag.name,
                metavar=flag.metavar,
                help=flag.help,
                show_default=False,
                rich_help_panel=panel,
            ),
        ],
    )


def _of_file(name: str, type_: Any, option: Any) -> inspect.Parameter:
    """Return the parameter for something that is said of the model file."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=Annotated[type_ | None, option])


_READING = (
    _of_file(
        "signature",
        str,
        typer.Option(
            "--signature",
            metavar="NAME",
            help="Selects a signature of a TFLite file, as FILE#NAME does.",
            show_default="the first",
        ),
    ),
    _of_file(
        "dim",
        list[str],
        typer.Option(
            "--dim",
            metavar="NAME=EXTENT",
            help="Sets the extent of a named dimension of an ONNX file. With NAME=1..8, each run "
            "sets the batch size.",
            show_default="1 for the first dimension",
        ),
    ),
    _of_file(
        "input_shapes",
        str,
        typer.Option(
            "--input-shapes",
            metavar="NAME:[N,…],…",
            help="Sets input shapes that an ONNX file does not state.",
            show_default="those of the file",
        ),
    ),
)
"""The flags that a MODEL argument may give behind a `#`."""
