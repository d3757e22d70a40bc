"""Renders Jinja templates, which hold finished strings, loops over lists and includes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import jinja2

from microtir.errors import MicrotirError
from microtir.support import resources
from microtir.support.templates import RULES


class TemplateError(MicrotirError):
    """A template is broken or was given too little; a defect of microtir, or of an edited file."""


def make_environment(folder: Path) -> jinja2.Environment:
    """Return an environment for the templates of a folder."""
    loader = jinja2.FileSystemLoader(folder, encoding="utf-8")
    return jinja2.Environment(loader=loader, autoescape=False, **RULES)  # C is not HTML


@lru_cache(maxsize=1)
def _installed() -> jinja2.Environment:
    # Kept, since Jinja compiles a template when it is first used.
    return make_environment(resources.templates())


def render(
    template: str, environment: jinja2.Environment | None = None, /, **values: object
) -> str:
    """Fill in a template.

    Args:
        template: path below the folder of templates.
        environment: by default that of the installed templates.
        values: what the template may speak of.

    Raises:
        TemplateError: names template and line.
    """
    try:
        return (environment or _installed()).get_template(template).render(values)
    except jinja2.TemplateNotFound as error:
        raise TemplateError(
            f"there is no template '{error.name}'", where=f"templates/{template}"
        ) from None
    except jinja2.TemplateSyntaxError as error:
        place = f"templates/{error.name}:{error.lineno}"
        raise TemplateError(f"the template is malformed: {error.message}", where=place) from None
    except jinja2.UndefinedError as error:
        raise TemplateError(
            f"the template uses undefined names: {error.message}",
            where=_place(error, template),
        ) from None


def _place(error: BaseException, template: str) -> str:
    """Return template and line that an error came from: Jinja rewrites its traceback to them."""
    traceback, line, name = error.__traceback__, 0, template
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.suffix == ".j2":
            line = traceback.tb_lineno
            # The folder is where the path of the template that was asked for ends.
            name = template if file.as_posix().endswith(template) else file.name
        traceback = traceback.tb_next
    return f"templates/{name}:{line}"
