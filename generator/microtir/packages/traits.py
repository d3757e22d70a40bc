"""Names what a compiled model may ask of its caller that some packages have no place for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from microtir.artifact import Artifact
from microtir.errors import Fix, UsageError
from microtir.instruction_sets.features import Feature
from microtir.projects.model_files import RUNTIME_FOLDER
from microtir.projects.models import ModelValues
from microtir.support.spelled import Spelled


class ModelTrait(Spelled):
    """A property of a model that a format may refuse; the value stands in `template.toml`."""

    RUNTIME = "runtime"  # it calls the C runtime
    PACKED = "packed"  # it is called with packed arguments
    PARAMETERS = "parameters"  # its weights are a file
    DEVICES = "devices"  # it is given handles of devices
    ROWS = "rows"  # functions of the caller hand over rows
    WORKSPACE_TENSORS = "workspace-tensors"  # inputs or outputs lie in the workspace
    COUNT = "count"  # each run is told how many entries of a batch there are, or counts values
    CONSTANT_POOLS = "constant-pools"  # the caller has memory for constants
    POOLS = "pools"  # the caller has several memories for activations
    FLASH_READS = "flash-reads"  # constants are read by instructions of AVR
    NO_INPUTS = "no-inputs"  # nothing is read
    LIBRARIES = "libraries"  # sources of others come with it


_SAYS: Mapping[ModelTrait, tuple[str, Fix]] = MappingProxyType(
    {
        ModelTrait.RUNTIME: (
            "needs the C runtime",
            Fix("build it with executor='aot'", "leave out --executor and --runtime"),
        ),
        ModelTrait.PACKED: (
            "is called with packed arguments",
            Fix("use interface-api 'c'", "add --executor-aot-interface-api c"),
        ),
        ModelTrait.PARAMETERS: (
            "has its weights in a file",
            Fix("use link-params", "add --executor-aot-link-params 1"),
        ),
        ModelTrait.DEVICES: (
            "is given devices",
            Fix("build it for one CPU", "name one CPU as --target"),
        ),
        ModelTrait.ROWS: (
            "gets rows of its tensors from functions of the caller",
            Fix(
                "turn row-fed-inputs and row-drained-outputs off",
                "leave out --executor-aot-row-fed-inputs and --executor-aot-row-drained-outputs",
            ),
        ),
        ModelTrait.WORKSPACE_TENSORS: (
            "has inputs or outputs in its workspace",
            Fix(
                "turn memory.use_workspace_io off",
                "leave out --pass-config memory.use_workspace_io",
            ),
        ),
        ModelTrait.COUNT: (
            "takes arguments beside its tensors: the entries of a batch, or a counter",
            Fix("build it for one extent, without guards", "give --dim one extent, and no guards"),
        ),
        ModelTrait.CONSTANT_POOLS: (
            "gets its constants from the caller",
            Fix("build it without constant_pools", "leave out --constant-pools"),
        ),
        ModelTrait.POOLS: (
            "is given several memories",
            Fix("build it with one workspace pool", "leave out --workspace-pools"),
        ),
        ModelTrait.FLASH_READS: (
            "reads its constants as only an AVR can",
            Fix("build it for another target", "name another CPU as --target"),
        ),
        ModelTrait.NO_INPUTS: (
            "has no inputs",
            Fix("take another format", "name another --format"),
        ),
        ModelTrait.LIBRARIES: (
            "brings sources of a library",
            Fix("build it without external", "leave out --external"),
        ),
    }
)


def traits_of(artifact: Artifact, values: ModelValues) -> frozenset[ModelTrait]:
    """Return what a model asks for beyond two structs of tensors and one workspace."""
    config = artifact.module.require_config("package")
    name, paths = values.name, [source.path for source in artifact.sources]
    own = (f"{name}.", f"{name}_", RUNTIME_FOLDER)
    asked = {
        ModelTrait.RUNTIME: any(path.startswith(RUNTIME_FOLDER) for path in paths),
        ModelTrait.PACKED: bool(values.call.packed),
        ModelTrait.PARAMETERS: values.call.parameters,
        ModelTrait.DEVICES: values.call.devices,
        ModelTrait.ROWS: any(port.by_rows for port in values.ports),
        ModelTrait.WORKSPACE_TENSORS: not all(port.is_own for port in values.ports),
        ModelTrait.COUNT: config.executor.batch_count or config.executor.guard_inputs,
        ModelTrait.CONSTANT_POOLS: bool(values.given_constants),
        ModelTrait.POOLS: len(values.pools) > 1,
        ModelTrait.FLASH_READS: any(target.has(Feature.AVR_PROGMEM) for target in config.targets),
        ModelTrait.NO_INPUTS: not values.inputs,
        ModelTrait.LIBRARIES: any(
            path.endswith(".c") and not path.startswith(own) for path in paths
        ),
    }
    return frozenset(trait for trait, is_so in asked.items() if is_so)


def refuse(
    artifact: Artifact, values: ModelValues, refused: Iterable[ModelTrait], title: str
) -> None:
    """Refuse a model that a format cannot hold.

    Raises:
        UsageError: says which of its traits that is.
    """
    traits = traits_of(artifact, values)
    for trait in refused:
        if trait in traits:
            what, fix = _SAYS[trait]
            raise UsageError(
                f"'{values.name}' {what}, which {title} cannot hold",
                where="packages.generate(artifacts)",
                fix=fix,
            )
