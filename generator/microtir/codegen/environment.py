"""The Jinja environment: templates hold finished strings, loops over lists and includes."""

from __future__ import annotations

from functools import lru_cache

import jinja2

from microtir import resources
from microtir.errors import MicrotirError


class TemplateError(MicrotirError):
    """A template is broken or was given too little; a defect of microtir, or of an edited file."""


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.templates(), encoding="utf-8"),
        autoescape=False,  # C is not HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        newline_sequence="\n",
    )


def render(template: str, **values: object) -> str:
    """Fill in a template.

    Args:
        template: path below `templates/`.
        values: what the template may speak of.

    Raises:
        TemplateError: names template and line.
    """
    try:
        return _environment().get_template(template).render(values)
    except jinja2.TemplateNotFound as error:
        raise TemplateError(
            f"there is no template '{error.name}'", where=f"templates/{template}"
        ) from None
    except jinja2.TemplateSyntaxError as error:
        place = f"templates/{error.name}:{error.lineno}"
        raise TemplateError(f"the template is malformed: {error.message}", where=place) from None
    except jinja2.UndefinedError as error:
        raise TemplateError(
            f"the template uses what it was not given: {error.message}",
            where=_place(error, template),
        ) from None


def _place(error: BaseException, template: str) -> str:
    """The line of a template that an error came from: Jinja rewrites its traceback to it."""
    traceback, line, name = error.__traceback__, 0, template
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if filename.endswith(".j2"):
            line = traceback.tb_lineno
            name = filename.rsplit("/templates/", 1)[-1]
        traceback = traceback.tb_next
    return f"templates/{name}:{line}"
