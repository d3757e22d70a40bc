"""Name the outputs of a program by the keys of dictionaries and the places of tuples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from microtir.errors import ModelFileError
from microtir.frontend.torch.program import FileProgram
from microtir.frontend.torch.records import Record, parse_record
from microtir.support.reading import WrongDataError, parse_json
from microtir.support.unique_names import UniqueNames

_MOST_DEPTH = 16


def output_names(program: FileProgram, file: str) -> tuple[str, ...]:
    """Return a name for each output that a caller takes, in order.

    Keys of dictionaries and fields of named tuples are names; what lies in tuples and lists alone
    is "output_0", "output_1", counted through all outputs.

    Raises:
        ModelFileError: the file nests outputs in another way than it has them.
    """
    count = sum(spec.kind == "user_output" for spec in program.outputs)
    names = [f"output_{number}" for number in range(count)]
    if program.output_tree:
        text = f'{{"spec": {program.output_tree}}}'.encode()
        tree = parse_record(text, file, "out_spec").items("spec")
        record = Record({"": tree[-1]}, file, "out_spec").record("")
        paths = _paths(record, (), program.named_tuples, 0)
        names = [_name(place, path) for place, path in enumerate(paths)]
    if len(names) != count:
        raise ModelFileError(
            f"it has {count} outputs, but describes {len(names)} results of forward()",
            where=file,
            fix="export the model again",
        )
    take = UniqueNames().take
    return tuple(take(name) for name in names)


def _name(place: int, path: Sequence[str | int]) -> str:
    """Return the name of an output with a path of keys and of places in tuples."""
    if all(isinstance(step, int) for step in path):
        return f"output_{place}"
    return "_".join(("output", *map(str, path)) if isinstance(path[0], int) else map(str, path))


def _paths(
    spec: Record,
    path: tuple[str | int, ...],
    named_tuples: Mapping[str, tuple[str, ...]],
    depth: int,
) -> Iterator[tuple[str | int, ...]]:
    """Yield the path to each leaf."""
    if depth > _MOST_DEPTH:
        raise spec.malformed(f"it is nested more than {_MOST_DEPTH} deep")
    children = spec.records("children_spec")
    if spec.fields.get("type") is None:
        yield path
        return
    keys: Sequence[str | int] = _keys(spec, named_tuples)
    if len(keys) != len(children):
        keys = range(len(children))
    for key, child in zip(keys, children, strict=True):
        yield from _paths(child, (*path, key), named_tuples, depth + 1)


def _keys(spec: Record, named_tuples: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the keys of a dictionary or the fields of a named tuple; none of a list or tuple."""
    kind, context = spec.text("type"), spec.fields.get("context")
    if not isinstance(context, str):
        return ()
    if kind.endswith("namedtuple"):
        return named_tuples.get(context.strip('"'), ())
    try:
        keys = parse_json(context)
    except WrongDataError:
        return ()
    if isinstance(keys, list) and all(isinstance(key, str | int) for key in keys):
        return tuple(map(str, keys))
    return ()
