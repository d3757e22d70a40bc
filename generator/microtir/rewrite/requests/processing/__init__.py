"""Steps of a deployment as part of the graph: before its inputs, and behind its outputs."""

from microtir.rewrite.requests.processing.before import Prepend
from microtir.rewrite.requests.processing.behind import Append

__all__ = ["Append", "Prepend"]
