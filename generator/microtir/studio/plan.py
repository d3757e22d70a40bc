"""Defines what the page asks for: a model, for a board or a CPU, with a goal and a budget."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from microtir.boards import Board, load_board
from microtir.config import CompilationConfig, config_from_flags
from microtir.module.ir_module import IRModule
from microtir.studio.models import ModelFile


@dataclass(frozen=True, slots=True)
class Plan:
    """A model with what it is compiled for; either a board or a target is named.

    Args:
        model: to be compiled.
        board: its target is taken, and its memories are limits.
        target: a CPU, where there is no board.
        optimize: the goal.
        ram_budget: bytes of the workspace and the state; None for no limit.
    """

    model: ModelFile
    board: str | None
    target: str | None
    optimize: str
    ram_budget: int | None

    def load_board(self) -> Board | None:
        """Return the board; None if a CPU is named."""
        return None if self.board is None else load_board(self.board)

    def config(self) -> CompilationConfig:
        """Return the configuration that the command line would make of it; ConfigError if none."""
        board = self.load_board()
        base = None if board is None else CompilationConfig.from_target(board.target)
        budget = None if self.ram_budget is None else str(self.ram_budget)
        flags = {"--target": self.target, "--optimize": self.optimize, "--ram-budget": budget}
        config = config_from_flags(flags, base).with_(module_name=self.model.module_name)
        if self.model.counts_batch:
            config = config.with_(executor=config.executor.with_options({"batch-count": True}))
        return config

    def module(self) -> IRModule:
        """Return the model with its configuration; MicrotirError if there is none."""
        return self.model.read().with_configuration(self.config())

    @property
    def command(self) -> str:
        """Return the command line that compiles the same."""
        where = ("--board", self.board) if self.board else ("--target", self.target or "c")
        words = ["microtir", "compile", *self.model.words, *where, "--optimize", self.optimize]
        if self.ram_budget is not None:
            words += ["--ram-budget", str(self.ram_budget)]
        return shlex.join([*words, "-o", "out"])

    @property
    def title(self) -> str:
        """Return what the plan is called where it stands beside another."""
        budget = "" if self.ram_budget is None else f", {self.ram_budget:,} bytes of RAM"
        return f"{self.model.label} for {self.board or self.target}, {self.optimize}{budget}"
