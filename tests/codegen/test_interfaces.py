"""A new interface is an entry of a list; what it adds is in the files and the metadata."""

from __future__ import annotations

import pytest

from microtir import codegen
from microtir.artifact import read_metadata
from microtir.codegen import DataFile, SourceFile
from microtir.codegen.emit import Printed
from microtir.codegen.interface.parts import Draft, Interface, Part, Place
from microtir.codegen.interfaces import INTERFACES
from microtir.codegen.printer.functions import c_function
from microtir.support import resources
from tests.support.programs import model_module


def files_of(printed: Printed) -> dict[str, bytes]:
    """Return the contents by path, but of what names all of them."""
    texts = {file.path: file.content for file in printed.sources if file.path != "metadata.json"}
    return texts | {file.path: file.content for file in printed.data}


def test_a_new_interface_is_one_entry() -> None:
    """It adds parts, a file of each kind and an entry, and nothing else changes."""

    def parts(draft: Draft) -> list[Part]:
        name = draft.program.name
        assert [entry.signature for entry in draft.entries][-1] == "int32_t small_answer(void)"
        return [
            Part(Place.PROTOTYPES, f"int32_t {name}_answer(void);"),
            Part(Place.SYSTEM_INCLUDES, "#include <limits.h>"),
        ]

    answer = Interface(
        "answer",
        lambda _: True,
        entries=lambda *_: [c_function("int32_t small_answer", [], ["return SMALL_OK;"])],
        parts=parts,
        files=lambda _: [SourceFile("answer.txt", "42\n")],
        data=lambda _: [DataFile("answer.bin", b"\x2a")],
    )
    plain = codegen.emit(model_module())
    printed = codegen.emit(model_module(), (*INTERFACES, answer))
    before, after = files_of(plain), files_of(printed)
    assert after.keys() - before.keys() == {"answer.txt", "answer.bin"}
    assert {"answer.txt", "answer.bin"} <= set(printed.metadata.files)
    assert read_metadata(printed.sources[-1].content) == printed.metadata
    added = {
        path: set(after[path].decode().splitlines()) - set(before[path].decode().splitlines())
        for path in ("small.h", "small.c")
    }
    assert "int32_t small_answer(void);" in added["small.h"]
    assert {"int32_t small_answer(void)", "#include <limits.h>"} <= added["small.c"]


def test_what_is_not_asked_for_adds_nothing() -> None:
    """Files are the same to the byte."""

    def never(_draft: Draft) -> list[Part]:
        raise AssertionError("it was asked")

    silent = Interface("silent", lambda _: False, parts=never)
    plain = codegen.emit(model_module())
    assert codegen.emit(model_module(), (silent, *INTERFACES)) == plain


def test_files_get_past_each_interface() -> None:
    """One may change what all have made, as microTVM's writes headers into C files."""
    title = "/* checked */\n"
    last = Interface(
        "last",
        lambda _: True,
        finish=lambda files: [SourceFile(f.path, title + f.text) for f in files],
    )
    printed = codegen.emit(model_module(), (*INTERFACES, last))
    *texts, metadata = printed.sources
    assert all(file.text.startswith(title) for file in texts)
    assert not metadata.text.startswith(title)
    lines = codegen.emit(model_module()).metadata.layers[0].lines
    assert printed.metadata.layers[0].lines == tuple(line + 1 for line in lines)


def test_names_are_those_of_one_interface() -> None:
    """Each is spoken of by its name."""
    names = [interface.name for interface in INTERFACES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "template", ["header.h.j2", "source.c.j2", "graph.h.j2", "tvmgen.h.j2", "tvmgen.c.j2"]
)
def test_templates_place_parts(template: str) -> None:
    """They ask for nothing: what is there was decided by the interfaces."""
    assert "{% if" not in (resources.templates() / "c" / template).read_text("utf-8")
