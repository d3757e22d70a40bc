"""Third-party kernels: what a library offers, and which layers of a graph it gets."""

from microtir.external.interface import Code, Hooks, Library, Match, Pattern, Rule, device
from microtir.external.libraries import library_of, refuse_without_layers
from microtir.external.partition import Partition

__all__ = [
    "Code",
    "Hooks",
    "Library",
    "Match",
    "Partition",
    "Pattern",
    "Rule",
    "device",
    "library_of",
    "refuse_without_layers",
]
