"""Stage 9: offsets in the workspace, with an independent checker; never changes a kernel."""

from microtir.memory.limits import Limit, check_flash, check_stack, check_workspace
from microtir.memory.place import place

__all__ = ["Limit", "check_flash", "check_stack", "check_workspace", "place"]
