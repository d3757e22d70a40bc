"""TFLite files into the graph IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.config import PassConfig
from microtir.errors import MicrotirError
from microtir.frontend.model_bytes import ModelSource, load, summary
from microtir.frontend.tflite_file import parse
from microtir.frontend.tflite_graph import GraphReader
from microtir.frontend.tflite_signatures import chosen_signature, named_by
from microtir.module.ir_module import IRModule
from microtir.operators import OperatorRecord
from microtir.rewrite.extra_passes import GraphFunction
from microtir.rewrite.imports import TFLITE_PASSES, read
from microtir.support.arguments import checked_arguments


@checked_arguments
def from_tflite(
    source: ModelSource,
    *,
    name: str | None = None,
    operators: Sequence[OperatorRecord] = (),
    signature: str | None = None,
    pass_config: PassConfig | None = None,
    after: Mapping[str, Sequence[GraphFunction]] | None = None,
) -> IRModule:
    """Read a TFLite model.

    Everything that the file leaves implicit is resolved: padding is explicit, axes are
    non-negative, masks of slices are gone, inputs that are attributes have become attributes.
    Constants are read-only views of the file's bytes, little endian.

    Args:
        source: path of the file, or its bytes.
        name: of the graph; by default the file's name without its suffix, "model" for bytes.
        operators: what custom operators of the file mean, see `microtir.custom`.
        signature: which of the file's signatures is read; by default its first subgraph.
        pass_config: options of the passes over the graph, such as `tir.verify_each_pass`.
        after: functions of the user, by the name of the pass behind which they run.

    Returns:
        A module with a graph and no configuration.

    Raises:
        ModelFileError: the file is missing, unreadable, damaged or contradicts itself.
        UnsupportedModelError: with all `problems` that `check` would return.
        UsageError: two operators have one name, or there is no such signature.
    """
    model = load(source)
    file = parse(model)
    chosen = chosen_signature(file, signature)
    reader = GraphReader(file, chosen.graph, operators)
    graph = reader.graph(model.stem if name is None else name)
    if reader.problems:
        raise summary(model, reader.problems)
    graph = named_by(chosen, graph, file.graphs[chosen.graph])
    return IRModule(graph=read(graph, TFLITE_PASSES, pass_config, after))


@checked_arguments
def check(source: ModelSource, *, signature: str | None = None) -> tuple[MicrotirError, ...]:
    """Return every problem that keeps `from_tflite` from reading a model.

    Empty if there is none.
    """
    try:
        file = parse(load(source))
        reader = GraphReader(file, chosen_signature(file, signature).graph)
        reader.graph("")
    except MicrotirError as error:
        return (error,)
    return tuple(reader.problems)


@checked_arguments
def signatures(source: ModelSource) -> tuple[str, ...]:
    """Return the names of the programs that a model file holds.

    Raises:
        ModelFileError: the file is missing, unreadable or damaged.
    """
    return tuple(signature.key for signature in parse(load(source)).signatures)
