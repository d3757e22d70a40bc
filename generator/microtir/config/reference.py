"""The option table as rows and as Markdown: `microtir options` and docs/configuration.md."""

from __future__ import annotations

import sys
from pathlib import Path

from microtir.config.option import Option, Section
from microtir.config.options import OPTIONS, section_options
from microtir.errors import UsageError

BEGIN = "<!-- options: written by `python -m microtir.config.reference docs/configuration.md` -->"
END = "<!-- end of options -->"

_TITLES = {
    Section.CONFIG: "Fields of `CompilationConfig`",
    Section.TARGET: "Attributes of `Target`",
    Section.EXECUTOR_AOT: 'Options of `Executor("aot")`',
    Section.EXECUTOR_GRAPH: 'Options of `Executor("graph")`',
    Section.EXECUTOR_DEBUG: 'Options of `Executor("debug")`',
    Section.RUNTIME_CRT: 'Options of `Runtime("crt")`',
    Section.BUDGET: "Fields of `Budget`",
    Section.WORKSPACE_POOL: "Properties of `WorkspacePoolInfo`",
    Section.CONSTANT_POOL: "Properties of `ConstantPoolInfo`",
    Section.PASS: "Keys of `pass_config`",
}


def option_rows() -> tuple[dict[str, str], ...]:
    """Return every option as text: what `microtir options` prints, and its `--json`."""
    return tuple(_row(option) for option in OPTIONS)


def markdown() -> str:
    """Return every option as Markdown, one table per section, without the markers."""
    parts = []
    for section, title in _TITLES.items():
        lines = [
            f"### {title}",
            "",
            "| option | type | default | values | what it does | flag |",
            "|---|---|---|---|---|---|",
        ]
        for option in section_options(section):
            row = _row(option)
            cells = [
                f"`{row['option']}`",
                row["type"],
                row["default"],
                row["legal"] + (f"; not built yet: {row['pending']}" if row["pending"] else ""),
                row["help"],
                f"`{row['flag']}`" if row["flag"] else "",
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def with_tables(page: str) -> str:
    """Return `page` with its tables of options between the markers replaced.

    Raises:
        UsageError: the page has no markers.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"the page has no lines '{BEGIN}' and '{END}'", where="with_tables(page)")
    return f"{head}{BEGIN}\n\n{markdown()}\n\n{END}{tail}"


def _row(option: Option) -> dict[str, str]:
    pending = [str(value) for value in option.pending if value is not None]
    return {
        "section": _TITLES[option.section].replace("`", ""),
        "option": option.name,
        "type": option.domain.type_name,
        "default": option.default_text,
        "legal": option.legal(),
        "pending": "other values" if None in option.pending else ", ".join(pending),
        "help": option.help,
        "flag": option.flag,
    }


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
