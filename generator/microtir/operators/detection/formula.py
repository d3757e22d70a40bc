"""Compute operators that choose boxes, by functions in TIR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common.written_operands import operands_text
from microtir.operators.detection import definition as detection
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse_function


def _number(value: float) -> str:
    """Return a float32 as TIR reads it."""
    return f"float32({float(np.float32(value))!r})" if np.isfinite(value) else f"{value}"


def _indented(text: str, depth: int) -> str:
    return "\n".join("  " * depth + line if line else line for line in text.splitlines())


_HIGHEST = """
alloc best: int32[] local
alloc top: float32[] local
best[] = -1
top[] = -inf
for i in range(0, {boxes}):
  if left[i, {score}] > top[]:
    top[] = left[i, {score}]
    best[] = i
"""
"""Find the box with the highest score that is left."""

_OVERLAP = """
let area: float32 = apart((y_high - y_low) * (x_high - x_low))
let own: float32 = apart((bottom - top_row) * (right - left_column))
let rows: float32 = max(min(y_high, bottom) - max(y_low, top_row), float32(0.0))
let columns: float32 = max(min(x_high, right) - max(x_low, left_column), float32(0.0))
let inside: float32 = apart(rows * columns)
let both: float32 = select(area > float32(0.0) and own > float32(0.0), apart(area + own) - inside, float32(1.0))
let shared: float32 = select(area > float32(0.0) and own > float32(0.0), inside, float32(0.0))
"""  # noqa: E501
"""Compare a box with the chosen one; their overlap is `shared` / `both`."""


def non_max_suppression(node: Node, name: str) -> PrimFunc:
    """Write NON_MAX_SUPPRESSION_V4 and V5: the best box goes, and takes others with it."""
    op = node.attributes(detection.NonMaxSuppression)
    constants, given_names, (boxes, scores) = operands_text(node, ("boxes", "scores"))
    size, threshold = node.inputs[0].shape[0], _number(op.score_threshold)
    with_scores = len(node.outputs) == 3
    results = [f"chosen: int32[{op.count}]"]
    results += [f"values: float32[{op.count}]"] if with_scores else []
    parameters = ", ".join((*given_names, *results, "number: int32[]", f"left: float32[{size}, 1]"))
    return parse_function(f"""
{constants}
func {name}({parameters}):
  scratch left
  alloc most: int32[] local
  number[] = 0
  most[] = 0
  for j in range(0, {op.count}):
    chosen[j] = 0
    {"values[j] = float32(0.0)" if with_scores else "pass"}
  for i in range(0, {size}):
    left[i, 0] = select({scores}[i] > {threshold}, {scores}[i], -inf)
    if left[i, 0] > -inf:
      most[] = min(most[] + 1, {size})
  for j in range(0, {op.count}):
{_indented(_HIGHEST.format(boxes=size, score=0), 2)}
    if best[] >= 0 and j < most[]:
      let b: int32 = min(max(best[], 0), {size - 1})
      chosen[j] = b
      {"values[j] = top[]" if with_scores else "pass"}
      number[] = j + 1
      let top_row: float32 = min({boxes}[b, 0], {boxes}[b, 2])
      let bottom: float32 = max({boxes}[b, 0], {boxes}[b, 2])
      let left_column: float32 = min({boxes}[b, 1], {boxes}[b, 3])
      let right: float32 = max({boxes}[b, 1], {boxes}[b, 3])
      for i in range(0, {size}):
        if left[i, 0] > -inf:
          let y_low: float32 = min({boxes}[i, 0], {boxes}[i, 2])
          let y_high: float32 = max({boxes}[i, 0], {boxes}[i, 2])
          let x_low: float32 = min({boxes}[i, 1], {boxes}[i, 3])
          let x_high: float32 = max({boxes}[i, 1], {boxes}[i, 3])
{_indented(_OVERLAP, 5)}
          let overlap: float32 = shared / both
          if overlap >= {_number(op.iou_threshold)}:
            left[i, 0] = -inf
          else:
{_indented(_lowered(op, threshold), 6)}
""")


def _lowered(op: detection.NonMaxSuppression, threshold: str) -> str:
    """Return what becomes of the score of a box that the chosen one does not remove."""
    if op.sigma == 0:
        return "pass"
    return f"""left[i, 0] = left[i, 0] * exp({_number(-0.5 / op.sigma)} * overlap * overlap)
if left[i, 0] <= {threshold}:
  left[i, 0] = -inf"""


def _sides(form: detection.BoxForm, box: str, names: tuple[str, str, str, str]) -> str:
    """Return lines that give the lower and upper ends of both sides of a box."""
    low, high, low_2, high_2 = (f"let {name}: float32 =" for name in names)
    if form is detection.BoxForm.CORNERS:
        return f"""{low} min({box}, 0], {box}, 2])
{high} max({box}, 0], {box}, 2])
{low_2} min({box}, 1], {box}, 3])
{high_2} max({box}, 1], {box}, 3])"""
    return f"""{low} {box}, 0] - apart({box}, 2] * float32(0.5))
{high} {box}, 0] + apart({box}, 2] * float32(0.5))
{low_2} {box}, 1] - apart({box}, 3] * float32(0.5))
{high_2} {box}, 1] + apart({box}, 3] * float32(0.5))"""


@dataclass(frozen=True, slots=True)
class _Class:
    """The choice of boxes of one class; all are texts of TIR, but for the form and numbers.

    Args:
        form: of the boxes.
        size: how many boxes there are.
        most: how many are chosen at most.
        boxes: the beginning of an element of the box `i`, up to its number.
        score: of the box `i`.
        iou: the overlap above which a box is removed.
        least: what scores have to be above, if anything.
        flag: the type of `left`, of whose elements one for each box says whether it is left.
    """

    form: detection.BoxForm
    size: int
    most: int
    boxes: str
    score: str
    iou: str
    least: str | None
    flag: DType

    def chosen(self, taken: str) -> str:
        """Return lines that do something with each chosen box `b` of the score `top[]`.

        A score may be minus infinity, and is none if it is NaN, so that scores do not say what is
        left.
        """
        no, yes = (f"{self.flag.value}({n}{'.0' if self.flag.is_float else ''})" for n in (0, 1))
        is_left = f"{self.score} == {self.score}"
        if self.least is not None:
            is_left += f" and {self.score} > {self.least}"
        ends = ("top_row", "bottom", "left_column", "right")
        others = ("y_low", "y_high", "x_low", "x_high")
        return f"""for i in range(0, {self.size}):
  left[i, 0] = select({is_left}, {yes}, {no})
for turn in range(0, {self.most}):
  alloc best: int32[] local
  alloc top: float32[] local
  best[] = -1
  top[] = -inf
  for i in range(0, {self.size}):
    if left[i, 0] > {no}:
      if best[] < 0 or {self.score} > top[]:
        top[] = {self.score}
        best[] = i
  if best[] >= 0:
    let b: int32 = min(max(best[], 0), {self.size - 1})
    left[b, 0] = {no}
{_indented(taken, 2)}
{_indented(_sides(self.form, f"{self.boxes}b", ends), 2)}
    for i in range(0, {self.size}):
      if left[i, 0] > {no}:
{_indented(_sides(self.form, f"{self.boxes}i", others), 4)}
{_indented(_OVERLAP, 4)}
        if shared / both > {self.iou}:
          left[i, 0] = {no}"""


def class_non_max_suppression(node: Node, name: str) -> PrimFunc:
    """Write NonMaxSuppression of ONNX: in each class of an image the best box takes others away."""
    op, rows = node.attributes(detection.ClassNonMaxSuppression), node.outputs[0]
    names = ("boxes", "scores", "iou", "least")[: len(node.inputs)]
    constants, given_names, (boxes, scores, iou, *least) = operands_text(node, names)
    images, kinds, size = node.inputs[1].shape
    dtype, most = rows.dtype.value, rows.shape[0]
    results = [f"rows: {dtype}[{most}, 3]", "number: int32[1]", f"left: int8[{size}, 1]"]
    of_class = _Class(
        op.form, size, op.count, f"{boxes}[image, ", f"{scores}[image, kind, i]", f"{iou}[]",
        f"{least[0]}[]" if least else None, DType.INT8,
    )  # fmt: skip
    taken = f"""let slot: int32 = min(max(found[], 0), {most - 1})
rows[slot, 0] = cast({dtype}, image)
rows[slot, 1] = cast({dtype}, kind)
rows[slot, 2] = cast({dtype}, b)
found[] = min(found[] + 1, {most})"""
    return parse_function(f"""
{constants}
func {name}({", ".join((*given_names, *results))}):
  scratch left
  alloc found: int32[] local
  found[] = 0
  for j in range(0, {most}):
    for part in range(0, 3):
      rows[j, part] = {dtype}(0)
  for image in range(0, {images}):
    for kind in range(0, {kinds}):
{_indented(of_class.chosen(taken), 3)}
  number[0] = found[]
""")


def _inserted(count: int, kind: str, cell: Callable[[str, str], str]) -> str:
    """Return lines that insert score, class and box behind all that are at least as good.

    Args:
        count: how many there is room for.
        kind: the class.
        cell: gives the element that holds a part of what has a place, by place and part.
    """
    last = count - 1
    return f"""alloc place: int32[] local
place[] = found[]
for back in range(0, {count}):
  let p: int32 = {last} - back
  if p < found[]:
    if {cell("p", "0")} < top[]:
      if p < {last}:
        for part in range(0, 3):
          {cell("p + 1", "part")} = {cell("p", "part")}
      place[] = p
let slot: int32 = max(place[], 0)
if slot < {count}:
  {cell("slot", "0")} = top[]
  {cell("slot", "1")} = cast(float32, {kind})
  {cell("slot", "2")} = cast(float32, b)
  found[] = min(found[] + 1, {count})"""


def best_boxes(node: Node, name: str) -> PrimFunc:
    """Write BestBoxes: what classes choose is put in order, and the worst goes."""
    op = node.attributes(detection.BestBoxes)
    constants, given_names, (boxes, scores) = operands_text(node, ("boxes", "scores"))
    size, count = node.inputs[0].shape[0], op.count
    results = (
        f"places: float32[{count}, 4]", f"values: float32[{count}]", f"kinds: int32[{count}]",
        "number: int32[1]", f"left: float32[{size + 3 * count}, 1]",
    )  # fmt: skip
    of_class = _Class(
        op.form, size, min(count, size), f"{boxes}[",
        f"{scores}[i, kind]" if op.classes_last else f"{scores}[kind, i]",
        _number(op.iou_threshold), _number(op.score_threshold), DType.FLOAT32,
    )  # fmt: skip
    classes = node.inputs[1].type.elements // size
    insertion = _inserted(count, "kind", lambda p, part: f"left[{size} + 3 * ({p}) + {part}, 0]")
    return parse_function(f"""
{constants}
func {name}({", ".join((*given_names, *results))}):
  scratch left
  alloc found: int32[] local
  found[] = 0
  for kind in range(0, {classes}):
{_indented(of_class.chosen(insertion), 2)}
  for j in range(0, {count}):
    if j < found[]:
      let b: int32 = min(max(cast(int32, left[{size} + 3 * j + 2, 0]), 0), {size - 1})
      values[j] = left[{size} + 3 * j, 0]
      kinds[j] = cast(int32, left[{size} + 3 * j + 1, 0])
      for side in range(0, 4):
        places[j, side] = {boxes}[b, side]
    else:
      values[j] = float32(0.0)
      kinds[j] = 0
      for side in range(0, 4):
        places[j, side] = float32(0.0)
  number[0] = found[]
""")


_DECODE = """
for i in range(0, {size}):
  let y: float32 = apart({boxes}[0, i, 0] / {scales[0]} * {anchors}[i, 2]) + {anchors}[i, 0]
  let x: float32 = apart({boxes}[0, i, 1] / {scales[1]} * {anchors}[i, 3]) + {anchors}[i, 1]
  let h: float32 = apart(float32(0.5) * exp({boxes}[0, i, 2] / {scales[2]}) * {anchors}[i, 2])
  let w: float32 = apart(float32(0.5) * exp({boxes}[0, i, 3] / {scales[3]}) * {anchors}[i, 3])
  left[i, 0] = y - h
  left[i, 1] = x - w
  left[i, 2] = y + h
  left[i, 3] = x + w
"""

_CHOOSE = """
let b: int32 = min(max(best[], 0), {last})
let top_row: float32 = left[b, 0]
let left_column: float32 = left[b, 1]
let bottom: float32 = left[b, 2]
let right: float32 = left[b, 3]
block:
  for i in range(0, {size}):
    if left[i, 4] > -inf:
      let y_low: float32 = left[i, 0]
      let x_low: float32 = left[i, 1]
      let y_high: float32 = left[i, 2]
      let x_high: float32 = left[i, 3]
{overlap}
      if shared / both > {iou}:
        left[i, 4] = -inf
left[b, 4] = -inf
"""

_GIVE = """
for j in range(0, {count}):
  if j < found[]:
    let b: int32 = min(max(cast(int32, left[{size} + j, 2]), 0), {last})
    values[0, j] = left[{size} + j, 0]
    kinds[0, j] = left[{size} + j, 1]
    for side in range(0, 4):
      places[0, j, side] = left[b, side]
  else:
    values[0, j] = float32(0.0)
    kinds[0, j] = float32(0.0)
    for side in range(0, 4):
      places[0, j, side] = float32(0.0)
"""


def detection_post_process(node: Node, name: str) -> PrimFunc:
    """Write TFLite_Detection_PostProcess: decode all boxes, then choose for one or each class."""
    op = node.attributes(detection.DetectionPostProcess)
    constants, given_names, (boxes, scores, anchors) = operands_text(
        node, ("boxes", "scores", "anchors")
    )
    size, first, count = node.inputs[0].shape[1], detection.background(node), op.count
    results = (
        f"places: float32[1, {count}, 4]", f"kinds: float32[1, {count}]",
        f"values: float32[1, {count}]", "number: float32[1]", f"left: float32[{size + count}, 5]",
    )  # fmt: skip
    scales = [_number(scale) for scale in op.scales]
    decode = _DECODE.format(size=size, boxes=boxes, anchors=anchors, scales=scales)
    choose = _CHOOSE.format(
        size=size, last=size - 1, overlap=_indented(_OVERLAP, 3), iou=_number(op.iou_threshold)
    )
    score = f"select({{0}} >= {_number(op.score_threshold)}, {{0}}, -inf)"
    insert = _inserted(count, "kind[]", lambda p, part: f"left[{size} + {p}, {part}]")
    if op.per_class:
        groups, most = op.classes, min(op.per_class, size)
        fill = f"left[i, 4] = {score.format(f'{scores}[0, i, group + {first}]')}"
        kind = "kind[] = group"
    else:
        groups, most = 1, min(count, size)
        best = _first_of_highest(f"{scores}[0, i, c + {first}]", op.classes, "highest", "c")
        fill = f"{best}\nleft[i, 4] = {score.format('highest[]')}"
        kind = _first_of_highest(f"{scores}[0, b, c + {first}]", op.classes, "score", "c", "kind")
    return parse_function(f"""
{constants}
func {name}({", ".join((*given_names, *results))}):
  scratch left
  alloc found: int32[] local
  found[] = 0
{_indented(decode, 1)}
  for group in range(0, {groups}):
    for i in range(0, {size}):
{_indented(fill, 3)}
    for turn in range(0, {most}):
{_indented(_HIGHEST.format(boxes=size, score=4), 3)}
      if best[] >= 0:
        alloc kind: int32[] local
        kind[] = 0
{_indented(choose, 4)}
{_indented(kind, 4)}
{_indented(insert, 4)}
{_indented(_GIVE.format(size=size, count=count, last=size - 1), 1)}
  number[0] = cast(float32, found[])
""")


def _first_of_highest(score: str, classes: int, top: str, index: str, remembered: str = "") -> str:
    """Return lines that find the highest score of a box, and its class if that is `kept`."""
    keep = f"\n    {remembered}[] = {index}" if remembered else ""
    return f"""alloc {top}: float32[] local
{top}[] = -inf
for {index} in range(0, {classes}):
  if {score} > {top}[]:
    {top}[] = {score}{keep}"""


def non_max_suppression_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    return node.inputs[0].shape[0] * DType.FLOAT32.bytes


def class_suppression_cost(node: Node) -> int:
    """Return the cost of looking for the best box, and of comparing others with it, each turn."""
    op = node.attributes(detection.ClassNonMaxSuppression, detection.BestBoxes)
    return node.inputs[1].type.elements * (4 + 20 * op.count)


def best_boxes_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    count = node.attributes(detection.BestBoxes).count
    return (node.inputs[0].shape[0] + 3 * count) * DType.FLOAT32.bytes


def detection_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    count = node.attributes(detection.DetectionPostProcess).count
    return 5 * (node.inputs[0].shape[1] + count) * DType.FLOAT32.bytes
