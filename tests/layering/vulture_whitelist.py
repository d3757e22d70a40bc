"""Names that only a user of microtir calls: the package's own files never do."""

from __future__ import annotations

# Name -> who calls it.  A name that vulture no longer reports fails the test: remove its line.
WHITELIST: dict[str, str] = {
    "format_options": "typer, when it prints the help of a verb",
    "from_json": "whoever keeps a configuration as text",
    "list_registered": "whoever looks for executors and runtimes, by microTVM's name",
    "list_registered_options": "whoever looks for options, by microTVM's name",
    **dict.fromkeys(
        ("has_dsp", "has_mve", "list_kinds", "with_host"), "scripts, by microTVM's names"
    ),
    "leave": "the Python that the interpreter translates TIR to",
    "set_inputs": "whoever drives a model on a board",
    "with_attr": "whoever marks a module, by the name in the RFC",
    "load_bytecode": "jinja2, when it looks for a template",
    "dump_bytecode": "jinja2, when it has compiled a template",
    "publisher": "a template: library.properties of Arduino",
    "has_sequences": "a template: the test of a crate",
    "is_called_plainly": "a template: the call in a README",
    "__getattr__": "Python, when a public name of the package is first used",
    "__dir__": "Python's interactive shell",
    "__init_subclass__": "Python, when a class of an operator is made",
    "_repr_html_": "a notebook, when a cell ends with the object",
}
