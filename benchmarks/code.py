"""`python -m benchmarks code [CPU ...]`: estimates of code beside what a board's compiler makes.

With `--record` they go to `code.json`: the example and the reference models at each goal, and with
`code unseen [CPU ...]` ten of the exported models at `speed`.
`python -m benchmarks code calibrate [CPU ...]` compiles random models (`networks`, `unseen`) for
each CPU and fits the bytes of each kind of work to their functions; `--record` writes these
figures to `measure/measured/CPU.json` of the package.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from benchmarks.networks import network
from benchmarks.prices import read_prices, write_prices
from benchmarks.unseen import drawn
from microtir import driver, frontend
from microtir.artifact import Artifact
from microtir.boards import Board, load_board
from microtir.codegen.bodies import helper_text
from microtir.codegen.printer.helpers import with_dependencies
from microtir.codegen.program import make_program
from microtir.config import CompilationConfig, Optimize
from microtir.measure import Functions
from microtir.measure.code import (
    CodeFigures,
    is_compiled_alone,
    measured_file,
    with_copies,
    written_in,
)
from microtir.measure.flash import assembly_bytes, is_assembly, is_tree
from microtir.module.ir_module import IRModule
from microtir.profiling import BoardCompiler
from microtir.profiling.link_map import Piece
from microtir.tir.analysis.long_products import copies_products, has_short_products
from microtir.tir.float_functions import OF_TWO, OWN

BOARDS = MappingProxyType(
    {"cortex-m0": "microbit", "cortex-m4": "mps2_an386", "rv32imc": "riscv32"}
)
"""CPUs that have figures, each with a board of theirs."""

RECORDED = Path(__file__).parent / "code.json"
_GOALS = tuple(Optimize)
_TRAINED = Optimize.FLASH, Optimize.BALANCED, Optimize.SPEED, Optimize.RAM
_LAYERS, _NETWORKS = 200, 60
_STIFF, _NEAR, _TURNS, _SWEEPS = 0.003, 0.05, 8, 200
_TYPICAL = 300  # bytes of a function
UNSEEN, _SEED, _UNSEEN = "unseen", 36, 10
_INCLUDED = "#include <math.h>\n#include <stdint.h>\n\n"
_PROBE = """
void probe(float *x, float *y, int32_t *i, uint32_t *u, int64_t *l, double *d,
           const int8_t *c, int8_t *restrict b)
{
"""
_MATH = "ceil", "cos", "exp", "floor", "log", "round", "sin", "sqrt", "tanh"
_FORMS = {form.value: "*x, *y" if form in OF_TWO else "*x" for form in OWN.values()}
PROBES: Mapping[str, str] = MappingProxyType({
    "add_float": "*y = *x + *y;",
    "mul_float": "*y = *x * *y;",
    "div_float": "*y = *x / *y;",
    "compare_float": "*i = *x < *y;",
    "minmax_float": "*y = *x > *y ? *x : *y;",
    "convert_to_float": "*y = (float)*i;",
    "convert_from_float": "*i = (int32_t)*y;",
    "convert_to_float_unsigned": "*y = (float)*u;",
    "convert_from_float_unsigned": "*u = (uint32_t)*y;",
    "double": "*y = (float)((double)*x * *d); *i = (int32_t)(*d + *i);",
    "div_int": "*i = i[0] / i[1];",
    "div_by_constant": "*i = *i / 3; *u = *u / 3;",
    "div_long": "*l = l[0] / l[1];",
    "mul_long": "*l = (int64_t)i[0] * i[1];",
    "mla_long": "*l += (int64_t)i[0] * i[1];",
    "multiply_by_quantized_multiplier": "*l = (int64_t)i[0] * i[1];",
    "multiply_by_quantized_multiplier_by": "*l = (int64_t)i[0] * i[1];",
    "multiply_by_reduced_multiplier": "*l = (int64_t)i[0] * i[1];",
    "saturating_rounding_doubling_high_mul": "*l = (int64_t)i[0] * i[1];",
    "copies": "for (int32_t n = 0; n < 100; n++) b[n] = c[n];",
    "fills": "for (int32_t n = 0; n < 100; n++) b[n] = 3;",
    **{name: f"*y = {name}f(*x);" for name in _MATH},
    **{name: f"*y = {name}({values});" for name, values in _FORMS.items()},
    "atan2": "*y = atan2f(*x, *y);", "pow": "*y = powf(*x, *y);", "fmod": "*y = fmodf(*x, *y);",
})  # fmt: skip
"""The least C that has each kind of work for which a CPU may need a library."""
_LONG = "mul_long", "mla_long", "saturating_rounding_doubling_high_mul"
_RESCALING = "multiply_by_quantized_multiplier", "multiply_by_quantized_multiplier_by"
PARTED = frozenset({*_LONG, *_RESCALING})
"""Kinds that need no library where products of 64 bits are made of four of 32."""

_OPERATIONS = {
    "add", "address", "argument", "bits", "branch", "clamp", "compare", "convert", "deep", "div",
    "entry", "load", "minmax", "mla", "mul", "place", "pointer", "saturate", "select", "shift",
    "store", "widen",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Written:
    """A function in C: what is written in it, and the bytes that a compiler made of it."""

    work: Mapping[str, int]
    bytes: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that was compiled.

    Args:
        functions: those in C.
        rest: bytes of assembly and of trees as they are stated.
        libraries: bytes of what was linked from the compiler's libraries, by member.
        bytes: of the whole program.
    """

    functions: tuple[Written, ...]
    rest: int
    libraries: Mapping[str, int]
    bytes: int

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind for each in self.functions for kind in each.work)

    def stated(self, figures: CodeFigures) -> float:
        """Return the bytes that figures state."""
        own = sum(figures.of(each.work) for each in self.functions)
        return self.rest + own + figures.linked(self.kinds)


@dataclass(frozen=True, slots=True)
class Statement:
    """Bytes of code of a model: by estimate, and by its board's compiler."""

    stated: int
    measured: int

    @property
    def error(self) -> float:
        return self.stated / self.measured - 1


def compiled(module: IRModule, board: Board, goal: Optimize) -> Compiled:
    """Compile a model for a board and take its program to pieces."""
    config = CompilationConfig.from_target(board.target).with_(optimize=goal, module_name="drawn")
    artifact = driver.build(module.with_configuration(config))
    pieces = [piece for piece in _pieces(artifact, board) if piece.is_flash]
    sizes, libraries = Counter[str](), _libraries(pieces)
    for piece in pieces:
        if piece.is_model and not piece.is_weights:
            sizes[_function_name(piece)] += piece.size
    functions, rest = _functions(artifact, sizes)
    total = sizes.total() + libraries.total()
    return Compiled(functions, rest, MappingProxyType(dict(libraries)), total)


def _functions(artifact: Artifact, sizes: Counter[str]) -> tuple[tuple[Written, ...], int]:
    """Return the functions of a program with their sizes, and the bytes of the others.

    What a compiler makes functions of by itself is a part of all.
    """
    program = make_program(artifact.module)
    functions = Functions.of(artifact.module.functions, is_model=True)
    names = {functions.originals[f]: name for f, name in program.names.items()}
    left, works, rest = Counter(sizes), [], 0
    for function in functions.distinct:
        size = left.pop(names[function], 0)
        if is_assembly(functions, function):
            rest += assembly_bytes(functions, function)
        elif is_tree(function):
            rest += size
        elif function is functions.main:
            size = sum(left.pop(name, 0) for name in ("drawn_run", "drawn_status_text", ""))
            works.append((written_in(functions, function), size))
        elif is_compiled_alone(functions, function) and size:
            works.append((written_in(functions, function), size))
        else:
            left[names[function]] += size
    if copies_products(artifact.module.require_config("code")):
        works = [(with_copies(work), size) for work, size in works]
    own = sum(size for _, size in works)
    return tuple(
        Written(MappingProxyType(work), round(size * (1 + left.total() / own)))
        for work, size in works
    ), rest  # fmt: skip


def _libraries(pieces: Iterable[Piece]) -> Counter[str]:
    """Return the bytes of what comes from libraries, by archive and member."""
    libraries = Counter[str]()
    for piece in pieces:
        if piece.is_library:
            libraries[re.sub(r".*/", "", piece.object)] += piece.size
    return libraries


def _function_name(piece: Piece) -> str:
    """Return the function that a section holds; empty for constants."""
    if not piece.section.startswith(".text."):
        return ""
    return re.sub(r"\.(constprop|isra|part|cold)\.\d+", "", piece.section.removeprefix(".text."))


def _pieces(artifact: Artifact, board: Board) -> tuple[Piece, ...]:
    return _compiler(board).pieces({file.path: file.text for file in artifact.sources})


def _compiler(board: Board) -> BoardCompiler:
    compiler = BoardCompiler.of(board)
    if compiler is None:
        raise SystemExit(f"{board.name}: its compiler is not on this machine")
    return compiler


# --- figures --------------------------------------------------------------------------------------


def random_programs(board: Board) -> Iterator[Compiled]:
    """Compile random layers and networks, each at two goals."""
    for number in range(_LAYERS):
        for step in (0, 1):
            goal = _TRAINED[(number + step) % len(_TRAINED)]
            yield compiled(drawn(number)[1], board, goal)
    for number in range(_NETWORKS):
        for step in (0, 1 + number // 8):
            goal = _TRAINED[(number // 2 + step) % len(_TRAINED)]
            yield compiled(network(number), board, goal)


def expected(kind: str, forms: Mapping[str, int]) -> float:
    """Return about what a kind takes: a form of a float function as its probe, others by name."""
    if kind in forms:
        return forms[kind]
    name = kind.removeprefix("main_").split("_", maxsplit=1)[0]
    return 4.0 if name in _OPERATIONS else 20.0 if name in ("function", "main") else 60.0


def fitted(functions: Sequence[Written], forms: Mapping[str, int]) -> dict[str, float]:
    """Return the bytes of each kind with which functions come out nearest; none is less than 0.

    A function weighs by its size, and the median counts rather than the worst.  Forms of float
    functions that no function has take what their probes do.
    """
    kinds = sorted({kind for each in functions for kind in each.work})
    shares = np.array([[f.work.get(kind, 0) / f.bytes for kind in kinds] for f in functions])
    prior = np.array([expected(kind, forms) for kind in kinds])
    pull = (_STIFF / prior) ** 2 * len(functions)
    sizes = np.sqrt([f.bytes / _TYPICAL for f in functions])
    weights, figures = sizes, prior.copy()
    for _ in range(_TURNS):
        rows = shares * weights[:, np.newaxis]
        products = rows.T @ rows + np.diag(pull)
        sides = rows.T @ weights + pull * prior
        for _ in range(_SWEEPS):
            for n in range(len(kinds)):
                more = (sides[n] - products[n] @ figures) / products[n, n]
                figures[n] = max(figures[n] + more, 0.0)
        weights = sizes * np.maximum(np.abs(shares @ figures - 1), _NEAR) ** -0.5
    return {**forms, **dict(zip(kinds, figures.round(2).tolist(), strict=True))}


def probed(board: Board) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Compile the probes for a board.

    Returns the members of libraries that a linker adds for each kind, with their bytes, and the
    bytes of each form of a float function.
    """
    compiler, linked, forms = _compiler(board), dict[str, dict[str, int]](), dict[str, int]()
    parted = PARTED if has_short_products(board.target) else frozenset()
    for kind, lines in PROBES.items():
        if kind in parted:
            continue
        helpers = with_dependencies((kind,)) if kind in _FORMS else ()
        text = "\n".join((_INCLUDED, *map(helper_text, helpers), f"{_PROBE}{lines}\n}}\n"))
        pieces = [piece for piece in compiler.pieces({"probe.c": text}) if piece.is_flash]
        if members := _libraries(pieces):
            linked[kind] = dict(members)
        if helpers:
            forms[kind] = sum(piece.size for piece in pieces if piece.is_model)
    return linked, forms


def calibrated(
    programs: Sequence[Compiled],
    linked: Mapping[str, Mapping[str, int]],
    forms: Mapping[str, int],
) -> CodeFigures:
    """Return the figures of a CPU.

    Args:
        programs: that were compiled for it.
        linked: the members of libraries that each kind needs.
        forms: the bytes of each form of a float function.
    """
    functions = [each for program in programs for each in program.functions]
    libraries = {member: n for members in linked.values() for member, n in members.items()}
    named = {kind: tuple(sorted(members)) for kind, members in linked.items()}
    figures = CodeFigures(fitted(functions, forms), libraries, named, 100, 100)
    percents = [100 * program.bytes / program.stated(figures) for program in programs]
    limits = int(min(percents)), int(max(percents)) + 1
    return CodeFigures(figures.bytes, libraries, named, *limits)


def calibrate(cpus: Sequence[str], *, recorded: bool) -> None:
    """Fit the figures of CPUs, print how near they come, and write them where that is asked."""
    for cpu in cpus or BOARDS:
        board = load_board(BOARDS[cpu])
        programs = list(random_programs(board))
        figures = calibrated(programs, *probed(board))
        errors = np.abs([program.stated(figures) / program.bytes - 1 for program in programs])
        near = ", ".join(f"{np.mean(errors <= n / 100):.0%} within {n} %" for n in (5, 10, 20))
        print(f"{cpu}: {len(programs)} programs: {near}", flush=True)
        if recorded:
            text = json.dumps(asdict(figures), indent=1, sort_keys=True)
            measured_file(cpu).write_text(f"{text}\n", encoding="utf-8")


# --- models ---------------------------------------------------------------------------------------


def statement(module: IRModule, board: Board, goal: Optimize) -> Statement:
    """Return the estimate of a model, and what its board's compiler makes."""
    config = CompilationConfig.from_target(board.target).with_(optimize=goal)
    artifact = driver.build(module.with_configuration(config))
    return Statement(artifact.metadata.code_bytes_estimate, _compiler(board)(artifact))


def measure_all(files: Sequence[Path], cpus: Sequence[str]) -> dict[str, dict[str, Statement]]:
    """Measure models at each goal and print a line for each."""
    found: dict[str, dict[str, Statement]] = {}
    for cpu in cpus or BOARDS:
        board, found[cpu] = load_board(BOARDS[cpu]), {}
        for file in files:
            module = frontend.from_tflite(file)
            for goal in _GOALS:
                name = f"{file.stem} {goal.value}"
                s = found[cpu][name] = statement(module, board, goal)
                row = f"{name:<28}{s.stated:>8}{s.measured:>8}{s.error:>+8.1%}"
                print(f"{cpu:<12}{row}", flush=True)
        near = sum(abs(s.error) <= 0.1 for s in found[cpu].values())
        print(f"{cpu}: {near} of {len(found[cpu])} within 10 %")
    return found


def measure_unseen(folder: Path, cpus: Sequence[str]) -> dict[str, dict[str, Statement]]:
    """Measure models that were not looked at while kinds of work were chosen, at `speed`.

    Args:
        folder: of the exported models, of which a seed draws a few.
        cpus: a Cortex-M4 where none is named.
    """
    files = random.Random(_SEED).sample(sorted(folder.glob("*.tflite")), _UNSEEN)
    found: dict[str, dict[str, Statement]] = {}
    for cpu in cpus or ("cortex-m4",):
        board, of_cpu = load_board(BOARDS[cpu]), found.setdefault(f"{UNSEEN} on {cpu}", {})
        for file in files:
            s = statement(frontend.from_tflite(file), board, Optimize.SPEED)
            of_cpu[file.stem] = s
            print(f"{file.stem:<48}{s.stated:>8}{s.measured:>8}{s.error:>+8.1%}", flush=True)
    return found


def read_recorded() -> dict[str, dict[str, Statement]]:
    """Read the figures of `code.json`."""
    return read_prices(RECORDED, Statement)


def record(found: Mapping[str, Mapping[str, Statement]]) -> None:
    """Write the figures; those of other CPUs stay."""
    write_prices(RECORDED, Statement, found)
