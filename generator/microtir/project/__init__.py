"""Boards and projects: generated, built, run, written to a board and measured."""

from __future__ import annotations

from microtir.project.board_search import all_boards, load_board
from microtir.project.boards import Board, Console, Label, ProjectType
from microtir.project.buildable import Choice, default_type
from microtir.project.code_size import BoardCompiler
from microtir.project.emulate import RunResult
from microtir.project.generate import generate
from microtir.project.measure import Measurement, measure
from microtir.project.options import ProjectOptions, Samples
from microtir.project.profile import Profile, profile
from microtir.project.project import Project, load_project
from microtir.project.remote import node_results, run_nodes, run_samples
from microtir.project.session import Session

__all__ = [
    "Board",
    "BoardCompiler",
    "Choice",
    "Console",
    "Label",
    "Measurement",
    "Profile",
    "Project",
    "ProjectOptions",
    "ProjectType",
    "RunResult",
    "Samples",
    "Session",
    "all_boards",
    "default_type",
    "generate",
    "load_board",
    "load_project",
    "measure",
    "node_results",
    "profile",
    "run_nodes",
    "run_samples",
]
