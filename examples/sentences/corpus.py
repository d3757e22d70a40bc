"""Lines of a made-up language of six people and their things, which rules make and check.

A line says what somebody has and then says the same in other words, so that a model has to look
back to finish it: who it is about, which thing, of which colour.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

NAMES = ("anna", "ben", "carl", "dora", "emil", "finn")
THINGS = ("hat", "kite", "ball", "boat", "lamp", "drum")
COLOURS = ("red", "blue", "green", "white", "black")
FORMS = (
    ("{name} has a {colour} {thing}. ", "the {thing} of {name} is {colour}."),
    ("{other} lost a {colour} {thing}. ", "{name} found the {colour} {thing} of {other}."),
    ("{other} gave a {colour} {thing} to {name}. ", "now {name} has the {colour} {thing}."),
)
CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz."
"""What tokens stand for; a line begins and ends with the first one."""

LENGTH = 64
"""Characters of a line at most, the two ends with it."""

HELD_OUT = 7
"""One in so many lines is for the test."""


def lines() -> list[tuple[str, str]]:
    """Return all lines that the rules allow, each as its first sentence and what follows."""
    made = []
    for form in FORMS:
        others = NAMES if "{other}" in form[0] else ("",)
        for name, other, thing, colour in product(NAMES, others, THINGS, COLOURS):
            if name != other:
                words = {"name": name, "other": other, "thing": thing, "colour": colour}
                first, second = (part.format(**words) for part in form)
                made.append((first, second))
    return made


def split() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the lines to train with, and those that training does not see."""
    every = lines()
    order = np.random.default_rng(0).permutation(len(every))
    count = len(every) // HELD_OUT
    test, train = order[:count], order[count:]
    return [every[n] for n in train], [every[n] for n in test]


def tokens_of(text: str) -> list[int]:
    """Return the numbers of characters."""
    return [CHARACTERS.index(character) for character in text]


def text_of(tokens: list[int]) -> str:
    """Return the characters of numbers; those behind the last one are none."""
    return "".join(CHARACTERS[n] if n < len(CHARACTERS) else "?" for n in tokens)


def batch_of(some: list[tuple[str, str]]) -> npt.NDArray[np.int64]:
    """Return lines as rows of tokens, ended by and filled up with the first character."""
    rows = np.zeros((len(some), LENGTH), np.int64)
    for row, (first, second) in zip(rows, some, strict=True):
        row[1 : 1 + len(first + second)] = tokens_of(first + second)
    return rows
