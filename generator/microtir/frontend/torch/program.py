"""Read the program of an archive as plain records: what the JSON says, not yet what it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from microtir.dtype import DType
from microtir.errors import UnsupportedModelError
from microtir.frontend.torch.records import MOST_ITEMS, Record
from microtir.frontend.torch.scalar_types import scalar_type
from microtir.frontend.torch.symbols import Expression, parse
from microtir.operators.common.torch_operands import OtherType

_MAJOR = 8  # the version of the schema that this follows
_MOST_DEPTH = 16
_MOST_RANK = 16


@dataclass(frozen=True, slots=True)
class Named:
    """A value by its name in the graph."""

    name: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An argument of a kind that no reader takes: an object of Python, say."""

    kind: str


Argument: TypeAlias = (
    "Named | Refused | FileGraph | DType | OtherType | bool | int | float | str"
    " | tuple[Argument, ...] | None"
)
"""An argument or result of a node as the file states it."""


@dataclass(frozen=True, slots=True)
class FileTensor:
    """The type of a tensor: what is open in its shape is an expression.

    `is_dense` says that its elements lie one after the other, in rows.
    """

    dtype: DType | OtherType
    sizes: tuple[Expression, ...]
    is_dense: bool


@dataclass(frozen=True, slots=True)
class FileNode:
    """A node.

    Args:
        index: its position in the graph.
        target: the operator and its overload, as in "aten.add.Tensor".
        arguments: by the names of the schema; what has no name has the number of its position.
        results: names, of several results or of a list of them one by one.
        module: of the model's tree that it belongs to, as in "features.0".
        line: of the user's Python that it comes from, as in "net.py line 18"; empty if not known.
    """

    index: int
    target: str
    arguments: Mapping[str, Argument]
    results: tuple[Argument, ...]
    module: str
    line: str


@dataclass(frozen=True, slots=True)
class FileGraph:
    """A graph: of the program, or one that a node holds."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    nodes: tuple[FileNode, ...]
    tensors: Mapping[str, FileTensor]
    sizes: Mapping[str, Expression]  # of values that are numbers


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The role of an input of the graph.

    `kind` is "user_input", "parameter", "buffer", "tensor_constant" or another one of the format.
    """

    kind: str
    value: Argument  # a name; a number or text of what is no tensor
    title: str = ""  # in the model, as in "conv.weight"
    is_saved: bool = True  # of a buffer: in the state dictionary


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The role of an output of the graph: "user_output", "buffer_mutation" or another one."""

    kind: str
    value: Argument
    title: str = ""


@dataclass(frozen=True, slots=True)
class FileProgram:
    """A whole program."""

    graph: FileGraph
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    ranges: Mapping[str, tuple[int, int | None]]  # of symbols: the least and the most
    output_tree: str
    named_tuples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_program(record: Record) -> FileProgram:
    """Read the JSON of a program.

    Raises:
        ModelFileError: it contradicts the format.
        UnsupportedModelError: it is of another version of the format.
    """
    version = record.record("schema_version").integer("major")
    if version != _MAJOR:
        raise UnsupportedModelError(
            f"its format has version {version}",
            where=record.file,
            legal=f"version {_MAJOR}",
            fix="save the model with PyTorch 2.9 to 2.13",
        )
    module = record.record("graph_module")
    graph = _graph(module.record("graph"), 0)
    signature = module.record("signature")
    ranges = {}
    for name, limits in record.named("range_constraints"):
        most = limits.fields.get("max_val")
        least = 0 if limits.fields.get("min_val") is None else limits.integer("min_val")
        ranges[name] = least, None if most is None else limits.integer("max_val")
    return FileProgram(
        graph,
        tuple(map(_input_spec, signature.records("input_specs"))),
        tuple(map(_output_spec, signature.records("output_specs"))),
        ranges,
        _output_tree(module),
        _named_tuples(module),
    )


def _output_tree(module: Record) -> str:
    """Return the text that says how outputs are nested; empty where it is left out."""
    calls = module.records("module_call_graph")
    whole = next((call for call in calls if call.fields.get("fqn") == ""), None)
    if whole is None or not isinstance(whole.fields.get("signature"), dict):
        return ""
    return whole.record("signature").text("out_spec", "")


def _named_tuples(module: Record) -> Mapping[str, tuple[str, ...]]:
    """Return the names of fields of the named tuples that inputs and outputs are nested in."""
    fields = module.fields.get("treespec_namedtuple_fields")
    if not isinstance(fields, dict):
        return {}
    return {
        name: tuple(str(item) for item in items)
        for name, items in fields.items()
        if isinstance(items, list)
    }


def _graph(record: Record, depth: int) -> FileGraph:
    if depth > _MOST_DEPTH:
        raise record.malformed(f"its graphs are nested more than {_MOST_DEPTH} deep")
    nodes = record.records("nodes")
    return FileGraph(
        tuple(_argument(item, depth) for item in record.records("inputs")),
        tuple(_argument(item, depth) for item in record.records("outputs")),
        tuple(_node(index, item, depth) for index, item in enumerate(nodes)),
        {name: _tensor(meta) for name, meta in record.named("tensor_values")},
        {name: _size(value) for name, value in record.named("sym_int_values")},
    )


def _tensor(record: Record) -> FileTensor:
    sizes = tuple(_size(item) for item in record.records("sizes"))
    if len(sizes) > _MOST_RANK:
        raise record.malformed(f"it has {len(sizes)} dimensions", f"at most {_MOST_RANK}")
    strides = tuple(item.only()[1] for item in record.records("strides"))
    return FileTensor(scalar_type(record.integer("dtype")), sizes, _is_dense(sizes, strides))


def _is_dense(sizes: Sequence[Expression], strides: Sequence[object]) -> bool:
    """Return whether strides are those of rows; open ones are none that anybody knows."""
    step = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=False):
        if not isinstance(size, int) or (stride != step and size != 1):
            return False
        step *= size
    return len(sizes) == len(strides)


def _size(record: Record) -> Expression:
    """Return a size: a number, or what an expression says."""
    kind, value = record.only()
    if kind == "as_int" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind == "as_expr":
        return parse(record.record("as_expr").text("expr_str"), f"{record.file}: {record.place}")
    raise record.malformed(f"a size is {kind}", "a number or an expression")


def _node(index: int, record: Record, depth: int) -> FileNode:
    arguments: dict[str, Argument] = {}
    for position, item in enumerate(record.records("inputs")):
        name = item.text("name") or str(position)
        if name in arguments:
            raise item.malformed(f"the argument '{name[:80]}' occurs twice")
        arguments[name] = _argument(item.record("arg"), depth)
    results = tuple(_argument(item, depth) for item in record.records("outputs"))
    metadata = record.record("metadata") if "metadata" in record.fields else record
    return FileNode(
        index,
        record.text("target").removeprefix("torch.ops."),
        arguments,
        results,
        _module(metadata.text("nn_module_stack", "")),
        _line(metadata.text("stack_trace", "")),
    )


def _module(stack: str) -> str:
    """Return the innermost module of a stack such as "L__self__,,Net;L__self__f,f,Sequential"."""
    return stack.rpartition(";")[2].partition(",")[2].partition(",")[0]


_FRAME = re.compile(r'File "([^"\n]*)", line (\d{1,7})\b')


def _line(trace: str) -> str:
    """Return the innermost line of a trace that lies in no installed package."""
    frames = _FRAME.findall(trace)
    own = [
        frame for frame in frames if not re.search(r"[/\\](site|dist)-packages[/\\]|^<", frame[0])
    ]
    if not own:
        return ""
    path, line = own[-1]
    return f"{path.replace(chr(92), '/').rpartition('/')[2]} line {line}"


def _argument(record: Record, depth: int) -> Argument:
    """Return an argument: a union of all that operators take."""
    kind, value = record.only()
    if kind == "as_none":
        return None
    if kind == "as_graph":
        return _graph(record.record(kind).record("graph"), depth + 1)
    if kind in _ITEMS:
        items = record.items(kind)
        return tuple(_item(record, _ITEMS[kind], item) for item in items)
    if kind in _NESTED:
        return tuple(
            tuple(_item(record, _NESTED[kind], item) for item in _as_list(record, items))
            for items in record.items(kind)
        )
    return _item(record, kind, value)


def _as_list(record: Record, value: object) -> list[object]:
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise record.malformed("an argument is not a list of lists")
    return value


_ITEMS: Mapping[str, str] = MappingProxyType(
    {
        "as_tensors": "as_tensor", "as_ints": "as_int", "as_floats": "as_float",
        "as_strings": "as_string", "as_bools": "as_bool", "as_sym_ints": "as_sym_int",
        "as_sym_bools": "as_sym_bool", "as_sym_floats": "as_sym_float",
        "as_optional_tensors": "as_optional_tensor",
    }
)  # fmt: skip
"""Kinds of lists, and the kinds of their items."""

_NESTED: Mapping[str, str] = MappingProxyType(
    {
        "as_nested_tensors": "as_tensor", "as_int_lists": "as_int", "as_float_lists": "as_float",
    }
)  # fmt: skip

_NUMBERS: Mapping[str, float] = MappingProxyType(
    {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
)


def _item(record: Record, kind: str, value: object) -> Argument:
    """Return an argument that is no list."""
    reader = _KINDS.get(kind)
    return Refused(kind) if reader is None else reader(record, value)


def _named(record: Record, value: object) -> Argument:
    return Named(record.inner(value).text("name"))


def _integer(record: Record, value: object) -> Argument:
    if not isinstance(value, int) or isinstance(value, bool):
        raise record.malformed("an argument is not an integer")
    return value


def _float(record: Record, value: object) -> Argument:
    if isinstance(value, str) and value in _NUMBERS:
        return _NUMBERS[value]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise record.malformed("an argument is not a number")
    return float(value)


def _text(record: Record, value: object) -> Argument:
    if not isinstance(value, str):
        raise record.malformed("an argument is not a text")
    return value


def _flag(record: Record, value: object) -> Argument:
    if not isinstance(value, bool):
        raise record.malformed("an argument is not true or false")
    return value


def _nothing(record: Record, value: object) -> Argument:
    """Return nothing for what says where or how tensors lie in memory."""
    del record, value
    return None


def _scalar_type(record: Record, value: object) -> Argument:
    number = _integer(record, value)
    assert isinstance(number, int)
    return scalar_type(number)


def _either(record: Record, value: object) -> Argument:
    """Return a value that is a name or a number, as a union of its own."""
    kind, inner = record.inner(value).only()
    if kind == "as_name":
        return Named(str(_text(record, inner)))
    if kind == "as_none":
        return None
    if kind not in ("as_int", "as_float", "as_bool", "as_tensor"):
        raise record.malformed(f"an argument is {kind[:80]}")
    return _KINDS[kind](record, inner)


_KINDS: Mapping[str, Callable[[Record, object], Argument]] = MappingProxyType(
    {
        "as_tensor": _named,
        "as_int": _integer,
        "as_float": _float,
        "as_string": _text,
        "as_bool": _flag,
        "as_scalar_type": _scalar_type,
        "as_memory_format": _nothing,
        "as_layout": _nothing,
        "as_device": _nothing,
        "as_sym_int": _either,
        "as_sym_float": _either,
        "as_sym_bool": _either,
        "as_optional_tensor": _either,
    }
)


_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "parameter": "parameter_name", "buffer": "buffer_name",
        "tensor_constant": "tensor_constant_name", "custom_obj": "custom_obj_name",
        "buffer_mutation": "buffer_name", "parameter_mutation": "parameter_name",
        "user_input_mutation": "user_input_name",
    }
)  # fmt: skip
"""Fields that name the thing in the model which an input or output of the graph stands for."""


def _input_spec(record: Record) -> InputSpec:
    kind, _ = record.only()
    inner = record.record(kind)
    if kind == "user_input":
        return InputSpec(kind, _argument(inner.record("arg"), 0))
    if kind == "constant_input":
        return InputSpec(kind, _argument(inner.record("value"), 0), inner.text("name"))
    is_saved = inner.flag("persistent", True)
    title = inner.text(_TITLES[kind]) if kind in _TITLES else ""
    return InputSpec(kind, Named(inner.record("arg").text("name")), title, is_saved)


def _output_spec(record: Record) -> OutputSpec:
    kind, _ = record.only()
    inner = record.record(kind)
    if kind == "user_output":
        return OutputSpec(kind, _argument(inner.record("arg"), 0))
    title = inner.text(_TITLES[kind]) if kind in _TITLES else ""
    return OutputSpec(kind, Named(inner.record("arg").text("name")), title)


def names_in(argument: Argument) -> Iterator[str]:
    """Yield the names of values that an argument takes; a graph takes what its node is given."""
    if isinstance(argument, Named):
        yield argument.name
    elif isinstance(argument, tuple):
        for item in argument:
            yield from names_in(item)
