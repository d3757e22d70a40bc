"""Steps of a deployment as part of the graph: before its inputs, and behind its outputs."""

from microtir.rewrite.requests.processing.before import with_prepended
from microtir.rewrite.requests.processing.behind import with_appended

__all__ = ["with_appended", "with_prepended"]
