"""Prints the assembly of micro-kernels as blocks of `__asm__` inside a naked function."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from microtir.codegen.printer.layout import INDENT, WIDTH
from microtir.measure.functions import native_values
from microtir.support.code_templates import render
from microtir.tir.ir import PrimFunc

# C99 lets compilers refuse string literals beyond 4,095 characters, and gcc warns under -pedantic.
LITERAL_LIMIT = 4000


def assembly_lines(template: str, kernel: PrimFunc) -> list[str]:
    """Return the body of a naked function.

    A comment of the template begins a new block, so that each stands beside its instructions;
    a block that is too long for one literal is continued in another.

    Raises:
        TemplateError: names template and line.
    """
    lines: list[str] = []
    for comment, instructions in _sections(render(template, **native_values(kernel))):
        lines += _fitting([INDENT + line for line in comment])
        lines += _blocks(instructions)
    return lines


def _fitting(comment: list[str]) -> list[str]:
    """Break the lines of a comment that are too long for where they stand."""
    if all(len(line) <= WIDTH for line in comment):
        return comment
    text = " ".join(line.strip().removeprefix("/*").lstrip("* ") for line in comment)
    lines = textwrap.wrap(text.removesuffix("*/"), WIDTH - len(f"{INDENT}/*  */"))
    first, *rest = [*lines[:-1], f"{lines[-1]} */"]
    return [f"{INDENT}/* {first}", *(f"{INDENT} * {line}" for line in rest)]


def _sections(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield comments, each with the instructions that follow it."""
    comment: list[str] = []
    instructions: list[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("/*") and instructions:
            yield comment, instructions
            comment, instructions = [], []
        if line.startswith(("/*", "*")):
            comment.append(line if line.startswith("/*") else f" {line}")
        else:
            instructions.append(line)
    if instructions:
        yield comment, instructions


def _blocks(instructions: list[str]) -> Iterator[str]:
    """Yield statements of basic asm, whose text the compiler passes on as it is."""
    block: list[str] = []
    size = 0
    for instruction in instructions:
        if size + len(instruction) + 1 > LITERAL_LIMIT:
            yield from _statement(block)
            block, size = [], 0
        block.append(instruction)
        size += len(instruction) + 1
    yield from _statement(block)


def _statement(block: list[str]) -> Iterator[str]:
    yield f"{INDENT}__asm__("
    for number, instruction in enumerate(block):
        end = ");" if number == len(block) - 1 else ""
        yield rf'{INDENT * 2}"{instruction}\n"{end}'
