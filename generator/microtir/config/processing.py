"""Processing that is put into the graph of a model: steps before its inputs, behind its outputs.

    INPUT=STEP,STEP;INPUT=STEP     from what a sensor gives to what the model takes
    OUTPUT=STEP,STEP               from what the model gives to what an application wants

A step has numbers after colons: `minus:0.485:0.456:0.406`.  The name may be left out where there
is only one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from microtir.errors import ConfigError

_CHANNELS = 1 << 12  # numbers of a step, at most


class StepKind(Enum):
    """A step; the value is its name."""

    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    RESIZE = "resize"
    NHWC = "nhwc"
    PLUS = "plus"
    MINUS = "minus"
    OVER = "over"
    TIMES = "times"
    SQRT = "sqrt"
    LOG = "log"
    WINDOW = "window"
    POWER = "power"
    MEL = "mel"
    DEQUANTIZE = "dequantize"
    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"
    ARGMAX = "argmax"
    TOPK = "topk"
    NMS = "nms"


GIVEN = (StepKind.INT8, StepKind.UINT8, StepKind.INT16)
"""Types of the values that a sensor gives."""

_ARITHMETIC = (StepKind.PLUS, StepKind.MINUS, StepKind.OVER, StepKind.TIMES)
_FUNCTIONS = (StepKind.SQRT, StepKind.LOG)
ELEMENTWISE = (*_ARITHMETIC, *_FUNCTIONS)
"""Steps that compute each element by itself, in floats."""


class Window(Enum):
    """A window of samples; the value is its name."""

    HANN = "hann"
    HAMMING = "hamming"


@dataclass(frozen=True, slots=True)
class Suppression:
    """The method by which boxes are chosen.

    Args:
        scores: the output that has their scores.
        overlap: above which a better box of its class removes a box.
        least: what scores have to be above.
        most: how many boxes are kept.
        is_centred: whether a box is given as centre and extents, and not as two corners.
    """

    scores: str
    overlap: float
    least: float
    most: int
    is_centred: bool

    def __str__(self) -> str:
        form = (_CENTRES,) if self.is_centred else ()
        return ":".join(
            (self.scores, f"{self.overlap:.9g}", f"{self.least:.9g}", str(self.most), *form)
        )


_CORNERS, _CENTRES = "corners", "centres"


@dataclass(frozen=True, slots=True)
class ProcessingStep:
    """A step of processing.

    Args:
        kind: which.
        numbers: one for all channels, or one for each; of `topk` how many; of `power` how many
            samples, and how many with zeros behind them; of `mel` the rate of samples, and the
            lowest and highest frequency.
        extents: height and width of what is resized.
        window: of `window`.
        suppression: of `nms`.
    """

    kind: StepKind
    numbers: tuple[float, ...] = ()
    extents: tuple[int, int] | None = None
    window: Window | None = None
    suppression: Suppression | None = None

    def __str__(self) -> str:
        words = [f"{number:.9g}" for number in self.numbers]
        words += ["x".join(map(str, self.extents))] if self.extents else []
        words += [self.window.value] if self.window else []
        words += [str(self.suppression)] if self.suppression else []
        return ":".join((self.kind.value, *words))


@dataclass(frozen=True, slots=True)
class Processing:
    """The steps of one input or output; an empty name stands for the only one."""

    name: str
    steps: tuple[ProcessingStep, ...]


def prepended(text: str) -> tuple[Processing, ...]:
    """Return the steps before inputs, of a text that has no problem."""
    return _parsed(text, _BEFORE)


def appended(text: str) -> tuple[Processing, ...]:
    """Return the steps behind outputs, of a text that has no problem."""
    return _parsed(text, _BEHIND)


def prepend_problem(text: str) -> str:
    """Return what is wrong with steps before inputs, or an empty text."""
    problem = _problem(text, _BEFORE)
    if problem:
        return problem
    for processing in prepended(text):
        kinds = [step.kind for step in processing.steps]
        if any(kind in GIVEN for kind in kinds[1:]):
            return f"has '{_late(kinds).value}' after a step, but the sensor's type comes first"
        if StepKind.NHWC in kinds[:-1]:
            return "has a step after 'nhwc', which must be the last step"
        if StepKind.POWER in kinds and StepKind.RESIZE in kinds:
            return "contains both 'resize', which is for images, and 'power', which is for samples"
        if StepKind.MEL in kinds and StepKind.POWER not in kinds[: kinds.index(StepKind.MEL)]:
            return "has 'mel' without 'power' before it, which computes the spectrum"
    return ""


def append_problem(text: str) -> str:
    """Return what is wrong with steps behind outputs, or an empty text."""
    problem = _problem(text, _BEHIND)
    if problem:
        return problem
    if any(StepKind.NMS in [s.kind for s in one.steps[:-1]] for one in appended(text)):
        return "has a step after 'nms', which must be the last step"
    return ""


def _late(kinds: Sequence[StepKind]) -> StepKind:
    return next(kind for kind in kinds[1:] if kind in GIVEN)


_Read = Callable[[StepKind, list[str]], ProcessingStep]


def _alone(kind: StepKind, words: list[str]) -> ProcessingStep:
    if words:
        raise ConfigError(f"has numbers after '{kind.value}', which takes no numbers")
    return ProcessingStep(kind)


def _numbers(kind: StepKind, words: list[str]) -> ProcessingStep:
    try:
        numbers = tuple(float(text) for text in words)
    except ValueError:
        raise ConfigError(f"contains '{':'.join(words)}', which is not a number") from None
    if not 1 <= len(numbers) <= _CHANNELS or not all(map(math.isfinite, numbers)):
        raise ConfigError(f"needs finite numbers after '{kind.value}', as {kind.value}:127.5")
    if kind is StepKind.OVER and 0.0 in numbers:
        raise ConfigError("divides by 0")
    return ProcessingStep(kind, numbers)


def _extents(kind: StepKind, words: list[str]) -> ProcessingStep:
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", ":".join(words))
    if match is None or not all(map(int, match.groups())):
        raise ConfigError("needs height x width of the sensor after 'resize', as resize:120x160")
    return ProcessingStep(kind, extents=(int(match[1]), int(match[2])))


def _window(kind: StepKind, words: list[str]) -> ProcessingStep:
    names = [window.value for window in Window]
    if len(words) != 1 or words[0] not in names:
        raise ConfigError(f"needs {' or '.join(names)} after 'window', for example window:hann")
    return ProcessingStep(kind, window=Window(words[0]))


def _count(kind: StepKind, words: list[str]) -> ProcessingStep:
    if len(words) != 1 or not re.fullmatch(r"[1-9]\d{0,5}", words[0]):
        raise ConfigError("needs a number after 'topk', for example topk:3")
    return ProcessingStep(kind, (float(words[0]),))


def _suppression(kind: StepKind, words: list[str]) -> ProcessingStep:
    is_said = bool(words) and words[-1] in (_CORNERS, _CENTRES)
    fields = words[:-1] if is_said else words
    name, (overlap, least, most) = ":".join(fields[:-3]), ([""] * 3 + fields)[-3:]
    try:
        numbers = float(overlap), float(least)
    except ValueError:
        numbers = math.nan, math.nan
    is_count = re.fullmatch(r"[1-9]\d{0,5}", most)
    if not (name and is_count and 0 <= numbers[0] <= 1 and math.isfinite(numbers[1])):
        raise ConfigError(
            "needs four values after 'nms'. They are the output with scores, the overlap from 0 to "
            "1 that removes a box, the least score, and the number of boxes to keep. A fifth is "
            f"'{_CORNERS}' or '{_CENTRES}': nms:scores:0.5:0.25:10:{_CENTRES}"
        )
    is_centred = is_said and words[-1] == _CENTRES
    said = Suppression(name, *numbers, int(most), is_centred)
    return ProcessingStep(kind, suppression=said)


def _lengths(kind: StepKind, words: list[str]) -> ProcessingStep:
    fits = all(re.fullmatch(r"[1-9]\d{0,4}", text) for text in words)
    numbers = [int(text) for text in words] if fits else []
    samples, length = (numbers + numbers)[:2] if len(numbers) in (1, 2) else (1, 0)
    if samples > length or length % 2:
        raise ConfigError(
            "needs two lengths after 'power', for example power:480:512. They are the number of "
            "samples, and the length of the transform, which is even and not smaller"
        )
    return ProcessingStep(kind, tuple(map(float, numbers)))


def _bands(kind: StepKind, words: list[str]) -> ProcessingStep:
    step = _numbers(kind, words)
    if len(step.numbers) not in (1, 3) or step.numbers[0] <= 0:
        raise ConfigError(
            "needs the sample rate after 'mel', for example mel:16000:20:4000. The lowest and "
            "highest frequency may follow"
        )
    return step


_BEFORE: dict[StepKind, _Read] = {
    **dict.fromkeys(GIVEN, _alone),
    StepKind.RESIZE: _extents,
    **dict.fromkeys(_ARITHMETIC, _numbers),
    **dict.fromkeys(_FUNCTIONS, _alone),
    StepKind.WINDOW: _window,
    StepKind.POWER: _lengths,
    StepKind.MEL: _bands,
    StepKind.NHWC: _alone,
}
_BEHIND: dict[StepKind, _Read] = {
    StepKind.DEQUANTIZE: _alone,
    **dict.fromkeys(_ARITHMETIC, _numbers),
    **dict.fromkeys(_FUNCTIONS, _alone),
    StepKind.SOFTMAX: _alone,
    StepKind.SIGMOID: _alone,
    StepKind.ARGMAX: _alone,
    StepKind.TOPK: _count,
    StepKind.NMS: _suppression,
}


def legal_steps(*, before: bool) -> str:
    """Return the names of the steps before inputs, or behind outputs."""
    return ", ".join(kind.value for kind in (_BEFORE if before else _BEHIND))


def _problem(text: str, readers: dict[StepKind, _Read]) -> str:
    try:
        processings = _parsed(text, readers)
    except ConfigError as error:
        return error.what
    names = [processing.name for processing in processings]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        return f"names '{repeated}' twice" if repeated else "has two parts without a name"
    return ""


def _parsed(text: str, readers: dict[StepKind, _Read]) -> tuple[Processing, ...]:
    """Return the steps of a text.

    Raises:
        ConfigError: it is malformed.
    """
    processings = []
    for part in text.split(";") if text else ():
        name, sign, steps = part.rpartition("=")
        if sign and not name.strip():
            raise ConfigError(f"contains '{part.strip()}', which has no name before the '='")
        processings.append(
            Processing(
                name.strip(), tuple(_step(step.strip(), readers) for step in steps.split(","))
            )
        )
    return tuple(processings)


def _step(text: str, readers: dict[StepKind, _Read]) -> ProcessingStep:
    name, *words = text.split(":")
    kind = next((kind for kind in readers if kind.value == name), None)
    if kind is None:
        raise ConfigError(f"contains '{text}', which is not a step")
    return readers[kind](kind, words)
