"""Measures which layers a third-party library should compute, on an emulated board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from microtir import driver
from microtir.boards.board import Board
from microtir.config import CompilationConfig, External, Measure
from microtir.device.emulate import DEFAULT_TIMEOUT
from microtir.errors import Fix, UsageError
from microtir.module.ir_module import IRModule
from microtir.profiling.code_size import BoardCompiler
from microtir.profiling.profile import profile
from microtir.rewrite.requests.requested import completed


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """The cost of one operator of the model file, in instructions or cycles as is measured.

    `external` is None where the library cannot compute it.
    """

    operator: int
    name: str
    own: int
    external: int | None

    @property
    def is_external(self) -> bool:
        return self.external is not None and self.external < self.own


@dataclass(frozen=True, slots=True)
class ExternalChoice:
    """The measured costs, and the configuration that gives each layer to the cheaper kernel."""

    layers: tuple[LayerChoice, ...]
    config: CompilationConfig


def choose_external(
    module: IRModule,
    config: CompilationConfig,
    board: Board,
    timeout: float = DEFAULT_TIMEOUT,
) -> ExternalChoice:
    """Measure every layer with the compiler's own kernels and with those of a library.

    Args:
        module: a model.
        config: names one library; what it says of operators does not matter. Its `measure` is
            what layers are compared by.
        board: emulated.
        timeout: seconds of one run.

    Raises:
        UsageError: the configuration does not name one library.
        MicrotirError: whatever `build` and `profile` raise.
    """
    if len(config.external) != 1:
        raise UsageError(
            f"the comparison needs one library, but the configuration names {len(config.external)}",
            where="external",
            legal="one library",
            fix=Fix(
                "name the library: external=External('cmsis-nn', FOLDER)",
                "name the library: --external cmsis-nn=FOLDER",
            ),
        )
    (library,) = config.external
    whole = External(library.library, library.path, everything=True)
    own = _measured(module, config.with_(external=()), board, timeout)
    external = _measured(module, config.with_(external=whole), board, timeout)
    layers = tuple(
        LayerChoice(index, name, cost, _of_library(external, index))
        for index, (name, cost, _) in own.items()
    )
    chosen = tuple(layer.operator for layer in layers if layer.is_external)
    used = (replace(whole, operators=chosen, everything=False),) if chosen else ()
    return ExternalChoice(layers, config.with_(external=used))


def _of_library(measured: Mapping[int, tuple[str, int, bool]], index: int) -> int | None:
    _, cost, is_external = measured.get(index, ("", 0, False))
    return cost if is_external else None


def _measured(
    module: IRModule, config: CompilationConfig, board: Board, timeout: float
) -> dict[int, tuple[str, int, bool]]:
    """Return name, cost and whether a library computes it, for each operator of the file."""
    limited = config.budget.flash is not None
    compiler = BoardCompiler.of(board) if limited else None
    artifact = driver.build(module, config, compiler=compiler)
    is_cycles = completed(config, module.graph).measure is Measure.CYCLES
    costs = {
        layer.function: layer.cycles if is_cycles else layer.instructions
        for layer in profile(artifact, board, timeout=timeout).layers
    }
    costs_of: dict[int, tuple[str, int, bool]] = {}
    for layer in artifact.metadata.layers:
        before = costs_of.get(layer.index, ("", 0, False))[1]
        cost = before + costs.get(layer.function, 0)
        costs_of[layer.index] = (layer.name, cost, bool(layer.externs))
    return costs_of
