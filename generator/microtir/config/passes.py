"""PassConfig: options of single passes, the successor of microTVM's PassContext configuration."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import enums
from microtir.config.input_ranges import InputRange, input_ranges
from microtir.config.more_outputs import more_outputs
from microtir.config.option import Section
from microtir.config.optionmap import OptionMap, checked, store
from microtir.errors import ConfigError


class PassConfig(OptionMap):
    """Every pass option with its value: ``PassConfig({"tir.disable_unroll": True})``.

    Raises:
        ConfigError: an unknown key, an illegal value, or a contradiction.
    """

    __slots__ = ()

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        values = checked(Section.PASS, options, "pass_config")
        if values["tir.disable_unroll"] and values["tir.unroll_max_extent"]:
            raise ConfigError(
                f"pass_config option 'tir.unroll_max_extent' is {values['tir.unroll_max_extent']}, "
                "which cannot be combined with 'tir.disable_unroll' = True",
                where="pass_config.tir.unroll_max_extent",
                legal="0, if tir.disable_unroll is True",
                fix="leave out one of the two options",
            )
        store(self, section=Section.PASS, settings=tuple(values.values()))

    @property
    def disable_unroll(self) -> bool:
        return self._flag("tir.disable_unroll")

    @property
    def unroll_max_extent(self) -> int:
        """Return the most iterations that an innermost loop may have to be unrolled unasked."""
        return self._number("tir.unroll_max_extent") or 0

    @property
    def float_functions(self) -> enums.FloatFunctions:
        """Return how functions of floats such as exp are computed."""
        return enums.FloatFunctions(self["tir.float_functions"])

    @property
    def verify_each_pass(self) -> bool:
        return self._flag("tir.verify_each_pass")

    @property
    def replay_each_pass(self) -> bool:
        return self._flag("tir.replay_each_pass")

    @property
    def attention_cache(self) -> enums.AttentionCache:
        """Return the type of keys and values that are states."""
        return enums.AttentionCache(self["graph.attention_cache"])

    @property
    def block_activations(self) -> enums.BlockActivations:
        """Return the type of what meets weights with a scale for each block."""
        return enums.BlockActivations(self["graph.block_activations"])

    @property
    def input_ranges(self) -> tuple[InputRange, ...]:
        """Return what the user declares of the values stored in inputs."""
        return input_ranges(str(self["graph.input_ranges"]))

    @property
    def more_outputs(self) -> tuple[str, ...]:
        """Return names of tensors inside the model that are outputs, too."""
        return more_outputs(str(self["graph.more_outputs"]))

    @property
    def placement(self) -> enums.Placement:
        return enums.Placement(self["memory.placement"])

    @property
    def recompute(self) -> int:
        """Return how many percent of the model's multiply-accumulates may be done twice."""
        return self._number("memory.recompute") or 0

    @property
    def reorder(self) -> bool:
        """Return whether operators may run in another order than that of the model file."""
        return self._flag("memory.reorder")

    @property
    def use_workspace_io(self) -> bool:
        """Return whether the model's inputs and outputs lie in the workspace."""
        return self._flag("memory.use_workspace_io")

    @property
    def input_pool(self) -> str:
        """Return the workspace pool for inputs in the workspace; empty for any."""
        return str(self["memory.input_pool"])

    @property
    def output_pool(self) -> str:
        """Return the workspace pool for outputs in the workspace; empty for any."""
        return str(self["memory.output_pool"])

    @property
    def ethos_u_invoke(self) -> enums.EthosUInvoke:
        """Return the function of the driver of an Ethos-U that is called."""
        return enums.EthosUInvoke(self["ethos_u.invoke"])

    @property
    def ethos_u_fast_scratch(self) -> enums.FastScratch:
        """Return who has memory for the fast scratch of an Ethos-U."""
        return enums.FastScratch(self["ethos_u.fast_scratch"])

    @property
    def ethos_u_scratch_pool(self) -> str:
        """Return the workspace pool for the scratch of an Ethos-U; empty for any."""
        return str(self["ethos_u.scratch_pool"])

    @property
    def ethos_u_fast_scratch_pool(self) -> str:
        """Return the workspace pool for its fast scratch; empty for any."""
        return str(self["ethos_u.fast_scratch_pool"])

    def __repr__(self) -> str:
        return f"PassConfig({self.changed()!r})"
