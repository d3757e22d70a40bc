"""Stage 9: offsets in the workspace, with an independent checker; never changes a kernel."""

from microtir.memory.place import place

__all__ = ["place"]
