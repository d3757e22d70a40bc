from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.config import Executor, ExecutorKind, InterfaceApi, PassConfig, Placement, Runtime
from microtir.errors import ConfigError

ANYTHING: Any = 1  # what a caller without a type checker might pass
ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128)


def test_defaults_of_aot() -> None:
    """The default is the C interface, unpacked, with weights and alignments from the target."""
    executor = Executor("aot")
    assert dict(executor) == {
        "interface-api": "c",
        "unpacked-api": True,
        "link-params": True,
        "workspace-byte-alignment": None,
        "constant-byte-alignment": None,
        "row-fed-inputs": False,
        "row-drained-outputs": False,
        "steps": False,
        "guard-inputs": False,
        "batch-count": False,
    }
    assert executor.kind is ExecutorKind.AOT
    assert executor.name == "aot"
    assert executor.interface_api is InterfaceApi.C
    assert executor["unpacked-api"] is True
    assert executor.link_params
    assert executor.workspace_byte_alignment is None
    assert executor.constant_byte_alignment is None


@pytest.mark.parametrize("name", ["graph", "debug"])
def test_graph_executors_keep_weights_apart(name: str) -> None:
    """The graph executor has microTVM's only option, with microTVM's default; so has debug."""
    executor = Executor(name)
    assert dict(executor) == {"link-params": False}
    assert executor.interface_api is InterfaceApi.C
    assert executor.unpacked_api
    assert executor.workspace_byte_alignment is None
    assert executor.constant_byte_alignment is None


@pytest.mark.parametrize(
    ("interface", "unpacked", "legal"),
    [
        (None, None, True),
        (None, True, True),
        (None, False, False),
        ("c", None, True),
        ("c", True, True),
        ("c", False, False),
        ("packed", None, True),
        ("packed", True, True),
        ("packed", False, True),
    ],
)
def test_s2_2_unpacked_api_follows_from_interface_api(
    interface: str | None, unpacked: bool | None, legal: bool
) -> None:
    """Left out it is derived; the C interface has no packed operators, and the error says so."""
    given = {"interface-api": interface, "unpacked-api": unpacked}
    options = {name: value for name, value in given.items() if value is not None}
    if legal:
        expected = interface != "packed" if unpacked is None else unpacked
        assert Executor("aot", options)["unpacked-api"] is expected
    else:
        with pytest.raises(ConfigError) as caught:
            Executor("aot", options)
        assert "'unpacked-api'" in str(caught.value)
        assert "'interface-api'" in str(caught.value)


@pytest.mark.parametrize("name", ["workspace-byte-alignment", "constant-byte-alignment"])
@pytest.mark.parametrize("value", [*ALIGNMENTS, 0, -1, -5, 3, 24, 129, 256, True, 4.0, "4"])
def test_a12_alignment_is_a_power_of_two(name: str, value: object) -> None:
    """TVM took 3 and -5 and left the error to the C compiler."""
    legal = isinstance(value, int) and not isinstance(value, bool) and value in ALIGNMENTS
    if legal:
        assert Executor("aot", {name: value})[name] == value
    else:
        with pytest.raises(ConfigError, match=f"'{name}' is {value!r}") as caught:
            Executor("aot", {name: value})
        assert caught.value.legal == "1, 2, 4, 8, 16, 32, 64, 128"


@pytest.mark.parametrize("name", ["unpacked-api", "link-params"])
@pytest.mark.parametrize("value", [0, 1, "True", 1.0])
def test_a12_bool_options_refuse_other_types(name: str, value: object) -> None:
    """TVM could not tell a Bool from an Integer; here an int is refused."""
    with pytest.raises(ConfigError, match=f"'{name}' is {value!r}, which is .* not true or false"):
        Executor("aot", {name: value})


@pytest.mark.parametrize("value", ["C", "banana", "", 1, None])
def test_d2_interface_api_is_no_free_string(value: object) -> None:
    """TVM accepted `C` and `banana`, and silently left out the header."""
    with pytest.raises(ConfigError, match=r"'interface-api' (is|has no value)"):
        Executor("aot", {"interface-api": value})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Executor("vm"), "'executor' is 'vm', which is unknown"),
        (lambda: Executor("Aot"), "did you mean 'aot'?"),
        (lambda: Executor(ANYTHING), "'executor' is 1, which is an integer"),
        (lambda: Executor("aot", {"interface_api": "c"}), "did you mean 'interface-api'?"),
        (lambda: Executor("graph", {"interface-api": "c"}), "graph executor option"),
        (lambda: Executor("aot", {"system-lib": True}), "it is an option of the runtime"),
        (lambda: Executor("aot", ANYTHING), "which is not a mapping"),
        (lambda: Runtime("cpp"), "'runtime' is 'cpp', which is unknown"),
        (lambda: Runtime("crt", {"system_lib": True}), "did you mean 'system-lib'?"),
        (lambda: Runtime("crt", {"system-lib": 1}), "which is an integer, not true or false"),
        (lambda: Runtime("crt", {"interface-api": "c"}), "it is an option of the executor"),
        (lambda: PassConfig({"tir.disable_unrol": True}), "did you mean 'tir.disable_unroll'?"),
        (lambda: PassConfig({"tir.usmp.enable": True}), "memory is always planned"),
        (lambda: PassConfig({"tir.usmp.algorithm": "x"}), "use memory.placement"),
        (
            lambda: PassConfig({"tir.usmp.use_workspace_io": True}),
            "use memory.use_workspace_io",
        ),
        (lambda: PassConfig({"tir.unroll_max_extent": -1}), "expected: 0 to 256"),
        (lambda: PassConfig({"memory.placement": "best"}), "expected: greedy, exact"),
    ],
)
def test_wrong_names_are_refused(make: Callable[[], object], text: str) -> None:
    """An unknown name says the nearest one, or where the option lives now."""
    with pytest.raises(ConfigError) as caught:
        make()
    assert text in str(caught.value)


def test_access_by_name_is_checked() -> None:
    """A misspelt name does not read as a missing value."""
    executor = Executor("aot")
    assert "interface-api" in executor
    assert "interface_api" not in executor
    assert executor.get("nonsense", 5) == 5
    with pytest.raises(ConfigError, match="did you mean 'interface-api'"):
        executor["interface_api"]


def test_registered_names_and_useful_types() -> None:
    """The listings say what a user can give, not the names of internal classes."""
    assert Executor.list_registered() == ("aot", "graph", "debug")
    assert Runtime.list_registered() == ("crt",)
    options = Executor.list_registered_options("aot")
    kinds = {name: option.domain.type_name for name, option in options.items()}
    assert kinds == {
        "interface-api": "name",
        "unpacked-api": "bool",
        "link-params": "bool",
        "workspace-byte-alignment": "int",
        "constant-byte-alignment": "int",
        "row-fed-inputs": "bool",
        "row-drained-outputs": "bool",
        "steps": "bool",
        "guard-inputs": "bool",
        "batch-count": "bool",
    }
    assert options["interface-api"].domain.choices() == ("c", "packed")
    assert list(Runtime.list_registered_options("crt")) == ["system-lib"]
    with pytest.raises(ConfigError, match="'executor' is 'vm'"):
        Executor.list_registered_options("vm")


def test_with_options_derives_anew() -> None:
    """Changing the interface changes what followed from it and keeps the rest."""
    executor = Executor("aot", {"workspace-byte-alignment": 8})
    packed = executor.with_options({"interface-api": "packed"})
    assert packed["unpacked-api"] is False
    assert packed["workspace-byte-alignment"] == 8
    assert Runtime("crt").with_options({"system-lib": True}).system_lib


def test_pass_config_has_every_key() -> None:
    """A pass reads its options without a default of its own."""
    plain = PassConfig()
    assert plain.changed() == {}
    assert not plain.disable_unroll
    assert plain.unroll_max_extent == 0
    assert not plain.verify_each_pass
    assert not plain.replay_each_pass
    assert plain.placement is Placement.GREEDY
    assert PassConfig({"memory.placement": Placement.EXACT}).placement is Placement.EXACT
    assert PassConfig({"tir.unroll_max_extent": 16}).unroll_max_extent == 16
    assert PassConfig({"tir.replay_each_pass": True}).replay_each_pass


def test_a12_repr_loses_no_option() -> None:
    """`str(Runtime(...))` of TVM was `crt`, whatever the options were."""
    assert repr(Runtime("crt", {"system-lib": True})) == "Runtime('crt', {'system-lib': True})"
    assert "'workspace-byte-alignment': 8" in repr(Executor("aot", {"workspace-byte-alignment": 8}))


def test_equal_by_value_and_class() -> None:
    """Options given and defaults left out make equal objects; executors are no runtimes."""
    given = Executor("aot", {"interface-api": InterfaceApi.C, "unpacked-api": True})
    assert given == Executor(ExecutorKind.AOT)
    assert hash(given) == hash(Executor("aot"))
    assert given != Executor("aot", {"interface-api": "packed"})
    assert len({Executor("aot"), Executor("graph"), Runtime("crt"), PassConfig()}) == 4
    with pytest.raises(AttributeError):
        given.settings = ()  # type: ignore[misc]


@given(st.sampled_from(list(product(("c", "packed"), (None, *ALIGNMENTS), (True, False)))))
def test_round_trips_of_an_executor(case: tuple[str, int | None, bool]) -> None:
    """repr, copy and pickle of an executor each give the same executor again."""
    interface, alignment, link = case
    executor = Executor(
        "aot",
        {
            "interface-api": interface,
            "constant-byte-alignment": alignment,
            "link-params": link,
        },
    )
    assert eval(repr(executor), {"Executor": Executor}) == executor
    assert copy.deepcopy(executor) == executor
    assert pickle.loads(pickle.dumps(executor)) == executor
