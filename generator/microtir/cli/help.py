"""Lays out the help of a verb: the options that are used daily, or with `--help-all` every one."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from microtir.cli.config_options import HELP_ALL, WHOLE_HELP
from microtir.cli.panels import PANEL, PANELS
from microtir.config import FLAGS

DAILY = (
    "--config", "--target", "--module-name", "--numerics", "--optimize", "--stateful",
    "--states", "--stream-axis", "--ram-budget", "--flash-budget",
)  # fmt: skip
"""The options of a configuration that most people ever set."""

_SUMMARIES = {flag.name: flag.summary or flag.help for flag in FLAGS}

_Record = tuple[str, str]


class Command(TyperCommand):
    """A verb: its own options first, those of the configuration under headings of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of the help."""
        whole = ctx.meta.get(WHOLE_HELP, False)
        sections: dict[str, list[_Record]] = {}
        hidden = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            title = _title(parameter)
            if not whole and title in PANELS:
                if not is_shown(parameter):
                    hidden += 1
                    continue
                record = (record[0], _SUMMARIES[parameter.opts[-1]])
            sections.setdefault(title, []).append(record)
        for title in ("Arguments", "Options", *PANELS):
            if title in sections:
                with formatter.section(title):
                    formatter.write_dl(sections[title])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(
                f"{hidden} more options, with values and defaults: {ctx.command_path} {HELP_ALL}"
            )


def is_shown(parameter: Any) -> bool:
    """Return whether the short help has an option: the verb's own, and the daily ones."""
    title = _title(parameter)
    return title not in PANELS or (title == PANEL and parameter.opts[-1] in DAILY)


def _title(parameter: Any) -> str:
    panel: str | None = getattr(parameter, "rich_help_panel", None)
    if panel is not None:
        return panel
    return "Arguments" if parameter.param_type_name == "argument" else "Options"
