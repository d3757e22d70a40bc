"""Stage 9: offsets in the workspace, with an independent checker; never changes a kernel."""

from microtir.memory.constants import Constant, place_constants
from microtir.memory.limits import (
    Limit,
    check_flash,
    check_stack,
    check_workspace,
    excess,
    is_limited,
    room,
    workspace_limits,
)
from microtir.memory.place import Ports, place
from microtir.memory.pools import Pool, pools_of
from microtir.memory.traffic import constant_reads

__all__ = [
    "Constant",
    "Limit",
    "Pool",
    "Ports",
    "check_flash",
    "check_stack",
    "check_workspace",
    "constant_reads",
    "excess",
    "is_limited",
    "place",
    "place_constants",
    "pools_of",
    "room",
    "workspace_limits",
]
