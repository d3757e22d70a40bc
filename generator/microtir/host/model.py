"""Wraps a compiled program as a Python object."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.artifact import Artifact, Metadata, NodeResult, NodeTensor, graph_nodes, logical_rows
from microtir.errors import Fix, RunError, UsageError, nearest
from microtir.host.backend import Backend, SharedLibrary
from microtir.host.functions import Function
from microtir.host.instance import Instance
from microtir.host.interface import interface_of
from microtir.host.tensors import (
    Array,
    TensorInfo,
    aligned,
    empty_output,
    matched,
    passed_pools,
    ports,
)
from microtir.module.ir_module import PortKind
from microtir.support.arguments import checked_arguments

POISON = 0xA5  # what a workspace holds before a run unless the caller says otherwise


@dataclass(frozen=True, slots=True)
class LayerResult:
    """The tensors that one layer function computed.

    `outputs` holds one array per tensor that the function writes, as (rows, elements of a row) in
    the layout that the layer uses; rows of several images follow each other. `index` is the
    operator's position in the model file.
    """

    name: str
    operator: str
    index: int
    function: str
    outputs: tuple[Array, ...]


class Model:
    """A compiled artifact that runs on this machine; `load` makes it.

    A model is run by `run`; the functions of a user's program are taken by name:
    ``model["matmul"](a, b, c, 16)``. Several threads may call it.

    A model that keeps something from one run to the next is one instance of it: each run goes on
    where the last one ended, until `reset`. Runs of an instance take turns; `instance` gives
    another one, which shares code and weights.
    """

    @checked_arguments
    def __init__(self, artifact: Artifact, backend: Backend) -> None:
        self.artifact = artifact
        self._backend = backend
        self._metadata: Metadata = artifact.metadata
        self.inputs: tuple[TensorInfo, ...] = ports(artifact.metadata, PortKind.INPUT)
        self.outputs: tuple[TensorInfo, ...] = ports(artifact.metadata, PortKind.OUTPUT)
        extra = interface_of(artifact).extra
        self.functions: dict[str, Function] = {
            data.name: Function(data, backend, extra if data.takes_parameters else ())
            for data in self._metadata.functions
        }
        self._instance = Instance(backend, artifact.metadata.state, artifact.metadata.module_name)

    def instance(self) -> Model:
        """Return another instance of the model, which has seen nothing."""
        return Model(self.artifact, self._backend)

    def reset(self) -> None:
        """Forget what runs have left: the next one is as the first."""
        self._instance.reset()

    def state_values(self) -> dict[str, Array]:
        """Return what runs have left, as copies by the members of the C struct."""
        return self._instance.values()

    def save(self) -> bytes:
        """Return what runs have left, for `restore`; no bytes for a model that keeps nothing."""
        return self._instance.save()

    @checked_arguments
    def restore(self, saved: bytes) -> None:
        """Go on from what `save` gave, here, on a board, or by another compilation of the model.

        Raises:
            RunError: the bytes are those of another model, or of none; nothing was changed then.
        """
        self._instance.restore(saved)

    def __call__(self, inputs: Mapping[str, Array] | Array) -> Array | dict[str, Array]:
        """Run the model once, as `run`; of one output the array itself comes back."""
        outputs = self.run(inputs)
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    @checked_arguments
    def run(
        self,
        inputs: Mapping[str, Array] | Array,
        *,
        fill_workspace: int = POISON,
    ) -> dict[str, Array]:
        """Run the model once.

        Args:
            inputs: an array per input, by its name in the model or in C; of a model with one input
                the array alone.
            fill_workspace: the byte that workspace and outputs hold before the run; results must
                not depend on it.

        Returns:
            New arrays by the outputs' names in the model.

        Raises:
            RunError: a name, shape or type does not fit, or the code returned an error status.
            UsageError: the program is no model.
        """
        if self._metadata.model is None:
            raise UsageError(
                "this program is not a model",
                where="Model.run",
                legal=f"its functions: {', '.join(self.functions)}",
            )
        arrays = matched(self.inputs, inputs)
        results = [empty_output(info, fill_workspace) for info in self.outputs]
        memory = self._metadata.memory
        assert memory is not None
        workspace = {
            pool.name: aligned(pool.size, pool.alignment, fill_workspace)
            for pool in passed_pools(memory)
        }
        arrays = [
            array if info.offset is None else _put(info, array, workspace)
            for info, array in zip(self.inputs, arrays, strict=True)
        ]
        results = [
            array if info.offset is None else info.within(workspace)
            for info, array in zip(self.outputs, results, strict=True)
        ]
        with self._instance.used() as state:
            status = self._backend.run(arrays, results, *workspace.values(), state=state)
        if status != 0:
            raise RunError(
                f"the model returned status {status}: {self._backend.status_text(status)}",
                where=f"{self._metadata.module_name}_run",
            )
        return {info.name: array.copy() for info, array in zip(self.outputs, results, strict=True)}

    @checked_arguments
    def run_sequence(
        self, steps: Iterable[Mapping[str, Array]], *, fill_workspace: int = POISON
    ) -> list[dict[str, Array]]:
        """Run the model once for each of `steps`, and return the outputs of each.

        The first goes on where the last run ended, as `run` does: `reset` it, or take a new
        `instance`, to begin anew.

        Raises:
            RunError: as for `run`; the steps before it were run.
        """
        return [self.run(step, fill_workspace=fill_workspace) for step in steps]

    @checked_arguments
    def run_layers(
        self, inputs: Mapping[str, Array], *, fill_workspace: int = POISON
    ) -> tuple[dict[str, Array], tuple[LayerResult, ...]]:
        """Run the model once and keep what every layer computed.

        Returns:
            The outputs, as `run` does, and the layers in the order in which they are printed.

        Raises:
            UsageError: the program was not loaded with ``debug=True``.
            RunError: as for `run`.
        """
        if not isinstance(self._backend, SharedLibrary) or not self._backend.has_hook:
            raise UsageError(
                "layers are not visible in this build", where="Model.run_layers",
                fix="use load(artifact, debug=True)",
            )  # fmt: skip
        seen: dict[tuple[int, int], list[tuple[int, Array]]] = {}

        def keep(layer: int, output: int, address: int, first: int, last: int) -> None:
            rows = np.arange(first, last)
            memory = self._layer_memory(layer, output, address)
            facts = self._metadata.layers[layer].outputs[output]
            values = logical_rows(memory[rows % len(memory)], facts)
            seen.setdefault((layer, output), []).append((first, values))

        with self._backend.hooked(keep):
            outputs = self.run(inputs, fill_workspace=fill_workspace)
        images = self._metadata.images
        return outputs, tuple(
            LayerResult(
                layer.name, layer.operator, layer.index, layer.function,
                tuple(_of_all(seen.get((i, o), []), images) for o in range(len(layer.outputs))),
            )
            for i, layer in enumerate(self._metadata.layers)
        )  # fmt: skip

    @checked_arguments
    def run_nodes(
        self, inputs: Mapping[str, Array], *, fill_workspace: int = POISON
    ) -> tuple[dict[str, Array], tuple[NodeResult, ...]]:
        """Run the model once and watch the nodes of its graph.

        Returns:
            The outputs, as `run` does, and of each node, in the order in which they ran, the
            nanoseconds that it took and the tensors that it left for others.

        Raises:
            UsageError: the model was not built with executor 'debug'.
            RunError: as for `run`.
        """
        if not isinstance(self._backend, SharedLibrary) or not self._backend.has_nodes:
            raise UsageError(
                "nodes are not visible in this build", where="Model.run_nodes",
                fix=Fix(
                    "build it with executor='debug', and load it without sanitizers",
                    "compile it with --executor debug, and run it without --sanitize",
                ),
            )  # fmt: skip
        nodes: list[tuple[str, int]] = []
        tensors: dict[int, list[bytes]] = {}
        with self._backend.observed(
            lambda name, ticks: nodes.append((name, ticks)),
            lambda number, data: tensors.setdefault(number, []).append(data),
        ):
            outputs = self.run(inputs, fill_workspace=fill_workspace)
        known = graph_nodes(self.artifact)
        return outputs, tuple(
            NodeResult(
                known[number].name,  # a name with a zero in it is shorter in C
                ticks,
                self._node_tensors(known[number].layers[-1], tensors.get(number, [])),
            )
            for number, (_, ticks) in enumerate(nodes)
        )

    def _node_tensors(self, layer: int, written: Sequence[bytes]) -> tuple[NodeTensor, ...]:
        """Return what a node wrote, whose last layer knows the types."""
        types = [facts.dtype for facts in self._metadata.layers[layer].outputs]
        return tuple(
            NodeTensor(types[min(index, len(types) - 1)], data)
            for index, data in enumerate(written)
        )

    def __getitem__(self, name: str) -> Function:
        """Return a function of a user's program; UsageError if there is none of this name."""
        if name not in self.functions:
            hint = nearest(name, self.functions)
            raise UsageError(
                f"no function '{name}'",
                where=self._metadata.module_name,
                legal=", ".join(self.functions) or "none: this is a model, use run()",
                fix=hint or None,
            )
        return self.functions[name]

    def _layer_memory(self, layer: int, output: int, address: int) -> Array:
        """Return the memory that holds a layer's output, as (row slots, elements of a row)."""
        facts = self._metadata.layers[layer].outputs[output]
        dtype = np.dtype(facts.dtype)
        shape = (facts.rows, facts.row_elements)
        size = shape[0] * shape[1] * dtype.itemsize
        raw = memoryview((ctypes.c_uint8 * size).from_address(address))
        memory: Array = np.frombuffer(raw, dtype=dtype).reshape(shape)
        return memory


def _put(info: TensorInfo, array: Array, workspace: Mapping[str, Array]) -> Array:
    """Copy an input to its place in the workspace."""
    place = info.within(workspace)
    np.copyto(place, array)
    return place


def _of_all(parts: list[tuple[int, Array]], images: int) -> Array:
    """Return the rows of all images, for each of which a layer is called as often."""
    calls = len(parts) // images
    return np.concatenate([_joined(parts[i * calls : (i + 1) * calls]) for i in range(images)])


def _joined(parts: list[tuple[int, Array]]) -> Array:
    """Return rows in their order, each once, though a layer may have computed some twice."""
    if not parts:
        return np.empty((0, 0))
    rows: dict[int, Array] = {}
    for first, block in parts:
        rows.update(enumerate(block, first))
    return np.stack([rows[row] for row in sorted(rows)])
