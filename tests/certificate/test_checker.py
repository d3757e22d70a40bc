"""The checker of certificates: what it proves, what it refuses, and that it stands alone."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from microtir.certificate import checker_path
from microtir.support.resources import example
from tests.certificate.mutants import CHECKER, PROGRAMS, program, tried, verdict
from tests.support.command import Command


@pytest.fixture
def digits(microtir: Command, tmp_path: Path) -> Path:
    """Return the certificate of the example, with its C beside it."""
    folder = tmp_path / "digits"
    microtir(
        "compile", example("digits/digits_int8.tflite"), "--target", "c", "--certificate",
        "-o", folder,
    )  # fmt: skip
    return folder / "digits_int8.certificate.json"


def test_the_example_is_proven_and_computes_its_vectors(digits: Path, microtir: Command) -> None:
    """Everything is proven but the softmax's arithmetic, which is named."""
    result = microtir("check-certificate", digits, "--run", "gcc")
    assert result.status == 0, result.out
    assert result.out.endswith("proven\n") and "not proven" not in result.out
    assert "2 test vectors, compiled by gcc" in result.out
    assert "digits_int8_layer10_softmax fit their types" in result.out


def test_the_checker_needs_no_microtir(digits: Path) -> None:
    """The copy beside the C runs with the standard library alone, and imports nothing else."""
    command = [sys.executable, "-I", "-S", str(digits.parent / "certcheck.py"), str(digits)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    tree = ast.parse(checker_path().read_text("utf-8"))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else name.name) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert {name.split(".")[0] for name in imported} <= {*sys.stdlib_module_names}


def test_changed_bytes_are_noticed_by_digests(digits: Path, microtir: Command) -> None:
    """One other byte in any file is refused."""
    facts = json.loads(digits.read_bytes())
    for file in facts["files"]:
        path = digits.parent / file["path"]
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        result = microtir("check-certificate", digits)
        assert result.status == 1
        assert f"not proven (digest): {file['path']} has other bytes" in result.out
        path.write_bytes(content)


@pytest.mark.parametrize(("name", "count"), [("layers", 300), ("products", 20)])
def test_wrong_programs_with_plausible_certificates_are_refused(
    tmp_path: Path, name: str, count: int
) -> None:
    """Of all mutants with digests of their own the accepted ones compute the same bits.

    They move a buffer to bytes that nothing else needs, which is another correct placement, or
    widen a bound in the certificate within its array, which is still true of the same C.  They add
    zeros that nothing reads to weights for assembly, or a sum fits the narrower type, too.  Vectors
    alone notice what is wrong in a function whose arithmetic the certificate names as trusted.
    """
    noticed, accepted = tried(count, name)
    assert noticed.total() == count
    assert {part for _, part in noticed} >= {"access", "order", "placement", "range"}
    for mutant in accepted:
        is_claim = mutant.kind == "bound" and mutant.files == program(name)[0]
        is_moved = mutant.kind == "offset" and mutant.what.endswith("both")
        is_filled = mutant.kind == "array size" and name == "products"
        is_sum = mutant.kind == "accumulator" and name == "products"
        assert is_claim or is_moved or is_filled or is_sum, mutant.what
        is_trusted = is_sum and mutant.what.split()[-1] in mutant.facts["trusted_arithmetic"]
        parts = verdict(mutant.files, mutant.facts, tmp_path, "gcc")
        assert parts == [] or (is_trusted and {*parts} == {"vectors"}), mutant.what


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        # Fewer turns in a kernel of any size, or a loop that is not understood.
        ("block < blocks;", "block < blocks - 1;", "placement"),
        (r"step < steps; step\+\+", "step < steps; step += 1 + 0 * step", "access"),
        # One of four equal reads of an array of any size, all of them, or a pointer to it.
        (r"(lines \+ step\) \* 2)\], 16\) - a_2", r"\1 + 1], 16) - a_2", "access"),
        (r"(pixel\) \* 2) \+ 1\]", r"\1]", "access"),
        (r"&x\[y0 \* 48\]", "&x[y0 * 40]", "access"),
        # A word of a table of constants instead of its neighbour.
        (r"(\(steps \+ 2\)\)) \* 2 \+ 1\]", r"\1 * 2 + 3]", "order"),
        # Sums in a local array: another element, fewer elements, or a narrower type.
        (r"high\[pixel \* 2\] \+=", "high[pixel * 1] +=", "access"),
        (r"high\[pixel \* 2 \+ 1\] \* 2", "high[pixel * 2] * 2", "access"),
        (r"int32_t low\[4\]", "int32_t low[3]", "access"),
        (r"int32_t low\[4\]", "int16_t low[4]", "range"),
    ],
)
def test_wrong_twins_of_assembly_are_refused(tmp_path: Path, old: str, new: str, part: str) -> None:
    """The C beside assembly is changed, and the certificate is as it was."""
    assert part in _changed(tmp_path, "products", old, new)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        # A pointer into the patch that is further than the certificate says.
        (r"(&scratch\[ky / 2 \* 4 \+ ky % 2 \+) 26\]", r"\1 28]", "access"),
        # What is read below a condition equals its claim.
        (r"x\[y_2 \* 8\]", "x[y_2 * 7]", "access"),
        # A function that the C declares only later, with the same parameters.
        (r"(?m)^( +\w+_)borders8_15x8in10at0_m128\(", r"\1fill_150_int8_m128(", "order"),
    ],
)
def test_wrong_layers_are_refused(tmp_path: Path, old: str, new: str, part: str) -> None:
    """The C of a layer of the example is changed, and the certificate is as it was."""
    assert part in _changed(tmp_path, "digits_m4", old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A product, or the border of a plane, is larger than what the next layer sums.
        (r"(\+ pixel\)\] = \(int16_t\))\(int8_t\)", r"\1 255 * "),
        (r"(row\[channel \* 14 \+ col\] =) 4;", r"\1 32767;"),
    ],
)
def test_ranges_of_what_is_widened_in_place_are_proven(tmp_path: Path, old: str, new: str) -> None:
    """A layer writes int16 where its int8 inputs are: the sums of the next layer rest on it."""
    assert "range" in _changed(tmp_path, "planes", old, new)


def test_what_two_pointers_write_into_one_array_has_any_value() -> None:
    """A pointer of another type has a range of its own only where it alone is written through."""
    memory = CHECKER["Memory"]("memory", None, "?")
    memory.parts = {
        i: CHECKER["Memory"]("", None, kind) for i, kind in enumerate(("int8_t", "int16_t"))
    }
    memory.parts[1].widen("int16_t", -3, 4)
    assert CHECKER["stored_in"](memory, [0, 1]) == [("int8_t", None), ("int16_t", (-3, 4))]
    memory.parts[0].widen("int8_t", 0, 1)
    assert CHECKER["stored_in"](memory, [0, 1]) == [("?", (0, 0))] * 2


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        # An array of fewer elements, another array, one for two.
        (r"int32_t factors\[3\]", "int32_t factors[2]", "access"),
        (r"_powers, factors,", "_powers, top,", "access"),
        (r"_powers, top, total\)", "_powers, top, top)", "order"),
        (r"_powers, top, total\)", "_powers, &top[1], total)", "access"),
        # An element that is not set before the call, one that the called function does not set.
        (r"factors\[1\] = top\[0\];", "", "order"),
        (r"for \(int32_t i = 0; i < 1; i\+\+\)", "for (int32_t i = 1; i < 1; i++)", "order"),
        (r"for \(int32_t i = 0; i < 1; i\+\+\)", "for (int32_t i = 0; i < 2; i++)", "access"),
    ],
)
def test_wrong_local_arrays_of_calls_are_refused(
    tmp_path: Path, old: str, new: str, part: str
) -> None:
    """A layer hands its own arrays to functions that fill or read them."""
    assert part in _changed(tmp_path, "attention", old, new)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        # Another pattern, a comparison of less, one that is always true, nothing that sets them.
        ("0x3f210531", "0x3f210530", "access"),
        (r"changed \|= last\[i\]", "changed |= first[i]", "access"),
        (r"_changed\((.*)\) != 0", r"_changed(\1) == 0", "order"),
        (r"\w+_set_canaries\(workspace.*;", "", "order"),
        # One word more is in a buffer; fewer than were set.
        (r"_canaries(\w*)\(workspace, (\w+) / 4u, 4u\)", r"_canaries\1(workspace, \2 / 4u, 40u)",
         "placement"),
        (r"_changed\(workspace, (\w+) / 4u, 4u\)", r"_changed(workspace, \1 / 4u, 3u)", "order"),
        (r"_changed\(workspace, (\w+) / 4u, 4u\)", r"_changed(workspace, \1 / 8u, 4u)",
         "placement"),
    ],
)  # fmt: skip
def test_wrong_canaries_are_refused(tmp_path: Path, old: str, new: str, part: str) -> None:
    """What sets or compares the words at the ends of the workspace is changed."""
    assert part in _changed(tmp_path, "canaries", old, new)


def _changed(folder: Path, name: str, old: str, new: str) -> list[str]:
    files, facts = program(name)
    source = next(path for path in files if path.endswith(".c") and "_weights" not in path)
    changed, count = re.subn(old, new, files[source])
    assert count
    return verdict({**files, source: changed}, facts, folder)


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_programs_are_proven(tmp_path: Path, name: str) -> None:
    """Also where several claims hold a range, and not each choice leaves one to every range."""
    files, facts = program(name)
    assert verdict(files, facts, tmp_path, "gcc") == []
    assert len(facts["vectors"]) == (8 if facts["states"] else 2)


def test_ranges_share_claims_out() -> None:
    """A range gives up the least claim that holds it for one that no other claim holds."""
    assert CHECKER["matched"]([(1, 2), (0, 3)], [(0, 3), (0, 9)]) == {0: 0, 1: 1}
    assert CHECKER["matched"]([(1, 2), (0, 3), (3, 9)], [(0, 3), (0, 4), (1, 9)]) == {
        0: 0,
        1: 1,
        2: 2,
    }
    assert CHECKER["matched"]([(1, 2), (2, 2)], [(1, 2)]) == {0: 0}
    assert CHECKER["matched"]([(2, 2), (1, 3)], [(1, 3), (0, 2)]) == {0: 1, 1: 0}


@pytest.mark.parametrize(
    ("unread", "is_one_of_each"),
    [([3, 7, 11, 15], True), ([3, 7, 11, 15, 24, 28, 32, 36], True), ([3, 7, 11], False),
     ([3, 4, 5, 6], False), ([3, 5, 7, 11, 15], False), ([3, 25, 47, 69], False)],
)  # fmt: skip
def test_words_that_only_assembly_reads(unread: list[int], is_one_of_each: bool) -> None:
    """The same word of four numbers in each of four rows, and of four more."""
    mask = sum(15 << 4 * word for word in unread)
    assert CHECKER["is_one_of_each"](mask) == is_one_of_each
    assert not CHECKER["is_one_of_each"](mask | 1 << 80)


def test_buffers_of_assembly_begin_at_words(tmp_path: Path) -> None:
    """A buffer of bytes moves to free ones in C and certificate alike, but not by a word."""
    files, facts = program("digits_m4")
    buffer = next(b for b in facts["buffers"] if b["name"] == "layer01_depthwise_conv_2d_scratch")
    name = next(name for name in files if name.endswith(".c") and "_weights" not in name)
    old = buffer["offset"]
    for step, parts in ((-4, []), (-1, ["placement"])):
        buffer["offset"] = old + step
        moved = files[name].replace(f"(memory + {old})", f"(memory + {old + step})")
        assert verdict({**files, name: moved}, facts, tmp_path) == parts


def test_claims_of_local_arrays_are_compared(tmp_path: Path) -> None:
    """The C is as it was, and a claim of a local array is wider, missing or of a larger array."""
    for change in ({"greatest": 3}, {"times": 2}, {"greatest": 4}, {"buffer": "higher"}):
        files, facts = program("products")
        function = next(f for f in facts["functions"] if "_gemm2_" in f["name"])
        claim = next(a for a in function["accesses"] if (a["buffer"], a["least"]) == ("high", 0))
        claim.update(change)
        assert {*verdict(files, facts, tmp_path)} == {"access"}


@pytest.mark.parametrize(
    "change",
    [{"times": 3}, {"index": "(quad * lines + step) * 3"}, {"index": ")"}, {"kind": "write"},
     {"within": ["block in [0, blocks)", "quad in [0, quads)", "step in [1, steps)"]},
     {"within": ["block in [0, blocks)", "quad in [0, quads)"]}],
)  # fmt: skip
def test_claims_of_arrays_of_any_size_are_compared(tmp_path: Path, change: dict[str, Any]) -> None:
    """The C is as it was, and the index of a read of weights is another in the certificate."""
    files, facts = program("products")
    function = next(f for f in facts["functions"] if "_gemm2_" in f["name"])
    claim = next(c for c in function["indices"] if c["index"] == "(quad * lines + step) * 2")
    claim.update(change)
    assert {*verdict(files, facts, tmp_path)} == {"access"}


def _form(expression: str) -> object:
    tokens = [CHECKER["Token"](m[0], "a.c:1:1") for m in CHECKER["TOKEN"].finditer(expression)]
    tree = CHECKER["Parser"](tokens).expression()
    return CHECKER["frozen"](CHECKER["form_of"](tree, {"twice": {("x",): 2}}))


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ("(x + 1) * (y - 2) + 2", "x * y - 2 * x + y", True),
        ("twice + (int32_t)(y) * 3", "x + x + y * 3", True),
        ("floor_mod_i32(x - 1, 3)", "(x + 2) % 3", True),
        ("floordiv(x * 2, 3)", "(x + x) / 3", True),
        ("max_i32(x, 0) + 1", "1 + max(x, 0)", True),
        ("x * x", "x * y", False),
        ("x / 3 + y / 3", "(x + y) / 3", False),
        ("x - y", "y - x", False),
        ("(x + 1) % y", "(x + 2) % y", False),
        ("min_i32(x, y)", "max_i32(x, y)", False),
        ("a[x]", "a[y]", False),
        ("-x", "~x", False),
    ],
)
def test_indices_are_compared_as_sums(one: str, other: str, is_equal: bool) -> None:
    """Equal sums in other words are equal; what may differ is not."""
    assert (_form(one) == _form(other)) == is_equal


def test_a_write_that_rests_on_data_reaches_all_that_it_may() -> None:
    """The row is a number in memory: the claim has every row, although none is surely written."""
    text = "void f(const uint8_t *number, int8_t *y) { y[(number[0] & 3) * 2 + 1] = 1; }"
    tokens = [CHECKER["Token"](m[0], "a.c:1:1") for m in CHECKER["TOKEN"].finditer(text)]
    parser = CHECKER["Parser"](tokens)
    parser.program()
    machine = CHECKER["Machine"](parser, {})
    env = {
        name: CHECKER["Pointer"](CHECKER["Memory"](name, size, kind), CHECKER["START"], kind)
        for name, kind, size in (("number", "uint8_t", 1), ("y", "int8_t", 8))
    }
    machine.value(("call", "a.c:1:1", "f", [("name", "", "number"), ("name", "", "y")]), env)
    written = [
        ends for (_, view, kind, _), ends in machine.sites.items() if (view, kind) == (1, "must")
    ]
    assert written == [(1, 8)]


def _swapped(text: str) -> str:
    """Append the newest rows before the kept ones move; the calls have the same names."""
    keep, assign = re.findall(r"    model_layer04_(?:keep_rows|assign)\([^;]*;\n", text)
    return text.replace(keep, "@").replace(assign, keep).replace("@", assign)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda text: text.replace("&stream_2_states[16]", "&stream_2_states[8]"), "placement"),
        (lambda text: re.sub(r"    model_layer04_keep_rows\([^;]*;\n", "", text), "order"),
        (_swapped, "order"),
        (lambda text: re.sub(r"(state->identity\s+)!=", r"\1==", text), "order"),
    ],
)  # fmt: skip
def test_wrong_uses_of_a_state_are_refused(
    tmp_path: Path, change: Callable[[str], str], part: str
) -> None:
    """A ring of frames is proven; rows in the wrong place, lost or too early are not."""
    files, facts = program("streaming")
    assert verdict(files, facts, tmp_path) == []
    changed = change(files["model.c"])
    assert changed != files["model.c"]
    assert part in verdict({**files, "model.c": changed}, facts, tmp_path)


def test_another_function_on_a_state_is_noticed_by_vectors(tmp_path: Path) -> None:
    """It has the same parameters and accesses, and C and certificate call it alike."""
    files, facts = program("streaming")
    old, new = "model_layer04_keep_rows", "model_layer17_keep_rows"
    next(call for call in facts["calls"] if call["function"] == old)["function"] = new
    changed = {**files, "model.c": files["model.c"].replace(f"    {old}(", f"    {new}(")}
    assert verdict(changed, facts, tmp_path) == []
    assert {*verdict(changed, facts, tmp_path, "gcc")} == {"vectors"}


@pytest.mark.parametrize("change", [{"bytes": 36}, {"dtype": "uint8"}, {"member": "other"}])
def test_false_claims_of_a_state_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """The members of the struct in the header are those of the certificate."""
    files, facts = program("streaming")
    facts["states"][0].update(change)
    assert verdict(files, facts, tmp_path) == ["placement"]


def test_the_order_of_calls_that_share_a_state_is_proven(tmp_path: Path) -> None:
    """The calls are swapped in C and certificate: what is kept was overwritten before."""
    files, facts = program("streaming")
    names = [call["function"] for call in facts["calls"]]
    i, j = names.index("model_layer04_keep_rows"), names.index("model_layer04_assign")
    facts["calls"][i], facts["calls"][j] = facts["calls"][j], facts["calls"][i]
    swapped = {**files, "model.c": _swapped(files["model.c"])}
    assert "placement" in verdict(swapped, facts, tmp_path)


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda facts: facts.pop(name)


@pytest.mark.parametrize(
    "change",
    [
        *map(_without, ("buffers", "calls", "functions", "module_name", "vectors")),
        lambda facts: facts["buffers"][0].update(offset=1 << 80),
        lambda facts: facts["buffers"][0].update(bytes=-1),
        lambda facts: facts["buffers"][0].update(bytes="many"),
        lambda facts: facts.update(calls={}),
        lambda facts: facts["calls"][0].update(arguments=[3]),
        lambda facts: facts.update(format_version=2),
    ],
)
def test_hostile_certificates_get_a_sentence(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    """A field that is missing or of another type is named."""
    files, facts = program()
    change(facts)
    assert verdict(files, facts, tmp_path) == ["form"]


def _argument(**changes: object) -> Callable[[dict[str, Any]], object]:
    """Change the first argument of a call that has the fields in question otherwise."""

    def change(facts: dict[str, Any]) -> None:
        every = (one for call in facts["calls"] for one in call["arguments"])
        next(a for a in every if all(a[k] not in (None, v) for k, v in changes.items())).update(
            changes
        )

    return change


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (_argument(reads=False), "access"),
        (_argument(writes=False), "access"),
        (_argument(value="1000"), "order"),
        (_argument(value="row + nothing"), "order"),
        (_argument(value="[]"), "order"),
        (_argument(value="(" * 300), "order"),
        (_argument(reads=None), "form"),
        (lambda facts: facts["calls"][0].update(loops=["row in [0, 1000)"]), "loops"),
        (lambda facts: facts["calls"][0].update(loops=["", "in ["]), "loops"),
        (lambda facts: facts["constants"][0].update(alignment=-1), "form"),
        (lambda facts: facts["functions"][-1].update(accumulator=[]), "form"),
        (lambda facts: facts["stack"].update(bytes="none"), "form"),
        (lambda facts: facts["timing"][0].update(causes=None), "form"),
    ],
)
def test_false_claims_of_true_c_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], part: str
) -> None:
    """The C is as it was, and one field of the certificate is not."""
    files, facts = program()
    change(facts)
    assert verdict(files, facts, tmp_path) == [part]


INT = "(x >= -2147483648.0f ? (int32_t)x : 0)"


@pytest.mark.parametrize(
    ("expression", "ends"),
    [
        ("(int32_t)(x < 255.0f ? (x > 0.5f ? x : 0.5f) : 255.0f)", (0, 255)),
        ("(int32_t)(x > 255.0f ? 255.0f : x)", None),  # NaN is not greater
        (f"x == x ? (x >= 2147483648.0f ? 0 : {INT}) : 0", (-(1 << 31), (1 << 31) - 128)),
        (f"x == x ? (x > 2147483648.0f ? 0 : {INT}) : 0", None),
        (f"x == y ? (x >= 2147483648.0f ? 0 : {INT}) : 0", None),
        ("x < x ? 0 : (x >= 2.0f ? 0 : (x > 1.0f ? 0 : (int32_t)x))", None),
        ("(int32_t)x", None),
        ("(x < 1.0f ? -5 : 3) ^ 1073741824", (-(1 << 31), (1 << 31) - 1)),
        ("1.0f + 16777216.0f", (16777216, 16777216)),
        ("1.0 + 16777216.0f", (-math.inf, math.inf)),
        ("3e38f + 3e38f", (math.inf, math.inf)),
        ("x - x", (-math.inf, math.inf)),
    ],
)
def test_ranges_of_floats(expression: str, ends: tuple[float, float] | None) -> None:
    """Each operation rounds to 32 bits, and NaN compares false; None: an integer may not fit."""
    where = "a.c:1:1"
    tokens = [CHECKER["Token"](m[0], where) for m in CHECKER["TOKEN"].finditer(expression)]
    machine = CHECKER["Machine"].of_numbers()
    number = CHECKER["FLOAT"]
    value = machine.value(CHECKER["Parser"](tokens).expression(), {"x": number, "y": number})
    assert bool(machine.notes) == (ends is None)
    assert ends is None or (value.low, value.high) == ends


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "null", "1e999"])
def test_what_is_no_certificate_gets_a_sentence(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, and one line."""
    path = tmp_path / "a.certificate.json"
    path.write_text(text, "utf-8")
    assert CHECKER["main"]([str(path)]) == 2
    assert capsys.readouterr().out.startswith("certcheck: ")


@pytest.mark.parametrize(
    "body",
    [
        "return " + "(" * 5000 + "1" + ")" * 5000 + ";",
        "{" * 5000 + "}" * 5000,
        "return " + "-" * 5000 + "1;",
        "return " + "9" * 5000 + ";",
        "return 1" + "+ 1" * 5000 + ";",
        "for (int32_t i = 0; i < 10; i += 0) { }",
        "for (int32_t i = 0; i < 2000000000; i++) { memory[i] = 1; }",
        "while (1) { }",
        "return 1 / 0;",
        "goto end;",
        "return undefined_function(workspace);",
        "struct",
        "if (inputs->image[0] > 0) { return 0; }",
        "\n#define default_layer0_conv_2d default_layer1_conv_2d",
        '#if 1\n',
        "uint8_t a[99999999999];",
    ],
)  # fmt: skip
def test_hostile_c_is_refused(tmp_path: Path, body: str) -> None:
    """C that is too deep, too large, endless or of another language is not proven."""
    files, facts = program()
    name = next(name for name in files if name.endswith(".c") and "_weights" not in name)
    head, run, rest = files[name].partition("    const int8_t *const image")
    assert run
    assert verdict({**files, name: f"{head}{body}\n{run}{rest}"}, facts, tmp_path)
