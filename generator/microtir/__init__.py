"""microtir turns a trained model into plain C99 for a microcontroller."""

__version__ = "0.1.0"
