"""Compiles and links a program for a board by itself, to learn how much code it has.

The linker is given no script of the board, so that what is too large for a board can be measured.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from microtir.artifact import Artifact
from microtir.boards.board import Board, Toolchain
from microtir.boards.errors import MissingToolError
from microtir.boards.toolchain import check_requirements, compiler_version
from microtir.profiling.link_map import Piece, model_sizes, parse_map
from microtir.projects.build import run_build
from microtir.projects.options import ProjectOptions

_WEIGHTS = "_weights.c"  # how the file of constant arrays ends, whose bytes are known
_RUNTIME = "runtime_crt"  # is there once, for all models of an application


class BoardCompiler:
    """The compiler of a board, for a driver that has to know how much code there is.

    What it made of a program it remembers.
    """

    def __init__(self, toolchain: Toolchain) -> None:
        self._toolchain = toolchain
        self._known: dict[tuple[str, ...], int] = {}

    @staticmethod
    def of(board: Board) -> BoardCompiler | None:
        """Return the compiler of a board, if it names one and that is on this machine."""
        try:
            check_requirements(board.toolchain)
        except MissingToolError:
            return None
        return BoardCompiler(board.toolchain)

    @property
    def name(self) -> str:
        """Name, version and what it optimises for."""
        return f"{compiler_version(self._toolchain)}, {ProjectOptions().optimization}"

    def __call__(self, artifact: Artifact) -> int:
        """Return bytes of code, with its constants and what it uses of the compiler's libraries.

        Raises:
            BuildError: the compiler's own message.
        """
        text = tuple(file.text for file in artifact.sources if file.path.endswith(".c"))
        if text not in self._known:
            texts = {file.path: file.text for file in artifact.sources}
            self._known[text] = model_sizes(self.pieces(texts), ()).code
        return self._known[text]

    def pieces(self, texts: Mapping[str, str]) -> tuple[Piece, ...]:
        """Return the sections of the program of some files, one for each function.

        Args:
            texts: of the files, by path.

        Raises:
            BuildError: the compiler's own message.
        """
        with tempfile.TemporaryDirectory(prefix="microtir-code-") as scratch:
            return self._linked(texts, Path(scratch))

    def _linked(self, texts: Mapping[str, str], folder: Path) -> tuple[Piece, ...]:
        tool = self._toolchain
        common = [tool.compiler, *tool.flags, ProjectOptions().optimization]
        paths = [PurePosixPath("model", name) for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        includes = [f"-I{place}" for place in sorted({p.parent for p in paths if p.suffix == ".h"})]
        objects = []
        for path in paths:
            if (
                path.suffix == ".c"
                and not path.name.endswith(_WEIGHTS)
                and _RUNTIME not in path.parts
            ):
                objects.append(f"build/{path.with_suffix('.o')}")
                (folder / objects[-1]).parent.mkdir(parents=True, exist_ok=True)
                sections = ["-ffunction-sections", "-fdata-sections"]
                options = ["-std=gnu99", "-ffp-contract=off", *sections, *includes]
                options += ["-c", str(path), "-o", objects[-1]]
                run_build([*common, *options], folder)
        # Weights are missing, and defaults of the linker may have less room than the board.
        lenient = [
            "--no-gc-sections",
            "--unresolved-symbols=ignore-all",
            "--noinhibit-exec",
            "-Map=program.map",
        ]
        linking = ["-nostartfiles", *(f"-Wl,{option}" for option in lenient)]
        run_build([*common, *tool.link_flags, *linking, *objects, "-lm", "-o", "program"], folder)
        return parse_map((folder / "program.map").read_text())
