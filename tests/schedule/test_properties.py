"""Any sequence of steps that the schedule accepts keeps the meaning of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from microtir import te
from microtir.dtype import DType
from microtir.errors import ScheduleError
from microtir.schedule import Schedule
from microtir.schedule.program import Loop
from tests.schedule.programs import blur, check_meaning, matmul

I32 = DType.INT32
T = TypeVar("T")


def two_stages() -> list[te.Tensor]:
    """A reduction, an intermediate tensor with two readers, a row range and a bind."""
    y0, y1 = te.var("y0", 0, 4), te.var("y1", 0, 4)
    x = te.placeholder((4, 6), I32, "x")
    k = te.reduce_axis(0, 6, "k")
    t = te.compute((4, 6), lambda r, c: x[r, c] - x[r, 5 - c], "t")
    y = te.compute(
        (4,), lambda r: te.bind("s", te.sum(t[r, k] * x[r, k], k)) * 2, "y", ranges={0: (y0, y1)}
    )
    z = te.compute((3, 5), lambda r, c: t[r + 1, c] + t[r, c + 1], "z")
    return [y, z]


def stores() -> list[te.Tensor]:
    """A ring, a diagonal and a planar storage: loops whose iterations share elements."""
    x = te.placeholder((5, 4), I32, "x")
    ring = te.compute(
        (5, 4), lambda r, c: x[r, c] * 3, "ring", store=lambda r, c: (r % 2, c), buffer_shape=(2, 4)
    )
    diagonal = te.compute(
        (5, 4), lambda r, c: x[r, c] + r, "diagonal", store=lambda r, c: (r + c,), buffer_shape=(8,)
    )
    planar = te.compute(
        (5, 4), lambda r, c: x[r, c], "planar", store=lambda r, c: (c, r), buffer_shape=(4, 5)
    )
    return [ring, diagonal, planar]


def triangle() -> list[te.Tensor]:
    """Reductions with ranges that depend on other loops, in floats and in integers."""
    x = te.placeholder((4, 5), DType.FLOAT32, "x")
    n = te.placeholder((4, 5), I32, "n")
    a = te.reduce_axis(0, 4, "a")
    b = te.reduce_axis(a, 5, "b")
    p, q = te.reduce_axis(0, 4, "p"), te.reduce_axis(0, 5, "q")
    y = te.compute((3,), lambda i: te.sum(x[a, b] / 3, [a, b]) + te.cast(DType.FLOAT32, i), "y")
    z = te.compute((3,), lambda i: te.max(n[p, q] * i, [p, q]), "z")
    return [y, z]


PROGRAMS: dict[str, Callable[[], list[te.Tensor]]] = {
    "matmul": lambda: [matmul()],
    "float matmul": lambda: [matmul(3, 4, 5, DType.FLOAT32)],
    "blur": lambda: [blur(4, 5)[2]],
    "two stages": two_stages,
    "stores": stores,
    "triangle": triangle,
}
REWRITES = ("split", "fuse", "partition", "reorder", "cache_write", "cache_read", "compute_at")
MARKS = ("unroll", "vectorize")  # last: a marked loop is not rewritten any more


def apply(step: str, s: Schedule, data: st.DataObject) -> None:
    """One step with random operands; ScheduleError if it is not legal."""
    program = s._program  # the tests look at what a user reaches through tensors
    loops = [loop for stage in program.storage for loop in s.loops(stage.tensor)]

    def any_of(items: Sequence[T]) -> T:
        return items[data.draw(st.integers(0, len(items) - 1))]

    def loop() -> Loop:
        return any_of(loops)

    def neighbours(count: int) -> list[Loop]:
        """Loops that follow each other in the text, and so may well be nested."""
        first = data.draw(st.integers(0, max(len(loops) - count, 0)))
        return loops[first : first + count]

    if step == "split":
        s.split(loop(), data.draw(st.integers(1, 4), "factor"))
    elif step == "partition":
        s.partition(loop(), data.draw(st.integers(-1, 6), "at"))
    elif step == "fuse":
        s.fuse(*neighbours(2))
    elif step == "reorder":
        s.reorder(*data.draw(st.permutations(neighbours(data.draw(st.integers(2, 4))))))
    elif step == "unroll":
        s.unroll(loop())
    elif step == "vectorize":
        s.vectorize(loop())
    elif step == "cache_write":
        s.cache_write(loop())
    elif step == "cache_read":
        s.cache_read(any_of(program.inputs), loop())
    else:
        inner = [stage for stage in program.storage if not stage.is_output]
        s.compute_at(any_of(inner or list(program.storage)).tensor, loop())


@given(st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_accepted_steps_keep_the_meaning(data: st.DataObject) -> None:
    """Random steps; the refused ones change nothing, the others keep every stored element."""
    tensors = PROGRAMS[data.draw(st.sampled_from(sorted(PROGRAMS)), "program")]()
    s = te.create_schedule(tensors)
    rewrites = data.draw(st.lists(st.sampled_from(REWRITES), min_size=1, max_size=8))
    marks = data.draw(st.lists(st.sampled_from(MARKS), max_size=3))
    for step in (*rewrites, *marks):
        before, count = s.body, len(s.steps)
        try:
            apply(step, s, data)
            event(f"{step} accepted")
        except ScheduleError:
            assert s.body is before
            assert len(s.steps) == count
    note("\n".join(s.steps))
    check_meaning(s, tensors)
