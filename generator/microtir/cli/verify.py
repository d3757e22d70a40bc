"""`microtir verify` compares what the compiled C computes with reference outputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli import board_options
from microtir.cli.building import Built, build_model
from microtir.cli.choice import check_choice, check_exclusive
from microtir.cli.model import Model, golden_path, model_path, reading_of
from microtir.cli.output import write, write_json
from microtir.cli.panels import RUN_PANEL
from microtir.cli.progress import Progress
from microtir.cli.verdict import print_verdict
from microtir.config import CompilationConfig, Numerics
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.graph.ir import Graph
    from microtir.host.oracle import Oracle
    from microtir.host.samples import SampleBatch
    from microtir.host.verify import Verification
    from microtir.module.ir_module import ModelInfo

_REFERENCE = "reference"
_ORACLES = (_REFERENCE, "tflm", "litert", "onnxruntime")
_SAMPLES = 8
_STEPS = 8  # of a sample that is a sequence

Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of random inputs.")]
Sanitize = Annotated[
    bool,
    typer.Option("--sanitize", help="Runs the C with address and undefined-behaviour sanitizers."),
]


Golden = Annotated[
    Path | None,
    typer.Option(
        "--golden",
        metavar="FILE.npz",
        help="Reference outputs, as arrays `inputs` and `outputs`, or `inputs.NAME` and "
        "`outputs.NAME`. The first axis counts samples. If the model has a state, the second axis "
        "counts steps.",
    ),
]
Count = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="N",
        min=1,
        help=f"Number of random inputs. Default: {_SAMPLES}.",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps",
        metavar="N",
        min=1,
        help="Number of time steps of each random sample, for a model with a state.",
    ),
]
OracleTimeout = Annotated[
    float | None,
    typer.Option(
        "--oracle-timeout",
        metavar="SECONDS",
        min=0.1,
        rich_help_panel=RUN_PANEL,
        help="Time limit for each sample of a third-party oracle. Default: 60.",
    ),
]
OracleName = Annotated[
    str | None,
    typer.Option(
        "--oracle",
        metavar="|".join(_ORACLES),
        help="Computes the reference outputs if --golden is missing. reference (the default) is "
        "microtir in numpy, tflm is tflite-micro, litert is LiteRT's reference kernels.",
    ),
]
Rtol = Annotated[
    float | None,
    typer.Option(
        "--rtol",
        metavar="R",
        rich_help_panel=RUN_PANEL,
        help="Allows a float to differ by R times the largest reference output of its sample. "
        "Integers must be equal. Default: a bound on the rounding errors of float32.",
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        rich_help_panel=RUN_PANEL,
        help="Ends with status 1 also if integers differ by one step because the reference rounds "
        "differently.",
    ),
]
EveryLayer = Annotated[
    bool,
    typer.Option(
        "--every-layer",
        rich_help_panel=RUN_PANEL,
        help="Compares every layer for every sample. By default, layers are compared only for "
        "samples whose outputs differ.",
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Writes the verdict as JSON (- for stdout)."),
]


def verify(
    model: Model,
    config: CompilationConfig,
    golden: Golden = None,
    samples: Count = None,
    steps: Steps = None,
    oracle: OracleName = None,
    oracle_timeout: OracleTimeout = None,
    seed: Seed = 0,
    rtol: Rtol = None,
    sanitize: Sanitize = False,
    exact: Exact = False,
    every_layer: EveryLayer = False,
    json: JsonFile = None,
    board: board_options.MaybeBoard = None,
    port: board_options.Port = None,
    timeout: board_options.Timeout = 300.0,
) -> ExitCode:
    """Runs a model's C code and compares every output with a reference.

    The C code runs on this machine or on a board. Exit status 1 means that an output differs by
    more than a known rounding of the reference.
    """
    source = _Source.of(model, golden, samples, oracle, seed, steps, oracle_timeout)
    _check_rtol(rtol)
    board_options.check_board_options("microtir verify", board, port, sanitize=sanitize)
    source.check_has_outputs(config)
    from microtir.host.tolerance import tolerance_of
    from microtir.host.verify import HOST
    from microtir.host.verify import verify as verify_on_host

    with Progress() as progress:
        built = build_model(model, config, progress, board)
        progress.show("making the reference outputs")
        inputs, expected = source.read(built)
        progress.show("compiling and running the C")
        tolerance = tolerance_of(built.graph, inputs.values, rtol, inputs.steps)
        cause = source.rounding_cause(built.graph, config)
        verdict = verify_on_host(
            built.artifact,
            built.program.graph,
            inputs,
            expected,
            tolerance,
            sanitize=sanitize,
            every_layer=every_layer,
            board=board or HOST,
            run=board_options.board_runner(built.artifact, board, port, timeout),
            rounds_otherwise=bool(cause),
        )
    if json is not None:
        write_json({**verdict.to_dict(), "compared_with": source.text}, json)
    is_accepted = verdict.equal or (verdict.within_one_step and not exact)
    if str(json) != "-":
        print_verdict(
            verdict, built.model, tolerance, source.text, sanitize, config.numerics, exact=exact
        )
        if verdict.first_wrong_layer is None and not verdict.equal:
            _explain(verdict, source, cause, built, inputs, expected, config.numerics)
    return ExitCode.DONE if is_accepted else ExitCode.ANSWER_IS_NO


def _explain(
    verdict: Verification,
    source: _Source,
    cause: str,
    built: Built,
    inputs: SampleBatch,
    expected: SampleBatch,
    numerics: Numerics,
) -> None:
    """Write why the reference may differ from C that is right, and the option that mends it."""
    from microtir.host.reproduced import is_half_precision, numerics_that_reproduce

    if cause:
        write(cause)
    if known := source.may_differ(built, inputs):
        write(known)
    if not source.is_own:
        other = numerics_that_reproduce(built.graph, inputs, expected.values, numerics)
        if other is not None:
            write(f"--numerics {other.value} gives the outputs of the reference to the bit")
    if source.is_onnxruntime and is_half_precision(verdict.comparison, expected.values):
        write("values that are float16 in the file are float32 in C: --rtol 0.01 accepts these")


@dataclass(frozen=True, slots=True)
class _Source:
    """The origin of reference outputs: a golden file, or an oracle on random inputs."""

    model: Path
    golden: Path | None
    oracle: Oracle
    samples: int
    seed: int
    steps: int | None
    seconds: float | None

    @staticmethod
    def of(
        model: str,
        golden: Path | None,
        samples: int | None,
        oracle: str | None,
        seed: int,
        steps: int | None,
        seconds: float | None,
    ) -> _Source:
        """Check the options together.

        Raises:
            UsageError: options that contradict each other, or an oracle of another file format.
            ToolError: the oracle is not installed.
            MicrotirError: an oracle's model file cannot be read.
        """
        from microtir.host.oracle import Oracle, check_oracle

        for option, value in (("samples", samples), ("oracle", oracle), ("steps", steps)):
            check_exclusive(
                "sources of reference outputs",
                "microtir verify",
                golden=golden,
                **{option: value},
            )
        if oracle is not None:
            check_choice("oracle", oracle, _ORACLES, "--oracle")
        chosen = Oracle(oracle or _REFERENCE)
        check_oracle(chosen)
        if seconds is not None and chosen is Oracle.REFERENCE:
            raise UsageError(
                "--oracle-timeout is for third-party oracles", where="microtir verify",
                legal="--oracle tflm, litert or onnxruntime", fix="leave it out"
            )  # fmt: skip
        if golden is None and samples is None and oracle is None and steps is None:
            golden = golden_path(model)  # an example brings its own
        path, count = model_path(model), samples or _SAMPLES
        if chosen is not Oracle.REFERENCE:
            _check_can_run(chosen, model)
        return _Source(path, golden, chosen, count, seed, steps, seconds)

    @property
    def text(self) -> str:
        """Return what the outputs are compared with, for the verdict."""
        if self.golden is not None:
            return self.golden.name
        from microtir.host.oracle import title_of

        return f"{title_of(self.oracle)} on random inputs, seed {self.seed}"

    @property
    def is_own(self) -> bool:
        """Return whether the reference is microtir's own."""
        return self.golden is None and self.oracle.value == _REFERENCE

    @property
    def is_onnxruntime(self) -> bool:
        return self.golden is None and self.oracle.value == "onnxruntime"

    def rounding_cause(self, graph: Graph, config: CompilationConfig) -> str:
        """Return why integers may be a step from the reference; empty if they may not be."""
        from microtir.host.known_differences import rounding_cause

        return rounding_cause(graph, None if self.golden else self.oracle, config.numerics)

    def may_differ(self, built: Built, inputs: SampleBatch) -> str:
        """Return what of the model the reference may mean otherwise; empty if nothing."""
        from microtir.host.known_differences import one_run_each, operators_that_differ

        if self.is_own:
            return ""
        if self.golden is not None and built.model.states and inputs.steps is None:
            return one_run_each(len(inputs))
        return operators_that_differ(built.graph)

    def check_has_outputs(self, config: CompilationConfig) -> None:
        """Refuse a source that knows the model's own outputs only, where others are asked for."""
        from microtir.host.oracle import hands_on_outputs

        is_foreign = self.oracle.value != _REFERENCE
        what = ""
        if config.pass_config.more_outputs and (self.golden or is_foreign):
            what = "has no values of tensors inside the model"
        elif (config.prepend or config.append) and (self.golden or is_foreign):
            what = "does not include the steps of --prepend and --append"
        elif config.stateful and is_foreign:
            what = "runs the model on whole sequences, and not step by step"
        elif config.states and not hands_on_outputs(self.oracle):
            what = "does not pass outputs to the next run"
        if what:
            raise UsageError(
                f"{self.text} {what}",
                where="microtir verify",
                fix=f"compare with the reference: --oracle {_REFERENCE}",
            )

    def read(self, built: Built) -> tuple[SampleBatch, SampleBatch]:
        """Return inputs and expected outputs of each sample."""
        from microtir.frontend.model_bytes import load
        from microtir.host.oracle import SAMPLE_SECONDS, expected_outputs
        from microtir.host.samples import Fill, filled
        from microtir.host.windows import read_golden_windows

        if self.golden is not None:
            return read_golden_windows(self.golden, built.model)
        steps = made_up_steps(built.model, self.steps, "microtir verify", _STEPS)
        inputs = filled(built.model.inputs, self.samples, Fill.RANDOM, self.seed, steps)
        model = load(self.model).data
        expected = expected_outputs(
            self.oracle, built.graph, model, inputs,
            file=self.model.name, folder=self.model.parent,
            seconds=self.seconds or SAMPLE_SECONDS,
        )  # fmt: skip
        return inputs, expected


def _check_can_run(oracle: Oracle, model: str) -> None:
    """Refuse an oracle that runs no such file, or another program of it, where that is known.

    Raises:
        UsageError: says what runs it.
        MicrotirError: the file cannot be read.
    """
    from microtir import frontend
    from microtir.frontend.file_kinds import ModelFormat, format_of
    from microtir.frontend.model_bytes import load
    from microtir.host.oracle import check_format

    path, said = model_path(model), reading_of(model)
    source = load(path)
    format_ = format_of(source.data, source.file)
    if format_ is ModelFormat.TFLITE and source.data[4:8] != b"TFL3":
        return  # no model at all: who reads it says what it is
    check_format(oracle, path.name, format_.value)
    # A file of one signature has one program, which every interpreter runs.
    if said.signature is not None and len(frontend.signatures(path)) > 1:
        raise UsageError(
            f"the oracle '{oracle.value}' can run only the first program of a file, and not the "
            f"signature '{said.signature}'",
            where="--oracle",
            fix=f"compare with the reference: --oracle {_REFERENCE}",
        )


def made_up_steps(
    model: ModelInfo, stated: int | None, where: str, default: int | None = None
) -> int | None:
    """Return the runs of each made-up sample; None where a sample is one run.

    Raises:
        UsageError: steps were asked for, and the model keeps nothing between runs.
    """
    if model.states:
        return default if stated is None else stated
    if stated is not None:
        raise UsageError(
            f"'{model.name}' has no state",
            where=f"{where} --steps",
            fix="leave out --steps, because each sample is one run",
        )
    return None


def _check_rtol(rtol: float | None) -> None:
    if rtol is not None and not 0 <= rtol < float("inf"):
        raise UsageError(
            f"the tolerance is {rtol}", where="--rtol", legal="a number from 0, such as 1e-5"
        )
