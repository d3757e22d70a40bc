"""Streaming over time: a graph of a window of frames becomes one that is given the newest frames.

`push_graph` rewrites it; what it computes is what the whole graph computes on the sliding window.
Rows that move with the window stay in states, and only what new frames change is computed.
"""

from microtir.rewrite.requests.streaming.facts import check_push, windows
from microtir.rewrite.requests.streaming.push import push_graph
from microtir.rewrite.requests.streaming.request import CheckPush, Push

__all__ = ["CheckPush", "Push", "check_push", "push_graph", "windows"]
