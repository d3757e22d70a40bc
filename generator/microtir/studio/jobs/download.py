"""Makes what the page lets people take with them: C, an archive, a project, files."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

from microtir import driver, packages
from microtir.artifact import Artifact
from microtir.errors import UsageError
from microtir.projects import generate
from microtir.report.board_limits import limits_of_board
from microtir.report.collect import describe
from microtir.report.html import to_html
from microtir.studio.events import Emit, progress
from microtir.studio.plan import Plan
from microtir.support.archives import zip_bytes
from microtir.writers.onnx import write_onnx


class DownloadKind(Enum):
    """A thing to take; the value is what the page calls it."""

    SOURCES = "sources"
    ARCHIVE = "mlf"
    PROJECT = "project"
    REPORT = "report"
    PACKAGE = "package"
    TFLITE = "tflite"  # integers that were made here
    ONNX = "onnx"  # the same as QDQ


@dataclass(frozen=True, slots=True)
class Download:
    """A thing that is made of a plan; a project has a type, and a package a format."""

    plan: Plan
    kind: DownloadKind
    project_type: str | None
    package_format: str | None = None

    def run(self, emit: Emit) -> None:
        """Tell the file, with its name."""
        emit(progress("making the file"))
        name = self.plan.model.module_name
        match self.kind:
            case DownloadKind.SOURCES:
                files = {file.path: file.content for file in self._artifact().files}
                file, content = f"{name}.zip", zip_bytes(files)
            case DownloadKind.ARCHIVE:
                file, content = f"{name}.tar", self._archive()
            case DownloadKind.PROJECT:
                file, content = f"{name}_{self.plan.board}.zip", self._project()
            case DownloadKind.PACKAGE:
                file, content = f"{name}_{self.package_format}.zip", self._package()
            case DownloadKind.REPORT:
                file, content = f"{name}.html", self._report()
            case DownloadKind.TFLITE | DownloadKind.ONNX:
                file, content = self._integers()
        emit({"event": "file", "name": file, "content": base64.b64encode(content).decode()})

    def _artifact(self) -> Artifact:
        return driver.build(self.plan.module())

    def _archive(self) -> bytes:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model.tar"
            self._artifact().export(file, "mlf")
            return file.read_bytes()

    def _project(self) -> bytes:
        board = self.plan.load_board()
        if board is None or self.project_type is None:
            raise UsageError(
                "a project needs a board", where="download", fix="choose a board above"
            )
        with TemporaryDirectory() as folder:
            root = Path(folder) / "project"
            generate(self._artifact(), board, self.project_type, root)
            return zip_bytes(_files(root))

    def _package(self) -> bytes:
        if self.package_format is None:
            raise UsageError(
                "the format of the package is missing",
                where="download",
                fix="choose a format above",
            )
        with TemporaryDirectory() as folder:
            root = Path(folder) / "package"
            packages.generate(self._artifact(), self.package_format, root)
            return zip_bytes(_files(root))

    def _integers(self) -> tuple[str, bytes]:
        """Return the name and the content of a model file."""
        model = self.plan.model
        if model.origin is None:
            raise UsageError(
                "the studio did not quantise it", where="download", fix="use its own file"
            )
        if self.kind is DownloadKind.TFLITE:
            return model.path.name, model.path.read_bytes()
        graph = model.read().graph
        assert graph is not None, "a frontend read the graph"
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"{model.path.stem}.onnx"
            write_onnx(graph, file)
            return file.name, file.read_bytes()

    def _report(self) -> bytes:
        board = self.plan.load_board()
        limits = limits_of_board(board) if board else None
        page = to_html(describe(self.plan.module(), limits_of=limits))
        return page.encode(errors="backslashreplace")


def _files(root: Path) -> dict[str, bytes]:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
