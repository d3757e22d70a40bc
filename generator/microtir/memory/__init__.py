"""Offsets in the workspace, with an independent checker; never changes a kernel."""

from microtir.memory.constants import Constant, place_constants
from microtir.memory.limits import Code, check_flash, check_stack, check_workspace, check_workspaces
from microtir.memory.place import Ports, place, ports_of
from microtir.memory.pools import Pool, pools_of
from microtir.memory.traffic import constant_reads

__all__ = [
    "Code",
    "Constant",
    "Pool",
    "Ports",
    "check_flash",
    "check_stack",
    "check_workspace",
    "check_workspaces",
    "constant_reads",
    "place",
    "place_constants",
    "pools_of",
    "ports_of",
]
