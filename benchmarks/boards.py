"""`python -m benchmarks boards`: every emulated board with every int8 model that fits on it.

Each pair is verified on the board against golden outputs and profiled. `--record` writes the
figures to `boards.json`, keyed by board, compiler and model; tests compare them where the compiler
is the recorded one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import microtir
from microtir import driver
from microtir.artifact import Artifact
from microtir.boards import Board, Label, ProjectType, all_boards
from microtir.boards.errors import BuildError, ModelTooLargeError
from microtir.errors import MicrotirError
from microtir.profiling import Profile, profile
from microtir.projects import run_samples
from microtir.support import resources
from microtir.support.names import module_name_from

RECORDED = Path(__file__).parent / "boards.json"
EXAMPLE = "digits_int8"
INT8_MODELS = ("ad01_int8", "kws_int8", "resnet8_int8", "strww_int8", "vww_int8")
EXAMPLE_SAMPLES = 10  # of 450: an AVR takes half a second for one

# Large models where they fit; the example model runs on every board.
LARGE_BOARDS = (
    "mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547", "riscv32",
    "riscv32_zbb",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardFigures:
    """One model on one board: the verdict on its outputs, and what an inference costs."""

    equal: bool
    samples: int
    instructions: int
    cycles_estimate: int
    code: int
    weights: int
    workspace: int
    scratch: int
    io: int
    data: int
    stack: int
    stack_bound: int

    @property
    def flash(self) -> int:
        return self.code + self.weights

    @property
    def ram(self) -> int:
        """Return the bytes of RAM without the stack."""
        return self.workspace + self.scratch + self.io + self.data


Figures = dict[str, dict[str, dict[str, BoardFigures]]]
"""By board, compiler and model."""

# What a change may not raise by more than the tolerance, in the test.
COMPARED = ("instructions", "cycles_estimate", "flash", "ram", "stack")
TOLERANCE = 0.01


def models_folder() -> Path:
    """Return where the reference models are, if anywhere."""
    return Path(os.environ.get("MICROTIR_MODELS", Path(__file__).parents[2] / "shared" / "models"))


def counting_boards() -> list[Board]:
    """Return the boards whose emulator counts instructions."""
    return [
        board
        for board in all_boards()
        if board.emulator is not None
        and board.name != "host"
        and any(
            (s.type, s.label) == (ProjectType.BAREMETAL, Label.EXECUTED) for s in board.projects
        )
    ]


def pairs() -> Iterator[tuple[Board, str]]:
    """Yield the boards and models of the whole matrix."""
    folder = models_folder()
    for board in counting_boards():
        yield board, EXAMPLE
        for model in INT8_MODELS:
            if board.name in LARGE_BOARDS and (folder / f"{model}.tflite").is_file():
                yield board, model


def compiled(model: str, board: Board) -> Artifact:
    """Compile a model for a board, with the default configuration."""
    path = _model_path(model)
    config = microtir.CompilationConfig.from_target(board.target)
    module = microtir.frontend.from_tflite(path)
    return driver.build(module, config.with_(module_name=module_name_from(path.stem)))


def _model_path(model: str) -> Path:
    if model == EXAMPLE:
        return resources.example("digits/digits_int8.tflite")
    return models_folder() / f"{model}.tflite"


def figures_of(model: str, board: Board) -> tuple[str, BoardFigures]:
    """Verify and profile one model on one board; gives the compiler, too."""
    artifact = compiled(model, board)
    equal, samples = _verify(model, artifact, board)
    return _figures(profile(artifact, board), equal, samples)


def _figures(result: Profile, equal: bool, samples: int) -> tuple[str, BoardFigures]:
    ram = result.ram
    return result.compiler, BoardFigures(
        equal, samples, result.instructions, result.cycles, result.code, result.weights,
        ram.workspace, ram.scratch, ram.io, ram.data, ram.stack, result.stack_bound.bytes,
    )  # fmt: skip


def _verify(model: str, artifact: Artifact, board: Board) -> tuple[bool, int]:
    """Return whether the board computes the golden outputs, and for how many samples it did."""
    if model == EXAMPLE:
        data = np.load(resources.example("digits/digits_test.npz"))
        count = EXAMPLE_SAMPLES
    else:
        data = np.load(models_folder() / f"{model}.golden.npz")
        count = len(data["inputs"])
    info = artifact.module.model
    assert info is not None
    (source,), (sink,) = info.inputs, info.outputs
    inputs = [{source.name: x.reshape(source.type.shape)} for x in data["inputs"][:count]]
    got = run_samples(artifact, board, inputs)
    wanted = [y.reshape(sink.type.shape) for y in data["outputs"][:count]]
    equal = all(np.array_equal(g[sink.name], w) for g, w in zip(got, wanted, strict=True))
    return equal, count


def measure_all(chosen: list[str]) -> Figures:
    """Measure the whole matrix, or the boards and models chosen by name; print as it goes."""
    found: Figures = {}
    print(
        f"{'board':<12} {'model':<14}{'equal':>6}{'instructions':>14}{'est. cycles':>13}"
        f"{'flash':>9}{'RAM':>8}{'stack':>7}{'bound':>7}"
    )
    for board, model in pairs():
        if chosen and not {board.name, model} & set(chosen):
            continue
        try:
            compiler, row = figures_of(model, board)
        except (ModelTooLargeError, BuildError) as error:
            print(f"{board.name:<12} {model:<14}  does not fit: {str(error).splitlines()[0]}")
            continue
        except MicrotirError as error:
            print(f"{board.name:<12} {model:<14}  {error}")
            raise
        found.setdefault(board.name, {}).setdefault(compiler, {})[model] = row
        print(
            f"{board.name:<12} {model:<14}{'yes' if row.equal else 'NO':>6}{row.instructions:>14,}"
            f"{row.cycles_estimate:>13,}{row.flash:>9,}{row.ram:>8,}{row.stack:>7}"
            f"{row.stack_bound:>7}",
            flush=True,
        )
    return found


def read_recorded() -> Figures:
    """Read the figures of `boards.json`."""
    data = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.is_file() else {}
    return {
        board: {
            compiler: {model: BoardFigures(**row) for model, row in models.items()}
            for compiler, models in compilers.items()
        }
        for board, compilers in data.items()
    }


def record(found: Figures) -> None:
    """Put figures into `boards.json`; those of other boards, compilers and models stay."""
    merged = read_recorded()
    for board, compilers in found.items():
        for compiler, models in compilers.items():
            merged.setdefault(board, {}).setdefault(compiler, {}).update(models)
    data = {
        board: {
            compiler: {model: asdict(row) for model, row in sorted(models.items())}
            for compiler, models in sorted(compilers.items())
        }
        for board, compilers in sorted(merged.items())
    }
    RECORDED.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def dearer(recorded: BoardFigures, now: BoardFigures) -> Mapping[str, tuple[int, int]]:
    """Return figures that exceed what was recorded by more than the tolerance: before and now."""
    return {
        name: (getattr(recorded, name), getattr(now, name))
        for name in COMPARED
        if getattr(now, name) > getattr(recorded, name) * (1 + TOLERANCE)
    }
