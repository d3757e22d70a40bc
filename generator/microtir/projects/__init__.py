"""Generates projects for boards, builds and runs them, and writes them to a board."""

from __future__ import annotations

from microtir.projects.buildable import default_type
from microtir.projects.generate import generate
from microtir.projects.options import ProjectOptions, Samples
from microtir.projects.project import Project, load_project
from microtir.projects.readiness import Readiness, readiness
from microtir.projects.remote import node_results, run_nodes, run_samples

__all__ = [
    "Project",
    "ProjectOptions",
    "Readiness",
    "Samples",
    "default_type",
    "generate",
    "load_project",
    "node_results",
    "readiness",
    "run_nodes",
    "run_samples",
]
