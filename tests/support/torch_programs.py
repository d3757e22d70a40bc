"""Archives as `torch.export.save` writes them, made without PyTorch."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from microtir.graph.ir import Array

NUMBERS = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float32": 7, "bool": 12,
}  # fmt: skip
"""The numbers that an archive has for scalar types."""


def number(value: int | str) -> dict[str, Any]:
    """Return a size: a number, or an expression."""
    return {"as_int": value} if isinstance(value, int) else {"as_expr": {"expr_str": value}}


def meta(shape: Sequence[int | str], dtype: str = "float32") -> dict[str, Any]:
    """Return what an archive says of a tensor that lies in rows."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent if isinstance(extent, int) else 1
    return {
        "dtype": NUMBERS[dtype], "sizes": [number(extent) for extent in shape],
        "requires_grad": False, "device": {"type": "cpu", "index": None},
        "strides": [number(stride) for stride in reversed(strides)],
        "storage_offset": number(0), "layout": 7,
    }  # fmt: skip


def ref(name: str) -> dict[str, Any]:
    """Return an argument that is a tensor."""
    return {"as_tensor": {"name": name}}


def argument(value: object) -> dict[str, Any]:
    """Return an argument: texts are names of tensors."""
    if isinstance(value, dict):
        return value
    if value is None:
        return {"as_none": True}
    if isinstance(value, str):
        return ref(value)
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value}
    assert isinstance(value, list)
    if all(isinstance(item, str) for item in value):
        return {"as_tensors": [{"name": item} for item in value]}
    return {"as_ints": value}


@dataclass
class TorchProgram:
    """A program that grows node by node.

    Args:
        inputs: shapes and types of what a caller gives.
        buffers: what the model holds, by name; the graph calls them "b_" and the name.
    """

    inputs: Mapping[str, tuple[Sequence[int | str], str]]
    buffers: Mapping[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    mutations: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    out_spec: str = ""

    def add(
        self,
        target: str,
        result: str,
        shape: Sequence[int | str],
        dtype: str = "float32",
        /,
        **arguments: object,
    ) -> str:
        """Add a node with one result, and return the name of that."""
        self.nodes.append({
            "target": f"torch.ops.{target}",
            "inputs": [{"name": n, "arg": argument(v), "kind": 1} for n, v in arguments.items()],
            "outputs": [ref(result)],
            "metadata": {"stack_trace": 'File "/somewhere/net.py", line 7, in forward\n    x'},
        })  # fmt: skip
        self.values[result] = meta(shape, dtype)
        return result

    def graph(self) -> dict[str, Any]:
        """Return the program as JSON."""
        values = {name: meta(*what) for name, what in self.inputs.items()}
        values |= {f"b_{n}": meta(data.shape, data.dtype.name) for n, data in self.buffers.items()}
        names = [*(f"b_{name}" for name in self.buffers), *self.inputs]
        outputs = [*self.mutations.values(), *self.outputs]
        return {
            "inputs": [ref(name) for name in names], "outputs": [ref(name) for name in outputs],
            "nodes": self.nodes, "tensor_values": {**values, **self.values},
            "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": False,
        }  # fmt: skip

    def document(self) -> dict[str, Any]:
        """Return models/model.json."""
        buffers = [
            {"buffer": {"arg": {"name": f"b_{n}"}, "buffer_name": n, "persistent": True}}
            for n in self.buffers
        ]
        outputs = [
            {"buffer_mutation": {"arg": {"name": value}, "buffer_name": name}}
            for name, value in self.mutations.items()
        ]
        outputs += [{"user_output": {"arg": ref(name)}} for name in self.outputs]
        inputs = [{"user_input": {"arg": ref(name)}} for name in self.inputs]
        calls = [{"fqn": "", "signature": {"out_spec": self.out_spec}}] if self.out_spec else []
        return {
            "graph_module": {
                "graph": self.graph(),
                "signature": {"input_specs": [*buffers, *inputs], "output_specs": outputs},
                "module_call_graph": calls, "metadata": {}, "treespec_namedtuple_fields": {},
            },
            "opset_version": {"aten": 10},
            "range_constraints": {
                name: {"min_val": low, "max_val": high}
                for name, (low, high) in self.ranges.items()
            },
            "schema_version": {"major": 8, "minor": 20},
        }  # fmt: skip

    def members(self) -> dict[str, bytes]:
        """Return the members of the archive by name."""
        config = {
            name: {
                "path_name": f"weight_{place}", "is_param": False, "use_pickle": False,
                "tensor_meta": meta(data.shape, data.dtype.name),
            }
            for place, (name, data) in enumerate(self.buffers.items())
        }  # fmt: skip
        weights = {
            f"data/weights/weight_{place}": np.ascontiguousarray(data).tobytes()
            for place, data in enumerate(self.buffers.values())
        }
        return {
            "archive_format": b"pt2", "byteorder": b"little",
            "models/model.json": json.dumps(self.document()).encode(),
            "data/weights/model_weights_config.json": json.dumps({"config": config}).encode(),
            "data/constants/model_constants_config.json": b'{"config": {}}',
            "data/sample_inputs/model.pt": b"\x80\x02cposix\nsystem\n",
            **weights,
        }  # fmt: skip

    def archive(self) -> bytes:
        """Return the archive."""
        return zipped(self.members())


def zipped(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return members in the folder of an archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(f"model/{name}", data)
    return stream.getvalue()
