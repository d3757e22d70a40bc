from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.support.names import (
    MAX_C_NAME,
    RESERVED_WORDS,
    c_name,
    c_names,
    is_identifier,
    macro_name,
    module_name_from,
    module_name_problem,
)


@pytest.mark.parametrize("name", ["default", "kws", "MyNet", "net_2", "a", "x" * 48])
def test_legal_module_names(name: str) -> None:
    """Plain identifiers are module names, in either case; `default` is microTVM's own."""
    assert module_name_problem(name) == ""
    assert module_name_from(name) == name


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("my-model.v2", "did you mean 'my_model_v2'?"),
        ("2net", "did you mean 'model_2net'?"),
        ("", "did you mean 'model'?"),
        ("naïve", "is not a C identifier"),
        ("a b", "is not a C identifier"),
        ("a\n", "is not a C identifier"),
        ("_net", "reserved in C or C++: did you mean 'net'?"),
        ("a__b", "did you mean 'a_b'?"),
        ("int", "is a reserved word"),
        ("class", "is a reserved word"),
        ("errno", "is a reserved word or a macro"),
        ("string", "would hide the standard header <string.h>"),
        ("Math", "would hide the standard header <math.h>"),
        ("con", "is not a file name on Windows"),
        ("x" * 49, "more than 48"),
    ],
)
def test_a15_illegal_module_names(name: str, problem: str) -> None:
    """Names that TVM accepted and that gave C which did not compile."""
    assert problem in module_name_problem(name)


@given(st.text(max_size=60))
def test_module_name_from_any_text_is_legal(text: str) -> None:
    """Whatever a model file is called, there is a module name for it."""
    assert module_name_problem(module_name_from(text)) == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("input_1", "input_1"),
        ("Identity", "Identity"),
        ("dtcm-2", "dtcm_2"),
        ("model/conv2d/BiasAdd;model/x", "model_conv2d_BiasAdd_model_x"),
        ("serving_default_x:0", "serving_default_x_0"),
        ("a//b", "a__b"),
        ("3d", "t_3d"),
        ("", "unnamed"),
        ("_", "unnamed"),
        ("__", "unnamed"),
        ("__x", "t_x"),
        ("_X", "t_X"),
        ("_x", "_x"),
        ("int", "int_"),
        ("class", "class_"),
        ("INPUT", "t_INPUT"),
        ("X", "X"),
        ("t_X", "t_X"),
        ("NULL", "t_NULL"),
        ("INT8_MAX", "t_INT8_MAX"),
        ("M_PIl", "t_M_PIl"),
        ("int8_t", "t_int8_t"),
        ("t_int8_t", "t_int8_t"),
        ("__LINE__", "t_LINE__"),
        ("linux", "linux_"),
        ("StatefulPartitionedCall:0", "StatefulPartitionedCall_0"),
        ("größe", "gr__e"),
        ("x" * 80, "x" * 63),
    ],
)
def test_c_name(text: str, name: str) -> None:
    """Tensor names become identifiers by microTVM's rule, reserved words aside."""
    assert c_name(text) == name


@pytest.mark.parametrize(
    ("texts", "taken", "names"),
    [
        (["a", "b"], [], ("a", "b")),
        (["a", "a"], [], ("a", "a_2")),
        (["a/b", "a_b"], [], ("a_b_2", "a_b")),
        (["a", "a", "a_2"], [], ("a", "a_3", "a_2")),
        (["Input", "input"], [], ("Input", "input_2")),
        (["run"], ["run"], ("run_2",)),
        (["x" * 63 + "1", "x" * 63 + "2"], [], ("x" * 63, "x" * 61 + "_2")),
        ([], [], ()),
    ],
)
def test_c_names_resolves_collisions(
    texts: list[str], taken: list[str], names: tuple[str, ...]
) -> None:
    """Names that are legal and alone keep their spelling; the others take a number."""
    assert c_names(texts, taken) == names


@given(st.lists(st.text(alphabet="aAbB_/2-", max_size=4), max_size=12))
def test_c_names_are_legal_distinct_and_stable(texts: list[str]) -> None:
    """Results are identifiers, differ even as macros, and are a fixed point of the mapping."""
    names = c_names(texts)
    assert len(names) == len(texts)
    assert len({macro_name(name) for name in names}) == len(names)
    for name in names:
        assert is_identifier(name)
        assert name not in RESERVED_WORDS
        assert not re.match(r"__|_[A-Z]", name)
        assert len(name) <= MAX_C_NAME
    assert c_names(names) == names
