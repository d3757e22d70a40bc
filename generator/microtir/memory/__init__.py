"""Stage 9: offsets in the workspace, with an independent checker; never changes a kernel."""

from microtir.memory.limits import (
    Limit,
    check_flash,
    check_stack,
    check_workspace,
    excess,
    room,
    workspace_limits,
)
from microtir.memory.place import Ports, place
from microtir.memory.pools import Pool, pools_of

__all__ = [
    "Limit",
    "Pool",
    "Ports",
    "check_flash",
    "check_stack",
    "check_workspace",
    "excess",
    "place",
    "pools_of",
    "room",
    "workspace_limits",
]
