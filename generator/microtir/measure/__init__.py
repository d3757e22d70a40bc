"""Measures the flash and the stack of a program in TIR, before anything is printed."""

from microtir.measure.constants import ConstantData, constants_of
from microtir.measure.figures import Figures, figures_of
from microtir.measure.flash import FlashUse
from microtir.measure.functions import Functions
from microtir.measure.stack import StackFrame, Stacks, WorstStack

__all__ = [
    "ConstantData",
    "Figures",
    "FlashUse",
    "Functions",
    "StackFrame",
    "Stacks",
    "WorstStack",
    "constants_of",
    "figures_of",
]
