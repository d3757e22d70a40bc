"""Defines what can go wrong with boards and projects; all of them are MicrotirErrors."""

from __future__ import annotations

from typing import ClassVar

from microtir.errors import ConfigError, ExitCode, MicrotirError, ToolError, UsageError


class BoardError(ConfigError):
    """A board is unknown, or a field of its `board.toml` is wrong; `where` names both."""


class ProjectError(UsageError):
    """A project cannot be generated or used as asked: wrong option, type or folder."""


class ModelTooLargeError(MicrotirError):
    """A model does not fit a board; the message holds what needs how much."""

    exit_code: ClassVar[ExitCode] = ExitCode.ANSWER_IS_NO


class MissingToolError(ToolError):
    """A compiler, an emulator or a library is not on this machine; `fix` says what to install."""

    more = "`microtir doctor` lists the tools of this machine, and how to install the others"


class BuildError(ToolError):
    """The compiler or the linker refused a project; the message is the tool's own."""


class EmulatorError(ToolError):
    """An emulator did not start, or did not end in time; the message shows its last output."""
